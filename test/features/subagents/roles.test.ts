import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Policy, Verdict } from '../../../src/kernel/core/policy.js';
import { problemsOf } from '../../../src/features/subagents/agent-problems.js';
import { type AgentRole, agentsIn, partsOfAgents, stricter, toolsOf } from '../../../src/features/subagents/roles.js';
import { builtinTools } from '../../../src/kernel/tools/builtin.js';
import { mayReach } from '../../../src/kernel/tools/chosen-tools.js';
import { processes, toolOptions } from '../../kernel/tools/workbench.js';
import { shortServerNames } from '../../../src/kernel/core/tool-patterns.js';

const [general] = agentsIn([]).agents;

function role(change: Partial<AgentRole>): AgentRole {
  if (!general) throw new Error('no agent comes with the program');
  return { ...general, ...change };
}

test('an agent has the tools it names, by our names and by those of another program', () => {
  const offered = builtinTools({ ...toolOptions(), processes });
  const theirs = (tool: string): readonly string[] => (tool === 'file_read' ? ['Read'] : []);
  const names = (change: Partial<AgentRole>): string =>
    toolsOf(role(change), offered, theirs)
      .map(({ name }) => name)
      .join();
  expect(names({})).toBe('glob,file_read,grep,file_write,file_edit,bash');
  expect(names({ tools: ['Read', 'glob', 'Nothing'] })).toBe('glob,file_read');
  expect(names({ withoutTools: ['Read', 'bash'] })).toBe('glob,grep,file_write,file_edit');
  expect(names({ tools: [] })).toBe('');
});

test('of the tools of servers an agent reaches those it names, or all of a server', () => {
  const target = { name: 'mcp__github__get_issue', server: 'github', schema_sha256: '' };
  const reaches = (tools: readonly string[] | null, withoutTools: readonly string[] = []): boolean =>
    mayReach(role({ tools, withoutTools }), target);
  expect([reaches(null), reaches(['mcp__github__get_issue']), reaches(['mcp__github']), reaches(['tool_run'])]).toEqual(
    [true, true, true, true],
  );
  expect([reaches(['mcp__other']), reaches(['Read', 'mcp__github__list'])]).toEqual([false, false]);
  expect([reaches(null, ['mcp__github']), reaches(null, ['mcp__github__get_issue'])]).toEqual([false, false]);
});

test.each([
  ['mcp__github__*', true],
  ['mcp__*', true],
  ['*', true],
  ['mcp__git*', true],
  ['mcp__github__get_*', true],
  ['mcp__*__get_issue', true],
  ['mcp__github__list_*', false],
  ['mcp__git', false],
  ['mcp__git__*', false],
  ['mcp__github__get', false],
  ['mcp__hub*', false],
])('the pattern %s names a tool of a server: %s', (pattern, isNamed) => {
  const target = { name: 'mcp__github__get_issue', server: 'github', schema_sha256: '' };
  expect(mayReach(role({ withoutTools: [pattern] }), target)).toBe(!isNamed);
  expect(mayReach(role({ tools: ['mcp__x__y', pattern] }), target)).toBe(isNamed);
});

test('a server whose long name is shortened is also named by its long name', () => {
  const server = 'discussions-only-for-reading';
  for (const short of Object.values(shortServerNames(server))) {
    const target = { name: `mcp__${short}__get`, server: short, schema_sha256: '' };
    for (const end of ['', '__*', '__get'])
      expect(mayReach(role({ withoutTools: [`mcp__${server}${end}`] }), target)).toBe(false);
    expect(mayReach(role({ withoutTools: [`mcp__${server}__put`] }), target)).toBe(true);
  }
});

