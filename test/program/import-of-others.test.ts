import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { importKinds, importPrograms, type ImportSource } from '../../src/kernel/console/importer.js';
import type { Place } from '../e2e/program.js';
import { agent, place, repl, script } from './inside.js';

const fixtures = fileURLToPath(new URL('../../fixtures/brought/import', import.meta.url));

/** A home and a project with the files of these programs. */
function placeOf(...programs: readonly string[]): Place {
  const at = place();
  for (const program of programs) cpSync(join(fixtures, program), dirname(at.home), { recursive: true });
  mkdirSync(join(at.work, '.git'));
  return at;
}

function put(folder: string, name: string, text: string): string {
  const file = join(folder, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

async function imported(at: Place, ...options: readonly string[]): Promise<readonly ImportSource[]> {
  const { code, stdout, stderr } = await agent(at, ['import', '--json', ...options]);
  expect([code, stderr]).toEqual([0, '']);
  return (JSON.parse(stdout) as { readonly sources: readonly ImportSource[] }).sources;
}

/** `mcp user 2: take 1, exists 0, skip a`. */
function shortOf(source: ImportSource): string {
  const { kind, scope, found, take, exists, skip } = source;
  expect(Object.keys(source)).toEqual(['program', 'kind', 'path', 'scope', 'found', 'take', 'exists', 'skip']);
  expect(found).toBe(take + exists + skip.length);
  return `${kind} ${scope} ${take}/${exists}${skip.map(({ name }) => ` -${name}`).join('')}`;
}

/** The files below a folder, with their texts. The database is none of them. */
function filesBelow(folder: string): Readonly<Record<string, string>> {
  const names = existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }) : [];
  return Object.fromEntries(
    names
      .filter((name) => statSync(join(folder, name)).isFile() && !name.startsWith('agent.db'))
      .toSorted()
      .map((name) => [name, readFileSync(join(folder, name), 'utf8')]),
  );
}

/** The counts of each program: what is taken, what exists, and the names of what is not taken. */
const expected: Readonly<Record<(typeof importPrograms)[number], readonly string[]>> = {
  'claude-code': [
    'mcp user 1/0 -old',
    'mcp project 0/1',
    'skills user 0/1',
    'commands user 0/1',
    'commands project 0/1',
    'agents user 0/1',
    'hooks user 1/0 -Setup true',
    'hooks project 0/1',
    'permissions user 0/1 -allow Bash(make test) -allow Read(src/**)',
    'instructions user 0/1',
    'status_line user 1/0',
    'output_styles user 0/1',
  ],
  codex: [
    'mcp user 1/0',
    'skills user 1/0 -creator',
    'commands user 2/0',
    'agents user 1/0 -broken.toml',
    'hooks user 1/0',
    'hooks user 1/0',
    'permissions user 3/0 -ask prefix_rule(pattern=prefix, decision="allow")',
    'instructions user 0/1',
  ],
  gemini: [
    'mcp user 1/0',
    'skills user 1/0',
    'commands user 1/0 -empty',
    'agents user 1/0',
    'hooks user 0/0 -BeforeTool true',
    'permissions user 2/0',
    'instructions user 0/1',
  ],
  opencode: [
    'mcp user 1/0',
    'skills user 1/0',
    'commands user 1/0',
    'commands user 1/0',
    'agents user 1/0',
    'agents user 1/0 -pusher',
    'permissions user 3/0 -ask bash *',
    'instructions user 1/0',
    'instructions user 0/0 -docs/*.md',
  ],
  cursor: [
    'mcp user 1/0',
    'mcp project 1/0',
    'commands user 1/0',
    'commands project 1/0',
    'agents user 1/0',
    'hooks user 0/0 -beforeShellExecution ./audit.sh',
    'permissions user 4/0',
    'instructions project 0/1',
    'instructions project 0/1',
  ],
  vscode: [
    'mcp project 1/0',
    'commands project 1/0',
    'agents project 1/0',
    'instructions user 1/0 -python.instructions.md',
    'instructions project 0/0 -copilot-instructions.md',
  ],
  'claude-desktop': ['mcp user 1/0'],
  zed: ['mcp user 1/0 -markdown-pdf', 'instructions project 0/0 -.rules'],
  pi: ['mcp user 1/0', 'skills user 1/0', 'commands user 1/0', 'instructions user 1/0'],
  qwen: [
    'mcp user 1/0',
    'commands user 2/0',
    'agents user 1/0',
    'hooks user 2/0',
    'permissions user 2/0',
    'instructions user 1/0',
    'status_line user 1/0',
  ],
};

