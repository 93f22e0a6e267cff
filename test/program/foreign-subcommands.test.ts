import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { translateLine } from '../../src/cli/foreign-line.js';
import { commandWords, mayBeForeign, ownOptions, sharedOptions } from '../../src/cli/foreign-words.js';
import { table } from '../../src/commands/table.js';
import { foreignCommands, foreignFlags } from '../../src/kernel/console/foreign-command-line.js';
import { namesOf } from '../../src/kernel/console/options.js';
import { verbNames } from '../../src/kernel/console/registration.js';
import { agent, place, script } from './inside.js';

const id = '0b7faad0-1111-4111-8111-000000000001';
const verbs = verbNames(table);

/** A row for each command: the line, and ours in its place. Null: the line ends with the sentence of the table. */
const rows: Readonly<Record<string, readonly [line: readonly string[], ours: readonly string[] | null]>> = {
  'exec resume --last [prompt]': [
    ['exec', 'resume', '--last', 'go on'],
    ['--print', '--continue', 'go on'],
  ],
  'exec resume <session> [prompt]': [
    ['exec', '--json', 'resume', id, 'go on'],
    ['--output-format', 'stream-json', '--print', `--resume=${id}`, 'go on'],
  ],
  'exec review': [
    ['exec', 'review'],
    ['--print', '/review'],
  ],
  'exec [prompt]': [
    ['exec', '--full-auto', '-C', 'sub', 'fix the tests', '-'],
    ['--approval', 'never', '--sandbox', 'workspace', '-C', 'sub', '--print', 'fix the tests'],
  ],
  'e <prompt>': [
    ['e', 'fix the tests'],
    ['--print', 'fix the tests'],
  ],
  'run <prompt>': [
    ['run', '--format', 'json', 'fix the tests'],
    ['--output-format', 'stream-json', '--print', 'fix the tests'],
  ],
  'resume --last [prompt]': [['resume', '--last'], ['--continue']],
  'resume <session> [prompt]': [
    ['resume', id, 'go on'],
    [`--resume=${id}`, 'go on'],
  ],
  'resume <title>': [['resume', 'parser'], ['--resume=parser']],
  resume: [['resume'], ['--resume']],
  'fork --last': [
    ['fork', '--last'],
    ['--continue', '--fork'],
  ],
  'fork <session> [prompt]': [
    ['fork', id],
    ['--fork', `--resume=${id}`],
  ],
  fork: [['fork'], ['--fork', '--resume']],
  'session list': [
    ['session', 'list'],
    ['sessions', 'list'],
  ],
  'session delete <session>': [
    ['session', 'delete', id],
    ['sessions', 'rm', id],
  ],
  'delete <session>': [
    ['delete', id],
    ['sessions', 'rm', id],
  ],
  'archive <session>': [['archive', id], null],
  'export <session>': [
    ['export', id],
    ['sessions', 'export', id],
  ],
  'apply <task>': [['apply', 'task_e_123456'], null],
  auth: [['auth'], null],
  'auth login [provider]': [
    ['auth', 'login', 'openai'],
    ['login', 'openai'],
  ],
  'auth logout [provider]': [['auth', 'logout'], ['logout']],
  'auth list': [['auth', 'list'], ['providers']],
  'auth ls': [['auth', 'ls'], ['providers']],
  'auth status': [['auth', 'status'], ['providers']],
  'login status': [['login', 'status'], ['providers']],
  'setup-token': [['setup-token'], null],
  'config list': [
    ['config', 'list'],
    ['config', 'show'],
  ],
  'config add <key> <value>': [['config', 'add', 'a', 'b'], null],
  'config remove <key>': [['config', 'remove', 'a'], null],
  'features list': [['features', 'list'], null],
  'auto-mode defaults': [['auto-mode', 'defaults'], null],
  'auto-mode config': [['auto-mode', 'config'], null],
  'plugin install <source>': [
    ['plugin', 'install', 'x@market'],
    ['plugin', 'add', 'x@market'],
  ],
  'plugin i <source>': [
    ['plugin', 'i', 'owner/repo'],
    ['plugin', 'add', 'owner/repo'],
  ],
  'plugin uninstall <name>': [
    ['plugin', 'uninstall', 'x'],
    ['plugin', 'remove', 'x'],
  ],
  'plugin rm <name>': [
    ['plugin', 'rm', 'x'],
    ['plugin', 'remove', 'x'],
  ],
  'plugin marketplace add <source>': [
    ['plugin', 'marketplace', 'add', 'owner/repo'],
    ['plugin', 'add', 'owner/repo'],
  ],
  'plugin marketplace list': [
    ['plugin', 'marketplace', 'list'],
    ['plugin', 'available'],
  ],
  'plugin marketplace update': [
    ['plugin', 'marketplace', 'update'],
    ['plugin', 'update'],
  ],
  'plugin marketplace remove <name>': [
    ['plugin', 'marketplace', 'remove', 'x'],
    ['plugin', 'remove', 'x'],
  ],
  'plugin validate <folder>': [['plugin', 'validate', 'x'], null],
  'plugins install <source>': [
    ['plugins', 'install', 'x@market'],
    ['plugin', 'add', 'x@market'],
  ],
  'plugins list': [
    ['plugins', 'list'],
    ['plugin', 'list'],
  ],
  'extensions install <source>': [
    ['extensions', 'install', 'https://example.com/x'],
    ['plugin', 'add', 'https://example.com/x'],
  ],
  'extensions uninstall <name>': [
    ['extensions', 'uninstall', 'x'],
    ['plugin', 'remove', 'x'],
  ],
  'extensions list': [
    ['extensions', 'list'],
    ['plugin', 'list'],
  ],
  'extensions [command] [source]': [['extensions', 'update', 'x'], null],
  'skill list': [
    ['skill', 'list'],
    ['skills', 'list'],
  ],
  'skill [command]': [['skill', 'enable', 'x'], null],
  'mcp add-json <name> <json>': [['mcp', 'add-json', 'x', '{"command": "a"}'], null],
  'mcp add-from-claude-desktop': [
    ['mcp', 'add-from-claude-desktop'],
    ['mcp', 'import', 'claude-desktop'],
  ],
  'mcp reset-project-choices': [['mcp', 'reset-project-choices'], null],
  'mcp auth [name]': [
    ['mcp', 'auth', 'x'],
    ['mcp', 'login', 'x'],
  ],
  'mcp enable <name>': [['mcp', 'enable', 'x'], null],
  'mcp disable <name>': [['mcp', 'disable', 'x'], null],
  'mcp-server': [['mcp-server'], ['mcp', 'serve']],
  'agent list': [
    ['agent', 'list'],
    ['agents', 'list'],
  ],
  'agent create': [['agent', 'create', '--mode', 'all'], null],
  'update [version]': [['update', '--check'], ['upgrade']],
  'install [version]': [['install', 'latest'], null],
  'migrate-installer': [['migrate-installer'], null],
  uninstall: [['uninstall', '--force'], null],
  'remote-control': [['remote-control'], null],
  web: [['web'], ['serve']],
  'app-server': [['app-server'], null],
  cloud: [['cloud'], null],
  'sandbox <command...>': [['sandbox', 'linux', 'ls'], null],
  'github <install|run>': [['github', 'install'], null],
  'pr <number>': [['pr', '123'], null],
  'unarchive <session>': [['unarchive', id], null],
  'a <task>': [['a', 'task_e_123456'], null],
  'providers login [provider]': [
    ['providers', 'login', 'openai'],
    ['login', 'openai'],
  ],
  'providers logout [provider]': [['providers', 'logout'], ['logout']],
  'providers list': [['providers', 'list'], ['providers']],
  features: [['features'], null],
  'features <command> <name>': [['features', 'enable', 'x'], null],
  'auto-mode': [['auto-mode'], null],
  'project purge [folder]': [['project', 'purge'], null],
  ultrareview: [['ultrareview'], ['--print', '/review']],
  'ultrareview <target>': [
    ['ultrareview', 'main'],
    ['--print', '/review main'],
  ],
  gateway: [['gateway'], null],
  'hooks migrate': [['hooks', 'migrate'], null],
  'install <source>': [
    ['install', 'https://example.com/x'],
    ['plugin', 'add', 'https://example.com/x'],
  ],
  list: [['list'], ['plugin', 'list']],
  'debug [command]': [['debug', 'config'], null],
  'app [folder]': [['app', '.'], null],
  'exec-server': [['exec-server'], null],
  'responses-api-proxy': [['responses-api-proxy'], null],
  'execpolicy check <command...>': [['execpolicy', 'check', 'ls'], null],
  'console [command]': [['console', 'login'], null],
  'db path': [['db', 'path'], null],
};

