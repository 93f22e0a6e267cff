import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { agent, binary, lines, place, script } from './program.js';

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

test('a plain request is answered by the embedded provider, through the real tools, and says what it is', async () => {
  const at = place({ 'README.md': '# Hello\nworld\n' });
  const { code, stdout, stderr } = await agent(at, ['-p', 'read README.md']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/offline/i);
});

test('as text the answer is printed without the white space around it; the event keeps what came', async () => {
  const at = place();
  const said = '\n\n  hello there\n\n  indented  \n\n';
  const { code, stdout } = await agent(at, ['-p', '-m', script(at, [{ text: said }]), 'hi']);
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'hello there\n\n  indented\n' });
  expect(rows(at.home).find(({ kind }) => kind === 'assistant')?.content).toBe(said);
});

test('without a model a request that is not understood ends with 4, in every format; one who asks for the offline provider gets its help', async () => {
  const at = place();
  for (const prompt of ['fix the bug', 'write a function that sorts numbers to src/sort.ts', 'run the tests']) {
    const { code, stdout, stderr } = await agent(at, ['-p', prompt]);
    expect([prompt, code, stdout]).toEqual([prompt, 4, '']);
    expect(stderr).toMatch(/^agent: no model is connected.*\nSet the key of a provider .*agent providers/m);
  }
  const json = await agent(at, ['-p', '--output-format', 'json', 'fix the bug']);
  expect([json.code, JSON.parse(json.stdout)]).toMatchObject([4, { status: 'failed', error: { code: 'auth' } }]);
  for (const chosen of [
    ['-m', 'offline'],
    ['--provider', 'offline'],
    ['--set', 'model=offline/offline'],
  ]) {
    expect(await agent(at, ['-p', ...chosen, 'fix the bug'])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/no language model/) as string,
    });
  }
  expect(readdirSync(at.work)).toEqual([]);
});

test('a variable, a limit or a value that counts for nothing is said', async () => {
  const at = place();
  const variables = await agent(at, ['-p', 'list *'], {
    env: { AGENT_WEB_PROVIDER: 'x', AGENT_APROVAL: 'never', AGENT_NAME: 'runner' },
  });
  expect(variables).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(
      /AGENT_APROVAL sets nothing; did you mean AGENT_APPROVAL\?\nagent: The variable AGENT_WEB_PROVIDER sets nothing here\.\n/,
    ) as string,
  });
  const file = join(at.home, '.agent/config.json');
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, '{\n  "tools": { "limits": { "bsh": { "timeout_ms": 5 } } }\n}\n');
  const named = `${file}:2:26: unknown key "tools.limits.bsh" (did you mean "tools.limits.bash"?)`;
  for (const args of [
    ['-p', 'list *'],
    ['tools', 'list'],
    ['config', 'check'],
  ])
    expect(await agent(at, args)).toMatchObject({ code: 2, stderr: expect.stringContaining(named) as string });
  writeFileSync(file, '{ "tools": { "exec": false, "limits": { "bash": { "timeout_ms": 5 } } } }');
  expect((await agent(at, ['-p', 'list *'])).code).toBe(0);
  expect(await agent(at, ['tools', 'list', '--set', 'tools.limits.glop.rate_per_min=1'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('"tools.limits.glob"') as string,
  });
  expect(await agent(at, ['config', 'set', 'tools.limits.glop.rate_per_min', '1'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('"tools.limits.glob"') as string,
  });
  expect((await agent(at, ['config', 'set', 'tools.limits.glob.rate_per_min', '1'])).code).toBe(0);
  expect(await agent(at, ['config', 'get', 'max_tool_turns'], { env: { AGENT_MAX_TOOL_TURNS: 'abc' } })).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining('not "abc"') as string,
  });
  expect(await agent(at, ['config', 'get', 'max_tool_calls'], { env: { AGENT_MAX_TOOL_TURNS: 'abc' } })).toMatchObject({
    code: 2,
    stdout: '100\n',
  });
});

