import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createHistoryFile, type HistoryFile, unwritten } from '../../../src/cli/repl/saved-input.js';

function open(): { readonly path: string; readonly logged: unknown[]; readonly history: HistoryFile } {
  const folder = mkdtempSync(join(tmpdir(), 'agent-history-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  const path = join(folder, 'kept', 'history');
  const logged: unknown[] = [];
  const history = createHistoryFile(
    path,
    (entry) => {
      logged.push(entry.at);
    },
    (text) => text.replace('secret', '***'),
  );
  return { path, logged, history };
}

test('inputs and the draft come back with what is secret masked, in files that only the owner reads', async () => {
  const { path, history, logged } = open();
  expect([await history.load(), await history.loadDraft()]).toEqual([[], null]);
  await history.append('one\nline');
  await history.append('the secret');
  await history.saveDraft('a secret draft');
  expect([await history.load(), (await history.loadDraft())?.text]).toEqual([['one\nline', 'the ***'], 'a *** draft']);
  expect([path, `${path}.draft`].map((file) => statSync(file).mode & 0o777)).toEqual([0o600, 0o600]);
  expect(logged).toEqual([]);
});

test('drafts are saved in order, and an empty one removes the file', async () => {
  const { history } = open();
  for (const text of ['a', 'ab', 'abc']) void history.saveDraft(text);
  await history.settled();
  expect((await history.loadDraft())?.text).toBe('abc');
  await history.saveDraft('');
  expect(await history.loadDraft()).toBeNull();
});

test('damaged lines are left out, and the newest thousand inputs are kept in mind', async () => {
  const { path, history } = open();
  await history.append('first');
  writeFileSync(path, ['{', '7', '"whole"', '"cut'].join('\n'));
  expect(await history.load()).toEqual(['whole']);
  writeFileSync(path, `${Array.from({ length: 1200 }, (_, index) => `"${index}"`).join('\n')}\n`);
  const loaded = await history.load();
  expect([loaded.length, loaded[0], loaded.at(-1)]).toEqual([1000, '200', '1199']);
});

test('a history that cannot be written goes to the log, and the program goes on', async () => {
  const { path, history, logged } = open();
  writeFileSync(join(path, '..', '..', 'kept'), 'a file where the folder belongs');
  await history.append('lost');
  await history.saveDraft('lost');
  expect([logged, await history.load()]).toEqual([['history', 'history'], []]);
});

test('where nothing may be kept, past inputs are read and none is added', async () => {
  const { path, history } = open();
  await history.append('before');
  const silent = unwritten(history);
  await silent.append('now');
  await silent.saveDraft('now');
  expect([await silent.load(), await silent.loadDraft(), readFileSync(path, 'utf8')]).toEqual([
    ['before'],
    null,
    '"before"\n',
  ]);
});