test.each(importPrograms)('files of %s are counted, copied once, and left as they are', async (program) => {
  const at = placeOf(program);
  const own = join(at.home, '.agent');
  const originals = { ...filesBelow(at.home), ...filesBelow(at.work) };
  const found = await imported(at, '--dry-run');
  expect(found.map(shortOf)).toEqual(expected[program]);
  expect(existsSync(own) ? readdirSync(own) : []).toEqual([]);
  expect(await imported(at, '--yes')).toEqual(found);
  const copies = filesBelow(own);
  const again = await imported(at, '--yes');
  expect(again.map(({ take }) => take)).toEqual(found.map(() => 0));
  expect(again.map(({ exists }) => exists)).toEqual(found.map(({ take, exists }) => take + exists));
  expect(filesBelow(own)).toEqual(copies);
  expect({ ...filesBelow(at.home), ...filesBelow(at.work) }).toMatchObject(originals);
});

test('what was copied is used: commands, skills, agents, hooks, servers and rules', async () => {
  const at = placeOf(...importPrograms);
  await imported(at, '--yes');
  const list = async (
    ...args: readonly string[]
  ): Promise<readonly { name: string; active: boolean; path: string }[]> =>
    JSON.parse((await agent(at, [...args, '--json'])).stdout) as never;
  const names = async (kind: string): Promise<readonly string[]> =>
    (await list(kind, 'list'))
      .filter(({ active, path }) => active && path !== null && path.startsWith(join(at.home, '.agent')))
      .map(({ name }) => name)
      .toSorted();
  expect(await names('commands')).toEqual([
    'changelog',
    'deploy',
    'explain',
    'git:commit',
    'init-pi',
    'lint',
    'old',
    'review-codex',
    'review-cursor',
    'test',
  ]);
  expect(await names('skills')).toEqual(['notes', 'release', 'schema', 'tmux']);
  expect(await names('agents')).toEqual([
    'Architect',
    'docs',
    'planner',
    'researcher',
    'reviewer',
    'verifier',
    'writer',
  ]);
  expect(await names('hooks')).toEqual(['PreToolUse', 'PreToolUse', 'PreToolUse', 'SessionStart', 'Stop']);
  expect((await agent(at, ['config', 'check'])).code).toBe(0);
  expect(statSync(join(at.home, '.agent/skills/notes/scripts/note.sh')).mode & 0o777).toBe(0o700);
  for (const check of ['skills', 'commands', 'hooks'])
    expect((await agent(at, [check, 'check'])).stdout).not.toContain(join(at.home, '.agent'));
});

test('a command of Gemini CLI keeps its meaning: arguments, commands also in fences, files, and literal dollars', async () => {
  const at = placeOf('gemini');
  put(
    at.home,
    '.gemini/commands/odd.toml',
    `prompt = 'Run !{printf "%s" "\`date\`" {a}} and(!{awk "{print $1}"}) $HOME @{my notes.md}'\n`,
  );
  await imported(at, '--yes', '--only', 'commands');
  const text = (name: string): string => readFileSync(join(at.home, '.agent/commands', name), 'utf8');
  expect(text('git/commit.md')).toBe(
    '---\ndescription: "Writes a commit message"\n---\n\nWrite a commit message for $ARGUMENTS.\n\n' +
      '!`git diff --staged`\n\nThe rules: @docs/commits.md. It costs \\$5.\n',
  );
  expect(text('odd.md')).toBe(
    'Run \n```!\nprintf "%s" "`date`" {a}\n```\n and( !`awk "{print \\$1}"`) $HOME @"my notes.md"\n',
  );
});

test('an agent keeps what it may not do', async () => {
  const at = placeOf('opencode', 'codex', 'cursor');
  await imported(at, '--yes', '--only', 'agents');
  const head = (name: string): readonly string[] =>
    readFileSync(join(at.home, '.agent/agents', name), 'utf8')
      .split('\n')
      .slice(1, 6);
  expect(head('planner.md')).toContain('disallowedTools: Write, Edit, mcp__maps__*');
  expect(head('docs.md')).toContain('disallowedTools: Bash, WebFetch');
  expect(head('reviewer.md')).toContain('permissionMode: plan');
  expect(head('verifier.md')).toContain('permissionMode: plan');
});

