import { expect, test } from 'vitest';
import { addEffects, keepRehearsal, type RehearsedCall } from '../../../src/kernel/agent/rehearse-call.js';
import { unlistedReason, type Verdict } from '../../../src/kernel/core/policy.js';

const verdict = {
  decision: 'ask',
  risk: 'mutating',
  reasons: [`make ${unlistedReason}`, 'it names a path outside'],
  rules: ['bash(make *)'],
} as unknown as Verdict;

function rehearsed(dangers: readonly string[], kept: object = { ok: true }): RehearsedCall {
  return {
    rehearsal: { keep: () => Promise.resolve(kept) },
    summary: { dangers, text: 'writes a.txt' },
  } as unknown as RehearsedCall;
}

test('effects without danger leave the risk and the rules, and replace the reason that nothing is known', () => {
  expect(addEffects(verdict, rehearsed([]))).toEqual({
    ...verdict,
    reasons: ['it writes a.txt', 'it names a path outside'],
  });
});

test('a danger among the effects makes the call dangerous, is named first and offers no rule', () => {
  expect(addEffects(verdict, rehearsed(['it changes .git/config']))).toEqual({
    ...verdict,
    risk: 'dangerous',
    reasons: ['it changes .git/config', 'it writes a.txt', 'it names a path outside'],
    rules: [],
  });
});

test('effects that are kept are marked, and those that cannot be kept are an error that says so', async () => {
  const outcome = { envelope: { output: '' }, summary: 'done' };
  expect(await keepRehearsal(rehearsed([], { ok: true, outcome }))).toEqual({ ...outcome, summary: 'done · kept' });
  expect(await keepRehearsal(rehearsed([], { ok: false, problem: 'a.txt has changed' }))).toMatchObject({
    summary: 'Nothing was changed, because the changes could not be kept: a.txt has changed. Make the call again.',
  });
});
