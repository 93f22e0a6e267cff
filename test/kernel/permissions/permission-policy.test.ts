import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createPathFacts } from '../../../src/app/open-policy.js';
import type { ApprovalMode, Verdict } from '../../../src/kernel/core/policy.js';
import type { Effect, Sandbox } from '../../../src/kernel/core/tool.js';
import { createPolicy, type PolicyOptions } from '../../../src/kernel/permissions/permission-policy.js';
import { toolCall } from './calls.js';
import { defaultDeny } from './judging.js';

let root = '';
let workspace = '';
let home = '';

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'policy-')));
  workspace = join(root, 'work');
  home = join(root, 'home');
  for (const folder of [
    workspace,
    join(workspace, 'src'),
    join(workspace, '.git', 'hooks'),
    join(home, '.ssh'),
    join(home, '.config', 'agent'),
  ])
    mkdirSync(folder, { recursive: true });
  writeFileSync(join(workspace, 'a.txt'), 'a');
  writeFileSync(join(workspace, '.git', 'config'), '[core]\n\tbare = false\n');
  writeFileSync(join(home, '.ssh', 'id_ed25519'), 'key');
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

function assess(
  name: string,
  effect: Effect,
  args: Readonly<Record<string, unknown>>,
  options: Partial<PolicyOptions> = {},
): Promise<Verdict> {
  const facts = createPathFacts({ home, workspace, ownPaths: [join(home, '.config', 'agent')], env: process.env });
  return createPolicy({ approval: 'dangerous', sandbox: 'off', facts, fsDeny: defaultDeny, ...options }).assess(
    toolCall(name, effect, args),
    workspace,
  );
}

async function decisions(
  name: string,
  effect: Effect,
  args: Readonly<Record<string, unknown>>,
  sandbox: Sandbox,
): Promise<readonly string[]> {
  const modes: readonly ApprovalMode[] = ['never', 'dangerous', 'mutating', 'always'];
  const verdicts = await Promise.all(modes.map((approval) => assess(name, effect, args, { approval, sandbox })));
  return verdicts.map(({ decision }) => decision);
}

describe('decisions of never, dangerous, mutating and always', () => {
  const rows: readonly (readonly [string, Effect, string, Sandbox, string])[] = [
    ['bash', 'execute', 'ls', 'off', 'allow allow allow ask'],
    ['bash', 'execute', 'ls', 'workspace', 'allow allow allow ask'],
    ['bash', 'execute', 'touch b.txt', 'off', 'allow allow ask ask'],
    ['bash', 'execute', 'touch b.txt', 'workspace', 'allow allow allow ask'],
    ['bash', 'execute', 'touch b.txt', 'read-only', 'allow allow allow ask'],
    ['bash', 'execute', 'npm test', 'off', 'allow allow ask ask'],
    ['bash', 'execute', 'git reset --hard', 'off', 'allow ask ask ask'],
    ['bash', 'execute', 'git reset --hard', 'workspace', 'allow ask ask ask'],
    ['bash', 'execute', 'git reset --hard', 'read-only', 'allow ask ask ask'],
    ['file_read', 'read', 'a.txt', 'off', 'allow allow allow ask'],
    ['file_read', 'read', 'a.txt', 'workspace', 'allow allow allow ask'],
    ['file_read', 'read', '/etc/hostname', 'off', 'allow allow allow ask'],
    ['file_read', 'read', '/etc/hostname', 'workspace', 'ask ask ask ask'],
    ['file_write', 'write', 'b.txt', 'off', 'allow allow ask ask'],
    ['file_write', 'write', 'b.txt', 'workspace', 'allow allow allow ask'],
    ['file_write', 'write', 'b.txt', 'read-only', 'deny deny deny deny'],
    ['file_write', 'write', '../b.txt', 'off', 'allow allow ask ask'],
    ['file_write', 'write', '../b.txt', 'workspace', 'ask ask ask ask'],
    ['file_write', 'write', '../b.txt', 'read-only', 'deny deny deny deny'],
    ['file_write', 'write', '.git/hooks/pre-commit', 'off', 'ask ask ask ask'],
    ['file_write', 'write', '.git/hooks/pre-commit', 'workspace', 'ask ask ask ask'],
    ['file_read', 'read', '.env', 'off', 'ask ask ask ask'],
    ['file_read', 'read', '.env', 'workspace', 'ask ask ask ask'],
    ['web_fetch', 'network', 'https://example.com', 'off', 'allow allow ask ask'],
  ];

  test.each(rows)('%s (%s) %s, sandbox %s: %s', async (name, effect, subject, sandbox, wanted) => {
    const args = name === 'bash' ? { command: subject } : { path: subject };
    expect((await decisions(name, effect, args, sandbox)).join(' ')).toBe(wanted);
  });
});