test('rules that stop calls hold at any depth; those that allow keep no path of this folder', async () => {
  const at = placeOf('cursor');
  await imported(at, '--yes', '--only', 'permissions');
  const { rules } = JSON.parse(readFileSync(join(at.home, '.agent/config.json'), 'utf8')) as { rules: object };
  expect(rules).toEqual({
    allow: [{ tool: 'bash', argv: ['ls'] }],
    deny: [
      { tool: 'bash', argv: ['rm'] },
      { tool: 'bash', pattern: 'rm *' },
      { tool: 'bash', argv: ['npm', 'publish'] },
      { tool: 'bash', pattern: 'npm publish*' },
      { path: '/**/**/.env*' },
      { path: '/**/**/.env*/**' },
    ],
  });
});

test('hooks of Claude Code that were copied run once, also after the user trusts the originals', async () => {
  const at = placeOf('claude-code');
  const log = join(at.home, 'log');
  const hook = { hooks: [{ type: 'command', command: `echo ran >> ${log}` }] };
  put(at.home, '.claude/settings.json', JSON.stringify({ hooks: { UserPromptSubmit: [hook] } }));
  await imported(at, '--yes', '--only', 'hooks');
  const rows = JSON.parse((await agent(at, ['hooks', 'list', '--json'])).stdout) as readonly {
    readonly path: string;
  }[];
  expect(rows.map(({ path }) => path).filter((path) => path.startsWith(at.home))).toEqual([
    join(at.home, '.agent/hooks.json'),
  ]);
  await agent(at, ['-p', '--model', script(at, [{ text: 'one' }]), 'hi']);
  expect(readFileSync(log, 'utf8')).toBe('ran\n');
});

test('comments in hooks.json stay, and a file of the user that is broken is named and not replaced', async () => {
  const at = placeOf('codex');
  const hooks = put(
    at.home,
    '.agent/hooks.json',
    '{\n  // mine\n  "hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": "mine" }] }] }\n}\n',
  );
  await imported(at, '--yes', '--only', 'hooks');
  const text = readFileSync(hooks, 'utf8');
  expect(text).toContain('// mine');
  expect(text.match(/"command": "(?:mine|true)"/g)).toHaveLength(3);
  const servers = put(at.home, '.agent/mcp.json', '{"mcpServers": ');
  const [source] = await imported(at, '--yes', '--only', 'mcp');
  expect(source).toMatchObject({
    take: 0,
    skip: [{ name: 'search', reason: expect.stringContaining(`${servers} cannot be changed`) }],
  });
  expect(readFileSync(servers, 'utf8')).toBe('{"mcpServers": ');
});

test('nothing is copied in the place of another, and the reason names it', async () => {
  const at = placeOf('codex');
  const command = put(at.home, '.agent/commands/changelog.md', 'Mine.\n');
  const skill = put(at.home, '.agents/skills/notes/SKILL.md', '---\nname: notes\ndescription: Mine.\n---\n\nMine.\n');
  put(at.home, '.agent/mcp.json', '{"mcpServers": {"search": {"command": "mine"}}}');
  const sources = await imported(at, '--yes', '--only', 'commands,skills,mcp');
  expect(sources.flatMap(({ skip }) => skip)).toEqual([
    { name: 'search', reason: 'mcp.json has another server search' },
    { name: 'notes', reason: `${dirname(skill)} is another skill of this name` },
    { name: 'creator', reason: 'it comes with the program' },
    { name: 'changelog', reason: `${command} has another text` },
  ]);
  expect(readFileSync(command, 'utf8')).toBe('Mine.\n');
});

test('a skill with a link out of its folder, or with too many files, is not copied', async () => {
  const at = placeOf('codex');
  const secret = put(at.home, 'secret', 'text');
  const skills = join(at.home, '.codex/skills');
  put(skills, 'linked/SKILL.md', '---\nname: linked\ndescription: One.\n---\n\nText.\n');
  symlinkSync(secret, join(skills, 'linked/key'));
  put(skills, 'inner/SKILL.md', '---\nname: inner\ndescription: One.\n---\n\nText.\n');
  symlinkSync('SKILL.md', join(skills, 'inner/README.md'));
  put(skills, 'large/SKILL.md', '---\nname: large\ndescription: One.\n---\n\nText.\n');
  for (let at = 0; at < 1001; at++) put(skills, `large/${at}`, '');
  const [source] = await imported(at, '--yes', '--only', 'skills');
  expect(source?.skip.filter(({ name }) => name !== 'creator')).toEqual([
    { name: 'large', reason: 'it has more than 1000 files or 32 MiB' },
    { name: 'linked', reason: 'key is a link out of its folder' },
  ]);
  expect(readdirSync(join(at.home, '.agent/skills')).toSorted()).toEqual(['inner', 'notes']);
  expect(statSync(join(at.home, '.agent/skills/inner/README.md')).isFile()).toBe(true);
});

