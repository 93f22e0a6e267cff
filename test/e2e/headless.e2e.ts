import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { agent, binary, place, script } from './program.js';

const call = (name: string, args: unknown) => ({ name, arguments: args });

function rows(
  home: string,
): readonly { seq: number; kind: string; content: string | null; data_json: string | null }[] {
  const db = new Database(join(home, '.agent/agent.db'), { readonly: true });
  try {
    return db.prepare('select seq, kind, content, data_json from events order by session_id, seq').all() as never;
  } finally {
    db.close();
  }
}

/** Calls back once the log says that the command was started. */
function waitForStart(home: string, then: () => void): void {
  const timer = setInterval(() => {
    if (!rows(home).some((row) => row.kind === 'tool_started')) return;
    clearInterval(timer);
    then();
  }, 20);
}

async function newest(at: ReturnType<typeof place>): Promise<string> {
  const listed = await agent(at, ['sessions', 'list', '--json']);
  return (JSON.parse(listed.stdout) as { id: string }[])[0]?.id ?? '';
}

function waitForStartOrEnd(
  home: string,
  child: { once(event: 'close', listener: () => void): unknown },
  then: () => void,
): void {
  const timer = setInterval(() => {
    if (!existsSync(join(home, '.agent/agent.db')) || !rows(home).some((row) => row.kind === 'tool_started')) return;
    clearInterval(timer);
    then();
  }, 20);
  child.once('close', () => {
    clearInterval(timer);
  });
}

test('a directory that is gone is named, and -C gets away from it', () => {
  const at = place({ 'gone/x': '' });
  const run = (...args: string[]) =>
    spawnSync('sh', ['-c', 'cd gone && rm x && rmdir ../gone && exec "$@"', 'sh', process.execPath, binary, ...args], {
      cwd: at.work,
      env: at.env,
      input: '',
      encoding: 'utf8',
    });
  expect(run('-p', 'x')).toMatchObject({
    status: 2,
    stdout: '',
    stderr: expect.stringMatching(/^agent: the current directory no longer exists\n.+\n$/),
  });
  at.file('gone/x', '');
  expect(run('-C', at.work, '-p', 'list *')).toMatchObject({ status: 0 });
});

test('a program killed during a command resumes, and the request that goes out answers the orphan', async () => {
  const at = place();
  const turns = [{ calls: [call('bash', { command: 'echo started; sleep 60' })] }, { text: 'Going on.' }];
  const killed = await agent(at, ['-p', '-m', script(at, turns), '--output-format', 'stream-json', 'go'], {
    onStdout: (text, child) => {
      if (text.includes('"tool_call"')) waitForStart(at.home, () => child.kill('SIGKILL'));
    },
  });
  expect(killed.signal).toBe('SIGKILL');
  const resumed = await agent(at, ['-c', '-p', 'go on']);
  expect(resumed).toMatchObject({ code: 0, stdout: 'Going on.\n' });
  const body = JSON.parse((await agent(at, ['sessions', 'show', await newest(at), '--as', 'openai-chat'])).stdout) as {
    messages: { role: string; content: string; tool_call_id?: string }[];
  };
  const answer = body.messages.find((message) => message.role === 'tool');
  expect(answer?.content).toContain('Interrupted: the program ended while this call was running.');
});