test('stream-json gives the lines of the contract, in the order of the rows', async () => {
  const at = place({ 'README.md': '# Hello\n' });
  const { code, stdout } = await agent(at, ['-p', '--output-format', 'stream-json', 'read README.md']);
  const seen = lines(stdout);
  expect(code).toBe(0);
  expect(seen[0]).toMatchObject({
    type: 'session',
    provider: 'offline',
    cwd: at.work,
    tools: ['glob', 'file_read', 'grep', 'file_write', 'file_edit', 'bash'],
  });
  expect(seen.map((line) => line.type).filter((type) => type !== 'text_delta')).toEqual([
    'session',
    'usage',
    'tool_call',
    'tool_result',
    'usage',
    'assistant',
    'result',
  ]);
  expect(seen.find((line) => line.type === 'tool_result')).toMatchObject({
    name: 'file_read',
    output: '{"output":"# Hello\\n"}',
    success: true,
  });
  expect(seen.at(-1)).toMatchObject({ type: 'result', status: 'completed', turns: 1, tool_calls: 1 });
  expect(rows(at.home).map((row) => `${row.seq} ${row.kind}`)).toEqual([
    '1 system',
    '2 tools',
    '3 user',
    '4 usage',
    '5 tool_call',
    '6 tool_started',
    '7 tool_result',
    '8 usage',
    '9 assistant',
  ]);
});

test('json is one result object, and piped input stands below the prompt', async () => {
  const at = place();
  const model = script(at, [{ text: 'Seen.' }]);
  const { code, stdout } = await agent(at, ['-p', '-m', model, '--output-format', 'json', 'explain', 'this'], {
    stdin: 'piped\ntext\n',
  });
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    type: 'result',
    status: 'completed',
    text: 'Seen.',
    turns: 0,
    tool_calls: 0,
  });
  expect(rows(at.home)[2]?.content).toBe('explain this\n\npiped\ntext');
});

test('twelve identical calls end with exit code 3 after six, and loop_limit says otherwise', async () => {
  const at = place();
  const turns = [
    ...Array.from({ length: 12 }, () => ({ calls: [call('glob', { pattern: '*.none' })] })),
    { text: 'Nothing there.' },
  ];
  const { code, stdout, stderr } = await agent(at, ['-p', '-m', script(at, turns), '--output-format', 'json', 'go']);
  expect([code, JSON.parse(stdout)]).toEqual([
    3,
    expect.objectContaining({ status: 'limit_reached', limit: 'repeated_calls', turns: 6 }),
  ]);
  expect(stderr).toContain('loop_limit');
  const off = await agent(at, [
    '-p',
    '-m',
    script(at, turns),
    '--set',
    'loop_limit=0',
    '--output-format',
    'json',
    'go',
  ]);
  expect([off.code, JSON.parse(off.stdout)]).toEqual([0, expect.objectContaining({ status: 'completed', turns: 12 })]);
});

test('the turn limit ends with three turns, the limit fields, one answer and exit code 3', async () => {
  const at = place();
  const model = script(at, [
    ...Array.from({ length: 3 }, (_, n) => ({ calls: [call('glob', { pattern: `*.${n}` })] })),
    { text: 'That is how far I got.' },
  ]);
  const { code, stdout } = await agent(at, [
    '-p',
    '-m',
    model,
    '--max-tool-turns',
    '3',
    '--output-format',
    'json',
    'go',
  ]);
  expect(code).toBe(3);
  expect(JSON.parse(stdout)).toMatchObject({
    status: 'limit_reached',
    turns: 3,
    tool_calls: 3,
    text: 'That is how far I got.',
  });
  const results = rows(at.home)
    .filter((row) => row.kind === 'tool_result')
    .map((row) => JSON.parse((JSON.parse(row.data_json ?? '') as { output: string }).output) as unknown);
  expect(results[2]).toEqual({
    output: '',
    count: 0,
    limit_reached: true,
    limit_message: 'Tool call limit reached (3). Stopping tool loop.',
  });
  expect(results.slice(0, 2)).toEqual([
    { output: '', count: 0 },
    { output: '', count: 0 },
  ]);
});

