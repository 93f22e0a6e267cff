import { expect, test } from 'vitest';
import { parseGoal } from '../../../src/features/goal/parse-goal.js';

const set = (
  condition: string,
  check: string | null,
  maxTurns: number | null = null,
  maxCostUsd: number | null = null,
) => ({
  kind: 'set',
  condition,
  check,
  maxTurns,
  maxCostUsd,
});

test('a goal is a condition with options before or behind it; the check is quoted, or ends at the next option', () => {
  const cases: readonly (readonly [string, unknown])[] = [
    ['all tests pass', set('all tests pass', null)],
    ["all tests pass --check 'npm test'", set('all tests pass', 'npm test')],
    ['--check npm test -- --run --max-turns 5', set('`npm test -- --run` succeeds', 'npm test -- --run', 5)],
    ['it builds --check "sh -c \\"make all\\"" --max-cost 1.5', set('it builds', 'sh -c "make all"', null, 1.5)],
    ["--max-turns=3 --max-cost=.5 --check='make' it builds", set('it builds', 'make', 3, 0.5)],
    ['the flag --verbose is documented', set('the flag --verbose is documented', null)],
    ['', { kind: 'show' }],
    ['off', { kind: 'off' }],
    ['Clear', { kind: 'off' }],
    ['pause', { kind: 'pause' }],
    ['resume', { kind: 'resume', maxTurns: null, maxCostUsd: null }],
    ['resume --max-turns 60 --max-cost 4', { kind: 'resume', maxTurns: 60, maxCostUsd: 4 }],
    ['--max-turns 3', { kind: 'wrong', problem: expect.stringContaining('Say what has to hold') as string }],
    ["x --check ''", { kind: 'wrong', problem: expect.stringContaining('--check needs a command') as string }],
    ['x --max-turns 0', { kind: 'wrong', problem: expect.stringContaining('--max-turns: 0') as string }],
    ['x --max-cost free', { kind: 'wrong', problem: expect.stringContaining('--max-cost: free') as string }],
    ['x --max-turns', { kind: 'wrong', problem: expect.stringContaining('--max-turns is not complete') as string }],
  ];
  expect(cases.map(([typed]) => [typed, parseGoal(typed)])).toEqual(cases);
});
