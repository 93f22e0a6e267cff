import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { table } from '../../src/commands/table.js';
import type { Place } from '../e2e/program.js';
import { triedCollector } from '../features/telemetry/tried-collector.js';
import { agent, place, repl, script } from './inside.js';

interface Row {
  readonly kind: string;
  readonly before?: string;
  readonly secret: readonly string[];
  readonly after?: string;
}

const forms = (
  JSON.parse(readFileSync(new URL('../../fixtures/secrets/forms.json', import.meta.url), 'utf8')) as readonly Row[]
)
  .filter(({ kind }) => kind !== 'environment')
  .map(({ kind, before = '', secret, after = '' }) => ({
    kind,
    secret: secret.join(''),
    text: `${before}${secret.join('')}${after}`,
  }));
const all = forms.map(({ text }) => text).join('\n');

/** What a command does with a text that it is given. `planted` below tries the doors of the first two kinds. */
type Door =
  /** It stores the text without the secrets. */
  | 'masks'
  /** It stores nothing where there is a secret. */
  | 'refuses'
  /** The text becomes an event of a session, whose guard masks each of them. */
  | 'event'
  /** It stores what the user wrote where that needs a secret, as `settings` says. */
  | 'setting'
  /** It stores no text that it is given. */
  | 'none';

const doors: Readonly<Record<Exclude<Door, 'setting'>, readonly string[]>> = {
  masks: ['sessions rename', 'sessions import', 'sessions export', '/rename', '/export', 'eval new', 'eval run'],
  refuses: ['memory add', 'memory edit', 'notes add', 'notes edit', '/memory'],
  event: [
    '/btw',
    'send',
    '/compact',
    '/fork',
    '/goal',
    '/init',
    '/plan',
    '/plugin',
    '/review',
    '/schedule',
    '/tasks',
    '/agents',
    'review',
    '/skills',
    'tools call',
    'tasks run',
    'tasks run-due',
    'tasks daemon',
    'tasks approve',
    'replay',
    'acp',
    'mcp serve',
  ],
  none: [
    'eval',
    'eval list',
    'eval report',
    'eval compare',
    'eval rm',
    'blame',
    'why',
    'trace',
    'trace export',
    'trace check',
    'trace notes',
    'trace hook',
    'trace trailer',
    '/blame',
    '/bg',
    '/wait',
    'agents',
    'agents check',
    'agents diff',
    'agents discard',
    'agents merge',
    'agents list',
    'agents show',
    'audit',
    'audit export',
    'audit suggest-rules',
    'audit verify',
    'attach',
    'commands',
    'commands check',
    'commands list',
    'commands show',
    'completion',
    'config',
    'config check',
    'config get',
    'config path',
    'config show',
    'db',
    'db init',
    'db pull',
    'db push',
    'db status',
    'db sync',
    'doctor',
    'help',
    'hooks',
    'hooks check',
    'hooks list',
    'hooks show',
    'logout',
    'mcp',
    'mcp get',
    'mcp list',
    'mcp logout',
    'mcp remove',
    'mcp test',
    'memory',
    'memory approve',
    'memory list',
    'memory pin',
    'memory restore',
    'memory rm',
    'memory show',
    'memory unpin',
    'models',
    'notes',
    'notes approve',
    'notes list',
    'notes pin',
    'notes restore',
    'notes rm',
    'notes show',
    'notes unpin',
    'permissions',
    'permissions check',
    'permissions list',
    'plugin',
    'plugin add',
    'plugin available',
    'plugin disable',
    'plugin enable',
    'plugin list',
    'plugin remove',
    'plugin trust',
    'plugin update',
    'output-styles',
    'output-styles list',
    'output-styles show',
    'providers',
    'ps',
    'stop',
    'providers check',
    'redact',
    'redo',
    'restore',
    'schema',
    'search',
    'serve',
    'sessions',
    'sessions list',
    'sessions prune',
    'sessions rm',
    'sessions search',
    'sessions show',
    'skills',
    'skills check',
    'skills list',
    'skills show',
    'sql',
    'stats',
    'tasks',
    'tasks inbox',
    'tasks list',
    'tasks pause',
    'tasks resume',
    'tasks rm',
    'tasks runs',
    'tasks show',
    'tasks timer',
    'tools',
    'tools check',
    'tools list',
    'tools remove',
    'tools show',
    'undo',
    'upgrade',
    'version',
    'watch',
    'worktrees',
    'worktrees list',
    'worktrees rm',
    '/clear',
    '/context',
    '/copy',
    '/cost',
    '/diff',
    '/diagnostics',
    '/doctor',
    '/exit',
    '/help',
    '/hooks',
    '/jobs',
    '/logout',
    '/redo',
    '/rewind',
    '/search',
    '/keys',
    '/resume',
    '/status',
    '/todos',
    '/usage',
    '/show',
    '/uncompact',
    '/undo',
  ],
};

