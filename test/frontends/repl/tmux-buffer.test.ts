import { chmodSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { keepInTmux } from '../../../src/frontends/repl/tmux-buffer.js';
import { createProcessRunner } from '../../../src/kernel/tools/process/runner.js';

const processes = createProcessRunner({ marker: { name: '_TMUX_TEST', value: '1' } });

/** A directory with a `tmux` that keeps what it is given, as tmux does; `exitCode`: how it ends. */
function folderWithTmux(exitCode: number): string {
  const folder = mkdtempSync(join(tmpdir(), 'tmux-buffer-'));
  const script = `#!/bin/sh\nprintf '%s ' "$@" >'${folder}/args'\ncat >'${folder}/text'\nenv >'${folder}/env'\nexit ${exitCode}\n`;
  writeFileSync(join(folder, 'tmux'), script);
  chmodSync(join(folder, 'tmux'), 0o755);
  return folder;
}

const keep = async (folder: string, text: string): Promise<boolean> =>
  await keepInTmux(
    { processes },
    { cwd: folder, env: { PATH: `${folder}:${process.env.PATH ?? ''}`, TMUX: '/tmp/s,1,0', SOME_API_KEY: 'hidden' } },
    text,
  );

test('a text goes to tmux as it is, with the option that also sets the clipboard; no key goes with it', async () => {
  const folder = folderWithTmux(0);
  const text = `é "quoted" $HOME\n-n\n${'long '.repeat(30_000)}`;
  expect(await keep(folder, text)).toBe(true);
  expect(readFileSync(join(folder, 'text'), 'utf8')).toBe(text);
  expect(readFileSync(join(folder, 'args'), 'utf8')).toBe('load-buffer -w - ');
  expect(readFileSync(join(folder, 'env'), 'utf8')).not.toContain('hidden');
});

test('a tmux that refuses it, or none, is not a tmux', async () => {
  expect(await keep(folderWithTmux(1), 'text')).toBe(false);
  const empty = mkdtempSync(join(tmpdir(), 'tmux-buffer-'));
  expect(existsSync(join(empty, 'tmux'))).toBe(false);
  const gone = { cwd: empty, env: { PATH: empty, TMUX: '/tmp/s,1,0' } };
  expect(await keepInTmux({ processes }, gone, 'text')).toBe(false);
});
