import { mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { foreignFlags } from '../../src/kernel/console/foreign-command-line.js';
import { namesOf, type OptionTable, rootOptions } from '../../src/kernel/console/options.js';
import { triedServer } from '../features/mcp/tried-server.js';
import { agent, lines, place, repl, script } from './inside.js';

/** A line with the option, and its required effect. */
type Row = readonly [act: () => Promise<unknown>, expected: unknown];

const done = [{ text: 'Done.' }];
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

async function setting(key: string, ...args: readonly string[]): Promise<string> {
  return (await agent(place(), [...args, 'config', 'get', key])).stdout.trim();
}

async function settings(keys: readonly string[], ...args: readonly string[]): Promise<readonly string[]> {
  const values: string[] = [];
  for (const key of keys) values.push(await setting(key, ...args));
  return values;
}

/** Runs an edit, a command that changes something and one that is dangerous. Returns which of them ran. */
async function changes(...args: readonly string[]): Promise<readonly string[]> {
  const at = place({ 'removed/x': '' });
  const command = (text: string) => ({ calls: [{ name: 'bash', arguments: { command: text } }] });
  const model = script(at, [
    { calls: [{ name: 'file_write', arguments: { path: 'edited', content: 'x' } }] },
    command('touch made'),
    command('rm -rf removed'),
    ...done,
  ]);
  await agent(at, ['-p', '-m', model, ...args, 'go']);
  const there = readdirSync(at.work);
  return ['edited', 'made', 'removed'].filter((name) => there.includes(name) === (name !== 'removed'));
}

interface Seen {
  readonly code: number | null;
  readonly stderr: string;
  readonly stdout: string;
  readonly events: readonly { readonly kind: string; readonly content: string | null; readonly data: unknown }[];
}

/** Runs one turn and returns its session. */
async function turn(at: ReturnType<typeof place>, args: readonly string[], stdin?: string): Promise<Seen> {
  const ran = await agent(at, ['-m', script(at, done), ...args], stdin === undefined ? {} : { stdin });
  const [session] = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as { id: string }[];
  const shown = session ? (await agent(at, ['sessions', 'show', session.id, '--json'])).stdout : '[]';
  return { ...ran, events: JSON.parse(shown) as Seen['events'] };
}

const contents = (kind: string, { events }: Seen): readonly (string | null)[] =>
  events.filter((event) => event.kind === kind).map(({ content }) => content);

async function prompts(...args: readonly string[]): Promise<readonly (string | null)[]> {
  return contents('user', await turn(place(), args));
}

/** Returns whether the system prompt is the default one, and how it ends. */
async function systemPrompt(files: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<unknown> {
  const [text = ''] = contents('system', await turn(place(files), ['-p', ...args, 'go']));
  return [text?.startsWith('You are agent'), text?.includes('Answer in German.')];
}

async function toolNames(...args: readonly string[]): Promise<readonly string[]> {
  const { events } = await turn(place(), ['-p', ...args, 'go']);
  return [...new Set(JSON.stringify(events).match(/(?<="name":")[a-z_]+(?=")/g) ?? [])];
}

/** Which of the user's own server and that of the line are offered. */
async function servers(args: (server: string) => readonly string[]): Promise<readonly boolean[]> {
  const at = place();
  const own = triedServer(at.work);
  own.list([{ name: 'one', description: 'Own.' }]);
  await agent(at, ['mcp', 'add', 'own', '--', own.entry.command, ...own.entry.args]);
  const given = { mcpServers: { given: own.entry } };
  const calls = [{ calls: [{ name: 'tool_search', arguments: { query: 'one' } }] }, ...done];
  const ran = await agent(at, [
    ...['-p', '--output-format', 'stream-json', '-m', script(at, calls)],
    ...args(JSON.stringify(given)),
    'go',
  ]);
  return ['mcp__own__one', 'mcp__given__one'].map((name) => ran.stdout.includes(name));
}

/** How a sandboxed run judges writes into the added folder and beside it. */
async function judged(flag: string): Promise<readonly unknown[]> {
  const at = place();
  mkdirSync(join(dirname(at.work), 'other'));
  const judge = async (path: string): Promise<unknown> => {
    const call = JSON.stringify({ path: join(dirname(at.work), path), content: '' });
    const line = [flag, '../other', 'tools', 'check', 'file_write', call, '--sandbox', 'workspace'];
    return lines((await agent(at, line)).stdout)[0]?.['decision'];
  };
  return [await judge('other/a.txt'), await judge('a.txt')];
}

/** The session of a second line, told from that of the first. */
async function secondSession(first: readonly string[], second: readonly string[]): Promise<unknown> {
  const at = place();
  await turn(at, ['-p', ...first, 'one']);
  await turn(at, ['-p', ...second, 'two']);
  const rows = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as { id: string; title: string }[];
  return rows.map(({ id, title }) => (/^\d/.test(id) && !id.includes('-') ? (title ?? 'untitled') : `${id} ${title}`));
}

const three = Array.from({ length: 3 }, () => ({ calls: [{ name: 'glob', arguments: { pattern: '*' } }] }));

async function exitOf(turns: readonly unknown[], ...args: readonly string[]): Promise<number | null> {
  const at = place();
  return (await agent(at, ['-p', '-m', script(at, turns), ...args, 'go'])).code;
}

async function firstLine(...args: readonly string[]): Promise<unknown> {
  return lines((await turn(place(), ['-p', ...args, 'go'])).stdout)[0]?.['type'];
}

async function imageOf(...args: readonly string[]): Promise<readonly (string | null)[]> {
  const at = place();
  for (const name of ['a.png', 'b.png']) writeFileSync(join(at.work, name), png);
  return contents('user', await turn(at, ['-p', ...args, '--', 'look']));
}

const id = '0b7faad0-1111-4111-8111-000000000001';
const freely = ['never', 'off'];
const held = ['never', 'workspace'];
const modes = ['approval', 'sandbox'] as const;
const german = { 'p.md': 'Answer in German.' };

/** A row for each entry that works here. */
const works: Readonly<Record<string, Row>> = {
  '--append-system-prompt <text>': [
    () => systemPrompt({}, '--system-prompt', 'Be brief.', '--append-system-prompt', 'Answer in German.'),
    [true, true],
  ],
  '--append-system-prompt-file <file>': [
    () => systemPrompt(german, '--append-system-prompt-file', 'p.md'),
    [true, true],
  ],
  '--system-prompt-file <file>': [() => systemPrompt(german, '--system-prompt-file=p.md'), [true, true]],
  '--variant <effort>': [() => setting('effort', '--variant', 'high'), 'high'],
  '--local-provider <name>': [() => setting('provider', '--local-provider', 'ollama'), 'ollama'],
  '--permission-mode <mode>': [
    async () => [
      await changes('--permission-mode', 'default'),
      await changes('--permission-mode', 'acceptEdits'),
      await changes('--permission-mode', 'plan'),
      await changes('--permission-mode=auto'),
      await changes('--permission-mode', 'dontAsk'),
      await changes('--permission-mode', 'bypassPermissions'),
    ],
    [[], ['edited'], [], ['edited', 'made'], [], ['edited', 'made', 'removed']],
  ],
  '--dangerously-skip-permissions': [() => changes('--dangerously-skip-permissions'), ['edited', 'made', 'removed']],
  '--enable-auto-mode': [() => changes('--enable-auto-mode'), ['edited', 'made']],
  '--approval-mode <mode>': [
    async () => [
      await changes('--approval-mode', 'default'),
      await changes('--approval-mode', 'auto_edit'),
      await changes('--approval-mode', 'yolo'),
      await changes('--approval-mode', 'plan'),
    ],
    [[], ['edited'], ['edited', 'made', 'removed'], []],
  ],
  '-y, --yolo': [
    async () => [await changes('--yolo'), await changes('-y')],
    [
      ['edited', 'made', 'removed'],
      ['edited', 'made', 'removed'],
    ],
  ],
  '--auto': [() => changes('--auto'), ['edited', 'made', 'removed']],
  '-a, --ask-for-approval <policy>': [
    async () => [
      await changes('-a', 'untrusted'),
      await changes('--ask-for-approval', 'on-request'),
      await settings(modes, '-a', 'never'),
    ],
    [[], ['edited', 'made'], held],
  ],
  '--full-auto': [() => settings(modes, '--full-auto'), held],
  '--full-access': [() => settings(modes, '--sandbox', 'workspace', '--full-access'), freely],
  '--dangerously-bypass-approvals-and-sandbox': [
    () => settings(modes, '--dangerously-bypass-approvals-and-sandbox'),
    freely,
  ],
  '-s, --sandbox <mode>': [
    async () => [
      await setting('sandbox', '-s', 'workspace-write'),
      await setting('sandbox', '--sandbox', 'danger-full-access'),
      await setting('sandbox', '--sandbox=read-only'),
    ],
    ['workspace', 'off', 'read-only'],
  ],
  '--allowedTools, --allowed-tools <patterns...>': [
    () =>
      changes(
        '--approval',
        'mutating',
        '--allowedTools',
        'Bash(touch made)',
        'Edit(edited)',
        '--allowed-tools',
        'Read',
      ),
    ['edited', 'made'],
  ],
  '--disallowedTools, --disallowed-tools <patterns...>': [
    () => changes('--yolo', '--disallowedTools', 'Bash(rm *)', 'Write(edited)'),
    ['made'],
  ],
  '--tools <"">': [() => toolNames('--tools', ''), []],
  '--tools <default>': [async () => (await toolNames('--tools', 'default')).includes('file_edit'), true],
  '--tools <Names...>': [
    async () => (await toolNames('--tools', 'Read,Glob', 'Bash')).toSorted(),
    ['bash', 'file_read', 'glob'],
  ],
  '--search': [async () => (await toolNames('--search')).includes('web_fetch'), true],
  '--mcp-config <file|json...>': [() => servers((json) => ['--mcp-config', json]), [true, true]],
  '--strict-mcp-config': [() => servers((json) => ['--strict-mcp-config', '--mcp-config', json]), [false, true]],
  '--agents <json>': [
    async () => (await toolNames('--agents', '{"x": {"description": "d", "prompt": "p"}}')).includes('agent'),
    true,
  ],
  '--bare': [
    async () =>
      contents('system', await turn(place({ 'AGENTS.md': 'Use tabs.' }), ['-p', '--bare', 'go']))[0]?.includes(
        'Use tabs.',
      ),
    false,
  ],
  '--add-dir <dir...>': [() => judged('--add-dir'), ['allow', 'ask']],
  '--include-directories <dirs...>': [() => judged('--include-directories'), ['allow', 'ask']],
  '--max-turns <n>': [() => exitOf([...three, ...done], '--max-turns', '1'), 3],
  '--max-session-turns <n>': [() => exitOf([...three, ...done], '--max-session-turns', '1'), 3],
  '--max-budget-usd <usd>': [() => setting('max_cost_usd', '--max-budget-usd', '0.5'), '0.5'],
  '--session-id <id>': [
    async () => [
      await secondSession(['--session-id', id], ['-r', id.slice(0, 8)]),
      await secondSession(['--session-id', id], ['--session-id', id]),
    ],
    [[`${id} null`], [`${id} null`]],
  ],
  '-n, --name <title>': [
    async () => [
      await secondSession(['-n', 'First'], ['-c', '--name', 'Second']),
      await secondSession(['-n', 'A'], []),
    ],
    [['Second'], ['untitled', 'A']],
  ],
  '--title <title>': [() => secondSession(['--title', 'First'], ['-c']), ['First']],
  '--no-session-persistence': [() => secondSession([], ['--no-session-persistence']), ['untitled']],
  '--fork-session': [() => secondSession([], ['-c', '--fork-session', '-n', 'Copy']), ['Copy', 'untitled']],
  '-r, --resume <latest>': [() => secondSession([], ['-r', 'latest']), ['untitled']],
  '-s, --session <id>': [() => secondSession(['--session-id', id], ['-s', id]), [`${id} null`]],
  '--checkpointing': [async () => (await turn(place(), ['-p', '--checkpointing', 'go'])).code, 0],
  '--prompt <text>': [() => prompts('--prompt', 'explain this'), ['explain this']],
  '-i, --image <files>': [() => imageOf('-i', 'a.png,b.png'), [expect.stringContaining('[b.png 1x1]')]],
  '-i, --prompt-interactive <text>': [
    async () => {
      const at = place();
      await repl(at, ['-m', script(at, done), '-i', 'explain this'], [['', 'Done.']]);
      return (await agent(at, ['search', 'explain'])).stdout.includes('explain this');
    },
    true,
  ],
  '-f, --file <image>': [() => imageOf('-f', 'a.png'), [expect.stringContaining('[a.png 1x1]')]],
  '--json': [() => firstLine('--json'), 'session'],
  '--experimental-json': [() => firstLine('--experimental-json'), 'session'],
  '--format <default|json>': [
    async () => [await firstLine('--format', 'json'), (await turn(place(), ['-p', '--format=default', 'go'])).stdout],
    ['session', 'Done.\n'],
  ],
  '--output-last-message <file>': [
    async () => {
      const at = place();
      await turn(at, ['-p', '--output-last-message', 'a.md', 'go']);
      return readFileSync(join(at.work, 'a.md'), 'utf8');
    },
    'Done.\n',
  ],
  '--output-schema <file>': [
    async () => {
      const at = place({ 'schema.json': '{"type":"object","required":["n"]}' });
      return (await agent(at, ['-p', '-m', script(at, [{ text: '{"n":1}' }]), '--output-schema', 'schema.json', 'go']))
        .stdout;
    },
    expect.stringMatching(/"n": ?1/),
  ],
  '--include-partial-messages': [
    async () => (await turn(place(), ['-p', '--json', '--include-partial-messages', 'go'])).code,
    0,
  ],
  '--no-alt-screen': [async () => (await turn(place(), ['-p', '--no-alt-screen', 'go'])).code, 0],
  '--settings <file|json>': [
    async () => [
      await changes('--settings', '{"approval": "never", "permissions": {"deny": ["Bash(rm *)"]}}'),
      await changes('--settings', '{"permissions": {"defaultMode": "acceptEdits", "allow": ["Bash(touch *)"]}}'),
      await changes('--settings', '{"permissions": {"ask": ["Write"]}}'),
      (await turn(place(), ['-p', '--settings', '{"hooks": {}, "env": {}}', 'go'])).stderr,
      (await turn(place(), ['-p', '--settings', 'none.json', 'go'])).code,
    ],
    [['edited', 'made'], ['edited', 'made'], ['made'], 'agent: --settings: hooks, env have no effect here.\n', 2],
  ],
  '--cd <dir>': [() => elsewhere('--cd'), true],
  '--dir <dir>': [() => elsewhere('--dir'), true],
  '--skip-git-repo-check': [async () => (await turn(place(), ['exec', '--skip-git-repo-check', 'go'])).code, 0],
  '-d': [() => trace('-d'), true],
  '--debug-to-stderr': [() => trace('--debug-to-stderr'), true],
  '--print-logs': [() => trace('--print-logs'), true],
  '--mcp-debug': [() => trace('--mcp-debug'), true],
  '--no-chrome': [async () => (await turn(place(), ['-p', '--no-chrome', 'go'])).code, 0],
};

/** Returns true if a failure comes with a stack trace. */
async function trace(flag: string): Promise<boolean> {
  return / at .*\.ts:\d/.test((await agent(place(), ['-p', flag, '-r', 'none', 'go'])).stderr);
}

async function elsewhere(flag: string): Promise<boolean> {
  const at = place({ 'sub/x': '' });
  const { stdout } = await agent(at, [
    '-p',
    '-m',
    script(at, done),
    '--output-format',
    'stream-json',
    flag,
    'sub',
    'go',
  ]);
  return stdout.includes(realpathSync(join(at.work, 'sub')));
}

/** Values of options that are only meant by some. */
const values: Readonly<Record<string, string>> = { '-c, --config <key=value>': 'model=x' };

const aliases = foreignFlags.filter(({ gives }) => gives !== undefined);
const refused = foreignFlags.filter(({ instead }) => instead !== undefined);

test('every option of another program has a row, and no two are the same', () => {
  expect(Object.keys(works).toSorted()).toEqual(aliases.map(({ flags }) => flags).toSorted());
  expect(aliases.length + refused.length).toBe(foreignFlags.length);
  expect(new Set(foreignFlags.map(({ flags }) => flags)).size).toBe(foreignFlags.length);
});

test.each(Object.entries(works))('%s works', async (_flags, [act, expected]) => {
  expect(await act()).toEqual(expected);
});

test.each(refused.map((entry) => [entry.flags, entry] as const))(
  '%s names our equal',
  async (flags, { of, instead }) => {
    const at = place();
    for (const name of namesOf(flags).names) {
      const ran = await agent(at, ['-p', '-m', script(at, done), name, values[flags] ?? 'x', 'go']);
      const stderr = `agent: ${name} is an option of ${of}, not of agent\n${instead}\n`;
      expect(ran).toEqual({ code: 2, signal: null, stdout: '', stderr });
    }
  },
);

test('the help has none of them that are no options of agent', async () => {
  const help = (await agent(place(), ['--help'])).stdout;
  const options: OptionTable = rootOptions;
  const own = Object.values(options).flatMap(({ flags, hidden }) => (hidden ? [] : namesOf(flags).names));
  const names = foreignFlags
    .filter(({ looks }) => looks === undefined)
    .flatMap(({ flags }) => namesOf(flags).names)
    .filter((name) => !own.includes(name));
  const shown = new Set(help.match(/(?<![\w-])--?[a-z][\w-]*/gi));
  expect(names.filter((name) => shown.has(name))).toEqual([]);
});
