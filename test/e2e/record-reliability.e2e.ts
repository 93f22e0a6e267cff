import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Short runs of the commands that docs/record.md names; each ends with 1 where its promise is broken. */
test.each([['kill9', 8], ['powerloss', 60], ['orphans', 150], ['corrupt', 32], ['concurrent', 60], ['enospc', 3], ['cutlog', 30]] as const)('t:%s holds over %d rounds', (name, rounds) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['test/bench/run.mjs', `test/bench/reliability/${name}.ts`, String(rounds)], { cwd: root, encoding: 'utf8' });
  console.log(stdout.trim());
  expect([status, stderr, stdout.startsWith(`${name}: `)]).toEqual([0, '', true]);
});