/** What the commands that change settings do with a secret, by the place where it is given. */
const settings: Readonly<Record<string, string>> = {
  'config set':
    'kept in addresses, headers, commands and variables, which are used as written, and masked where they are shown; refused in any other key',
  '/permissions': 'refused: a rule is shown whenever it is looked at, and a call is judged by what it does',
  'mcp add': 'kept in the command, the address, variables and headers, as the server needs them; a name is refused',
  'mcp import': 'kept as the other program has it: the server needs it',
  import: 'kept as the other program has it; conversations are masked, and a rule with a secret is refused',
  'mcp login': 'stores the tokens of the server alone, in a file of mode 0600',
  'tools add': 'stores the path and a hash; what the file says is masked where it is shown or sent',
  '/tools': 'as tools add',
  login: 'stores the key: that is what it is for',
  '/login': 'stores the key: that is what it is for',
  '/output-style': 'stores the name of a style that exists',
  '/config': 'shows settings, masked; refuses a secret where none belongs',
  '/mcp': 'shows servers, masked, and stores whether one is on',
  '/theme': 'stores the name of a theme that exists',
  '/model': 'stores the name of a model, and refuses one that is a secret, as config set does',
  '/effort': 'stores one of a few words',
  '/approval': 'stores one of a few words',
  '/add-dir': 'stores the path of a directory, masked',
  '/budget': 'stores a number',
  'config trust': 'stores a path and a hash',
};

/** The words of a command before its arguments, `/name` for one of the REPL. */
function commandNames(): readonly string[] {
  return table
    .flatMap(({ entries }) => entries)
    .flatMap(({ line, slash }) => [
      ...(line ? [line[0].replace(/ ?[[<].*$/, '')] : []),
      ...(slash ? [`/${slash[0].replace(/[| [<].*$/, '')}`] : []),
    ]);
}

test('every command says what it does with a text that holds a secret', () => {
  const told = [...Object.values(doors).flat(), ...Object.keys(settings)];
  expect([...new Set(commandNames())].sort()).toEqual(told.sort());
});

/** The kinds of which a secret is in a text, also as JSON writes it. */
function clearIn(text: string): readonly string[] {
  return forms
    .filter(({ secret }) => text.includes(secret) || text.includes(JSON.stringify(secret).slice(1, -1)))
    .map(({ kind }) => kind);
}

function clearBelow(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(join(folder, name)).isFile())
    .flatMap((name) => clearIn(readFileSync(join(folder, name), 'latin1')).map((kind) => `${name}: ${kind}`));
}

async function session(at: Place): Promise<string> {
  await agent(at, ['-p', '--model', script(at, [{ text: 'one' }]), 'hi']);
  const { stdout } = await agent(at, ['sessions', 'list', '--json']);
  return (JSON.parse(stdout) as readonly { readonly id: string }[])[0]?.id ?? '';
}

