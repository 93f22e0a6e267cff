import { describe, expect, test } from 'vitest';
import { mutatedCommand, randomNumbers } from '../../bench/trust/command-grammar.js';
import { isSurprise, traceLines } from '../../bench/trust/surprises.js';
import { canTrace } from '../../bench/trust/traced.js';
import { riskOf } from './judging.js';

const count = 200;
const random = randomNumbers(20_261_122);
/** To dash `time` is a program, to bash a word of its own. */
const timed = [
  "sh -c 'time ls'",
  "sh -c 'time -p ls'",
  "sh -c 'time -o out.txt ls'",
  "dash -c 'ls | time cat'",
  "sh -c 'time ls | cat'",
  'time ls',
  'time -p ls',
  '! time ls',
  'time time ls',
  'X=1 time ls',
  '\\time ls',
  'time { ls; }',
  'time (ls)',
];
const commands = [...timed, ...Array.from({ length: count }, () => mutatedCommand(random))];
const traceable = canTrace();
if (!traceable)
  console.log(`traced commands: bubblewrap or strace is not here or does not work, ${commands.length} lines skipped`);

describe.skipIf(!traceable)('what commands run, under a trace in the sandbox', () => {
  test(
    'every program that ran is one that the classifier listed, or the line was called dangerous',
    { timeout: 120_000 },
    () => {
      const lines = traceLines(commands);
      const executed = lines.reduce((sum, line) => sum + line.executed, 0);
      console.log(
        `traced commands: ${lines.length} run, ${executed} programs executed, ` +
          `${lines.filter(isSurprise).length} surprises`,
      );
      expect(executed).toBeGreaterThan(count);
      expect(lines.filter(isSurprise)).toEqual([]);
    },
  );
});

test('the options of the program called time are seen behind the word', () => {
  expect(riskOf('time -o ~/.bashrc ls')).toBe('dangerous');
  expect(riskOf("sh -c 'time -o ~/.bashrc ls'")).toBe('dangerous');
  expect(riskOf("sh -c 'time --output=/etc/hosts -p ls'")).toBe('dangerous');
  expect(riskOf("sh -c 'time ls'")).toBe('mutating');
  expect(riskOf('time -p ls | wc -l')).toBe('mutating');
});
