import { expect, test } from 'vitest';
import { agent, binary, place } from './program.js';
import { openProgram, openScreen } from './terminal.js';

const counting = (limit: string): string =>
  `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n ${limit}) SELECT count(*) AS numbers FROM n`;
/** Several seconds. */
const long = counting('LIMIT 30000000');

test('a long query says that it works, on a terminal, and clears that before its answer', async () => {
  const at = place();
  // The pseudo-terminal stays open until its answer has been read.
  const screen = openProgram(at, 'sh', ['-c', 'node "$@"; echo that is all; read line', 'sh', binary, 'sql', long]);
  await screen.until(/Reading the record …/);
  const shown = await screen.until(/that is all/);
  expect(shown).toMatch(/numbers\n30000000\n/);
  expect(shown).not.toMatch(/Reading/);
  expect((await agent(at, ['sql', long])).stderr).toBe('');
});

test('Ctrl-C ends a query that never ends', async () => {
  const screen = openScreen(place(), ['sql', counting('')]);
  await screen.until(/Reading the record …/);
  const begun = performance.now();
  screen.type('\x03');
  await screen.exited;
  expect(performance.now() - begun).toBeLessThan(3000);
});
