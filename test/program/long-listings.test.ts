import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { generateStore } from '../bench/record/generate.js';
import type { Place } from '../e2e/program.js';
import { agent, place } from './inside.js';

/** A record of 200 tool calls in 11 sessions, which end long ago. */
async function longRecord(): Promise<Place> {
  const at = place();
  await generateStore({ file: join(at.home, '.agent/agent.db'), events: 1600, perSession: 80, longest: 800 });
  return at;
}

const rowsOf = (text: string): readonly string[] => text.trimEnd().split('\n').slice(1);

test('agent audit shows the newest calls by pages; all of them as JSON, as CSV and with --all', async () => {
  const at = await longRecord();
  const first = await agent(at, ['audit']);
  expect([rowsOf(first.stdout).length, first.stderr]).toEqual([
    50,
    'There are older calls: --page 2 shows more, --all all.\n',
  ]);
  const pages = [first];
  for (const page of ['2', '3', '4']) pages.push(await agent(at, ['audit', '--page', page]));
  expect(pages.at(-1)?.stderr).toBe('');
  const calls = pages.toReversed().flatMap(({ stdout }) => rowsOf(stdout));
  const all = rowsOf((await agent(at, ['audit', '--all'])).stdout);
  const words = (lines: readonly string[]): readonly string[] => lines.map((line) => line.replaceAll(/ +/g, ' '));
  expect(words(calls)).toEqual(words(all));
  expect((await agent(at, ['audit', '--page', '5'])).stdout).toBe('No tool calls.\n');
  const json = JSON.parse((await agent(at, ['audit', '--json'])).stdout) as readonly { readonly seq: number }[];
  expect(json.map(({ seq }) => String(seq))).toEqual(all.map((line) => line.split(/ +/)[3]));
  expect(rowsOf((await agent(at, ['audit', '--csv'])).stdout).length).toBe(200);
  const few = await agent(at, ['audit', '--limit', '7']);
  expect([words(rowsOf(few.stdout)), few.stderr]).toEqual([words(all).slice(-7), '']);
  const failed = JSON.parse((await agent(at, ['audit', '--errors', '--json'])).stdout) as readonly object[];
  expect(failed.length).toBe(8);
  expect((await agent(at, ['audit', '--tool', 'nosuch', '--json'])).stdout).toBe('[]\n');
});

test('agent sessions prune lists the newest 50 of many old sessions and removes all of them', async () => {
  const at = place();
  await agent(at, ['sessions', 'list']);
  const db = new Database(join(at.home, '.agent/agent.db'));
  const add = db.prepare("INSERT INTO sessions (id, cwd, title, created_at, updated_at) VALUES (?, '/p', ?, ?, ?)");
  for (let n = 0; n < 70; n++) add.run(`01M8${String(n).padStart(22, '0')}`, `title ${n}`, n, n);
  db.close();
  const listed = await agent(at, ['sessions', 'prune', '--older-than', '30d']);
  expect(listed.stdout.split('\n').filter((line) => line.includes('title')).length).toBe(50);
  expect(listed.stdout).toContain('… and 20 more; --all lists them.\n70 sessions. Nothing was deleted');
  const all = await agent(at, ['sessions', 'prune', '--older-than', '30d', '--all']);
  expect(all.stdout.split('\n').filter((line) => line.includes('title')).length).toBe(70);
  const removed = await agent(at, ['sessions', 'prune', '--older-than', '30d', '--yes', '--json']);
  expect((JSON.parse(removed.stdout) as readonly object[]).length).toBe(70);
  expect((await agent(at, ['sessions', 'list'])).stdout).toBe('No sessions yet.\n');
});
