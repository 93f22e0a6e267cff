import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import {
  createLastingProcess,
  type LastingProcess,
  type LastingProcessOptions,
} from '../../../../src/kernel/tools/process/lasting-process.js';
import { createProcessRunner } from '../../../../src/kernel/tools/process/runner.js';
import { context } from '../workbench.js';

const runner = createProcessRunner({
  watched: true,
  marker: { name: '_LASTING_TEST', value: String(process.hrtime.bigint()) },
});
afterAll(() => {
  runner.killNow();
});

interface Started {
  readonly lasting: LastingProcess;
  output(): string;
  /** Resolves at its next end that nobody asked for. */
  ended(): Promise<unknown>;
}

function lasting(script: string, changed: Partial<LastingProcessOptions> = {}): Started {
  let output = '';
  let onEnd: (exit: unknown) => void = () => undefined;
  const made = createLastingProcess(runner.open, {
    command: {
      file: 'bash',
      args: ['--norc', '-c', script],
      cwd: '/',
      env: { PATH: process.env.PATH ?? '' },
      sandbox: 'off',
    },
    onOutput: (chunk) => {
      output += chunk.toString();
    },
    onEnd: (exit) => {
      onEnd(exit);
    },
    maxRestarts: 3,
    restartWindowMs: 600_000,
    now: () => 0,
    ...changed,
  });
  onTestFinished(() => made.stop());
  return {
    lasting: made,
    output: () => output,
    ended: () =>
      new Promise((resolve) => {
        onEnd = resolve;
      }),
  };
}

/** Live processes whose command line holds `text`. */
function holding(text: string): number {
  return readdirSync('/proc').filter((id) => {
    try {
      return /^\d+$/.test(id) && readFileSync(`/proc/${id}/cmdline`, 'latin1').includes(text);
    } catch {
      return false; // ended meanwhile
    }
  }).length;
}

test('it answers as often as it is written to, by one process', async () => {
  const { lasting: echo, output } = lasting('while read -r line; do echo "$$ $line"; done');
  expect(await echo.write('early\n')).toBe(false);
  expect(await echo.start()).toEqual({ started: true });
  expect(await echo.start()).toEqual({ started: true });
  for (const line of ['one', 'two']) expect(await echo.write(`${line}\n`)).toBe(true);
  await expect.poll(output).toMatch(/^(\d+) one\n\1 two\n$/);
  await echo.stop();
  expect([echo.isRunning(), await echo.write('late\n')]).toEqual([false, false]);
});

test('what cannot be started says why', async () => {
  const { lasting: missing } = lasting('', {
    command: { file: '/nowhere/server', args: [], cwd: '/', env: {}, sandbox: 'off' },
  });
  expect(await missing.start()).toEqual({ started: false, error: 'ENOENT' });
  const { lasting: confined } = lasting('', {
    command: { file: 'sh', args: [], cwd: '/', env: {}, sandbox: 'read-only' },
  });
  expect(await confined.start()).toEqual({ started: false, error: 'no read-only sandbox is available here' });
});

const hostile: readonly (readonly [name: string, script: (mark: string) => string])[] = [
  ['what ends with its input', (mark) => `(cat; : ${mark}) & cat; : ${mark}`],
  ['what ignores the end of its input and TERM', (mark) => `trap "" TERM HUP INT; while :; do sleep 600.${mark}; done`],
  [
    'grandchildren, in sessions of their own and deaf to TERM',
    (mark) =>
      `(setsid bash -c 'trap "" TERM; while :; do sleep 600.${mark}; done' &); setsid setsid sleep 600.${mark} & cat`,
  ],
  ['a child without an environment in its group', (mark) => `env -i sleep 600.${mark} & cat`],
];

test.each(hostile)('stopping it ends %s', async (_name, script) => {
  const mark = String(process.hrtime.bigint());
  const { lasting: made } = lasting(script(mark));
  await made.start();
  await expect.poll(() => holding(mark)).toBeGreaterThan(0);
  await made.stop();
  expect(holding(mark)).toBe(0);
});

