import { execFileSync } from 'node:child_process';
import { expect } from 'vitest';
import type { Place } from '../e2e/program.js';
import { agent, place, script } from './inside.js';

export const call = (name: string, args: unknown) => ({ calls: [{ name, arguments: args }] });
export const edit = (path: string, old_string: string, new_string: string) =>
  call('file_edit', { path, old_string, new_string });
export const bash = (command: string) => call('bash', { command });
export const done = { text: 'Done.' };

/** Runs git as Ann. Returns what it prints. */
export function git(at: Place, ...args: readonly string[]): string {
  const names = ['-c', 'user.name=Ann', '-c', 'user.email=ann@example.com', '-c', 'commit.gpgsign=false'];
  return execFileSync('git', [...names, ...args], { cwd: at.work, env: at.env, encoding: 'utf8' }).trim();
}

/** A repository with one commit of a file of three lines. */
export function repository(): Place {
  const at = place({ 'a.txt': 'one\ntwo\nthree\n' });
  git(at, 'init', '-q');
  git(at, 'add', '-A');
  git(at, 'commit', '-qm', 'First commit');
  return at;
}

/** Runs a turn of a new session that makes these calls. */
export async function turn(at: Place, prompt: string, ...turns: readonly object[]): Promise<void> {
  const model = script(at, [...turns, done]);
  const ran = await agent(at, ['-p', '-m', model, '--approval', 'never', prompt]);
  expect(ran).toMatchObject({ code: 0, stdout: 'Done.\n' });
}
