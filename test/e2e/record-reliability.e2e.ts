import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { agent, lines, place, script } from './program.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Short runs of the commands that docs/record.md names; each ends with 1 where its promise is broken. */
test.each([
  ['kill9', 8],
  ['powerloss', 60],
  ['orphans', 150],
  ['corrupt', 32],
  ['concurrent', 60],
  ['enospc', 3],
  ['cutlog', 30],
] as const)('t:%s holds over %d rounds', (name, rounds) => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['test/bench/run.mjs', `test/bench/reliability/${name}.ts`, String(rounds)],
    { cwd: root, encoding: 'utf8' },
  );
  console.log(stdout.trim());
  expect([status, stderr, stdout.startsWith(`${name}: `)]).toEqual([0, '', true]);
});

test.each(['a writer', 'everybody'])(
  'a database that another process keeps from %s at the start: an answer, and all of it saved once it is free',
  async (who) => {
    const at = place();
    const model = script(at, [
      { calls: [{ name: 'bash', arguments: { command: 'echo ran' } }] },
      { text: 'Done all the same.' },
    ]);
    expect((await agent(at, ['-p', 'first', '-m', model])).code).toBe(0);
    const holder = new Database(join(at.home, '.agent', 'agent.db'));
    if (who === 'everybody') holder.pragma('locking_mode = EXCLUSIVE');
    holder.exec('BEGIN EXCLUSIVE');
    const { code, stdout, stderr } = await agent(at, ['-p', 'second', '-m', model], {
      onStdout: () => {
        if (holder.open) holder.close();
      },
    });
    expect([code, stdout]).toEqual([0, 'Done all the same.\n']);
    expect(stderr).not.toContain('could not be saved');
    const saved = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as readonly {
      prompt: string;
      events: number;
    }[];
    expect(saved.map(({ prompt, events }) => [prompt, events])).toEqual([
      ['second', saved[1]?.events],
      ['first', saved[1]?.events],
    ]);
  },
);

test('-c finds its session where the database can be read and not written, and says that what comes is not kept', async () => {
  const at = place();
  expect((await agent(at, ['-p', 'first', '-m', script(at, [{ text: 'One.' }])])).code).toBe(0);
  mkdirSync(join(at.home, '.agent', 'agent.db-shm')); // SQLite needs a file of that name
  const { code, stdout, stderr } = await agent(at, [
    '-c',
    '-p',
    'second',
    '-m',
    script(at, [{ text: 'Two.' }]),
    '--output-format',
    'stream-json',
  ]);
  const [session] = lines(stdout);
  rmSync(join(at.home, '.agent', 'agent.db-shm'), { recursive: true });
  const [kept] = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as readonly {
    id: string;
    events: number;
  }[];
  expect([code, session?.session_id, kept?.events]).toEqual([1, kept?.id, 5]); // as after the first turn
  expect(lines(stdout)).toContainEqual({
    type: 'notice',
    code: 'store_failed',
    message: expect.stringContaining('continues in memory'),
  });
  expect(stderr).toContain(`events of session ${kept?.id} could not be saved`);
});
