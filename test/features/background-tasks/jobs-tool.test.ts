import { expect, test } from 'vitest';
import type { Event } from '../../../src/kernel/core/event.js';
import type { Job } from '../../../src/features/background-tasks/background.js';
import { endNote } from '../../../src/features/background-tasks/job-state.js';
import { lostNote, recordedJobs } from '../../../src/features/background-tasks/jobs-tool.js';

const job: Job = {
  ...{ id: 2, sessionId: 's', line: 'npm run dev', ranMs: 12_400 },
  end: { exitCode: 1, signal: null, killed: false },
  wakes: [],
};

function recorded(...made: readonly (readonly [kind: string, about: unknown])[]): Event[] {
  return made.map(([kind, about], index) => {
    const isNote = kind === 'user';
    const output = JSON.stringify({ output: '', ...(isNote ? {} : (about as object)) });
    const data = isNote ? { note: true } : { tool_call_id: 'c', name: kind, output, success: true, duration_ms: 0 };
    const content = isNote ? String(about) : '';
    return { seq: index + 1, kind: isNote ? 'user' : 'tool_result', content, data, createdAt: 0 };
  });
}

test('the model is told which job has ended, how, and its last words', () => {
  expect(endNote(job, 'port in use\n')).toBe(
    '[Note: job 2 has ended (npm run dev): exit 1 after 12 s. The end of its output:\nport in use]',
  );
});

test('the record says which jobs are open, and where the numbers go on', () => {
  const started = recorded(['bash', { job: 1 }], ['bash', { job: 2 }], ['bash', { job: 5 }], ['bash', {}]);
  expect(recordedJobs(started)).toEqual({ next: 6, open: [1, 2, 5] });
  expect(recordedJobs([...started, ...recorded(['user', endNote(job, '')])]).open).toEqual([1, 5]);
  expect(recordedJobs([...started, ...recorded(['jobs', { job: 1, exit_code: 0 }])]).open).toEqual([2, 5]);
  expect(recordedJobs([...started, ...recorded(['jobs', { job: 1, running: true }])]).open).toEqual([1, 2, 5]);
  expect(recordedJobs([...started, ...recorded(['user', lostNote([1, 2, 5])])]).open).toEqual([]);
  expect(recordedJobs([])).toEqual({ next: 1, open: [] });
});
