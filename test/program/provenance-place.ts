import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
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

/** Imports a conversation of Claude Code that made an edit. */
export async function importedEdit(at: Place, prompt: string, input: Readonly<Record<string, string>>): Promise<void> {
  const id = '0f0e0d0c-0000-4000-8000-000000000001';
  const usage = { input_tokens: 1, output_tokens: 1 };
  const base = {
    sessionId: id,
    cwd: at.work,
    version: '2.1.0',
    isSidechain: false,
    timestamp: '2026-01-02T03:04:05.000Z',
  };
  const user = (uuid: string, parentUuid: string | null, content: unknown) => ({
    ...base,
    type: 'user',
    uuid,
    parentUuid,
    message: { role: 'user', content },
  });
  const assistant = (uuid: string, parentUuid: string, content: unknown, stop_reason: string) => ({
    ...base,
    type: 'assistant',
    uuid,
    parentUuid,
    requestId: `r-${uuid}`,
    message: { id: `m-${uuid}`, role: 'assistant', model: 'claude-x', content: [content], stop_reason, usage },
  });
  const entries = [
    user('u1', null, prompt),
    assistant('u2', 'u1', { type: 'tool_use', id: 't1', name: 'Edit', input }, 'tool_use'),
    user('u3', 'u2', [{ type: 'tool_result', tool_use_id: 't1', content: 'ok' }]),
    assistant('u4', 'u3', { type: 'text', text: 'Done.' }, 'end_turn'),
  ];
  const folder = join(at.home, '.claude/projects/work');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${id}.jsonl`), entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
  expect((await agent(at, ['sessions', 'import', '--from', 'claude-code', '--all'])).code).toBe(0);
}
