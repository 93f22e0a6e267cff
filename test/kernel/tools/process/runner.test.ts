import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  createProcessRunner,
  type ProcessRequest,
  type ProcessResult,
} from '../../../../src/kernel/tools/process/runner.js';

const marker = { name: '_RUNNER_TEST', value: String(process.pid) };

function request(command: string, changed: Partial<ProcessRequest> = {}): ProcessRequest {
  return {
    file: 'sh',
    args: ['-c', command],
    cwd: '/',
    env: { PATH: process.env.PATH ?? '' },
    sandbox: 'off',
    signal: new AbortController().signal,
    timeoutMs: 10_000,
    maxTotalBytes: 1000,
    onOutput: () => undefined,
    ...changed,
  };
}

/** A sandbox that lets everything pass, and what it was given. */
function openSandbox(given: string[] = []) {
  return createProcessRunner({
    marker,
    confine(command, sandbox) {
      given.push(`${sandbox} ${command.args.join(' ')}`);
      return { ...command, env: { ...command.env, INSIDE: 'yes' } };
    },
  });
}

test.each([
  ['exit 3', 'off', { exitCode: 3, signal: null }],
  ['kill -9 $$', 'off', { exitCode: 137, signal: 'SIGKILL' }],
  ['exit 137', 'off', { exitCode: 137, signal: null }],
  ['exit 137', 'workspace', { exitCode: 137, signal: 'SIGKILL' }],
  ['exit 143', 'read-only', { exitCode: 143, signal: 'SIGTERM' }],
  ['exit 3', 'workspace', { exitCode: 3, signal: null }],
] as const)('%s in sandbox %s has the exit code and signal of the command', async (command, sandbox, expected) => {
  expect(await openSandbox().run(request(command, { sandbox }))).toEqual({ ended: 'exit', ...expected, background: 0 });
});

test('a command is wrapped by the sandbox it asks for, and is not run where there is none', async () => {
  const given: string[] = [];
  let output = '';
  const onOutput = (chunk: Buffer): void => {
    output += chunk.toString();
  };
  const open = openSandbox(given);
  await open.run(request('echo "$INSIDE"', { sandbox: 'read-only', onOutput }));
  await open.run(request('echo "$INSIDE"', { onOutput }));
  expect([output, given]).toEqual(['yes\n\n', ['read-only -c echo "$INSIDE"']]);
  const bare = createProcessRunner({ marker });
  expect(await bare.run(request('echo ran', { sandbox: 'workspace', onOutput }))).toEqual({
    ended: 'not_started',
    error: 'no workspace sandbox is available here',
  });
  expect([output, bare.canConfine('off'), bare.canConfine('workspace'), open.canConfine('workspace')]).toEqual([
    'yes\n\n',
    true,
    false,
    true,
  ]);
});

test.each([
  ['a program that does not exist', { file: '/nowhere/program', args: [] }, 'ENOENT'],
  ['a folder that does not exist', { cwd: '/nowhere' }, 'ENOENT'],
  ['a program that is not a program', { file: '/etc/passwd', args: [] }, 'EACCES'],
  ['an argument with NUL', { args: ['-c', 'true\0'] }, /null bytes/],
] as const)('%s is not started, and the result says why', async (_name, changed, error) => {
  const result = await createProcessRunner({ marker }).run(request('true', changed));
  expect(result).toEqual({
    ended: 'not_started',
    error: typeof error === 'string' ? error : expect.stringMatching(error),
  });
});

test('output, time and a cancel each end a command with everything it started', async () => {
  const runner = createProcessRunner({ marker });
  const stop = new AbortController();
  const endings: Promise<ProcessResult>[] = [
    runner.run(request('yes | cat', { maxTotalBytes: 100 })),
    runner.run(request('sleep 600 | cat', { timeoutMs: 50 })),
    runner.run(
      request('echo; sleep 600 | cat', {
        signal: stop.signal,
        onOutput: () => {
          stop.abort();
        },
      }),
    ),
    runner.run(request('echo never', { signal: AbortSignal.abort() })),
  ];
  expect((await Promise.all(endings)).map((result) => result.ended)).toEqual([
    'output_limit',
    'timeout',
    'cancelled',
    'cancelled',
  ]);
});

