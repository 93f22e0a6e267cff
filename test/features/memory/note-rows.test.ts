import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { maxNotes, type Note, type NoteDraft, type Notes } from '../../../src/features/memory/notes.js';
import { createMemoryNotes } from '../../../src/features/memory/memory-notes.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { clock, sessionRow, temporaryFolder, tickingClock } from '../../kernel/store/samples.js';
import { noteTableSet } from '../../../src/features/memory/note-tables.js';

const folder = temporaryFolder();
let files = 0;
const stores: readonly (readonly [string, () => Promise<Notes>])[] = [
  ['memory', async () => createMemoryNotes(tickingClock())],
  [
    'SQLite',
    async () =>
      (await openSqliteStore({ file: join(folder, `${++files}.db`), now: tickingClock() })).tables(noteTableSet),
  ],
];

function draft(content: string, change: Partial<NoteDraft> = {}): NoteDraft {
  return { project: 'here', content, tags: [], trust: 'model', approved: true, ...change };
}

async function saved(notes: Notes, content: string, change: Partial<NoteDraft> = {}): Promise<Note> {
  const done = await notes.save(draft(content, change));
  if (!done.saved) throw new Error(done.why);
  return done.note;
}

const texts = (notes: readonly Note[]): readonly string[] => notes.map(({ content }) => content);

describe.each(stores)('the notes of the %s store', (_name, open) => {
  test('are given back as they were saved, pinned ones first, then the newest, without those of other projects', async () => {
    const notes = await open();
    expect([await notes.list(), await notes.note(1), await notes.search('x', 5, 'here')]).toEqual([[], null, []]);
    const first = await saved(notes, 'über 🎉\nline two', {
      tags: ['a', 'b c'],
      trust: 'tool',
      approved: false,
      sessionId: 's',
      seq: 7,
    });
    expect(first).toEqual({
      id: 1,
      project: 'here',
      content: 'über 🎉\nline two',
      tags: ['a', 'b c'],
      trust: 'tool',
      approved: false,
      pinned: false,
      archived: false,
      sessionId: 's',
      seq: 7,
      createdAt: first.createdAt,
      updatedAt: first.createdAt,
    });
    await saved(notes, 'pinned', { pinned: true });
    await saved(notes, 'elsewhere', { project: 'there' });
    await saved(notes, 'everywhere', { project: null });
    expect(texts(await notes.list({ project: 'here' }))).toEqual(['pinned', 'everywhere', 'über 🎉\nline two']);
    expect(texts(await notes.list())).toEqual(['pinned', 'everywhere', 'elsewhere', 'über 🎉\nline two']);
    expect(await notes.note(1)).toEqual(first);
  });

  test('are found by words, whatever their endings, case and accents; the better match comes first', async () => {
    const notes = await open();
    await saved(notes, 'The deploy runs from branch release.');
    await saved(notes, 'Deploys need a café and a release.');
    await saved(notes, 'Nothing of it', { tags: ['Deploying'] });
    await saved(notes, 'deploy elsewhere', { project: 'there' });
    await saved(notes, 'deploy everywhere', { project: null });
    await saved(notes, 'unrelated');
    const found = async (text: string, limit = 9): Promise<readonly string[]> =>
      texts(await notes.search(text, limit, 'here'));
    expect((await found('RELEASES cafe')).at(0)).toBe('Deploys need a café and a release.');
    expect((await found('deployed')).toSorted()).toEqual([
      'Deploys need a café and a release.',
      'Nothing of it',
      'The deploy runs from branch release.',
      'deploy everywhere',
    ]);
    expect(await found('deploy', 2)).toHaveLength(2);
    expect(await found('" OR * NEAR(')).toEqual([]);
    expect(await found('elsewhere')).toEqual([]);
  });

  test('can be changed, archived, brought back, replaced and removed, and are found as they are then', async () => {
    const notes = await open();
    const { id } = await saved(notes, 'the port is 8080');
    expect(await notes.change(id, { content: 'the port is 9090', tags: ['net'], pinned: true })).toMatchObject({
      saved: true,
      note: { id, content: 'the port is 9090', tags: ['net'], pinned: true, approved: true },
    });
    expect(texts(await notes.search('8080', 5, 'here'))).toEqual([]);
    expect(texts(await notes.search('9090', 5, 'here'))).toEqual(['the port is 9090']);

    const newer = await saved(notes, 'the port is 7070', { replaces: id });
    expect(newer.id).toBe(2);
    expect(texts(await notes.list({ project: 'here' }))).toEqual(['the port is 7070']);
    expect(await notes.list({ archived: true })).toMatchObject([{ id, archived: true, pinned: false }]);
    expect(texts(await notes.search('port', 5, 'here'))).toEqual(['the port is 7070']);
    expect(await notes.save(draft('again', { replaces: id }))).toEqual({ saved: false, why: 'unknown' });
    expect(await notes.save(draft('again', { replaces: 99 }))).toEqual({ saved: false, why: 'unknown' });

    await notes.change(newer.id, { archived: true });
    expect(await notes.list()).toEqual([]);
    expect(await notes.change(newer.id, { archived: false })).toMatchObject({ saved: true, note: { archived: false } });
    expect(await notes.remove(newer.id)).toBe(true);
    expect(await notes.remove(newer.id)).toBe(false);
    expect(await notes.change(newer.id, { pinned: true })).toEqual({ saved: false, why: 'unknown' });
    expect([await notes.search('port', 5, 'here'), await notes.list()]).toEqual([[], []]);
    expect((await saved(notes, 'next')).id).toBe(3);
  });

  test(`are at most ${maxNotes} of a scope; one may still take another's place`, async () => {
    const notes = await open();
    for (let n = 1; n <= maxNotes; n++) await saved(notes, `note ${n}`);
    expect(await notes.save(draft('one more'))).toEqual({ saved: false, why: 'full' });
    expect((await notes.list()).length).toBe(maxNotes);
    await saved(notes, 'of all projects', { project: null });
    expect(await notes.save(draft('other', { project: null, replaces: 7 }))).toMatchObject({ saved: true });
    await saved(notes, 'now there is room');
    expect(await notes.save(draft('one more'))).toEqual({ saved: false, why: 'full' });
    await saved(notes, 'in the place of 8', { replaces: 8 });
    expect(await notes.change(8, { archived: false })).toEqual({ saved: false, why: 'full' });
  });
});

test('notes are in the database of the sessions, whose tables the first note makes', async () => {
  const file = join(folder, 'lasting.db');
  const first = await openSqliteStore({ file, now: clock });
  await first.store.createSession(sessionRow());
  expect((await answerOf(first)).includes('notes')).toBe(false);
  await saved(await first.tables(noteTableSet), 'two ports');
  expect((await answerOf(first)).includes('notes')).toBe(true);
  await first.store.close();
  const second = await openSqliteStore({ file, now: clock });
  expect(texts(await (await second.tables(noteTableSet)).search('port', 5, 'here'))).toEqual(['two ports']);
  await second.store.close();
});

async function answerOf({ records }: Awaited<ReturnType<typeof openSqliteStore>>): Promise<readonly unknown[]> {
  const answer = await records.ask?.("SELECT name FROM sqlite_schema WHERE type = 'table'");
  const names: unknown[] = [];
  for await (const row of answer?.rows ?? []) names.push(row[0]);
  return names;
}
