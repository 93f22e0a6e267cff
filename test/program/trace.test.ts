import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { lines, type Place } from '../e2e/program.js';
import { agent } from './inside.js';
import { bash, edit, git, importedEdit, repository, turn } from './provenance-place.js';

const ajv = new Ajv2020({
  formats: {
    uuid: /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    'date-time': (text: string) => !Number.isNaN(Date.parse(text)) && /T.*Z$/.test(text),
    uri: (text: string) => URL.canParse(text),
  },
});
const schema = JSON.parse(
  readFileSync(new URL('../../fixtures/agent-trace/trace-record.schema.json', import.meta.url), 'utf8'),
) as object;
const isRecord = ajv.compile(schema);

async function records(at: Place, ...args: readonly string[]): Promise<readonly Record<string, unknown>[]> {
  const ran = await agent(at, ['trace', 'export', ...args]);
  expect(ran).toMatchObject({ code: 0, stderr: '' });
  const found = lines(ran.stdout);
  for (const record of found) expect([isRecord(record), isRecord.errors]).toEqual([true, null]);
  return found;
}

/** A commit with a line of an edit, one of a command, one that a person wrote, and one of an edit that a person changed. */
async function mixedCommit(): Promise<Place> {
  const at = repository();
  await turn(at, 'A secret prompt', edit('a.txt', 'two', 'TWO is here\nTWO and a half'), bash('echo four >> a.txt'));
  const text = readFileSync(join(at.work, 'a.txt'), 'utf8');
  writeFileSync(join(at.work, 'a.txt'), `${text.replace('TWO is here', 'TWO was here')}five\n`);
  writeFileSync(join(at.work, 'other.txt'), 'no call knows this\n');
  git(at, 'add', '-A');
  git(at, 'commit', '-qm', 'Second commit');
  return at;
}

test('a range of commits becomes a record for each, with ranges, hashes and links, and no prompt', async () => {
  const at = await mixedCommit();
  const revision = git(at, 'rev-parse', 'HEAD');
  const [record, ...more] = await records(at, '--range', 'HEAD~1..HEAD');
  expect(more).toEqual([]);
  expect(record).toMatchObject({ version: '0.1.0', vcs: { type: 'git', revision }, tool: { name: 'agent' } });
  const files = record?.['files'] as {
    path: string;
    conversations: { contributor: object; ranges: object[]; related: object[] }[];
  }[];
  expect(files.map(({ path }) => path)).toEqual(['a.txt']);
  const range = (start_line: number, end_line = start_line) => ({
    start_line,
    end_line,
    content_hash: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) as unknown,
  });
  const model_id = expect.stringMatching(/^offline\//) as unknown;
  expect(files[0]?.conversations.map(({ contributor, ranges }) => ({ contributor, ranges }))).toEqual([
    { contributor: { type: 'mixed', model_id }, ranges: [range(2)] },
    { contributor: { type: 'ai', model_id }, ranges: [range(3), range(5)] },
    { contributor: { type: 'human' }, ranges: [range(6)] },
  ]);
  const url = (rest: string): unknown => expect.stringMatching(new RegExp(`^agent://session/[0-9A-Z]{26}${rest}$`));
  expect(files[0]?.conversations[1]?.related).toEqual([
    { type: 'session', url: url('') },
    { type: 'turn', url: url('/turn/1') },
    { type: 'event', url: url('/event/\\d+') },
    { type: 'event', url: url('/event/\\d+') },
  ]);
  expect(JSON.stringify(record)).not.toContain('secret prompt');
  const [withPrompts] = await records(at, '--range', 'HEAD~1..HEAD', '--with-prompts');
  expect(JSON.stringify(withPrompts?.['metadata'])).toContain('A secret prompt');
});