test.each([
  [['-p', '--max-tool-turns', '0', 'x'], 2, 'max_tool_turns'],
  [['-p', '--max-tool-turns', 'many', 'x'], 2, 'max_tool_turns'],
  [['-p', '--foo', 'x'], 2, '--foo'],
  [['-p', '--forkk', 'x'], 2, '--fork'],
  [['-p', '-C', '/no/such/place', 'x'], 2, '/no/such/place'],
  [['-p', '--output-format', 'jsn', 'x'], 2, 'json'],
  [['-p', '--tools', 'glop', 'x'], 2, 'glob'],
  [['-p'], 2, 'prompt'],
  [['-p', '-c', 'x'], 7, 'continue'],
  [['-p', '-r', 'nope', 'x'], 7, 'nope'],
  [['-p', '-m', 'anthropic/claude-sonnet-5', 'x'], 4, 'ANTHROPIC_API_KEY'],
  [['-p', '-m', 'gpt-5.2', 'x'], 4, 'no key is set'],
  [['-p', '--provider', 'openrooter', 'x'], 2, 'openrouter'],
  [['-p', '--set', 'max_tool_turn=3', 'x'], 2, 'max_tool_turns'],
  [['sessions', 'show', 'nope'], 7, 'nope'],
  [['tools', 'show', 'gerp'], 2, 'grep'],
  [['undo', 'the', 'last', 'change'], 2, 'agent -- undo'],
  [['tools'], 2, '`tools` needs a command: list, show, call, check'],
  [['sesions', 'list', '-p', '--nonsense'], 2, '--nonsense'],
] as const)('%j ends with %i and names %s', async (args, expected, named) => {
  const { code, stderr, stdout } = await agent(place(), args);
  expect({ code, stdout }).toEqual({ code: expected, stdout: '' });
  expect(stderr).toMatch(/^agent: .+\n.+\n$/);
  expect(stderr).toContain(named);
  expect(stderr).not.toContain('    at ');
});

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
    stderr: expect.stringMatching(/^agent: the directory this was started in is gone\n.+\n$/),
  });
  at.file('gone/x', '');
  expect(run('-C', at.work, '-p', 'list *')).toMatchObject({ status: 0 });
});

test('a broken configuration file is named with line and column', async () => {
  const at = place();
  const { code: made } = await agent(at, ['config', 'set', 'max_tool_turns', '7']);
  expect(made).toBe(0);
  writeFileSync(join(at.home, '.agent/config.json'), '{\n  "model": "x",\n  oops\n}\n');
  const { code, stderr } = await agent(at, ['-p', 'x']);
  expect(code).toBe(2);
  expect(stderr).toContain(`${join(at.home, '.agent/config.json')}:3:3`);
});

test('a dangerous command is denied where nobody can be asked: exit code 6, and the message names the option', async () => {
  const at = place({ 'keep.txt': 'x' });
  const model = script(at, [{ calls: [call('bash', { command: 'rm -rf keep.txt' })] }, { text: 'I was not allowed.' }]);
  const denied = await agent(at, ['-p', '-m', model, '--output-format', 'stream-json', 'go']);
  expect(denied.code).toBe(6);
  expect(existsSync(join(at.work, 'keep.txt'))).toBe(true);
  expect(lines(denied.stdout).find((line) => line.type === 'tool_result')).toMatchObject({
    success: false,
    output: expect.stringContaining('--approval') as unknown,
  });
  const allowed = await agent(at, ['-p', '-m', model, '--approval', 'never', 'go']);
  expect(allowed.code).toBe(0);
  expect(existsSync(join(at.work, 'keep.txt'))).toBe(false);
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
      stderr: expect.stringMatching(/^agent: standard output cannot be written: ENOSPC.*\n.+\n$/),
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

test('a home that cannot be written costs one warning, not the answer', async () => {
  const at = place();
  const { code, stdout, stderr } = await agent(at, ['-p', '-m', script(at, [{ text: 'Fine.' }]), 'go'], {
    env: { AGENT_HOME: '/proc/nowhere' },
  });
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'Fine.\n' });
  expect(stderr.match(/cannot be saved/g)).toHaveLength(1);
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

test('a command on the record says what to do where it cannot be opened', async () => {
  const at = place();
  writeFileSync(join(at.home, '.agent'), 'a file');
  const { code, stderr } = await agent(at, ['sessions', 'list']);
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: expect.stringMatching(/^agent: The session database .+\n(?!This is a bug).+\n$/),
  });
});