test('stars in the lists of an agent file hold, and an entry that has no meaning is reported', () => {
  const home = mkdtempSync(join(tmpdir(), 'agent-roles-'));
  const write = (name: string, lines: string): void => {
    writeFileSync(join(home, `${name}.md`), `---\nname: ${name}\ndescription: d\n${lines}\n---\nDo it.\n`);
  };
  write('one', 'tools: Read, "mcp__github__*"\ndisallowedTools: mcp__*');
  write('two', 'tools:\n  - Read\n  - mcp__github__*\ndisallowedTools: "*"');
  write('three', 'tools: Read, vscode/askQuestions, mcp__github__\ndisallowedTools: mcp__, Bash(rm *)');
  const found = agentsIn([{ folder: home, origin: 'user', root: null }]);
  const { agents } = found;
  const lists = agents.flatMap(({ name, tools, withoutTools, path }) => (path ? [[name, tools, withoutTools]] : []));
  expect(lists).toEqual([
    ['one', ['Read', 'mcp__github__*'], ['mcp__*']],
    ['three', ['Read'], ['Bash']],
    ['two', ['Read', 'mcp__github__*'], ['*']],
  ]);
  const path = join(home, 'three.md');
  const forms = 'write the name of a tool, mcp__server, mcp__server__tool, or a name with *.';
  expect(problemsOf(found)).toEqual([
    `${path}: tools vscode/askQuestions, mcp__github__ are ignored; ${forms}`,
    `${path}: disallowedTools mcp__ is ignored; ${forms}`,
    `${path}: disallowedTools Bash(rm *) disables the whole tool; use rules.deny in the settings for single commands and paths.`,
  ]);
});

test('a file too large for an agent is not a part that asks for trust', () => {
  const home = mkdtempSync(join(tmpdir(), 'agent-roles-'));
  const write = (name: string, body: string): void => {
    writeFileSync(join(home, `${name}.md`), `---\nname: ${name}\ndescription: d\n---\n${body}\n`);
  };
  write('small', 'Do it.');
  write('large', 'Do it. '.repeat(50_000));
  const parts = partsOfAgents([{ folder: home, origin: 'project', root: home }]);
  expect(parts.map(({ path }) => path)).toEqual([join(home, 'small.md')]);
});

test('names of Copilot and VS Code mean our tools; those of Claude Code mean one tool each', () => {
  const home = mkdtempSync(join(tmpdir(), 'agent-roles-'));
  const toolsWritten = (tools: string): string => {
    writeFileSync(join(home, 'one.md'), `---\nname: one\ndescription: d\ntools: ${tools}\n---\nDo it.\n`);
    const one = agentsIn([{ folder: home, origin: 'user', root: null }]).agents.find(({ name }) => name === 'one');
    return one?.tools?.join() ?? 'all';
  };
  expect(toolsWritten('Read, Edit, Write, Bash')).toBe('Read,Edit,Write,Bash');
  expect(toolsWritten('Edit')).toBe('Edit');
  expect(toolsWritten("['edit', 'execute']")).toBe('edit,Edit,Write,execute,Bash');
  expect(toolsWritten("['search/usages', 'execute/runInTerminal', 'execute/getTerminalOutput']")).toBe('Grep,Bash');
  expect(toolsWritten('azure.tools/list, github/*')).toBe('mcp__azure.tools__list,mcp__github__*');
  expect(toolsWritten('bash, grep')).toBe('bash,grep');
});

test('no mode of an agent allows what its session would not', async () => {
  const verdicts: readonly Pick<Verdict, 'risk' | 'decision'>[] = [
    { risk: 'read-only', decision: 'allow' },
    { risk: 'mutating', decision: 'allow' },
    { risk: 'dangerous', decision: 'ask' },
    { risk: 'read-only', decision: 'deny' },
  ];
  const decisions = async (mode: AgentRole['mode']): Promise<string> => {
    const decided = verdicts.map(async (verdict) => {
      const policy: Policy = { assess: () => Promise.resolve({ ...verdict, reasons: [], sandbox: 'off' }) };
      // The verdict is made up, so the call does not matter.
      return (await stricter(policy, mode, 'x').assess({} as never, '/')).decision;
    });
    return (await Promise.all(decided)).join();
  };
  expect(await decisions(null)).toBe('allow,allow,ask,deny');
  expect(await decisions('dangerous')).toBe('allow,allow,ask,deny');
  expect(await decisions('dontAsk')).toBe('allow,allow,ask,deny');
  expect(await decisions('mutating')).toBe('allow,ask,ask,deny');
  expect(await decisions('always')).toBe('ask,ask,ask,deny');
  expect(await decisions('plan')).toBe('allow,deny,deny,deny');
});
