import { execFileSync } from 'node:child_process';
import { lstatSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, place, script } from './inside.js';

type Make = (path: string, target: string) => void;

const fifo: Make = (path) => {
  execFileSync('mkfifo', [path]);
};
const device: Make = (path) => {
  symlinkSync('/dev/zero', path);
};
const link: Make = (path, target) => {
  symlinkSync(target, path);
};

test.each([
  ['agent.log', 'a pipe', fifo],
  ['agent.log', 'a link to a device', device],
  ['agent.log', 'a link to a file', link],
  ['agent.db', 'a pipe', fifo],
  ['agent.db', 'a link to a device', device],
] as const)('%s that is %s neither holds up a run nor is written', async (name, _kind, make) => {
  const at = place();
  const folder = join(at.home, '.agent');
  const target = join(at.home, 'target');
  mkdirSync(folder, { mode: 0o700 });
  writeFileSync(target, 'precious', { mode: 0o644 });
  make(join(folder, name), target);
  const before = lstatSync(join(folder, name));
  // What cannot be saved is a line in the log.
  if (name === 'agent.log') fifo(join(folder, 'agent.db'), '');
  const { code, stdout, stderr } = await agent(at, ['-p', '--model', script(at, [{ text: 'one' }]), 'hi']);
  expect([code, stdout]).toEqual([0, 'one\n']);
  expect([readFileSync(target, 'utf8'), lstatSync(target).mode & 0o777]).toEqual(['precious', 0o644]);
  expect(lstatSync(join(folder, name)).ino).toBe(before.ino);
  expect(stderr).toMatch(/The session database \S+ cannot be used: it is (?:not a regular file|a link)/);
});