test('every command of another program has a row, is no command of ours, and says one thing', () => {
  expect(Object.keys(rows).toSorted()).toEqual(foreignCommands.map(({ usage }) => usage).toSorted());
  const ours = new Set([
    ...verbs,
    ...table.flatMap(({ entries }) => entries.flatMap(({ line }) => line?.[0].replace(/ [<[].*/, '') ?? [])),
  ]);
  const paths = foreignCommands.map(({ usage }) => usage.replace(/ [<[].*/, ''));
  expect(paths.filter((path) => ours.has(path))).toEqual([]);
  expect(foreignCommands.filter(({ gives, instead }) => (gives === undefined) === (instead === undefined))).toEqual([]);
});

test.each(foreignCommands.map((command) => [command.usage, command] as const))(
  '%s is ours, or names it',
  async (usage, { instead, of }) => {
    const [line = [], ours] = rows[usage] ?? [];
    if (ours) {
      expect(translateLine(line, verbs)).toEqual(ours);
      return;
    }
    const ran = await agent(place(), line);
    const name = usage.replace(/ [<[].*/, '');
    const stderr = `agent: \`${name}\` is a command of ${of}, not of agent\n${instead}\n`;
    expect(ran).toEqual({ code: 2, signal: null, stdout: '', stderr });
  },
);

test.each([
  ['review', 'the', 'parser'],
  ['review', 'parser'],
  ['resume', 'the', 'work', 'on', 'the', 'parser'],
  ['exec', 'the', 'tests'],
  ['update', 'the', 'docs'],
  ['install', 'the', 'dependencies'],
  ['run', 'tests'],
  ['run', 'the', 'tests'],
  ['auth', 'the', 'user', 'with', 'a', 'token'],
  ['plugin', 'install', 'fails', 'with', 'an', 'error'],
  ['plugin', 'systems', 'compared'],
  ['fork', 'the', 'repository'],
  ['web', 'search', 'does', 'not', 'work'],
  ['agent', 'list', 'is', 'empty'],
  ['delete', 'parser'],
  ['delete the old logs'],
  ['pr', 'descriptions'],
  ['list', 'the', 'tests'],
  ['debug', 'the', 'parser'],
  ['features', 'of', 'this', 'program'],
  ['install', 'lodash'],
])('%s %s … is a prompt', (...words) => {
  expect(translateLine(words, verbs)).toEqual(words);
});

test.each([
  [['sessions', 'show', '--json', '-n']],
  [['mcp', 'add', 'x', '--url', 'https://example.com']],
  [['-p', 'explain this']],
  [['-m', 'm', '-r', 'update']],
  [['--image', 'a.png', '-o', 'b.md', '--set', 'a=b']],
])('%j is left as it is', (words) => {
  expect(translateLine(words, verbs)).toEqual(words);
});

test('exec, resume and review run a turn in the session that they name', async () => {
  const at = place();
  const model = script(at, [{ text: 'One.' }, { text: 'Two.' }]);
  expect((await agent(at, ['exec', '-m', model, '--session-id', id, 'first prompt'])).stdout).toBe('One.\n');
  expect((await agent(at, ['exec', 'resume', '--last', '-m', model], { stdin: 'from a pipe' })).stdout).toBe('Two.\n');
  const shown = await agent(at, ['sessions', 'show', id]);
  expect(shown.stdout).toContain('first prompt');
  expect(shown.stdout).toContain('from a pipe');
  const reviewed = await agent(at, ['review', '-m', script(at, [{ text: 'Fine.' }])]);
  expect([reviewed.code, reviewed.stdout]).toEqual([0, 'Fine.\n']);
  const kept = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as readonly unknown[];
  expect(kept).toHaveLength(2);
});

test.each([
  [['--uncommitted'], '/review'],
  [['--base', 'HEAD'], '/review HEAD'],
  [['--commit', 'HEAD'], '/review HEAD'],
  [['only the tests'], '/review only the tests'],
  [['the', 'parser'], 'review the parser'],
  [['parser'], 'review parser'],
])('review %j is a turn with the message %s', async (words, message) => {
  const at = place({ 'a.txt': 'one\n' });
  for (const args of [
    ['init', '-q'],
    ['add', '.'],
    ['-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-qm', 'a'],
  ])
    execFileSync('git', args, { cwd: at.work });
  const ended = await agent(at, ['-m', script(at, [{ text: 'Fine.' }]), 'review', ...words]);
  expect(ended).toMatchObject({ code: 0, stdout: 'Fine.\n' });
  const [row] = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as { readonly prompt: string }[];
  expect(row?.prompt.trimEnd()).toBe(message);
});

test('update is upgrade', async () => {
  const at = place();
  expect((await agent(at, ['update'])).stdout).toBe((await agent(at, ['upgrade'])).stdout);
});

test('a line whose words are all ours is known without the table of other agents', () => {
  const options = foreignFlags.flatMap(({ flags }) => namesOf(flags).names);
  expect([...sharedOptions].toSorted()).toEqual(
    [...new Set(options.filter((name) => ownOptions.has(name)))].toSorted(),
  );
  const first = foreignCommands.map(({ usage }) => usage.replace(/ .*/, ''));
  expect([...commandWords].toSorted()).toEqual([...new Set(first)].toSorted());
  expect(options.filter((name) => !mayBeForeign([name]) || !mayBeForeign([`${name}=x`]))).toEqual([]);
  expect(mayBeForeign(['-p', 'hi', '-m', 'a/b'])).toBe(false);
  expect(mayBeForeign(['--help'])).toBe(false);
});
