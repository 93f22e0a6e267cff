import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { noteRun, sweepRuns } from '../../../src/features/mcp/orphaned-servers.js';
import { tree } from '../../kernel/tools/workbench.js';

const name = '_AGENT_TRIED_RUN';

/** A process with the mark, in a group of its own. */
function left(value: string) {
  const child = spawn('sleep', ['60'], { env: { PATH: process.env.PATH, [name]: value }, detached: true });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  return { child, ended: once(child, 'exit') };
}

/** The id of a process that has ended. */
async function deadId(): Promise<number> {
  const child = spawn('true');
  await once(child, 'exit');
  return child.pid ?? 0;
}

test('processes of a run that is gone are killed at the next start; those of one that lives are not', async () => {
  const folder = tree();
  const [lost, kept] = [left('gone'), left('alive')];
  writeFileSync(join(folder, 'gone'), String(await deadId()));
  const forget = noteRun(folder, { name, value: 'alive' });
  await sweepRuns(folder, { name, inside: undefined }, () => {});
  expect((await lost.ended)[1]).toBe('SIGKILL');
  expect([existsSync(join(folder, 'gone')), existsSync(join(folder, 'alive'))]).toEqual([false, true]);
  expect(kept.child.exitCode).toBe(null);
  forget();
  expect(existsSync(join(folder, 'alive'))).toBe(false);
});

test('a run that was started by one that is gone does not end itself', async () => {
  const folder = tree();
  const { child } = left('parent');
  writeFileSync(join(folder, 'parent'), String(await deadId()));
  await sweepRuns(folder, { name, inside: 'parent' }, () => {});
  expect([child.exitCode, child.signalCode]).toEqual([null, null]);
});
