import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import type { Envelope } from '../../../src/kernel/core/envelope.js';
import type { ToolContext } from '../../../src/kernel/core/tool.js';
import { bashTool, type OnTimeout } from '../../../src/kernel/tools/bash.js';
import { createJobs, type Job, type Jobs } from '../../../src/features/background-tasks/background.js';
import { jobsTool } from '../../../src/features/background-tasks/jobs-tool.js';
import { context, envelopeOf, toolOptions, tree } from '../../kernel/tools/workbench.js';
import { registryOf } from '../registered.js';

const opened: Jobs[] = [];
afterEach(async () => {
  for (const jobs of opened.splice(0)) {
    for (const { id } of jobs.list()) await jobs.kill(id, 'quietly');
    jobs.close();
  }
});

/** How many times faster than a clock the time of the jobs passes. */
const speed = 4;

/** The shell with a background, and the tool for it, in one session. */
function openJobs({
  attached = true,
  beforeEachLook = (): void => undefined,
  onTimeout = 'stop',
}: { attached?: boolean; beforeEachLook?: () => void; onTimeout?: OnTimeout } = {}) {
  const jobs = createJobs({
    clock: () => performance.now() * speed,
    schedule: (callback, delayMs) => {
      const timer = setTimeout(() => {
        beforeEachLook();
        callback();
      }, delayMs / speed);
      return () => {
        clearTimeout(timer);
      };
    },
  });
  const ends: [Job, string][] = [];
  let onEnd = (): void => undefined;
  const leave = attached
    ? jobs.attach('s', 1, {
        ended(job, last) {
          ends.push([job, last]);
          onEnd();
        },
      })
    : (): void => undefined;
  const tools = registryOf([bashTool(toolOptions({ background: jobs, onTimeout })), jobsTool(jobs)]);
  const ctx = (changed: Partial<ToolContext> = {}): ToolContext =>
    context(tree(), { session: { id: 's', events: () => [], recent: () => [] }, ...changed });
  const made = {
    ...{ jobs, ends, leave },
    /** Resolves with the next end that is told of. */
    told: () =>
      new Promise<void>((resolve) => {
        onEnd = resolve;
      }),
    bash: (args: object, changed: Partial<ToolContext> = {}): Promise<Envelope> =>
      envelopeOf('bash', args, ctx(changed), tools),
    look: (args: object, changed: Partial<ToolContext> = {}): Promise<Envelope> =>
      envelopeOf('jobs', args, ctx(changed), tools),
  };
  opened.push(jobs);
  return made;
}

function outputOf(envelope: Envelope): string {
  return typeof envelope.output === 'string' ? envelope.output : '';
}

