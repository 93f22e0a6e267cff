import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, lines, place, script } from './inside.js';

const schema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  type: 'object',
  properties: { name: { type: 'string', format: 'unknown' }, size: { type: 'integer' } },
  required: ['name', 'size'],
  additionalProperties: false,
};
const text = JSON.stringify(schema);
const good = '{"name": "a", "size": 1}';
const read = (path: string): string => readFileSync(path, 'utf8');

test.each([
  ['as it is', [{ text: good }], 1],
  ['in a fence, with words around it', [{ text: `Here it is:\n\`\`\`json\n${good}\n\`\`\`\nThat is all.` }], 1],
  ['after two that were not', [{ text: 'a, 1' }, { text: '{"name": "a", "extra": 1}' }, { text: good }], 3],
  ['after calls', [{ calls: [{ name: 'glob', arguments: { pattern: '*' } }] }, { text: good }], 1],
])('an answer that fits the schema is the result: %s', async (_name, turns, messages) => {
  const at = place();
  at.file('schema.json', text);
  const go = [
    '-p',
    '-m',
    script(at, turns),
    '--json-schema',
    'schema.json',
    '--output-format',
    'json',
    '-o',
    'out.json',
    'go',
  ];
  const { code, stdout, stderr } = await agent(at, go);
  expect([code, stderr]).toEqual([0, '']);
  const result = JSON.parse(stdout) as { readonly session_id: string };
  expect(result).toMatchObject({ status: 'completed', structured_output: { name: 'a', size: 1 } });
  const listed = (await agent(at, ['sessions', 'list', '--json'])).stdout;
  expect(JSON.parse(listed)).toMatchObject([{ prompt: 'go' }]);
  const asked = (await agent(at, ['sql', '--json', 'SELECT prompt FROM v_sessions'])).stdout;
  expect(JSON.parse(asked)).toEqual([{ prompt: 'go' }]);
  expect(read(join(at.work, 'out.json'))).toBe('{"name":"a","size":1}\n');
  const shown = await agent(at, ['sessions', 'show', result.session_id, '--json']);
  const events = JSON.parse(shown.stdout) as readonly {
    readonly kind: string;
    readonly data: { readonly note?: true } | null;
  }[];
  expect(events.filter(({ kind, data }) => kind === 'user' && data?.note !== true)).toHaveLength(messages);
});

test('an answer that does not fit is sent back twice with what is wrong; then the run has failed', async () => {
  const at = place();
  const turns = [{ text: '{"name": 1}' }, { text: '[]' }, { text: '{"size": 1.5}' }, { text: good }];
  const { code, stdout, stderr } = await agent(at, [
    ...['-p', '-m', script(at, turns), '--json-schema', text, '--output-format', 'stream-json', '-o', 'out.json', 'go'],
  ]);
  const said = lines(stdout);
  expect(code).toBe(1);
  expect(said.at(-1)).toMatchObject({ status: 'failed', text: '{"size": 1.5}', error: { code: 'schema' } });
  expect(said.at(-1)).not.toHaveProperty('structured_output');
  expect(stderr).toContain('even after 2 corrections');
  expect(read(join(at.work, 'out.json'))).toBe('{"size": 1.5}\n');
  const shown = await agent(at, ['sessions', 'show', String(said[0]?.['session_id']), '--json']);
  expect(shown.stdout).toContain("must have required property 'size'");
  expect(shown.stdout).toContain('/name must be string');
});

test('as text the answer is printed as JSON, and the schema is not in the prompt', async () => {
  const at = place();
  const model = script(at, [{ text: `\`\`\`\n${good}\n\`\`\`` }]);
  expect(await agent(at, ['-p', '-m', model, '--json-schema', text, 'go'])).toMatchObject({
    code: 0,
    stdout: '{"name":"a","size":1}\n',
  });
});

test.each([
  [['--json-schema', '{'], '--json-schema: '],
  [['--json-schema', '{"type": 7}'], '--json-schema: '],
  [['--json-schema', 'none.json'], 'there is no such file'],
  [['-o', '.'], 'it is a directory'],
  [['-o', 'none/out.txt'], 'its folder does not exist'],
  [['-o', '/proc/self/fd/7777'], '--output: '],
])('%j ends with 2 before anything is asked', async (more, message) => {
  const at = place();
  const { code, stderr } = await agent(at, ['-p', '-m', script(at, [{ text: 'x' }]), ...more, 'go']);
  expect([code, existsSync(join(at.home, '.agent/agent.db'))]).toEqual([2, false]);
  expect(stderr).toContain(message);
});

