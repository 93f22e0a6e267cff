import { expect, test } from 'vitest';
import { failureHash } from '../../../src/features/goal/failure-text.js';

test('failures are the same if only times, durations, ids and temporary files differ', () => {
  const first = [
    '2026-11-28T18:00:01Z start (pid 411)',
    'FAIL a.test.ts > adds  12 ms',
    '/tmp/run-1f/x.log at 0x7ffe01',
    'Tests: 5 failed, 3 passed',
    'Duration 1.24s',
  ].join('\n');
  const again = [
    '2026-11-28T18:07:55Z start (pid 98)',
    'FAIL a.test.ts > adds 9 ms',
    '/tmp/run-b2/x.log at 0x7ffc99',
    'Tests: 5 failed, 3 passed',
    '',
    'Duration 980ms',
  ].join('\n');
  expect(failureHash(1, again)).toBe(failureHash(1, first));
  const different = [
    failureHash(2, first),
    failureHash(null, first),
    failureHash(1, first.replace('5 failed', '4 failed')),
  ];
  expect(new Set([failureHash(1, first), ...different]).size).toBe(4);
});