test('a folder of the user that is a link to files of another program is not written to', async () => {
  const at = placeOf('codex', 'cursor');
  mkdirSync(join(at.home, '.agent'));
  symlinkSync(join(at.home, '.codex/prompts'), join(at.home, '.agent/commands'));
  const before = filesBelow(join(at.home, '.codex'));
  const sources = await imported(at, '--yes', '--only', 'commands', '--from', 'cursor');
  expect(sources.map(({ take, skip }) => [take, skip[0]?.reason])).toEqual([
    [0, expect.stringContaining('which belongs to another program')],
    [0, expect.stringContaining('which belongs to another program')],
  ]);
  expect(filesBelow(join(at.home, '.codex'))).toEqual(before);
});

test('files that other programs share are copied once', async () => {
  const at = placeOf('opencode', 'pi');
  const shared = put(at.home, '.claude/CLAUDE.md', 'Shared.\n');
  for (const file of ['.config/opencode/AGENTS.md', '.pi/agent/AGENTS.md']) {
    writeFileSync(join(at.home, file), '');
    cpSync(shared, join(at.home, file));
  }
  const sources = await imported(at, '--yes', '--only', 'instructions', '--from', 'opencode,pi');
  expect(sources.map(({ take, exists }) => [take, exists])).toEqual([
    [0, 1],
    [0, 0],
    [0, 1],
  ]);
  expect(existsSync(join(at.home, '.agent/AGENTS.md'))).toBe(false);
});

test('the folder of CLAUDE_CONFIG_DIR is not read in place, so its files are copied', async () => {
  const at = placeOf('claude-code');
  const other = join(at.home, 'claude');
  cpSync(join(at.home, '.claude'), other, { recursive: true });
  cpSync(join(fixtures, 'codex/home/.codex/skills/notes'), join(other, 'skills/notes'), { recursive: true });
  put(other, 'output-styles/long.md', '---\nname: long\ndescription: Long answers.\n---\n\nTwo sentences.\n');
  const { stdout } = await agent(at, ['import', '--yes', '--json', '--only', 'skills,output_styles,permissions'], {
    env: { CLAUDE_CONFIG_DIR: other },
  });
  const { sources } = JSON.parse(stdout) as { readonly sources: readonly ImportSource[] };
  expect(sources.map(({ kind, take }) => [kind, take])).toEqual([
    ['skills', 1],
    ['permissions', 1],
    ['output_styles', 1],
  ]);
  expect(existsSync(join(at.home, '.agent/output-styles/long.md'))).toBe(true);
});

test('a broken file is named in one line, and the rest goes on', async () => {
  const at = placeOf('opencode', 'codex');
  put(at.home, '.config/opencode/opencode.json', '{"mcp": ');
  put(at.home, '.codex/config.toml', 'model = ');
  const { code, stdout, stderr } = await agent(at, ['import', '--yes']);
  expect([code, stderr]).toEqual([0, '']);
  for (const file of ['.config/opencode/opencode.json', '.codex/config.toml'])
    expect(stdout.split('\n').filter((line) => line.startsWith(`skipped: ${join(at.home, file)}`))).toHaveLength(1);
  expect(existsSync(join(at.home, '.agent/commands/test.md'))).toBe(true);
});

test('a file that nobody may read is named, and the rest goes on', { skip: process.getuid?.() === 0 }, async () => {
  const at = placeOf('codex');
  chmodSync(join(at.home, '.codex/prompts/review.md'), 0);
  const [source] = await imported(at, '--yes', '--only', 'commands');
  expect(source).toMatchObject({ take: 1, skip: [{ name: 'review', reason: 'it cannot be opened (EACCES)' }] });
});

test('programs and kinds that do not exist are refused with the valid ones', async () => {
  const at = placeOf('codex');
  const wrong = await agent(at, ['import', '--from', 'codex,cladue-code', '--dry-run']);
  expect([wrong.code, wrong.stdout]).toEqual([2, '']);
  expect(wrong.stderr).toContain('there is no program `cladue-code`');
  expect(wrong.stderr).toContain(`Valid: ${importPrograms.join(', ')}`);
  const kind = await agent(at, ['import', '--only', 'plugins', '--yes']);
  expect(kind.code).toBe(2);
  expect(kind.stderr).toContain(`Valid: ${importKinds.join(', ')}`);
});

test('without a terminal nothing is copied unasked', async () => {
  const at = placeOf('codex');
  const { code, stdout, stderr } = await agent(at, ['import']);
  expect(code).toBe(4);
  expect(stdout).toContain('codex');
  expect(stderr).toContain('--yes');
  expect(existsSync(join(at.home, '.agent/mcp.json'))).toBe(false);
  expect(await agent(placeOf(), ['import'])).toMatchObject({ code: 0, stderr: '' });
  await imported(at, '--yes');
  expect(await agent(at, ['import'])).toMatchObject({ code: 0, stderr: '' });
});