test('the end of the whole runner ends it too', async () => {
  const own = createProcessRunner({ marker: { name: '_LASTING_TEST', value: 'own' } });
  const mark = String(process.hrtime.bigint());
  const opened = await own.open({
    file: 'bash',
    args: ['--norc', '-c', `trap "" TERM; setsid sleep 600.${mark} & sleep 600.${mark}`],
    cwd: '/',
    env: { PATH: process.env.PATH ?? '' },
    sandbox: 'off',
  });
  if (!opened.started) throw new Error(opened.error);
  await expect.poll(() => holding(mark)).toBe(3);
  expect(opened.size()).toBe(3);
  await own.killBackground();
  expect(holding(mark)).toBe(0);
});

test('an end by itself is told, ends what it left behind, and is followed by a new start', async () => {
  const mark = String(process.hrtime.bigint());
  const script = `read -r line; (setsid sleep 600.${mark} &); echo "$line $$"; echo "gone: $line" >&2; exit 3`;
  const { lasting: made, output, ended } = lasting(script);
  await made.start();
  const first = ended();
  await made.write('first\n');
  expect(await first).toEqual({ code: 3, signal: null });
  expect([made.isRunning(), made.lastWords()]).toEqual([false, 'gone: first\n']);
  expect(await made.start()).toEqual({ started: true });
  expect([holding(mark), made.lastWords()]).toEqual([1, '']);
  await made.write('second\n');
  await expect.poll(output).toMatch(/^first (\d+)\nsecond (?!\1)\d+\n$/);
});

test('what ends too often is not started again until some time has passed', async () => {
  let time = 0;
  const { lasting: made, ended } = lasting('exit 1', { maxRestarts: 2, restartWindowMs: 60_000, now: () => time });
  for (let count = 0; count < 3; count++) {
    const over = ended();
    expect(await made.start()).toEqual({ started: true });
    await over;
  }
  expect(await made.start()).toEqual({
    started: false,
    error: 'bash has ended 3 times in 1 min and is not started again',
  });
  time = 60_000;
  expect(await made.start()).toEqual({ started: true });
});

test('a stop that was asked for does not count as an end', async () => {
  const { lasting: made } = lasting('cat', { maxRestarts: 0 });
  for (let count = 0; count < 3; count++) {
    expect(await made.start()).toEqual({ started: true });
    await made.stop();
  }
});

test('no more than a little is read ahead of a consumer that is not ready', async () => {
  const bytes = 64 * 1024 * 1024;
  let received = 0;
  let ready = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    ready = resolve;
  });
  const { lasting: flood, ended } = lasting(`head -c ${bytes} /dev/zero; echo written >&2`, {
    async onOutput(chunk) {
      received += chunk.length;
      await gate;
    },
  });
  const over = ended();
  await flood.start();
  // As much, read at once, tells that there was time enough.
  const yardstick = {
    file: 'head',
    args: ['-c', String(bytes), '/dev/zero'],
    cwd: '/',
    env: {},
    sandbox: 'off',
  } as const;
  await runner.run({
    ...yardstick,
    signal: context('/').signal,
    timeoutMs: 60_000,
    maxTotalBytes: Number.POSITIVE_INFINITY,
    onOutput: () => undefined,
  });
  expect([received < 1_000_000, flood.lastWords()]).toEqual([true, '']);
  ready();
  await over;
  expect([received, flood.lastWords()]).toEqual([bytes, 'written\n']);
});

test('a flood of errors holds nobody up and keeps its end', async () => {
  const { lasting: flood, ended } = lasting('head -c 50000000 /dev/zero | tr "\\0" x >&2; echo last >&2; exit 1');
  const over = ended();
  await flood.start();
  await over;
  expect([flood.lastWords().length, flood.lastWords().slice(-6)]).toEqual([65_536, 'xlast\n']);
});
