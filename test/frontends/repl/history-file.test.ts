import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createHistoryFile, type HistoryFile, unwritten } from '../../../src/frontends/repl/saved-input.js';
import { ownIdentity, type ProcessIdentity } from '../../../src/kernel/store/lease.js';

interface Opened {
  readonly path: string;
  readonly drafts: string;
  readonly logged: unknown[];
  readonly history: HistoryFile;
  /** Opens the same files as another process does. */
  again(cwd?: string, me?: ProcessIdentity): HistoryFile;
}

function open(): Opened {
  const folder = mkdtempSync(join(tmpdir(), 'agent-history-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  const path = join(folder, 'kept', 'history');
  const logged: unknown[] = [];
  const again: Opened['again'] = (cwd = '/project', me = ended) =>
    createHistoryFile({
      path,
      cwd,
      log: (entry) => {
        logged.push(entry.at);
      },
      mask: (text) => text.replace('secret', '***'),
      me,
    });
  return { path, drafts: `${path}.drafts`, logged, history: again(), again };
}

/** This test, and a process of this machine that has ended. */
const living = ownIdentity();
const ended: ProcessIdentity = { ...living, pid: spawnSync('true').pid };

const textOf = async (history: HistoryFile): Promise<string | undefined> => (await history.loadDraft())?.text;

test('inputs and the draft come back with what is secret masked, in files that only the owner reads', async () => {
  const { path, drafts, history, again, logged } = open();
  expect([await history.load(), await history.loadDraft()]).toEqual([[], null]);
  await history.append('one\nline');
  await history.append('the secret');
  await history.saveDraft('a secret draft');
  expect([await history.load(), await textOf(again())]).toEqual([['one\nline', 'the ***'], 'a *** draft']);
  const files = readdirSync(drafts).map((name) => join(drafts, name));
  expect([path, ...files].map((file) => statSync(file).mode & 0o777)).toEqual([0o600, 0o600]);
  expect(logged).toEqual([]);
});

test('drafts are saved in order, and an empty one removes the file', async () => {
  const { history, again } = open();
  for (const text of ['a', 'ab', 'abc']) void history.saveDraft(text);
  await history.settled();
  const next = again();
  expect(await textOf(next)).toBe('abc');
  await next.saveDraft('');
  expect(await textOf(again())).toBeUndefined();
});

test('a draft is offered in its directory alone, once its process has ended, and to one process', async () => {
  const { history, again } = open();
  const running = again('/project', living);
  await running.saveDraft('of a running process');
  await again('/elsewhere').saveDraft('of another directory');
  expect(await textOf(again())).toBeUndefined();
  await history.saveDraft('of this directory');
  const [one, other] = [again('/project', living), again('/project', living)];
  const claimed = await Promise.all([textOf(one), textOf(other)]);
  expect(claimed.filter((text) => text !== undefined)).toEqual(['of this directory']);
  await Promise.all([one.saveDraft(''), other.saveDraft('')]);
  expect(await textOf(again('/elsewhere'))).toBe('of another directory');
});

test('clearing a draft leaves that of another process of the directory', async () => {
  const { again } = open();
  const [one, other] = [again(), again()];
  await one.saveDraft('one');
  await other.saveDraft('other');
  await one.saveDraft('');
  expect(await textOf(again())).toBe('other');
});

test('a number that another process has now is not an owner', async () => {
  const { again } = open();
  await again('/project', { ...living, started: '1' }).saveDraft('kept');
  expect(await textOf(again())).toBe('kept');
});

test('drafts of earlier versions, stale ones and damaged ones are removed; a recent one of another machine is kept', async () => {
  const { path, drafts, again } = open();
  await again().saveDraft('stale');
  await again('/project', { ...living, host: 'elsewhere', machine: 'boot ns' }).saveDraft('of another machine');
  writeFileSync(join(drafts, 'damaged'), '{');
  for (const old of ['', '.0123abcd']) writeFileSync(`${path}.draft${old}`, '"typed anywhere"');
  const long = new Date(Date.now() - 31 * 24 * 60 * 60 * 1000);
  for (const name of readdirSync(drafts))
    if (!readFileSync(join(drafts, name), 'utf8').includes('another')) utimesSync(join(drafts, name), long, long);
  expect(await textOf(again('/project', living))).toBeUndefined();
  const kept = readdirSync(drafts).map((name) => readFileSync(join(drafts, name), 'utf8'));
  expect([kept.length, kept[0]?.includes('of another machine')]).toEqual([1, true]);
  expect(
    readdirSync(dirname(path))
      .filter((name) => name.includes('.draft'))
      .toSorted(),
  ).toEqual(['history.drafts']);
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