/** A process that nobody has reaped yet is not alive. */
function alive(id: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${id}/stat`, 'latin1'));
  } catch {
    return false;
  }
}

test('a command in the background answers with its first output and goes on; its end is told', async () => {
  const { bash, look, ends, told } = openJobs();
  const end = told();
  const first = await bash({ command: 'echo begun; sleep 1.5; echo over; exit 3', background: true });
  expect(first).toEqual({ output: 'begun\n', job: 1, running: true });
  expect((await look({ action: 'list' })).output).toMatch(/^1: running for \d+ s: echo begun; sleep 1.5/);
  await end;
  expect(ends).toMatchObject([[{ id: 1, end: { exitCode: 3, killed: false } }, 'begun\nover\n']]);
  expect(await look({ action: 'output', job: 1, since: 6 })).toEqual({
    output: 'over\n',
    job: 1,
    next: 11,
    exit_code: 3,
  });
});

test('one that ends within two seconds is not a job', async () => {
  const { bash, jobs } = openJobs();
  expect(await bash({ command: 'echo quick', background: true })).toEqual({ output: 'quick\n', exit_code: 0 });
  expect(jobs.list()).toEqual([]);
});

test('the last words of a job are kept, also where its end is seen before they are read', async () => {
  const folder = tree();
  let left = 0;
  const { bash, ends, told } = openJobs({
    beforeEachLook() {
      if (left === 0) return;
      writeFileSync(join(folder, 'go'), '');
      while (alive(left)); // nothing is read meanwhile
    },
  });
  const end = told();
  const waiting = 'while [ ! -e go ]; do sleep 0.01; done; echo later';
  const { output } = await bash({ command: `sh -c '${waiting}' 2>/dev/null & echo $!`, workdir: folder });
  left = Number(output);
  await end;
  expect(ends).toMatchObject([[{ id: 1, end: { exitCode: 0 } }, `${left}\nlater\n`]]);
});

test('what a command leaves behind is a job until the last of its group has ended, and its output is kept', async () => {
  const { bash, look, ends, told } = openJobs();
  const end = told();
  const envelope = await bash({ command: 'nohup sh -c "sleep 1.5; echo later" 2>/dev/null & echo $!' });
  expect(envelope).toMatchObject({ exit_code: 0, background: expect.any(Number), job: 1 });
  expect((await look({ action: 'list' })).output).toContain('1: running for');
  await end;
  expect(ends).toMatchObject([[{ id: 1, end: { exitCode: 0 } }, expect.stringContaining('later\n')]]);
  expect(alive(Number(envelope.output))).toBe(false);
});

/** Starts a command that a call waits for; `seen` resolves once it has printed. */
function waitedFor(bash: ReturnType<typeof openJobs>['bash'], args: object) {
  let onSeen = (): void => undefined;
  const seen = new Promise<void>((resolve) => {
    onSeen = resolve;
  });
  const stop = new AbortController();
  const envelope = bash(args, { progress: onSeen, signal: stop.signal });
  return { seen, envelope, stop };
}

test('a command that a call waits for is moved to the background, and neither call nor limit stops it', async () => {
  const { bash, jobs, look, ends } = openJobs();
  const { seen, envelope, stop } = waitedFor(bash, { command: 'echo a; sleep 1; echo b', timeout_seconds: 1 });
  await seen;
  expect(jobs.toBackground('other')).toBe('nothing runs');
  expect(jobs.toBackground('s')).toBe('moved');
  expect(await envelope).toEqual({ output: 'a\n', job: 1, running: true });
  stop.abort();
  expect(await look({ action: 'wait', job: 1, seconds: 20 })).toMatchObject({ output: 'a\nb\n', exit_code: 0 });
  expect([jobs.toBackground('s'), ends]).toEqual(['nothing runs', []]);
});

test('one that is not moved keeps its limit, and ends with its call', async () => {
  const { bash, jobs } = openJobs();
  expect(await bash({ command: 'sleep 30', timeout_seconds: 1 })).toMatchObject({ code: 'timeout' });
  const { seen, envelope, stop } = waitedFor(bash, { command: 'echo a; sleep 30' });
  await seen;
  stop.abort();
  expect(await envelope).toMatchObject({ code: 'cancelled' });
  expect(jobs.list()).toEqual([]);
});

test('at its time limit a command continues in the background, with what it printed so far', async () => {
  const { bash, look, ends, told } = openJobs({ onTimeout: 'background' });
  const folder = tree();
  const end = told();
  const command = 'echo a; (while [ ! -e go ]; do sleep 0.01; done; echo b >&2) 2>&1 | cat; exit 4';
  const moved = await bash({ command, timeout_seconds: 1, workdir: folder });
  expect(moved).toEqual({
    ...{ output: 'a\n', job: 1, running: true, next: 2 },
    note: 'Time is over; it continues. A note says when it ends. jobs {"id": 1} reads on or stops it.',
  });
  writeFileSync(join(folder, 'go'), '');
  await end;
  expect(ends).toMatchObject([[{ id: 1, end: { exitCode: 4, killed: false } }, 'a\nb\n']]);
  expect(await look({ id: 1, since: 2 })).toEqual({ output: 'b\n', job: 1, next: 4, exit_code: 4 });
});

test('Esc before the time limit cancels the command, Esc after it does not stop the job', async () => {
  const { bash, jobs } = openJobs({ onTimeout: 'background' });
  const stop = new AbortController();
  const first = bash(
    { command: 'trap "" TERM; echo a; while :; do sleep 0.1; done', timeout_seconds: 1 },
    { signal: stop.signal, progress: () => stop.abort() },
  );
  // The shell ignores TERM, so the limit is over before the command has ended.
  expect(await first).toMatchObject({ code: 'cancelled' });
  expect(jobs.list()).toEqual([]);
  const later = new AbortController();
  const second = await bash({ command: 'sleep 60', timeout_seconds: 1 }, { signal: later.signal });
  later.abort();
  expect(second).toMatchObject({ job: 1, running: true });
  expect(jobs.list()).toMatchObject([{ id: 1, end: null }]);
});

test('the time limit ends a command where the user has set it for the tool, and where eight jobs run', async () => {
  const { bash, jobs } = openJobs({ onTimeout: 'background' });
  const limits = { timeoutMs: 400, maxOutputBytes: 1_048_576 };
  expect(await bash({ command: 'sleep 60' }, { limits })).toMatchObject({ code: 'timeout' });
  await Promise.all(Array.from({ length: 8 }, () => bash({ command: 'sleep 60', background: true })));
  expect(await bash({ command: 'echo a; sleep 60', timeout_seconds: 1 })).toMatchObject({
    code: 'timeout',
    error: expect.stringMatching(/was stopped with .* It could not continue: 8 jobs are running\.$/),
    details: { output: 'a\n' },
  });
  expect(jobs.list()).toHaveLength(8);
});

test('a command that ends about its time limit has one result', async () => {
  const { bash, jobs, ends, look } = openJobs({ onTimeout: 'background' });
  const results: Envelope[] = [];
  // A time of the jobs passes four times faster than a clock, so each limit is 250 ms.
  for (const ms of [230, 240, 244, 247, 250, 253, 256])
    results.push(await bash({ command: `sleep 0.${ms}; echo over`, timeout_seconds: 1 }));
  for (const { job, running, exit_code: exitCode } of results) {
    expect([running, exitCode].filter((value) => value !== undefined)).toHaveLength(1);
    if (typeof job === 'number') await look({ action: 'wait', job, seconds: 20 });
  }
  const moved = results.filter(({ running }) => running === true).length;
  expect([jobs.list().length, jobs.list().filter(({ end }) => end === null)]).toEqual([moved, []]);
  expect(ends.length).toBeLessThanOrEqual(moved);
});

test('a job is ended with its child processes, and nobody is told twice', async () => {
  const { bash, look, ends } = openJobs();
  await bash({ command: 'sleep 60 & sleep 61 & echo $! $$; wait', background: true });
  const killed = await look({ action: 'kill', job: 1 });
  expect(killed).toMatchObject({ job: 1, killed: true });
  const ids = outputOf(killed).trim().split(' ').map(Number);
  expect([ids.length, ids.filter(alive), ends]).toEqual([2, [], []]);
  expect((await look({ action: 'list' })).output).toMatch(/^1: killed after/);
});

test('what was left behind is ended, too', async () => {
  const { bash, look } = openJobs();
  const left = await bash({ command: 'sleep 60 >/dev/null & echo $!' });
  await look({ action: 'kill', job: 1 });
  expect(alive(Number(left.output))).toBe(false);
});

test('waiting ends with its time, or with the turn', async () => {
  const { bash, look, ends } = openJobs();
  await bash({ command: 'sleep 60', background: true });
  expect(await look({ action: 'wait', job: 1, seconds: 1 })).toMatchObject({ running: true });
  expect(await look({ action: 'wait', job: 1 }, { signal: AbortSignal.abort() })).toMatchObject({ running: true });
  expect(ends).toEqual([]);
});

test('eight run at most, and a session sees its own', async () => {
  const { bash, look } = openJobs();
  const started = await Promise.all(Array.from({ length: 8 }, () => bash({ command: 'sleep 60', background: true })));
  expect(started.map(({ job }) => job)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(await bash({ command: 'sleep 60', background: true })).toMatchObject({ code: 'limit_reached' });
  const other = { session: { id: 'other', events: () => [], recent: () => [] } };
  expect((await look({ action: 'list' }, other)).output).toBe('There are no jobs.');
  expect(await look({ action: 'kill', job: 1 }, other)).toMatchObject({ code: 'not_found' });
});

test('a session that was given no jobs has none: what goes on is counted, as ever', async () => {
  const { bash, jobs } = openJobs({ attached: false });
  expect(await bash({ command: 'sleep 60', background: true })).toMatchObject({ code: 'execution_failed' });
  const envelope = await bash({ command: 'sleep 2 >/dev/null & echo on' });
  expect(envelope).toEqual({ output: 'on\n', exit_code: 0, background: 1 });
  expect(jobs.list()).toEqual([]);
});

test('the last MiB of the output is kept, and read in parts', async () => {
  const { bash, look } = openJobs();
  await bash({ command: 'seq 400000; sleep 60', background: true });
  const first = await look({ action: 'output', job: 1, since: 0 });
  const next = Number(first.next);
  expect(Number(first.from)).toBeGreaterThan(1_000_000);
  expect(Number(first.from)).toBeLessThanOrEqual(2_688_895 - 1_048_576);
  const second = await look({ action: 'output', job: 1, since: next });
  const text = [first, second].map(outputOf).join('');
  const rows = text.split('\n').slice(1, -1).map(Number);
  expect(rows.every((row, index) => index === 0 || row === (rows[index - 1] ?? 0) + 1)).toBe(true);
  const last = await look({ action: 'output', job: 1 });
  expect(outputOf(last).endsWith('\n399999\n400000\n')).toBe(true);
});