test('without a range there is a record for each call of the project', async () => {
  const at = await mixedCommit();
  const found = await records(at);
  expect(found.map(({ files }) => (files as { path: string }[]).map(({ path }) => path))).toEqual([
    ['a.txt'],
    ['a.txt'],
  ]);
  const ranges = found.map(
    ({ files }) =>
      (files as { conversations: { ranges: { start_line: number; end_line: number }[] }[] }[])[0]?.conversations[0]
        ?.ranges,
  );
  expect(ranges).toMatchObject([[{ start_line: 2, end_line: 3 }], [{ start_line: 5, end_line: 5 }]]);
  expect(await records(at, '--since', '2999-01-01')).toEqual([]);
  const { stdout } = await agent(at, ['trace', 'export', '--format', 'csv', '--range', 'HEAD~1..HEAD']);
  const rows = stdout
    .trimEnd()
    .split('\r\n')
    .map((row) => row.split(','));
  expect(rows[0]?.slice(2, 6)).toEqual(['path', 'start_line', 'end_line', 'contributor']);
  expect(rows.slice(1).map((row) => row.slice(2, 6))).toEqual([
    ['a.txt', '2', '2', 'mixed'],
    ['a.txt', '3', '3', 'ai'],
    ['a.txt', '5', '5', 'ai'],
    ['a.txt', '6', '6', 'human'],
  ]);
});

test('records of redacted and imported sessions are valid, too', async () => {
  const at = repository();
  await turn(at, 'Write the phrase', edit('a.txt', 'two', 'a phrase of several words that should be gone'));
  const [own] = await records(at);
  const text = readFileSync(join(at.work, 'a.txt'), 'utf8');
  const file_path = join(at.work, 'b.txt');
  writeFileSync(file_path, 'three\nby another agent\n');
  await importedEdit(at, 'Add it', { file_path, old_string: 'three', new_string: 'three\nby another agent' });
  git(at, 'add', '-A');
  git(at, 'commit', '-qm', 'Second commit');
  const [session = '', seq = ''] = /session\/(\w+)\/event\/(\d+)/.exec(JSON.stringify(own))?.slice(1) ?? [];
  expect((await agent(at, ['redact', session, seq])).code).toBe(0);
  const [record] = await records(at, '--range', 'HEAD', '--with-prompts');
  const files = record?.['files'] as { path: string; conversations: { contributor: object; ranges: object[] }[] }[];
  expect(files).toMatchObject([
    { path: 'a.txt', conversations: [{ contributor: { type: 'ai' }, ranges: [{ start_line: 2, end_line: 2 }] }] },
    {
      path: 'b.txt',
      conversations: [
        { contributor: { type: 'ai', model_id: 'anthropic/claude-x' }, ranges: [{ start_line: 2, end_line: 2 }] },
      ],
    },
  ]);
  const [redacted] = await records(at);
  expect(redacted?.['id']).toBe(own?.['id']);
  // A later change outside leaves the line to the call, and the lines around it to those who wrote them.
  writeFileSync(join(at.work, 'a.txt'), text.replace('three\n', ''));
  git(at, 'commit', '-qam', 'Third commit');
  const { stdout } = await agent(at, ['blame', 'a.txt', '--json']);
  const { lines: blamed } = JSON.parse(stdout) as { readonly lines: readonly { readonly kind: string }[] };
  expect(blamed.map(({ kind }) => kind)).toEqual(['git', 'edit']);
});

test('check counts the lines that the log explains', async () => {
  const at = await mixedCommit();
  const commit = git(at, 'rev-parse', 'HEAD');
  const ran = await agent(at, ['trace', 'check', 'HEAD~1..HEAD', '--json']);
  expect(JSON.parse(ran.stdout)).toEqual({
    commits: [{ commit, lines_added: 5, explained: 4, ai: 2, human: 1, mixed: 1 }],
    explained: 4,
    lines_added: 5,
  });
  expect((await agent(at, ['trace', 'check', 'HEAD~1..HEAD'])).stdout).toContain(
    'The log explains 4 of 5 added lines (80 %)',
  );
  expect((await agent(at, ['trace', 'check', 'nothing..HEAD'])).code).toBe(2);
});