test('what is asked about or refused says why, and an allowed reader says nothing', async () => {
  expect(await assess('bash', 'execute', { command: 'ls' })).toEqual({
    risk: 'read-only',
    decision: 'allow',
    reasons: [],
    sandbox: 'off',
    decidedBy: 'static',
  });
  expect(await assess('bash', 'execute', { command: 'ls' }, { approval: 'always' })).toMatchObject({
    decision: 'ask',
    reasons: ['you chose to approve every call'],
  });
  const removal = await assess('bash', 'execute', { command: 'rm -rf src' });
  expect(removal).toMatchObject({ risk: 'dangerous', decision: 'ask', targets: [join(workspace, 'src')] });
  expect(removal.reasons.join()).toContain('deletes recursively');
  expect((await assess('file_write', 'write', { path: 'b.txt' }, { sandbox: 'read-only' })).reasons[0]).toContain(
    'the sandbox is read-only',
  );
  expect((await assess('file_write', 'write', { path: '../b.txt' }, { sandbox: 'workspace' })).reasons[0]).toContain(
    'outside the workspace',
  );
});

test('secret files are asked about under never, whatever the spelling', async () => {
  const spellings = [
    '.env',
    './.env',
    'src/../.env',
    '.ENV',
    '.env.local',
    `${home}/.ssh/id_ed25519`,
    '../home/.ssh/id_ed25519',
    `${home}/.ssh/ID_ED25519`,
    '/etc/shadow',
    '/proc/self/environ',
    'src/server.pem',
    `${home}/.aws/credentials`,
  ];
  for (const path of spellings) {
    for (const effect of ['read', 'write'] as const)
      expect(await assess('file_read', effect, { path }, { approval: 'never' }), path).toMatchObject({
        risk: 'dangerous',
        decision: 'ask',
      });
  }
  expect((await assess('glob', 'read', { pattern: '*', path: `${home}/.ssh` }, { approval: 'never' })).decision).toBe(
    'ask',
  );
  for (const path of ['.env.example', 'README.md', 'src/environment.ts', `${home}/.ssh/id_ed25519.pub`])
    expect((await assess('file_read', 'read', { path }, { approval: 'never' })).decision, path).toBe('allow');
});

test('protected files may be read, and are asked about before a write, in every case of letters', async () => {
  const paths = [
    '.git/config',
    '.GIT/CONFIG',
    '.git/hooks/post-checkout',
    '.github/workflows/ci.yml',
    '.vscode/tasks.json',
    '.claude/settings.json',
    '.envrc',
    '.husky/pre-commit',
    `${home}/.bashrc`,
    `${home}/.config/agent/config.json`,
    `${home}/.cache/agent/compiled/start.js`,
    '/etc/hosts',
    `${home}/.config/autostart/x.desktop`,
  ];
  for (const path of paths) {
    expect(await assess('file_write', 'write', { path }, { approval: 'never' }), path).toMatchObject({
      risk: 'dangerous',
      decision: 'ask',
    });
    expect((await assess('file_read', 'read', { path }, { approval: 'never' })).decision, path).toBe('allow');
  }
  for (const path of ['a.txt', 'src/git/config', '.gitignore', 'docs/workflows/ci.yml'])
    expect((await assess('file_write', 'write', { path })).decision, path).toBe('allow');
});

