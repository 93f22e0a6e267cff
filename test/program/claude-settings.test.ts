import { existsSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { projects } from '../../src/app/project-files.js';
import { agentPaths } from '../../src/kernel/config/settings-file.js';
import { openTrustFile } from '../../src/kernel/config/trust-file.js';
import { agent, place, repl, script } from './inside.js';

type At = ReturnType<typeof place>;

const settings = {
  permissions: {
    allow: ['Bash(npm run build:*)', 'WebFetch(domain:docs.example.com)', 'Bash(*)'],
    ask: ['Bash(git status)'],
    deny: ['Read(./private/**)', 'Bash(git push*)', 'Bash((', 'TodoWrite(x)'],
    defaultMode: 'acceptEdits',
  },
};

/** A project with settings of Claude Code. */
function project(file = '.claude/settings.json', content: unknown = settings): At {
  return place({ 'private/plan.txt': 'secret-plan\n', 'a.txt': 'a\n', [file]: JSON.stringify(content) });
}

function inHome(at: At, file: string, content: unknown): void {
  const path = join(at.home, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, JSON.stringify(content));
}

/** Trusts one set of files as a yes in a terminal does. */
async function trust(at: At, set: 'files' | 'userFiles'): Promise<readonly string[]> {
  const here = { cwd: at.work, home: at.home, config: { files: agentPaths(at.env, at.home) } };
  const files = await projects[set](here);
  if (files === null) throw new Error('nothing to trust');
  openTrustFile(here.config.files.trust).files.record(files, true, 1);
  return files.files.flatMap((file) => file.lines);
}

async function decision(at: At, tool: string, args: object): Promise<unknown> {
  const { stdout } = await agent(at, ['tools', 'check', tool, JSON.stringify(args), '--approval', 'mutating']);
  return (JSON.parse(stdout) as { decision: string }).decision;
}

test.each(['.claude/settings.json', '.claude/settings.local.json'])(
  'what %s denies and asks about counts without trust; what it allows counts once it is trusted',
  async (file) => {
    const at = project(file);
    expect(await decision(at, 'file_read', { path: 'private/plan.txt' })).toBe('deny');
    expect(await decision(at, 'bash', { command: 'cat private/plan.txt' })).toBe('deny');
    expect(await decision(at, 'bash', { command: 'git push origin main' })).toBe('deny');
    expect(await decision(at, 'bash', { command: 'git status' })).toBe('ask');
    expect(await decision(at, 'bash', { command: 'npm run build' })).toBe('ask');
    expect(await trust(at, 'files')).toContain('allows Bash(npm run build:*)');
    expect(await decision(at, 'bash', { command: 'npm run build' })).toBe('allow');
    writeFileSync(join(at.work, file), JSON.stringify({ permissions: { allow: ['Bash(npm run:*)'] } }));
    expect(await decision(at, 'bash', { command: 'npm run build' })).toBe('ask');
  },
);

test('the rules of the home folder count, too; what they allow needs its own yes', async () => {
  const at = place({ 'a.txt': 'a\n' });
  inHome(at, '.claude/settings.json', { permissions: { allow: ['Bash(npm ci)'], deny: ['Read(a.txt)'] } });
  expect(await decision(at, 'file_read', { path: 'a.txt' })).toBe('deny');
  expect(await decision(at, 'bash', { command: 'npm ci' })).toBe('ask');
  expect(await trust(at, 'userFiles')).toEqual(['allows Bash(npm ci)']);
  expect(await decision(at, 'bash', { command: 'npm ci' })).toBe('allow');
});

test('additionalDirectories are opened once their file is trusted, as the trust prompt says', async () => {
  const at = project('.claude/settings.json', { permissions: { additionalDirectories: ['../beside', '../gone', 7] } });
  const beside = join(dirname(at.work), 'beside');
  const shared = join(dirname(at.work), 'shared');
  for (const folder of [beside, shared]) mkdirSync(folder);
  inHome(at, '.claude/settings.json', { permissions: { additionalDirectories: [shared] } });
  const run = async () => {
    const { stdout, stderr } = await agent(at, [
      '-p',
      '-m',
      script(at, [{ text: 'Hi.' }]),
      '--output-format',
      'json',
      'x',
    ]);
    return { stderr, directories: (JSON.parse(stdout) as { directories?: readonly string[] }).directories ?? [] };
  };
  const before = await run();
  expect(before.directories).toEqual([]);
  const listed = await agent(at, ['permissions', 'list']);
  expect(listed.stderr).toContain('7 is not a directory (permissions.additionalDirectories)');
  expect(before.stderr).not.toContain('additionalDirectories has no effect');
  expect(await trust(at, 'files')).toEqual(['opens the directory ../beside', 'opens the directory ../gone']);
  const trusted = await run();
  expect(trusted.directories).toEqual([realpathSync(beside)]);
  expect(trusted.stderr).toMatch(
    /permissions\.additionalDirectories of .*settings\.json: there is no directory .*gone/,
  );
  await trust(at, 'userFiles');
  expect((await run()).directories).toEqual([realpathSync(beside), realpathSync(shared)]);
  // Another list needs another yes.
  const changed = { permissions: { additionalDirectories: ['../beside', '/'] } };
  writeFileSync(join(at.work, '.claude/settings.json'), JSON.stringify(changed));
  expect((await run()).directories).toEqual([realpathSync(shared)]);
});

test('permissions list names each rule with its origin and why it has no effect', async () => {
  const at = project();
  inHome(at, '.claude/settings.json', { permissions: { deny: ['mcp__*'] } });
  mkdirSync(at.env.AGENT_HOME ?? '', { recursive: true });
  writeFileSync(
    join(at.env.AGENT_HOME ?? '', 'config.json'),
    JSON.stringify({ rules: { allow: [{ tool: 'bash', argv: ['sh'] }], deny: [{ tool: 'kv_set' }] } }),
  );
  const { stdout, stderr } = await agent(at, ['permissions', 'list', '--json']);
  const rows = JSON.parse(stdout) as readonly Record<string, unknown>[];
  const shown = rows.map(({ rule, action, origin, honoured }) => [rule, action, origin, honoured]);
  expect(shown).toEqual([
    ['{"tool":"bash","argv":["sh"]}', 'allow', 'user', false],
    ['{"tool":"kv_set"}', 'deny', 'user', true],
    ['Bash(npm run build:*)', 'allow', 'project', false],
    ['WebFetch(domain:docs.example.com)', 'allow', 'project', false],
    ['Bash(*)', 'allow', 'project', false],
    ['Bash(git status)', 'ask', 'project', true],
    ['Read(./private/**)', 'deny', 'project', true],
    ['Bash(git push*)', 'deny', 'project', true],
    ['TodoWrite(x)', 'deny', 'project', true],
    ['mcp__*', 'deny', 'claude-code', true],
  ]);
  expect(rows[2]).toMatchObject({ reason: expect.stringContaining('not trusted') as string });
  expect(stderr).toContain('"Bash((" is not a permission rule');
  expect(stderr).toContain('permissions.defaultMode has no effect here');
  expect((await agent(at, ['permissions', 'check'])).code).toBe(2);
});

test('a broken file is named, and nothing else is lost', async () => {
  const at = place({ '.claude/settings.json': '{"permissions": {"deny": ["Read(a.txt)"' });
  const { stderr } = await agent(at, ['-p', '-m', script(at, [{ text: 'Hi.' }]), 'go']);
  expect(stderr).toContain('.claude/settings.json is not used, neither its permission rules nor its hooks');
});

test('hooks of the home folder run once they are trusted, and not before', async () => {
  const at = place();
  inHome(at, '.claude/settings.json', {
    hooks: { UserPromptSubmit: [{ hooks: [{ type: 'command', command: 'touch hook-was-here' }] }] },
  });
  const hasRun = async (): Promise<boolean> => {
    await agent(at, ['-p', '-m', script(at, [{ text: 'Hi.' }]), 'go']);
    return existsSync(join(at.work, 'hook-was-here'));
  };
  expect(await hasRun()).toBe(false);
  const listed = async (): Promise<unknown> => JSON.parse((await agent(at, ['hooks', 'list', '--json'])).stdout);
  expect(await listed()).toMatchObject([{ name: 'UserPromptSubmit', origin: 'claude-code', active: false }]);
  expect(await trust(at, 'userFiles')).toEqual(['hook UserPromptSubmit runs: touch hook-was-here']);
  expect(await hasRun()).toBe(true);
  expect(await listed()).toMatchObject([{ origin: 'claude-code', active: true, reason: null }]);
});

test('the REPL says what of a file cannot be used', async () => {
  const at = project('.claude/settings.json', { permissions: { deny: ['WebFetch(x)', 'Bash(git push)'] } });
  const { stdout } = await repl(at, ['-m', script(at, [])], [['/status', /Model/i]]);
  expect(stdout).toContain('1 permission rule of');
});

test('a link out of the project is named; a home folder behind a link is the home folder', async () => {
  const at = place();
  inHome(at, 'elsewhere/settings.json', { permissions: { deny: ['Read(a.txt)'] } });
  mkdirSync(join(at.work, '.claude'));
  symlinkSync(join(at.home, 'elsewhere/settings.json'), join(at.work, '.claude/settings.json'));
  const { stderr } = await agent(at, ['permissions', 'list', '--json']);
  expect(stderr).toContain('.claude/settings.json is a link out of the project and is not used');
  inHome(at, '.claude/settings.json', { permissions: { deny: ['mcp__*'] } });
  const linked = join(at.home, '..', 'linked-home');
  symlinkSync(at.home, linked);
  const there = { ...at, home: linked, work: realpathSync(at.home), env: { ...at.env, HOME: linked } };
  const listed = await agent(there, ['permissions', 'list', '--json']);
  expect(JSON.parse(listed.stdout)).toMatchObject([{ rule: 'mcp__*', origin: 'claude-code' }]);
});
