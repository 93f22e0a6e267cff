import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { askForTrust, trustQuestion } from '../../src/app/trust.js';
import { openTrustFile } from '../../src/kernel/config/trust-file.js';
import { loadConfig, type LoadedProject, type ProjectFile } from '../../src/kernel/config/load.js';

function folder(): string {
  const root = mkdtempSync(join(tmpdir(), 'agent-trust-'));
  onTestFinished(() => {
    rmSync(root, { recursive: true, force: true });
  });
  return root;
}

function projectFile(directory: string, sha256 = 'a'): ProjectFile {
  return { directory, path: join(directory, '.agent/config.json'), content: { kind: 'text', text: '{}' }, sha256 };
}

async function projectOf(text: string): Promise<LoadedProject | null> {
  const cwd = folder();
  mkdirSync(join(cwd, '.agent'));
  writeFileSync(join(cwd, '.agent/config.json'), text);
  return (await loadConfig({ env: {}, cwd, home: folder() })).project;
}

async function asked(
  project: LoadedProject | null,
  answer: string | null,
): Promise<{ readonly result: string; readonly shown: string }> {
  let shown = '';
  const result = await askForTrust(project, {
    write: (text) => {
      shown += text;
    },
    untilPause: () => Promise.resolve(),
    line: () => Promise.resolve(answer),
  });
  return { result, shown };
}

test('an answer holds for its directory, by whatever way it is reached, with exactly that content', () => {
  const root = folder();
  for (const name of ['a', 'a/b', 'c']) mkdirSync(join(root, name));
  symlinkSync(join(root, 'a'), join(root, 'link'));
  const file = join(root, 'home/deep/trust.json');
  openTrustFile(file).record(projectFile(join(root, 'a')), true, 1);
  const trust = openTrustFile(file);
  const answer = (directory: string, sha256?: string): boolean | undefined =>
    trust.answerFor(projectFile(join(root, directory), sha256))?.trusted;
  expect([answer('a'), answer('link'), answer('a', 'b'), answer('a/b'), answer('c')]).toEqual([
    true,
    true,
    undefined,
    undefined,
    undefined,
  ]);
  trust.record(projectFile(join(root, 'a'), 'b'), false, 2);
  expect([answer('a'), answer('a', 'b'), trust.list().length]).toEqual([undefined, false, 1]);
  expect([trust.revoke(join(root, 'link')), trust.revoke(join(root, 'a')), trust.list()]).toEqual([true, false, []]);
});

test('the file is for the owner alone whatever the umask, and what is not an answer in it is none', () => {
  const root = folder();
  const path = join(root, 'trust.json');
  const before = process.umask(0);
  openTrustFile(path).record(projectFile(root), true, 1);
  process.umask(before);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  chmodSync(path, 0o644);
  openTrustFile(path).record(projectFile('/other'), true, 1);
  expect([statSync(path).mode & 0o777, openTrustFile(path).list().length]).toEqual([0o600, 2]);
  for (const text of [
    '',
    '{',
    '[]',
    '{"directories":1}',
    `{"directories":[null,{"directory":${JSON.stringify(root)},"sha256":"a","trusted":"yes","answered_at":1}]}`,
  ]) {
    writeFileSync(path, text);
    expect(openTrustFile(path).answerFor(projectFile(root))).toBe(null);
  }
});

test('content that could not be read is never taken for trusted', () => {
  const root = folder();
  const trust = openTrustFile(join(root, 'trust.json'));
  const unreadable: ProjectFile = { ...projectFile(root), content: { kind: 'unreadable', reason: 'x' } };
  trust.record(unreadable, true, 1);
  expect(trust.answerFor(unreadable)).toBe(null);
});

test('the question lists every setting that trust would let count, and no other, with nothing hidden in it', async () => {
  const project = await projectOf(
    '{"approval":"never","sandbox":"off","max_tool_turns":3,"base_url":"http://x","system_prompt":"a\\u202eb\\u001b[2J\\n\\u200bc","rules":{"allow":[{"tool":"bash","argv":["rm"]}]},"nonsense":1}',
  );
  const { result, shown } = await asked(project, '');
  expect(result).toBe('no');
  expect(shown.split('\n').filter((line) => line.startsWith('  '))).toEqual([
    '  approval = "never"',
    String.raw`  system_prompt = "a\u{202e}b\u001b[2J\n\u{200b}c"`,
    '  rules.allow = [{"tool":"bash","argv":["rm"]}]',
  ]);
  expect(shown).toMatch(/\(sha256 [0-9a-f]{64}\)[\s\S]*\[y\/N\] $/);
});

test.each([
  ['y', 'yes'],
  [' Yes ', 'yes'],
  ['', 'no'],
  ['n', 'no'],
  ['yy', 'no'],
  ['yes please', 'no'],
  ['j', 'no'],
  [null, 'unanswered'],
] as const)('the answer %j means %s', async (typed, wanted) => {
  expect((await asked(await projectOf('{"approval":"never"}'), typed)).result).toBe(wanted);
});

test('where there is nothing to trust, or too much to read, nothing is asked', async () => {
  for (const text of ['{}', '{"approval":"always","base_url":"http://x"}', '{"approval":', '{"nonsense":true}'])
    expect(trustQuestion(await projectOf(text))).toBe(null);
  const flood = await asked(
    await projectOf(JSON.stringify({ approval: 'never', system_prompt: 'x'.repeat(9000) })),
    'y',
  );
  expect([flood.result, flood.shown.includes('[y/N]')]).toEqual(['unanswered', false]);
});
