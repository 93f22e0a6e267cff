import { expect, test } from 'vitest';
import { missingPart, turnExitCode } from '../../src/cli/ending.js';
import type { Fault } from '../../src/core/provider.js';
import type { TurnEnd } from '../../src/core/session-port.js';

const end = (status: TurnEnd['status'], more: Partial<TurnEnd> = {}): TurnEnd => ({
  status,
  text: '',
  turns: 0,
  toolCalls: 0,
  denied: 0,
  ...more,
});
const fault = (code: Fault['code']): Partial<TurnEnd> => ({ fault: { code, message: '' } });

test.each([
  ['an answer', end('completed'), null, 0],
  ['a failure', end('failed', fault('network')), null, 1],
  ['a limit', end('limit_reached'), null, 3],
  ['a wrong key', end('failed', fault('auth')), null, 4],
  ['too high a cost', end('failed', fault('max_cost')), null, 5],
  ['a call that nobody could allow', end('completed', { denied: 1 }), null, 6],
  ['a limit after such a call', end('limit_reached', { denied: 1 }), null, 3],
  ['an interrupt', end('interrupted'), null, 130],
  ['a signal, whatever else happened', end('failed', fault('auth')), 'SIGTERM', 143],
  ['a terminal that was closed', end('interrupted'), 'SIGHUP', 129],
] as const)('%s has its exit code', (_name, turn, signal, exitCode) => {
  expect(turnExitCode(turn, signal)).toBe(exitCode);
});

test('a part of the program that is missing is told from other errors', () => {
  const missing = Object.assign(new Error("Cannot find module '/a/chunks/repl-AB.js' imported from /a/main.js"), {
    code: 'ERR_MODULE_NOT_FOUND',
  });
  expect(missingPart(missing)?.message).toBe('a part of the program is missing or of another version: repl-AB.js');
  expect([missingPart(new Error("Cannot find module 'x'")), missingPart('text')]).toEqual([null, null]);
});