test('nothing is kept on disk with --ephemeral', async () => {
  const at = place();
  const { code } = await agent(at, ['-p', '--ephemeral', '-m', script(at, [{ text: 'Fine.' }]), 'go']);
  expect(code).toBe(0);
  expect(existsSync(join(at.home, '.agent/agent.db'))).toBe(false);
});

test('a fork goes on in a new session, and the old one stays as it was', async () => {
  const at = place();
  await agent(at, ['-p', '-m', script(at, [{ text: 'One.' }]), 'first']);
  const id = await newest(at);
  const forked = await agent(at, [
    '-p',
    '-r',
    id.slice(0, 13),
    '--fork',
    '-m',
    script(at, [{ text: '' }, { text: 'Two.' }]),
    'second',
  ]);
  expect(forked).toMatchObject({ code: 0, stdout: 'Two.\n' });
  const listed = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as {
    id: string;
    parent_id: string | null;
  }[];
  expect(listed.map((row) => row.parent_id)).toEqual([id, null]);
  expect(JSON.parse((await agent(at, ['sessions', 'show', id, '--json'])).stdout)).toHaveLength(5);
});

test('the log holds no key, and no tool is given one', async () => {
  const at = place();
  const key = 'sk-test-0123456789abcdef';
  const model = script(at, [{ calls: [call('bash', { command: 'env; cat /proc/self/environ' })] }, { text: 'ok' }]);
  await agent(at, ['-p', '-m', model, '--approval', 'never', '--debug', 'go'], { env: { OPENAI_API_KEY: key } });
  expect(readFileSync(join(at.home, '.agent/agent.db')).includes(key)).toBe(false);
});

test('a failure says on stderr what it is and what to do, in every format', async () => {
  const at = place();
  for (const format of ['text', 'json', 'stream-json']) {
    const { code, stderr } = await agent(at, [
      '-p',
      '-m',
      script(at, [{ fault: { code: 'quota', message: 'No credit left.' } }]),
      '--output-format',
      format,
      'go',
    ]);
    expect({ format, code, stderr }).toEqual({
      format,
      code: 1,
      stderr: 'agent: No credit left.\nAdd credit at the provider, or choose another model.\n',
    });
  }
});

test('where the tools of a session change, stderr says that the cache is lost', async () => {
  for (const format of ['text', 'json']) {
    const at = place();
    const model = script(at, [{ text: 'Seen.' }]);
    await agent(at, ['-p', '-m', model, 'go']);
    const { code, stderr } = await agent(at, [
      '-c',
      '-p',
      '-m',
      model,
      '--tools',
      'fs',
      '--output-format',
      format,
      'go on',
    ]);
    expect({ format, code, stderr }).toEqual({
      format,
      code: 0,
      stderr: expect.stringContaining('cache of this conversation is lost'),
    });
  }
});

test('--debug logs a line per call with tool, time and how it ended; without it there is none', async () => {
  const at = place({ 'a.txt': 'x\n' });
  const model = script(at, [
    { calls: [call('file_read', { path: 'a.txt' }), call('file_read', { path: 'none' })] },
    { text: 'Seen.' },
  ]);
  const { stderr } = await agent(at, ['-p', '-m', model, '--debug', 'go']);
  const logged = stderr
    .split('\n')
    .filter((line) => line.includes('"at":"call"'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(logged).toMatchObject([
    { tool: 'file_read', ms: expect.any(Number), ok: true },
    { tool: 'file_read', ms: expect.any(Number), err: 'not_found' },
  ]);
  expect((await agent(at, ['-p', '-m', model, 'go'])).stderr).toBe('');
});
