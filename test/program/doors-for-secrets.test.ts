import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { table } from '../../src/commands/table.js';
import type { Place } from '../e2e/program.js';
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
  /** It stores what the user wrote, as documented: keys, settings, definitions of servers and tools. */
  | 'setting'
  /** It stores no text that it is given. */
  | 'none';

const doors: Readonly<Record<Door, readonly string[]>> = {
  masks: ['sessions rename', 'sessions import', 'sessions export', '/rename', '/export'],
  refuses: ['memory add', 'memory edit', '/memory'],
  event: [
    '/compact',
    '/fork',
    '/init',
    '/plan',
    '/review',
    '/tasks',
    '/agents',
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
  setting: [
    'config set',
    'mcp add',
    'mcp import',
    'mcp login',
    'tools add',
    'login',
    '/login',
    '/permissions',
    '/tools',
    '/config',
    '/mcp',
    '/theme',
    '/model',
    '/effort',
    '/approval',
    '/budget',
    'config trust',
  ],
  none: [
    'audit',
    'audit suggest-rules',
    'audit verify',
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
    'providers',
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
    '/doctor',
    '/exit',
    '/help',
    '/hooks',
    '/jobs',
    '/logout',
    '/redo',
    '/rewind',
    '/search',
    '/sessions',
    '/show',
    '/uncompact',
    '/undo',
  ],
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
  expect([...new Set(commandNames())].sort()).toEqual(Object.values(doors).flat().sort());
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
