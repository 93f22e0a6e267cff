import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { agent, lines, place, script } from './inside.js';

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

async function newest(at: ReturnType<typeof place>): Promise<string> {
  const listed = await agent(at, ['sessions', 'list', '--json']);
  return (JSON.parse(listed.stdout) as { id: string }[])[0]?.id ?? '';
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
      /AGENT_APROVAL is not a setting; did you mean AGENT_APPROVAL\?\nagent: The variable AGENT_WEB_PROVIDER sets nothing here\.\n/,
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
  [['-p', '--max-tool-turns', '0x10', 'x'], 2, 'max_tool_turns'],
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

test.each([
  ['tools.limits.bash.timeout_ms=2147483648', {}],
  ['tool_timeout_ms=2147483648', {}],
  ['exec.max_timeout_s=3000000', { timeout_seconds: 3_000_000 }],
])('a time limit that is longer than any timer ends nothing: %s', async (setting, more) => {
  const command = JSON.stringify({ command: 'sleep 0.2; echo x', ...more });
  const ran = await agent(place(), ['tools', 'call', 'bash', command, '--set', setting]);
  expect(JSON.parse(ran.stdout)).toEqual({ output: 'x\n', exit_code: 0 });
});

test('commands run in the bash of the system where the path leads to none', async () => {
  const at = place({ 'bin/none': '' });
  symlinkSync('/bin/sh', join(at.work, 'bin/sh'));
  const line = JSON.stringify({ command: '[[ -n $BASH_VERSION ]] && echo bash' });
  const ran = await agent(at, ['tools', 'call', 'bash', line], { env: { PATH: join(at.work, 'bin') } });
  expect(JSON.parse(ran.stdout)).toMatchObject({ output: existsSync('/bin/bash') ? 'bash\n' : '' });
});

test('a file with the name of a stored output can be written, and is read behind ./', async () => {
  const at = place();
  const call = async (name: string, args: object) =>
    JSON.parse((await agent(at, ['tools', 'call', name, JSON.stringify(args)])).stdout) as object;
  expect(await call('file_write', { path: 'event:7', content: 'mine' })).toMatchObject({ bytes: 4 });
  expect(await call('file_read', { path: './event:7' })).toEqual({ output: 'mine' });
});

test.each(['.5', '0.5'])('money is read as people write it: %s', async (usd) => {
  const at = place();
  const flag = await agent(at, ['-p', '--max-cost', usd, '-m', script(at, [{ text: 'x' }]), 'go']);
  const { stdout } = await agent(at, ['config', 'get', 'max_cost_usd'], { env: { AGENT_MAX_COST_USD: usd } });
  expect([flag.stderr.includes('max_cost'), stdout.trim()]).toEqual([false, '0.5']);
});

test('a setting that is changed by a command keeps the line ends of its file', async () => {
  const at = place();
  await agent(at, ['config', 'set', 'max_tool_turns', '7']);
  const file = join(at.home, '.agent/config.json');
  writeFileSync(file, '{\r\n  // mine\r\n  "model": "x"\r\n}\r\n');
  await agent(at, ['config', 'set', 'max_tool_turns', '8']);
  const text = readFileSync(file, 'utf8');
  expect(text).toBe('{\r\n  // mine\r\n  "model": "x",\r\n  "max_tool_turns": 8\r\n}\r\n');
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

test('a home that cannot be written costs one warning, not the answer', async () => {
  const at = place();
  const { code, stdout, stderr } = await agent(at, ['-p', '-m', script(at, [{ text: 'Fine.' }]), 'go'], {
    env: { AGENT_HOME: '/proc/nowhere' },
  });
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'Fine.\n' });
  expect(stderr.match(/cannot be saved/g)).toHaveLength(1);
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
      stderr: expect.stringContaining('the next request is not cached'),
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

test('the offline provider says how to connect a model in place', async () => {
  const { code, stdout } = await agent(place(), ['-p', '-m', 'offline', 'explain src/main.ts']);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/To connect a model, type `\/login`[^]*agent login/)]);
  const unconnected = await agent(place(), ['-p', 'explain src/main.ts']);
  expect([unconnected.code, unconnected.stderr]).toEqual([4, expect.stringContaining('run agent login')]);
});
