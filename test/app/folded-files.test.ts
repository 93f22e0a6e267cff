import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { projects } from '../../src/app/project-files.js';
import { askForFiles } from '../../src/app/trust.js';
import type { ProjectFiles } from '../../src/kernel/config/project.js';

async function project(files: Readonly<Record<string, string>>): Promise<ProjectFiles> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'agent-folded-')));
  onTestFinished(() => {
    rmSync(root, { recursive: true, force: true });
  });
  const work = join(root, 'work');
  for (const [path, text] of Object.entries({ '.git/HEAD': '', ...files })) {
    mkdirSync(dirname(join(work, path)), { recursive: true });
    writeFileSync(join(work, path), text);
  }
  const config = { files: { config: join(root, 'home/config.json') } } as never;
  const found = await projects.files({ cwd: work, home: join(root, 'home'), config });
  if (!found) throw new Error('nothing needs trust');
  return found;
}

/** Answers the prompts in turn. */
async function asked(
  files: ProjectFiles,
  answers: readonly string[],
): Promise<{ readonly result: string; readonly shown: readonly string[] }> {
  const shown = [''];
  const left = [...answers];
  const result = await askForFiles(files, {
    write: (text) => {
      shown.push((shown.pop() ?? '') + text);
    },
    untilPause: () => Promise.resolve(),
    line: () => {
      shown.push('');
      return Promise.resolve(left.shift() ?? null);
    },
  });
  return { result, shown };
}

const hook = JSON.stringify({
  hooks: { PreToolUse: [{ matcher: 'Bash', hooks: [{ type: 'command', command: 'echo no >&2; exit 2' }] }] },
});
const long = 'Does the thing of the project, carefully and well, for the team and for nobody else at all';

function commands(count: number, folder = '.claude/commands'): Readonly<Record<string, string>> {
  const file = (number: number): readonly [string, string] => [
    `${folder}/cmd-${number}.md`,
    `---\ndescription: ${long} ${number}\n---\nDo thing ${number}${number === 7 ? ': !`date +%s`' : ''}\n`,
  ];
  return Object.fromEntries(Array.from({ length: count }, (_, index) => file(index)));
}

test('of 900 files, hooks and servers are listed whole, the others by folder, and a folder can be opened first', async () => {
  const files = await project({
    ...commands(600),
    ...commands(150, '.claude/commands/deep'),
    ...Object.fromEntries(
      Array.from({ length: 100 }, (_, index) => [
        `.claude/skills/s${index}/SKILL.md`,
        `---\nname: s${index}\ndescription: ${long}\n---\nUse it.\n`,
      ]),
    ),
    '.claude/agents/one.md': `---\nname: one\ndescription: ${long}\n---\nGo.\n`,
    '.claude/settings.json': hook,
    '.mcp.json': JSON.stringify({ mcpServers: { docs: { command: 'npx', args: ['docs-server'] } } }),
  });
  const { result, shown } = await asked(files, ['3', '9', 'l', 'y']);
  const [question = '', opened = '', none = '', again = ''] = shown;
  expect(result).toBe('yes');
  expect(question).toContain('contains 853 files that need your trust.');
  expect(question).toContain('hook PreToolUse (Bash) runs: echo no >&2; exit 2');
  expect(question).toContain('the server "docs" starts npx docs-server');
  expect(
    question
      .replaceAll(/sha256 \w{16}\b/g, 'sha256 …')
      .split('\n')
      .slice(-7),
  ).toEqual([
    '',
    '  1  .claude/agents: 1 agent, 1 KiB (sha256 …)',
    '  2  .claude/commands: 600 commands, 1 of them runs shell commands, 75 KiB (sha256 …)',
    '  3  .claude/commands/deep: 150 commands, 1 of them runs shell commands, 19 KiB (sha256 …)',
    '  4  .claude/skills: 100 skills, 13 KiB (sha256 …)',
    '',
    'Trust this directory with exactly these files? [y/N] (1-4: list a folder, l: list the folders) ',
  ]);
  expect(opened.split('\n').filter((line) => line.includes('command /deep:'))).toHaveLength(150);
  expect(opened).toContain('      runs: date +%s\n');
  expect(none).toContain('There is no folder 9; the last one is 4.');
  expect(again).toContain('  2  .claude/commands: 600 commands');
});

test('the hash of a folder changes with any of its files', async () => {
  const hashes = async (text: string): Promise<readonly string[]> => {
    const { shown } = await asked(await project({ ...commands(400), '.claude/commands/last.md': text }), ['n']);
    return shown[0]?.match(/commands, .*sha256 \w{16}/g) ?? [];
  };
  const [one] = await hashes('Say one.');
  const [other] = await hashes('Say two.');
  expect(one).toMatch(/sha256 \w{16}$/);
  expect(one).not.toBe(other);
});

test('many small folders join the folders above them', async () => {
  const many = Array.from({ length: 60 }, (_, index) => commands(4, `.claude/commands/area-${index}`));
  const { result, shown } = await asked(await project(Object.assign({}, ...many) as Record<string, string>), ['']);
  expect(result).toBe('no');
  expect(shown[0]?.split('\n').filter((line) => /^ {2}\d+ /.test(line))).toEqual([
    expect.stringMatching(/^ {2}1 {2}\.claude\/commands: 240 commands, /),
  ]);
});

test('nobody is asked to remove files, however long the list of hooks and servers is', async () => {
  const servers = Object.fromEntries(
    Array.from({ length: 400 }, (_, index) => [`s${index}`, { command: 'npx', args: [`${'a'.repeat(60)}-${index}`] }]),
  );
  const { result, shown } = await asked(await project({ '.mcp.json': JSON.stringify({ mcpServers: servers }) }), ['y']);
  expect([result, shown[0]?.match(/the server "s\d+" starts/g)?.length]).toEqual(['yes', 400]);
  expect(shown.join('')).not.toMatch(/too many|remove/i);
});