test('what is different in a copy is said', async () => {
  const at = placeOf();
  put(at.home, '.cursor/mcp.json', '{"mcpServers": {"a-name-that-is-much-too-long-for-us": {"command": "x"}}}');
  const { stdout } = await agent(at, ['import', '--yes']);
  expect(stdout).toMatch(/^note: a-name-that-is-much-too-long-for-us \(.*\): named a-name-\S+: a name has at most 24/m);
});

test('--from and --only choose', async () => {
  const at = placeOf('codex', 'qwen');
  const sources = await imported(at, '--dry-run', '--from', 'qwen', '--only', 'status_line,mcp');
  expect(sources.map(({ program, kind }) => [program, kind])).toEqual([
    ['qwen', 'mcp'],
    ['qwen', 'status_line'],
  ]);
});

/** A conversation of Claude Code. */
function conversation(at: Place, id: string, ...said: readonly string[]): void {
  const lines = said.map((content, index) => ({
    type: 'user',
    uuid: `u${index}`,
    parentUuid: index === 0 ? null : `u${index - 1}`,
    isSidechain: false,
    cwd: at.work,
    sessionId: id,
    version: '2.1.197',
    timestamp: `2026-11-20T10:00:0${index}.000Z`,
    message: { role: 'user', content },
  }));
  const summary = { type: 'summary', summary: 'x', sessionId: id, cwd: at.work, timestamp: '2026-11-20T10:00:00.000Z' };
  put(
    at.home,
    `.claude/projects/-work/${id}.jsonl`,
    [...(lines.length === 0 ? [summary] : lines)].map((line) => `${JSON.stringify(line)}\n`).join(''),
  );
}

test('conversations are imported once; the dry run makes no database', async () => {
  const at = placeOf('claude-code');
  conversation(at, '6f1c1c1e-0000-4000-8000-000000000001', 'Look at zebras');
  const [found] = await imported(at, '--dry-run', '--only', 'sessions');
  expect(found).toEqual({
    program: 'claude-code',
    kind: 'sessions',
    path: join(at.home, '.claude/projects/-work'),
    scope: 'user',
    found: 1,
    take: 1,
    exists: 0,
    skip: [],
  });
  expect(existsSync(join(at.home, '.agent/agent.db'))).toBe(false);
  expect(await imported(at, '--yes', '--only', 'sessions')).toEqual([found]);
  expect(await imported(at, '--yes', '--only', 'sessions')).toEqual([{ ...found, take: 0, exists: 1 }]);
  expect((await agent(at, ['search', 'zebras'])).stdout).toContain('zebras');
});

test('one thing that can be copied is offered in the singular', async () => {
  const at = place();
  const statusLine = { type: 'command', command: 'date' };
  put(at.home, '.claude/settings.json', JSON.stringify({ statusLine }));
  const { stdout } = await repl(at, ['--model', script(at, [])], [['', 'run agent import']]);
  expect(stdout.replaceAll(/\s+/g, ' ')).toContain('Found 1 status line of Claude Code. To copy it, run agent import.');
});

test('the first start of the REPL offers everything in one line, and a later one nothing', async () => {
  const at = placeOf('codex');
  conversation(at, '6f1c1c1e-0000-4000-8000-000000000001', 'Look at zebras');
  const model = script(at, [{ text: 'Noted.' }]);
  const first = await repl(
    at,
    ['--model', model],
    [
      ['', 'run agent import'],
      ['Hello', 'Noted.'],
    ],
  );
  expect(first.stdout.replaceAll(/\s+/g, ' ')).toContain(
    'Found 1 MCP server, 1 skill, 2 commands, 1 sub-agent, 2 hooks, 3 permission rules and 1 conversation ' +
      'of Codex and Claude Code. To copy them, run agent import.',
  );
  const later = await repl(
    at,
    ['--model', model],
    [
      ['/sessions', 'Hello'],
      ['', '❯ '],
    ],
  );
  expect(later.stdout).not.toContain('agent import');
});

test('the first start says nothing where there is nothing to copy', async () => {
  const at = place();
  put(at.home, '.claude/CLAUDE.md', 'Short.\n');
  const { stdout } = await repl(at, ['--model', script(at, [{ text: 'Noted.' }])], [['Hello', 'Noted.']]);
  expect(stdout).not.toContain('agent import');
});