test('the answer is written whole, also that of a turn that failed; where it cannot be, nothing is left', async () => {
  const at = place({ 'out.txt': 'before\n' });
  const out = join(at.work, 'out.txt');
  await agent(at, ['-p', '-m', script(at, [{ text: '  the answer\n' }]), '-o', 'out.txt', 'go']);
  expect(read(out)).toBe('the answer\n');
  const failing = script(at, [{ text: 'half an ', fault: { code: 'network', message: 'gone' } }]);
  expect((await agent(at, ['-p', '-m', failing, '-o', 'out.txt', 'go'])).code).toBe(1);
  mkdirSync(join(at.work, 'dir.txt'));
  const blocked = script(at, [
    { calls: [{ name: 'bash', arguments: { command: 'rm out.txt; mkdir out.txt' } }] },
    { text: 'x' },
  ]);
  const { code, stdout, stderr } = await agent(at, ['-p', '-m', blocked, '-o', 'out.txt', 'go']);
  expect([code, stdout]).toEqual([1, 'x\n']);
  expect(stderr).toContain('--output: ');
  expect(readdirSync(at.work).toSorted()).toEqual(['dir.txt', 'out.txt']);
});

test('a file keeps its mode, and a link stays one: what it leads to is written', async () => {
  const at = place({ 'kept/out.txt': 'before\n' });
  const kept = join(at.work, 'kept/out.txt');
  chmodSync(kept, 0o600);
  for (const [link, target] of [
    ['link', 'kept/out.txt'],
    ['new', join(at.work, 'kept/new.txt')],
  ] as const) {
    symlinkSync(target, join(at.work, link));
    const go = ['-p', '-m', script(at, [{ text: `through ${link}` }]), '-o', link, 'go'];
    expect(await agent(at, go)).toMatchObject({ code: 0, stderr: '' });
    expect(lstatSync(join(at.work, link)).isSymbolicLink()).toBe(true);
    expect(read(join(at.work, link))).toBe(`through ${link}\n`);
  }
  expect(statSync(kept).mode & 0o7777).toBe(0o600);
  expect(readdirSync(join(at.work, 'kept')).toSorted()).toEqual(['new.txt', 'out.txt']);
});

test('a device is written and stays; what it does not take ends with 1', async () => {
  const at = place();
  for (const [name, code] of [
    ['null', 0],
    ['full', 1],
  ] as const) {
    symlinkSync(`/dev/${name}`, join(at.work, name));
    expect(await agent(at, ['-p', '-m', script(at, [{ text: 'x' }]), '-o', name, 'go'])).toMatchObject({ code });
    expect(lstatSync(join(at.work, name)).isSymbolicLink()).toBe(true);
    expect(statSync(join(at.work, name)).isCharacterDevice()).toBe(true);
  }
  const more = ['--output-format', 'json', '-o', '/dev/stdout', 'go'];
  const { code, stdout } = await agent(at, ['-p', '-m', script(at, [{ text: 'the answer' }]), ...more]);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^\{.*\}\nthe answer\n$/)]);
});

test('a FIFO is written to its reader and stays; where nobody reads, nothing is asked', async () => {
  const at = place();
  const fifo = join(at.work, 'fifo');
  execFileSync('mkfifo', [fifo]);
  const go = (text: string) => agent(at, ['-p', '-m', script(at, [{ text }]), '-o', 'fifo', 'go']);
  const { code, stderr } = await go('x');
  expect([code, existsSync(join(at.home, '.agent/agent.db'))]).toEqual([2, false]);
  expect(stderr).toContain('no program reads from it');
  const reader = spawn('sh', ['-c', 'echo; exec cat fifo'], { cwd: at.work, stdio: ['ignore', 'pipe', 'inherit'] });
  let got = '';
  reader.stdout.on('data', (chunk: Buffer) => (got += chunk.toString()));
  await new Promise((resolve) => reader.stdout.once('data', resolve));
  const long = 'many words '.repeat(20_000).trim();
  const closed = new Promise((resolve) => reader.once('close', resolve));
  for (let sum = await go(long); sum.code !== 0; sum = await go(long)) expect(sum.stderr).toContain('no program reads');
  await closed;
  expect(got).toBe(`\n${long}\n`);
  expect(lstatSync(fifo).isFIFO()).toBe(true);
});

const calls = (...commands: readonly string[]) => [
  ...commands.map((command) => ({ calls: [{ name: 'bash', arguments: { command } }] })),
  { text: 'done' },
];

/** A command with so much time is not rehearsed: whether it is asked about depends on the rules alone. */
const unrehearsed = (command: string) => [
  { calls: [{ name: 'bash', arguments: { command, timeout_seconds: 300 } }] },
  { text: 'done' },
];

test('--allowed-tools spares questions as rules do, and no more', async () => {
  const at = place({ 'a.txt': '', 'b.txt': '' });
  const model = script(at, calls('rm -rf a.txt', 'rm -rf b.txt'));
  const go = ['-p', '-m', model, '--allowed-tools', 'Bash(rm -rf a.txt) mcp__x__y', 'go'];
  expect((await agent(at, go)).code).toBe(6);
  expect(readdirSync(at.work)).toEqual(['b.txt']);
  const edit = script(at, [
    { calls: [{ name: 'file_write', arguments: { path: 'src/c.txt', content: '' } }] },
    { calls: [{ name: 'file_write', arguments: { path: 'd.txt', content: '' } }] },
    { text: 'done' },
  ]);
  const write = ['-p', '-m', edit, '--approval', 'mutating', '--allowedTools', 'Write(src/**),Nothing', 'go'];
  const { code, stderr } = await agent(at, write);
  expect([code, stderr]).toEqual([
    6,
    expect.stringMatching(
      /^agent: --allowed-tools: `Nothing` allows nothing: there is no tool Nothing here\.\nagent: not run, .*\n.*\n$/,
    ),
  ]);
  expect(readdirSync(at.work)).toEqual(['b.txt', 'src']);
});