test('no command lets a secret of any form into the store, or prints one that is there', async () => {
  const at = place();
  const id = await session(at);
  expect((await agent(at, ['sessions', 'rename', id, all])).code).toBe(0);
  for (const { text } of forms.filter((_form, index) => index % 10 === 0)) {
    const kept = await agent(at, ['memory', 'add', `remember ${text}`]);
    expect([text, kept.code]).not.toEqual([text, 0]);
  }
  await agent(at, ['memory', 'add', 'the port is 7070']);
  expect((await agent(at, ['memory', 'edit', '1', all])).code).not.toBe(0);
  const line = forms.map(({ text }) => text.replaceAll('\n', ' ')).join(' ');
  await repl(
    at,
    ['-c', '--model', script(at, [{ text: 'one' }, { text: 'two' }])],
    [
      [`/rename ${line}`, 'is now called'],
      [`say ${line}`, 'two'],
      [`!echo '${line.replaceAll("'", '')}'`, '❯'],
    ],
  );
  const exported = await agent(at, ['sessions', 'export', id, '--format', 'jsonl']);
  const file = join(at.work, 'session.jsonl');
  writeFileSync(file, exported.stdout.replace('"hi"', JSON.stringify(all)));
  expect((await agent(at, ['sessions', 'import', file, '--as-new'])).code).toBe(0);
  expect(clearBelow(at.home)).toEqual([]);
  for (const args of [
    ['sessions', 'list'],
    ['sessions', 'list', '--json'],
    ['search', 'say'],
    ['sessions', 'export', id],
  ]) {
    const { stdout, stderr } = await agent(at, args);
    expect([args, clearIn(stdout + stderr)]).toEqual([args, []]);
  }
});

const token = forms.find(({ kind }) => kind === 'github_token')?.secret ?? '';
const argument = (flag: string): string => JSON.stringify([{ argv: ['curl', flag, token] }]);

test.each([
  ['system_prompt', `Sign with ${token}.`],
  ['model', `openai/${token}`],
  ['fallback_model', `openai/${token}`],
  ['rules.allow', argument('-u')],
  ['rules.ask', argument('--token')],
  ['rules.deny', JSON.stringify([{ tool: 'file_read', path: `/srv/${token}` }])],
  ['fs.deny', JSON.stringify([`/srv/${token}`])],
  ['sync.exclude', JSON.stringify([`/srv/${token}`])],
])('config set refuses a secret in %s and says where it belongs', async (key, value) => {
  const at = place();
  const { code, stdout, stderr } = await agent(at, ['config', 'set', key, value]);
  expect([code, stdout]).toEqual([2, '']);
  expect([clearIn(stderr), clearBelow(at.home)]).toEqual([[], []]);
  expect(stderr).toMatch(/would contain a secret.*\nStore keys with agent login/);
});

test.each([
  ['base_url', `https://svc:${token}@api.example.com/v1`],
  ['tasks.notify_command', JSON.stringify(['curl', '-H', `Authorization: Bearer ${token}`])],
  ['ui.status_command', JSON.stringify(['status', '--token', token])],
])('config set keeps a secret in %s, which is used as it is written, and shows it masked', async (key, value) => {
  const at = place();
  const set = await agent(at, ['config', 'set', key, value]);
  expect(set.code).toBe(0);
  expect(readFileSync(join(at.home, '.agent/config.json'), 'utf8')).toContain(token);
  for (const args of [['get', key], ['show'], ['show', '--json'], ['check']]) {
    const { stdout, stderr } = await agent(at, ['config', ...args]);
    expect([args, clearIn(set.stdout + stdout + stderr)]).toEqual([args, []]);
  }
});

test('a secret that is in the file already does not keep the user from changing other rules', async () => {
  const at = place();
  mkdirSync(join(at.home, '.agent'));
  const rules = { allow: [{ argv: ['curl', token] }] };
  writeFileSync(join(at.home, '.agent/config.json'), JSON.stringify({ rules }));
  const next = JSON.stringify([...rules.allow, { argv: ['git', 'log'] }]);
  expect((await agent(at, ['config', 'set', 'rules.allow', next])).code).toBe(0);
});

