import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, lines, place, repl, script } from './inside.js';

type At = ReturnType<typeof place>;

interface Logged {
  readonly kind: string;
  readonly content: string;
  readonly data: { readonly note?: true; readonly name?: string } | null;
}

const read = (...paths: readonly string[]): unknown => ({
  calls: paths.map((path) => ({ name: 'file_read', arguments: { path } })),
});
const done = { text: 'Done.' };

const rule = '---\npaths: src/**/*.ts\n---\nRULE-OF-TS\n';
const project = {
  'AGENTS.md': 'ROOT\n',
  '.claude/rules/ts.md': rule,
  'web/AGENTS.md': 'WEB\n',
  'src/a.ts': 'a\n',
  'src/b.ts': 'b\n',
  'web/x.css': 'x\n',
};

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** The events of a session; of the newest unless one is given. */
async function events(at: At, given?: string): Promise<readonly Logged[]> {
  const rows = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as { readonly id: string }[];
  const exported = await agent(at, ['sessions', 'export', given ?? rows[0]?.id ?? '', '--format', 'jsonl']);
  return lines(exported.stdout).filter((line) => line.type === 'event') as never;
}

/** Returns the instructions that notes give the model, by the names of their files. */
function course(log: readonly Logged[]): readonly string[] {
  return log.flatMap(({ kind, content, data }) => {
    if (kind === 'tool_result') return ['result'];
    if (kind === 'compaction') return ['compaction'];
    if (kind !== 'user' || data?.note !== true) return [];
    return [...content.matchAll(/^# Instructions from .*\/work\/(.+)$/gm)].map(([, name = '']) => name);
  });
}

const headless = async (at: At, turns: readonly unknown[], ...more: readonly string[]) =>
  await agent(at, ['-p', '-m', script(at, turns), ...more, 'go']);

test('rules for a file and instructions of its folder come behind the first result that is about it, once', async () => {
  const at = place(project);
  await headless(at, [read('src/a.ts', 'web/x.css'), read('src/b.ts'), read('web/x.css'), done]);
  const log = await events(at);
  expect(course(log)).toEqual(['result', 'result', '.claude/rules/ts.md', 'web/AGENTS.md', 'result', 'result']);
  expect(log.filter(({ kind }) => kind === 'system')).toHaveLength(1);
  const [prompt] = log;
  expect([prompt?.content.includes('ROOT'), prompt?.content.includes('RULE-OF-TS')]).toEqual([true, false]);
  expect(log.find(({ data }) => data?.note === true)?.content).toMatch(
    /^\[Note: the files of the last calls have these instructions\.\]\n\n# Instructions from .*ts\.md\n\(for src\/\*\*\/\*\.ts\)\n\nRULE-OF-TS\n\n# Instructions from /,
  );
});

test('a file that is written or edited brings its rules as one that is read does', async () => {
  const at = place(project);
  const writing = { calls: [{ name: 'file_write', arguments: { path: 'src/new.ts', content: 'x\n' } }] };
  await headless(at, [writing, done], '--approval', 'never');
  expect(course(await events(at))).toEqual(['result', '.claude/rules/ts.md']);
});

test('a turn that ends right behind a result loses nothing: the note comes before the next message', async () => {
  const at = place(project);
  const hooks = join(at.home, '.agent/hooks.json');
  const stop = { type: 'command', command: `echo '{"continue": false, "stopReason": "enough"}'` };
  write(hooks, JSON.stringify({ hooks: { PostToolUse: [{ matcher: 'Read', hooks: [stop] }] } }));
  const turns = [read('src/a.ts'), done];
  await headless(at, turns);
  expect(course(await events(at))).toEqual(['result']);
  rmSync(hooks);
  await headless(at, turns, '-c');
  expect(course(await events(at))).toEqual(['result', '.claude/rules/ts.md']);
});

test.each([
  ['a resume', ['-c']],
  ['a fork', ['-c', '--fork']],
])('%s knows which instructions the model has', async (_name, more) => {
  const at = place(project);
  const turns = [read('src/a.ts'), done, read('src/b.ts'), read('web/x.css'), done];
  await headless(at, turns);
  const { stderr } = await headless(at, turns, ...more);
  expect(course(await events(at))).toEqual(['result', '.claude/rules/ts.md', 'result', 'result', 'web/AGENTS.md']);
  expect(stderr).not.toContain('Instructions changed');
});

test('what a compaction took away comes again with the next file', async () => {
  const at = place(project);
  const turns = [read('src/a.ts'), done, { text: 'SUMMARY' }, read('src/b.ts'), done];
  await repl(
    at,
    ['-m', script(at, turns)],
    [
      ['go', 'Done.'],
      ['/compact', 'ompacted'],
      ['on', 'Done.'],
    ],
  );
  expect(course(await events(at))).toEqual([
    'result',
    '.claude/rules/ts.md',
    'compaction',
    'result',
    '.claude/rules/ts.md',
  ]);
});

test('a sub-agent gets them in its own session', async () => {
  const at = place(project);
  const inner = join(at.home, 'finder.json');
  write(inner, JSON.stringify({ turns: [read('src/a.ts'), { text: 'Found.' }] }));
  const fields = `name: finder\ndescription: Finds.\ntools: Read\nmodel: offline/${inner}`;
  write(join(at.home, '.agent/agents/finder.md'), `---\n${fields}\n---\nYou find.\n`);
  const call = { name: 'agent', arguments: { agent: 'finder', prompt: 'find', description: 'find' } };
  const { stdout } = await headless(at, [{ calls: [call] }, done], '--output-format', 'stream-json');
  const [, child = ''] = /"agent_session_id":"(\w+)"/.exec(stdout.replaceAll('\\', '')) ?? [];
  expect(course(await events(at, child))).toEqual(['result', '.claude/rules/ts.md']);
});

test('a rule that changed or went is reported on resume, with its new text', async () => {
  const at = place(project);
  const turns = [read('src/a.ts', 'web/x.css'), done, done, done];
  await headless(at, turns);
  at.file('.claude/rules/ts.md', rule.replace('RULE', 'NEW-RULE'));
  rmSync(join(at.work, 'web/AGENTS.md'));
  const { stderr } = await headless(at, turns, '-c');
  expect(stderr).toMatch(/Instructions changed since this session began: .*ts\.md, .*web\/AGENTS\.md \(gone\)\./);
  const note = (await events(at)).findLast(({ data }) => data?.note === true)?.content;
  expect(note).toMatch(
    /\(for src\/\*\*\/\*\.ts\)\n\nNEW-RULE-OF-TS\n\nNo longer valid: # Instructions from .*web\/AGENTS/,
  );
  expect((await headless(at, turns, '-c')).stderr).not.toContain('Instructions changed');
});

test('a list of rules that changed is reported on resume', async () => {
  const at = place({ '.cursor/rules/r.mdc': '---\ndescription: Releases\n---\nTag.\n' });
  await headless(at, [done, done]);
  expect((await events(at))[0]?.content).toMatch(/# Rules for some tasks\n\n[^]*r\.mdc: Releases/);
  rmSync(join(at.work, '.cursor/rules/r.mdc'));
  expect((await headless(at, [done, done], '-c')).stderr).toContain('the list of rules (gone)');
});

test('one line names what is read of other programs, and one what is not used and why', async () => {
  const at = place({
    'AGENTS.md': 'ROOT\n',
    'CLAUDE.md': 'Mine. @/etc/passwd.txt\n',
    '.cursor/rules/a.mdc': '---\nalwaysApply: true\n---\nA\n',
    '.cursor/rules/b.mdc': '---\nglobs: x\n---\nB\n',
    '.env.md': 'TOKEN=1\n',
  });
  write(join(at.home, '.claude/CLAUDE.md'), 'HOME\n');
  writeFileSync(join(at.work, 'GEMINI.md'), Buffer.from([0x61, 0xff, 0xfe, 0x62]));
  symlinkSync('/etc/hostname', join(at.work, '.cursorrules'));
  const { stdout } = await headless(at, [done], '--output-format', 'stream-json');
  const said = lines(stdout.replaceAll(at.work, '')).map(({ message }) => message);
  expect(said).toContain(
    'Instructions of other programs are used: ~/.claude/CLAUDE.md, CLAUDE.md, .cursor/rules (2 files). /context lists them.',
  );
  expect(said).toContain(
    'Instructions that are not used: /etc/passwd.txt (/CLAUDE.md imports it, and it is outside the project), ' +
      '/GEMINI.md (it is not text in UTF-8), ' +
      '/.cursorrules (it is a link to a file outside the project, /etc/hostname).',
  );
});

test('fs.deny covers instructions of a folder, and a notice says so', async () => {
  const at = place(project);
  write(join(at.home, '.agent/config.json'), JSON.stringify({ fs: { deny: ['**/web/AGENTS.md'] } }));
  const { stderr } = await headless(at, [read('web/x.css'), done]);
  expect([course(await events(at)), stderr]).toEqual([
    ['result'],
    expect.stringContaining('web/AGENTS.md is not used: fs.deny covers it.'),
  ]);
});

test('instructions that are large together are reported with what they cost', async () => {
  const at = place(Object.fromEntries(['AGENTS.md', 'a.md', 'b.md'].map((name) => [name, `${name} `.repeat(9000)])));
  at.file('CLAUDE.md', '@a.md and @b.md, too\n');
  const { stderr } = await headless(at, [done]);
  expect(stderr).toMatch(/The instructions have \d{6} bytes, about \d{5} tokens of every request\./);
});

test('/context lists each file with its origin and its size, and when the model gets it', async () => {
  const at = place({ ...project, '.cursor/rules/r.mdc': '---\ndescription: Releases\n---\nTag.\n' });
  for (const [path, text] of [
    ['.agent/AGENTS.md', 'OWN\n'],
    ['.codex/AGENTS.md', 'CODEX\n'],
    ['.gemini/GEMINI.md', 'GEMINI\n'],
  ] as const)
    write(join(at.home, path), text);
  const ran = await repl(
    at,
    ['-m', script(at, [read('web/x.css'), done])],
    [
      ['go', 'Done.'],
      ['/context', 'instructions'],
      ['/exit', ''],
    ],
  );
  const rows = ran.stdout
    .slice(ran.stdout.indexOf('instructions'))
    .split('\n')
    .map((line) => line.replaceAll(/[│|]/g, ' ').trim().replaceAll(/\s+/g, ' '));
  for (const row of [
    /^~\/\.agent\/AGENTS\.md own \d+ prompt$/,
    /^~\/\.codex\/AGENTS\.md codex \d+ prompt$/,
    /^~\/\.gemini\/GEMINI\.md gemini \d+ prompt$/,
    /^AGENTS\.md project \d+ prompt$/,
    /^\.claude\/rules\/ts\.md claude-code \d+ waits for src\/\*\*\/\*\.ts$/,
    /^\.cursor\/rules\/r\.mdc cursor \d+ read where it fits$/,
    /^web\/AGENTS\.md project \d+ note$/,
  ])
    expect(rows).toContainEqual(expect.stringMatching(row));
});