test('a reader that goes away ends the program quietly', async () => {
  const at = place();
  const model = script(at, [{ text: 'word '.repeat(20_000) }]);
  const { code, stderr } = await agent(at, ['-p', '-m', model, '--output-format', 'stream-json', 'go'], {
    onStart: (child) => {
      child.stdout?.destroy();
    },
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
});

test('standard input without end is refused', () => {
  const at = place();
  const { status, stdout, stderr } = spawnSync(
    'sh',
    ['-c', 'yes | "$@"', 'sh', process.execPath, binary, '-p', 'sum up'],
    { cwd: at.work, env: at.env, encoding: 'utf8' },
  );
  expect({ status, stdout, stderr }).toEqual({
    status: 2,
    stdout: '',
    stderr: expect.stringMatching(/^agent: standard input has more than \d+ bytes.+\n.+\n$/),
  });
});

test('a slow reader gets all of what a command prints', () => {
  const at = place();
  const piped = spawnSync(
    'sh',
    [
      '-c',
      '"$@" | { sleep 1; wc -c; }',
      'sh',
      process.execPath,
      binary,
      'tools',
      'call',
      'bash',
      '{"command":"seq 1 100000"}',
    ],
    { cwd: at.work, env: at.env, input: '', encoding: 'utf8' },
  );
  expect(Number(piped.stdout)).toBeGreaterThan(588_895);
});

test('output that cannot be written is one message and exit code 1', () => {
  const at = place();
  for (const args of [
    ['tools', 'list'],
    ['-p', 'list *'],
    ['-p', '--output-format', 'stream-json', 'list *'],
  ]) {
    const full = openSync('/dev/full', 'w');
    const { status, stderr } = spawnSync(process.execPath, [binary, ...args], {
      cwd: at.work,
      env: at.env,
      stdio: ['ignore', full, 'pipe'],
      encoding: 'utf8',
    });
    closeSync(full);
    expect({ args, status, stderr }).toEqual({
      args,
      status: 1,
      stderr: expect.stringMatching(/^agent: cannot write to standard output: ENOSPC.*\n.+\n$/),
    });
  }
});

test('an interrupt ends the turn, its command and the program: 130', async () => {
  const at = place();
  const model = script(at, [{ calls: [call('bash', { command: 'sleep 60' })] }]);
  const { code, stdout } = await agent(at, ['-p', '-m', model, '--output-format', 'json', 'go'], {
    onStart: (child) => {
      waitForStartOrEnd(at.home, child, () => child.kill('SIGINT'));
    },
  });
  expect(code).toBe(130);
  expect(JSON.parse(stdout)).toMatchObject({ status: 'interrupted' });
});

test('what the system refuses is permission_denied: a protected file is not written over, a locked folder not called empty', () => {
  const at = place({ 'mine.txt': 'old\n', 'locked/x.txt': 'x' });
  const person = process.getuid?.() === 0 ? 65_534 : (process.getuid?.() ?? 0);
  chmodSync(join(at.work, 'mine.txt'), 0o444);
  for (const path of [dirname(at.work), at.home, at.work, join(at.work, 'mine.txt'), join(at.work, 'locked')])
    if (process.getuid?.() === 0) chownSync(path, person, person);
  chmodSync(join(at.work, 'locked'), 0o000);
  const run = (tool: string, args: unknown) =>
    spawnSync(process.execPath, [binary, 'tools', 'call', tool, JSON.stringify(args)], {
      cwd: at.work,
      env: at.env,
      uid: person,
      input: '',
      encoding: 'utf8',
    });
  for (const [tool, args] of [
    ['file_write', { path: 'mine.txt', content: 'new' }],
    ['file_edit', { path: 'mine.txt', old_string: 'old', new_string: 'new' }],
  ] as const) {
    expect(JSON.parse(run(tool, args).stdout)).toMatchObject({
      code: 'permission_denied',
      error: expect.stringContaining('mine.txt'),
    });
  }
  for (const [tool, args] of [
    ['glob', { pattern: '**', path: 'locked' }],
    ['grep', { pattern: 'x', path: 'locked' }],
  ] as const) {
    expect(JSON.parse(run(tool, args).stdout)).toMatchObject({
      code: 'permission_denied',
      error: expect.stringContaining('locked'),
    });
  }
  expect(JSON.parse(run('glob', { pattern: '**' }).stdout)).toMatchObject({ output: 'mine.txt' });
  expect(readFileSync(join(at.work, 'mine.txt'), 'utf8')).toBe('old\n');
  expect(JSON.parse(run('file_write', { path: 'other.txt', content: 'new' }).stdout)).toMatchObject({ bytes: 3 });
  chmodSync(join(at.work, 'locked'), 0o700);
});