describe('links are judged by where they lead', () => {
  beforeEach(() => {
    symlinkSync(join(home, '.ssh', 'id_ed25519'), join(workspace, 'notes.txt'));
    symlinkSync(join(home, '.ssh'), join(workspace, 'docs'));
    symlinkSync('.git', join(workspace, 'assets'));
    symlinkSync(root, join(workspace, 'up'));
    symlinkSync('loop', join(workspace, 'loop'));
  });

  test('a link to a secret file, or below a linked folder, is a secret file', async () => {
    for (const path of [
      'notes.txt',
      'docs/id_ed25519',
      'up/home/.ssh/id_ed25519',
      'docs/../.ssh/id_ed25519',
      'src/../notes.txt',
    ]) {
      expect(await assess('file_read', 'read', { path }, { approval: 'never' }), path).toMatchObject({
        decision: 'ask',
        targets: [join(home, '.ssh', 'id_ed25519')],
      });
    }
    for (const command of [
      'cat notes.txt',
      'cat < notes.txt',
      'head docs/id_ed25519',
      'cp notes.txt b.txt',
      'f=notes.txt; base64 "$f"',
    ])
      expect((await assess('bash', 'execute', { command })).risk, command).toBe('dangerous');
  });

  test('a link into a protected folder is protected', async () => {
    expect(
      await assess('file_write', 'write', { path: 'assets/hooks/pre-commit' }, { approval: 'never' }),
    ).toMatchObject({ decision: 'ask', targets: [join(workspace, '.git', 'hooks', 'pre-commit')] });
    for (const command of ['echo x > assets/config', 'cp a.txt assets/hooks/pre-push', 'tee assets/config'])
      expect((await assess('bash', 'execute', { command })).risk, command).toBe('dangerous');
  });

  test('what is deleted or moved away counts where it lies', async () => {
    symlinkSync(join(home, '.config'), join(workspace, 'settings'));
    for (const command of [
      'rm settings/agent/config.json',
      'rm -f assets/config',
      'unlink settings/agent/x',
      'mv settings/agent/config.json a',
    ]) {
      expect((await assess('bash', 'execute', { command })).risk, command).toBe('dangerous');
    }
    expect((await assess('bash', 'execute', { command: 'rm a.txt' })).risk).toBe('mutating');
    expect((await assess('bash', 'execute', { command: 'mv a.txt b.txt' })).risk).toBe('mutating');
  });

  test('a substitution is judged by its commands, and not by the descriptor that stands for it', async () => {
    const readers = [
      'diff <(sort a.txt) <(sort b.txt)',
      'comm -12 <(sort a.txt) <(sort b.txt)',
      'cat <(sort a.txt)',
      'wc -l < <(ls)',
      'grep -f <(cut -c1 a.txt) b.txt',
      'while read -r x; do echo "$x"; done < <(ls)',
      'diff a.txt <(git show HEAD:a.txt)',
      'diff <(cat a.txt | sort) -',
      'paste <(ls) <(ls -l)',
      'cat a.txt | cat < /dev/stdin',
      'join <(sort a.txt) <(sort b.txt) | head -3',
      'sort -m <(sort a.txt) <(sort b.txt)',
      'jq -s . <(cat a.json) <(cat b.json)',
      'diff <(cd src && ls) <(cd test && ls)',
      'cat <(cat <(ls))',
    ];
    for (const command of readers)
      expect((await assess('bash', 'execute', { command })).risk, command).toBe('mutating');
    const others = [
      ['diff <(cat notes.txt) a.txt', 'dangerous'],
      ['cat <(cat .env)', 'dangerous'],
      ['cat <(rm -rf src)', 'dangerous'],
      ['bash <(cat a.txt)', 'dangerous'],
      ['ls > >(sh)', 'dangerous'],
      ['diff <(npm test) a.txt', 'mutating'],
      ['ls | tee >(cat > b.txt)', 'mutating'],
      ['cat /proc/1/fd/3', 'dangerous'],
      ['. <(cat a.txt)', 'dangerous'],
    ] as const;
    for (const [command, risk] of others)
      expect((await assess('bash', 'execute', { command })).risk, command).toBe(risk);
  });

  test('a link out of the workspace is outside, and so is what cannot be followed', async () => {
    for (const path of ['up/b.txt', 'up/home/b.txt', 'loop', 'loop/x'])
      expect((await assess('file_write', 'write', { path }, { sandbox: 'workspace' })).decision, path).toBe('ask');
  });
});

test('a filter that singles out secrets is asked about, one that does not is not', async () => {
  for (const glob of ['.env', '.env*', '**/.env', 'id_rsa', '**/*.pem'])
    expect((await assess('grep', 'read', { pattern: 'x', glob }, { approval: 'never' })).decision, glob).toBe('ask');
  for (const glob of ['*.ts', '**/*', '!.env', 'src/**'])
    expect((await assess('grep', 'read', { pattern: 'x', glob })).decision, glob).toBe('allow');
  expect((await assess('file_read', 'read', { path: 'event:7' }, { sandbox: 'workspace' })).decision).toBe('allow');
});

test('a filter that also fits a harmless file of the folder is not asked about', async () => {
  writeFileSync(join(workspace, '.env'), '');
  writeFileSync(join(workspace, 'src', 'secrets.yml'), '');
  const decisionOf = async (glob: string, more: object = {}) =>
    (await assess('grep', 'read', { pattern: 'x', glob, ...more }, { approval: 'never' })).decision;
  const globs = ['[a-m]*', '[!.]*', '[^.]*', '.*', 's*.yml', 'src/s*', '{id_rsa,b*}', '.e*'];
  writeFileSync(join(workspace, 'a.txt'), 'a');
  expect(await Promise.all(globs.map((glob) => decisionOf(glob)))).toEqual([
    ...['allow', 'allow', 'allow', 'ask', 'ask', 'ask', 'ask', 'ask'],
  ]);
  for (const name of ['.editorconfig', 'src/settings.yml', 'b.txt']) writeFileSync(join(workspace, name), '');
  expect(await Promise.all(globs.map((glob) => decisionOf(glob)))).toEqual(globs.map(() => 'allow'));
  // What counts is the folder that is searched.
  expect(await decisionOf('.e*', { path: 'src' })).toBe('ask');
});