test('/permissions keeps no rule with a secret, and says so', async () => {
  const at = place();
  const line = `/permissions add deny {"argv":["curl","-H","X-Auth: ${token}"]}`;
  const { stdout } = await repl(at, ['--model', script(at, [{ text: 'one' }])], [[line, 'would contain a secret']]);
  expect([clearIn(stdout), clearBelow(at.home)]).toEqual([[], []]);
});

test('mcp add keeps what a server needs, and no command shows it', async () => {
  const at = place();
  expect((await agent(at, ['mcp', 'add', token, '--', 'true'])).code).toBe(2);
  const where = ['--env', `A_TOKEN=${token}`, '--', 'true', '--token', token, `--key=${token}`];
  expect((await agent(at, ['mcp', 'add', 'one', ...where])).code).toBe(0);
  const header = [
    '--url',
    `https://u:${token}@example.com/mcp?k=${token}`,
    '--header',
    `Authorization: Bearer ${token}`,
  ];
  expect((await agent(at, ['mcp', 'add', 'two', ...header])).code).toBe(0);
  expect(readFileSync(join(at.home, '.agent/mcp.json'), 'utf8').split(token).length - 1).toBe(6);
  for (const args of [['list'], ['list', '--json'], ['get', 'one'], ['get', 'two'], ['test', 'one']]) {
    const { stdout, stderr } = await agent(at, ['mcp', ...args]);
    expect([args, clearIn(stdout + stderr)]).toEqual([args, []]);
  }
});

test('a secret in the description of a tool is neither shown nor sent', async () => {
  const at = place();
  const about = {
    name: 'greet',
    description: `Greets with ${token}.`,
    input_schema: { type: 'object', properties: { who: { type: 'string', description: `not ${token}` } } },
    command: ['sh', './run.sh', token],
    effect: 'read',
  };
  at.file('.agent/tools/greet/tool.json', JSON.stringify(about));
  at.file('.agent/tools/greet/run.sh', 'echo "{}"');
  const shown = await agent(at, ['tools', 'add', '.agent/tools/greet']);
  const [, sha256 = ''] = /^sha256 (\w{64})$/m.exec(shown.stdout) ?? [];
  const added = await agent(at, ['tools', 'add', '.agent/tools/greet', '--sha256', sha256]);
  expect([added.code, clearIn(shown.stdout + shown.stderr + added.stdout)]).toEqual([0, []]);
  for (const args of [['list'], ['list', '--json'], ['show', 'greet'], ['show', 'greet', '--json']]) {
    const { stdout, stderr } = await agent(at, ['--tools', '+custom', 'tools', ...args]);
    expect([args, stdout.includes('greet'), clearIn(stdout + stderr)]).toEqual([args, true, []]);
  }
  const model = script(at, [{ text: 'ok' }]);
  expect((await agent(at, ['--tools', '+custom', '-p', '-m', model, 'go'])).code).toBe(0);
  const [first] = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as readonly { id: string }[];
  const sent = await agent(at, ['sessions', 'show', first?.id ?? '', '--as', 'openai-chat', '--prompt', 'x']);
  expect([sent.code, clearIn(sent.stdout), clearBelow(at.home)]).toEqual([0, [], []]);
});

test.each(['false', 'true'])(
  'no secret of any form is sent to a collector, contents: %s',
  { retry: 2 },
  async (contents) => {
    const collector = await triedCollector();
    const at = place({ 'a.txt': all });
    const model = script(at, [
      {
        calls: [
          { name: 'file_read', arguments: { path: 'a.txt' } },
          { name: 'file_read', arguments: { path: `gone ${all}` } },
          { id: token, name: token, arguments: { text: all } },
        ],
      },
      { reasoning: all, text: all },
    ]);
    const settings = [`telemetry.otlp_endpoint=${collector.endpoint}`, `telemetry.contents=${contents}`];
    await agent(at, [...settings.flatMap((setting) => ['--set', setting]), '-p', '-m', model, all]);
    const sent = JSON.stringify(collector.bodies.map(({ body }) => body));
    expect(collector.spans().length).toBeGreaterThan(4);
    expect([clearIn(sent), clearBelow(at.home)]).toEqual([[], []]);
  },
);
