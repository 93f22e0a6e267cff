import { expect, test } from 'vitest';
import { missingPart } from '../../src/kernel/core/missing-part.js';
import { turnExitCode } from '../../src/ui/ending.js';
import { outcomeOf } from '../../src/features/scheduled-tasks/run-task.js';
import { runExitCode } from '../../src/kernel/console/turn-endings.js';
import type { Fault } from '../../src/kernel/core/provider.js';
import type { TurnEnd } from '../../src/kernel/core/session-port.js';

const end = (status: TurnEnd['status'], more: Partial<TurnEnd> = {}): TurnEnd => ({
  status,
  text: '',
  turns: 0,
  toolCalls: 0,
  denials: [],
  ...more,
});
const fault = (code: Fault['code']): Partial<TurnEnd> => ({ fault: { code, message: '' } });

const denied = (unasked: boolean): Partial<TurnEnd> => ({
  denials: [
    { tool_call_id: 'c1', name: 'bash', arguments: '{}', content: 'bash(x)', reason: 'r', remedy: '', unasked },
  ],
});

const cases = [
  ['an answer', end('completed'), null, 0, 0],
  ['a failure', end('failed', fault('network')), null, 0, 1],
  ['an answer that is not saved', end('completed'), null, 2, 1],
  ['a limit that is not saved', end('limit_reached'), null, 2, 1],
  ['a limit', end('limit_reached'), null, 0, 3],
  ['a wrong key', end('failed', fault('auth')), null, 2, 4],
  ['too high a cost', end('failed', fault('max_cost')), null, 2, 5],
  ['a call that nobody could allow', end('completed', denied(true)), null, 0, 6],
  ['a call that nobody could allow and that is not saved', end('completed', denied(true)), null, 1, 1],
  ['a limit after such a call', end('limit_reached', denied(true)), null, 0, 3],
  ['a call that a rule denied', end('completed', denied(false)), null, 0, 0],
  ['an interrupt', end('interrupted'), null, 2, 130],
  ['a signal, whatever else happened', end('failed', fault('auth')), 'SIGTERM', 2, 143],
  ['a terminal that was closed', end('interrupted'), 'SIGHUP', 0, 129],
] as const;

test.each(cases)('%s has its exit code', (_name, turn, signal, unsaved, exitCode) => {
  expect(turnExitCode(turn, signal, unsaved)).toBe(exitCode);
});

const statuses: Readonly<Record<number, string>> = {
  0: 'done',
  1: 'failed',
  3: 'limit',
  4: 'failed',
  5: 'limit',
  6: 'needs_approval',
  130: 'interrupted',
};

test.each(cases.filter(([, , signal]) => signal === null))(
  '%s as the run of a task has the status of its exit code',
  (_name, turn, _signal, unsaved, exitCode) => {
    const { status } = outcomeOf(turn, { unsaved, callFailed: false, isStopped: false });
    expect(status).toBe(statuses[exitCode]);
  },
);

test('what could not be saved, and calls that nobody could allow, are in the summary of a run', () => {
  const facts = { callFailed: false, isStopped: false };
  expect(outcomeOf(end('completed', denied(true)), { ...facts, unsaved: 2 })).toEqual({
    status: 'failed',
    summary: '2 events of its session could not be saved. Not run: bash(x): r.',
  });
  expect(outcomeOf(end('limit_reached', { ...denied(true), turns: 5 }), { ...facts, unsaved: 0 })).toEqual({
    status: 'limit',
    summary: 'Stopped after 5 answers. Not run: bash(x): r.',
  });
});

test.each([
  ['done', 0],
  ['skipped', 0],
  ['failed', 1],
  ['limit', 5],
  ['needs_approval', 6],
  ['interrupted', 130],
] as const)('agent tasks run of a run that is %s ends with %d', (status, exitCode) => {
  expect(runExitCode(status)).toBe(exitCode);
});

test('a part of the program that is missing is told from other errors', () => {
  const missing = Object.assign(new Error("Cannot find module '/a/chunks/repl-AB.js' imported from /a/main.js"), {
    code: 'ERR_MODULE_NOT_FOUND',
  });
  expect(missingPart(missing)?.message).toBe('a part of the program is missing or of another version: repl-AB.js');
  expect([missingPart(new Error("Cannot find module 'x'")), missingPart('text')]).toEqual([null, null]);
});