test('a repository whose settings name programs makes git more than a reader', async () => {
  expect((await assess('bash', 'execute', { command: 'git status' })).risk).toBe('read-only');
  for (const setting of [
    '[core]\n\tfsmonitor = ./x',
    '[core]\n\tsshCommand = x',
    '[alias]\n\tst = !x',
    '[diff "x"]\n\ttextconv = x',
    '[include]\n\tpath = x',
    '[CORE]\nFsMonitor=x',
  ]) {
    writeFileSync(join(workspace, '.git', 'config'), setting);
    expect((await assess('bash', 'execute', { command: 'git status' })).risk, setting).toBe('mutating');
    expect((await assess('bash', 'execute', { command: 'git status', workdir: 'src' })).risk, setting).toBe('mutating');
  }
});

test('a repository inside the workspace is judged by its own settings, wherever a command goes there', async () => {
  mkdirSync(join(workspace, 'vendor', '.git'), { recursive: true });
  for (const command of ['git -C vendor status', 'cd vendor && git log', 'cd vendor; git diff']) {
    writeFileSync(join(workspace, 'vendor', '.git', 'config'), '[core]\n\tbare = false\n');
    expect((await assess('bash', 'execute', { command })).risk, command).toBe('read-only');
    writeFileSync(join(workspace, 'vendor', '.git', 'config'), '[core]\n\tfsmonitor = ./x\n');
    expect((await assess('bash', 'execute', { command })).risk, command).toBe('mutating');
  }
});

test('a worktree is judged by the settings of its repository', async () => {
  const tree = join(root, 'tree');
  mkdirSync(tree);
  mkdirSync(join(workspace, '.git', 'worktrees', 'tree'), { recursive: true });
  writeFileSync(join(tree, '.git'), `gitdir: ${join(workspace, '.git', 'worktrees', 'tree')}\n`);
  writeFileSync(join(workspace, '.git', 'worktrees', 'tree', 'commondir'), '../..\n');
  expect((await assess('bash', 'execute', { command: 'git log', workdir: tree })).risk).toBe('read-only');
  writeFileSync(join(workspace, '.git', 'config'), '[core]\n\tfsmonitor = ./x\n');
  expect((await assess('bash', 'execute', { command: 'git log', workdir: tree })).risk).toBe('mutating');
});

test('a call that does nothing is asked about only where every call is', async () => {
  const call = toolCall('bash', 'execute', { command: 'rm -rf x' });
  const facts = createPathFacts({ home, workspace, ownPaths: [] });
  const decisionOf = async (approval: ApprovalMode): Promise<string> =>
    (
      await createPolicy({ approval, sandbox: 'off', facts, fsDeny: defaultDeny }).assess(
        { ...call, tool: { ...call.tool, inert: true } },
        workspace,
      )
    ).decision;
  expect(await Promise.all((['never', 'dangerous', 'mutating', 'always'] as const).map(decisionOf))).toEqual([
    'allow',
    'allow',
    'allow',
    'ask',
  ]);
});

test.each([
  ['kill -9 $$', 'mutating'],
  ['kill -s KILL "$$"', 'mutating'],
  ['sleep 9 & kill $!', 'mutating'],
  ['npm start & pid=$!; curl -s localhost:3000; kill $pid', 'mutating'],
  ['kill -- -$$', 'mutating'],
  ['kill %1', 'mutating'],
  ['kill 1234', 'dangerous'],
  ['kill -9 -1', 'dangerous'],
  ['kill $$ 1', 'dangerous'],
  ['kill $PID', 'dangerous'],
  ['kill $(pgrep x)', 'dangerous'],
  ['kill -9', 'dangerous'],
])('%s is %s: what a command has started itself it may end', async (command, risk) => {
  expect((await assess('bash', 'execute', { command })).risk).toBe(risk);
});

test('a question about a protected file says what kind of file it is', async () => {
  const reasonsOf = async (path: string): Promise<string> =>
    (await assess('file_write', 'write', { path, content: 'x' })).reasons.join(' ').replaceAll(root, '');
  expect(await reasonsOf('/etc/hosts.new')).toContain('/etc/hosts.new is in a directory of the operating system');
  expect(await reasonsOf('/usr/share/notes')).toContain('/usr/share/notes is in a directory of the operating system');
  expect(await reasonsOf(join(home, '.config', 'agent', 'config.json'))).toContain('belongs to agent itself');
  expect(await reasonsOf('.git/hooks/pre-commit')).toContain(
    '/work/.git/hooks/pre-commit decides what other programs run',
  );
  expect(await reasonsOf(join(home, '.local', 'bin', 'ls'))).toContain(
    '/home/.local/bin/ls decides what other programs run',
  );
});