test('notes are written only by the command for them', async () => {
  const at = await mixedCommit();
  await agent(at, ['trace', 'check', 'HEAD~1..HEAD']);
  expect(() => git(at, 'notes', '--ref=agent-trace', 'show', 'HEAD')).toThrow();
  const ran = await agent(at, ['trace', 'notes', 'HEAD~1..HEAD']);
  expect(ran).toMatchObject({ code: 0, stdout: 'Wrote notes for 1 of 1 commit to refs/notes/agent-trace.\n' });
  const note: unknown = JSON.parse(git(at, 'notes', '--ref=agent-trace', 'show', 'HEAD'));
  expect([isRecord(note), note]).toEqual([true, (await records(at, '--range', 'HEAD~1..HEAD'))[0]]);
});

test('the hook names the session in the message, keeps a hook that is there, and goes again', async () => {
  const at = repository();
  const hook = join(at.work, '.git/hooks/prepare-commit-msg');
  mkdirSync(join(at.work, '.git/hooks'), { recursive: true });
  const before = '#!/bin/sh\necho "from the old hook" >> "$1"\n';
  writeFileSync(hook, before);
  chmodSync(hook, 0o755);
  expect((await agent(at, ['trace', 'hook', 'install'])).stdout).toBe(
    'The hook is installed: .git/hooks/prepare-commit-msg\n',
  );
  expect((await agent(at, ['trace', 'hook', 'install'])).stdout).toMatch(/^The hook was installed already/);
  await turn(at, 'Change it', edit('a.txt', 'two', 'TWO'));
  git(at, 'add', '-A');
  const message = join(at.work, '.git/MESSAGE');
  writeFileSync(message, 'Second commit\n');
  expect(await agent(at, ['trace', 'trailer', message])).toMatchObject({ code: 0, stderr: '' });
  expect(await agent(at, ['trace', 'trailer', message])).toMatchObject({ code: 0, stderr: '' });
  expect(readFileSync(message, 'utf8')).toMatch(/^Second commit\n\nAgent-Session: [0-9A-Z]{26}\n$/);
  // The hook calls the program by its name.
  mkdirSync(join(at.home, 'bin'));
  writeFileSync(join(at.home, 'bin/agent'), `#!/bin/sh\necho "Called: $*" >> "$3"\n`);
  chmodSync(join(at.home, 'bin/agent'), 0o755);
  at.env['PATH'] = `${join(at.home, 'bin')}:${at.env['PATH'] ?? ''}`;
  git(at, 'commit', '-qm', 'Second commit');
  expect(git(at, 'log', '-1', '--format=%B')).toContain(
    'Called: trace trailer .git/COMMIT_EDITMSG message\nfrom the old hook',
  );
  expect((await agent(at, ['trace', 'hook', 'remove'])).stdout).toMatch(/^The hook is removed/);
  expect(readFileSync(hook, 'utf8')).toBe(before);
});

test('the hook goes where core.hooksPath says, beside the files of husky, and around a program that is no script', async () => {
  const at = repository();
  git(at, 'config', 'core.hooksPath', '.husky/_');
  const installed = async (): Promise<string> => (await agent(at, ['trace', 'hook', 'install'])).stdout;
  expect(await installed()).toBe('The hook is installed: .husky/prepare-commit-msg\n');
  git(at, 'config', 'core.hooksPath', 'tools/hooks');
  mkdirSync(join(at.work, 'tools/hooks'), { recursive: true });
  const hook = join(at.work, 'tools/hooks/prepare-commit-msg');
  writeFileSync(hook, '#!/usr/bin/env node\n');
  expect(await installed()).toBe('The hook is installed: tools/hooks/prepare-commit-msg\n');
  expect(readFileSync(hook, 'utf8')).toContain('/prepare-commit-msg.before-agent" "$@"');
  await agent(at, ['trace', 'hook', 'remove']);
  expect(readFileSync(hook, 'utf8')).toBe('#!/usr/bin/env node\n');
  git(at, 'config', '--unset', 'core.hooksPath');
  git(at, 'worktree', 'add', '-q', '../tree');
  const inTree = { ...at, work: join(at.work, '../tree') };
  expect((await agent(inTree, ['trace', 'hook', 'install'])).stdout).toContain('work/.git/hooks/prepare-commit-msg\n');
});