test.each([
  ['bash', 'needs the leading words of a command'],
  ['Bash(*)', 'needs the leading words of a command'],
  ['bash(uv *)', 'uv needs its subcommand'],
  ['bash(git)', 'git needs its subcommand'],
  ['bash(python3*)', 'runs whatever follows it'],
  ['bash(python3 *)', 'runs whatever follows it'],
])('%s allows nothing, as no rule may allow it', async (pattern, message) => {
  const at = place({ 'a.txt': '' });
  const model = script(at, calls('rm -rf a.txt', 'git reset --hard', 'python3 -c 1'));
  const { code, stderr } = await agent(at, ['-p', '-m', model, '--allowed-tools', pattern, 'go']);
  expect(code).toBe(6);
  expect(stderr).toContain(message);
  expect(readdirSync(at.work)).toEqual(['a.txt']);
});

test.each([
  ['git add a.txt', 0],
  ['git add a.txt && git status', 0],
  ['git add a.txt; rm a.txt', 6],
  ['git add "$(rm a.txt)"', 6],
  ['git config core.pager ./a.txt', 6],
  ['git -c alias.x=!./a.txt x', 6],
  ['git submodule foreach ./a.txt', 6],
  ['git push --force', 6],
  ['git frobnicate', 6],
  ['gitk', 6],
  ['npm run nothing', 0],
  ['npm run nothing; rm a.txt', 6],
  ['npm publish --dry-run', 6],
  ['npm exec ./a.txt', 6],
  ['npm frobnicate', 6],
  ['cargo install x', 6],
  ['go run ./a.txt', 6],
])('its program with a star spares the question about `%s`: exit %i', async (command, expected) => {
  const at = place({ 'a.txt': '' });
  const program = /^(?:git|\w+)/.exec(command)?.[0] ?? '';
  const model = script(at, unrehearsed(command));
  const go = ['-p', '-m', model, '--approval', 'mutating', '--allowed-tools', `bash(${program} *)`, 'go'];
  const { code, stderr } = await agent(at, go);
  expect([code, readdirSync(at.work)]).toEqual([expected, ['a.txt']]);
  expect(stderr).not.toContain('allows nothing');
});

test.each(['(x)', 'Bash(git log', 'Edit(src', 'a b)'])('%s is not a pattern', async (pattern) => {
  const at = place();
  const go = ['-p', '-m', script(at, [{ text: 'Hi.' }])];
  const allowed = await agent(at, [...go, '--allowed-tools', pattern, 'go']);
  expect([allowed.code, allowed.stdout]).toEqual([0, 'Hi.\n']);
  expect(allowed.stderr).toContain('is not a pattern and is ignored');
  const denied = await agent(at, [...go, '--disallowed-tools', pattern, 'go']);
  expect(denied.code).toBe(2);
  expect(denied.stderr).toContain('it is not a pattern');
});

test.each([
  ['Bash(git * main)', 'its subcommand'],
  ['Bash(* --version)', 'must not begin with a star'],
  ['Bash()', 'there is no command in the parentheses'],
  ['WebFetch(example.com)', 'name a page by its host'],
  ['WebFetch(domain:a*)', 'name a page by its host'],
  ['Read(domain:x)', 'the parentheses of this tool take only paths'],
  ['mcp__*', 'names the server'],
  ['mcp__git*', 'names the server'],
  ['mcp__github__get(x)', 'parentheses have no meaning for mcp__github__get here'],
  ['AskUserQuestion(x)', 'parentheses have no meaning for ask_user here'],
  ['Note*', 'only tools of MCP servers can be named with a star'],
])('%s allows nothing, and a notice says why', async (pattern, message) => {
  const at = place();
  const { code, stderr } = await agent(at, ['-p', '-m', script(at, [{ text: 'x' }]), '--allowed-tools', pattern, 'go']);
  expect([code, stderr]).toEqual([0, expect.stringContaining(`\`${pattern}\` allows nothing: `)]);
  expect(stderr).toContain(message);
});

test.each([
  ['Bash(git add*)', 'git add a.txt', 0, 'no word longer than add'],
  ['Bash(git add*)', 'git rm a.txt', 6, 'no word longer than add'],
  ['Bash(git add:*), WebFetch(domain:docs.example.com), mcp__github, mcp__github__*', 'git add a.txt', 0, ''],
])('%s spares the question about `%s`: exit %i', async (pattern, command, expected, message) => {
  const at = place({ 'a.txt': '' });
  const go = ['-p', '-m', script(at, unrehearsed(command)), '--approval', 'mutating', '--allowed-tools', pattern, 'go'];
  const { code, stderr } = await agent(at, go);
  expect([code, stderr.includes('--allowed-tools: ')]).toEqual([expected, message !== '']);
  expect(stderr).toContain(message);
});