test.each([true, false])('each piece of output comes with its stream (watched: %s)', async (watched) => {
  const runner = createProcessRunner({ marker, watched });
  const streams = { stdout: '', stderr: '' };
  const onOutput = (chunk: Buffer, stream: 'stdout' | 'stderr'): void => {
    streams[stream] += chunk.toString();
  };
  await runner.run(request('echo out; echo error >&2', { onOutput }));
  expect(streams).toEqual({ stdout: 'out\n', stderr: 'error\n' });
  await runner.killBackground();
});

test('commands that run at the same time each have pipes of their own, and all their output', async () => {
  const watched = createProcessRunner({ marker, watched: true });
  const run = async (name: string): Promise<string> => {
    const printed: string[] = [];
    const onOutput = (chunk: Buffer, stream: string): void => {
      printed.push(`${stream} ${chunk.toString()}`);
    };
    await watched.run(request(`echo ${name}; echo ${name} >/dev/stderr`, { onOutput }));
    return printed.toSorted().join('');
  };
  for (const names of [
    ['a', 'b', 'c'],
    ['d', 'e', 'f', 'g', 'h'],
  ])
    expect(await Promise.all(names.map(run))).toEqual(names.map((name) => `stderr ${name}\nstdout ${name}\n`));
  await watched.killBackground();
});

/** A sandbox that ends before `leader`, which it reports as the first process of its namespace. */
function earlySandbox(leader: string, namespaceEndMs?: number) {
  return createProcessRunner({
    marker,
    ...(namespaceEndMs === undefined ? {} : { namespaceEndMs }),
    confine: (command) => ({
      ...command,
      args: ['-c', `(${leader}) >/dev/null 2>&1 & echo "{ \\"child-pid\\": $! }" >&5; ${command.args.at(-1) ?? ''}`],
      reportsNamespace: true,
    }),
  });
}

test('a call in a sandbox answers once the last process of its namespace is gone, and says where that takes too long', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'agent-namespace-')), 'ended');
  // The number of the sandbox is taken until our own process has seen its end.
  const last = `while kill -0 $$; do sleep 0.01; done; sleep 0.2; echo >'${file}'`;
  const confined = { sandbox: 'read-only' } as const;
  const ended = { ended: 'exit', exitCode: 3, signal: null, background: expect.any(Number) as number };
  expect(await earlySandbox(last).run(request('exit 3', confined))).toEqual(ended);
  expect(existsSync(file)).toBe(true);
  const runner = earlySandbox('sleep 60', 0);
  expect(await runner.run(request('exit 3', confined))).toEqual({ ...ended, lingers: true });
  await runner.killBackground();
});

test('what a command leaves behind is counted, also what has left its group', async () => {
  const runner = createProcessRunner({ marker });
  const left = async (command: string): Promise<unknown> => {
    const result = await runner.run(request(command));
    return 'background' in result ? result.background : result;
  };
  // The shell ends once the new session is there.
  const away = (name: string): string =>
    `setsid sh -c 'echo >${name}; exec sleep 60' & until [ -e ${name} ]; do :; done`;
  const folder = mkdtempSync(join(tmpdir(), 'agent-stray-'));
  expect(await left('true')).toBe(0);
  expect(await left('sleep 60 & true')).toBe(1);
  expect(await left(away(join(folder, 'one')))).toBe(1);
  expect(await left(`${away(join(folder, 'two'))}; sleep 60 &`)).toBe(2);
  await runner.killBackground();
});

/** A zombie is not alive. */
function isAlive(pid: string): boolean {
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

test('a time limit ends what has left the group of its command, and nothing of another command', async () => {
  const runner = createProcessRunner({ marker });
  const folder = mkdtempSync(join(tmpdir(), 'agent-away-'));
  const away = (name: string): string => `setsid sh -c 'echo $$ >${join(folder, name)}; exec sleep 600' &`;
  const begun = (name: string): string => `until [ -s ${join(folder, name)} ]; do :; done`;
  await runner.run(request(`${away('earlier')} ${begun('earlier')}`));
  const result = await runner.run(
    request(`${away('own')} ${begun('own')}; echo; sleep 600`, { timeoutMs: 1500, maxTotalBytes: 10_000 }),
  );
  const alive = ['earlier', 'own'].map((name) => isAlive(readFileSync(join(folder, name), 'utf8').trim()));
  expect([result, alive]).toEqual([
    { ended: 'timeout', exitCode: 143, signal: 'SIGTERM', background: 0 },
    [true, false],
  ]);
  await runner.killBackground();
});
