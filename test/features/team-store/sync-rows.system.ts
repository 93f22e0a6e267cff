import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { SessionRow, Store } from '../../../src/kernel/core/store.js';
import type { Received, StoredEvent, SyncRows } from '../../../src/features/team-store/team.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { clock, event, sessionRow, temporaryFolder } from '../../kernel/store/samples.js';
import { syncRows } from '../../../src/features/team-store/open-team.js';

const folder = temporaryFolder();
let files = 0;

async function machine() {
  const file = join(folder, `${++files}.db`);
  const { store, records, tables, ends } = await openSqliteStore({ file, now: clock });
  return { file, store, records, ends, rows: await syncRows(tables) };
}

async function written(store: Store, prompts: readonly string[], change: Partial<SessionRow> = {}) {
  const row = sessionRow(change);
  await store.createSession(row);
  for (const [index, content] of prompts.entries()) await store.append(row.id, event(index + 1, { content }));
  return row;
}

async function* paged(rows: SyncRows, id: string, after: number, limit = 2): AsyncGenerator<readonly StoredEvent[]> {
  for (let last = after; ;) {
    const page = await rows.events(id, last, limit);
    if (page.length === 0) return;
    last = page.at(-1)?.seq ?? last;
    yield page;
  }
}

/** What one machine would get of a session from a server that holds another one's. */
async function handed(from: SyncRows, id: string, change: Partial<Received> = {}): Promise<Received> {
  const after = change.after ?? { seq: 0, link: null };
  const here = await from.session(id);
  const row = here === null || here === 'removed' ? sessionRow({ id }) : here.row;
  return { row, owner: null, seen: null, after, pages: paged(from, id, after.seq), ...change };
}

const contents = async (store: Store, id: string): Promise<readonly (string | null)[]> =>
  (await store.load(id)).map(({ content }) => content);

test('a session with any text comes over whole, and its chain is that of the other machine', async () => {
  const [one, other] = [await machine(), await machine()];
  const texts = ['plain', 'a\u0000b', 'half a pair \ud83d', '\u{1f600}', 'x'.repeat(8 * 1024 * 1024), ''];
  const { id } = await written(one.store, texts);
  expect(await other.rows.receive(await handed(one.rows, id))).toEqual({ kind: 'stored', events: texts.length });
  expect(await other.store.load(id)).toEqual(await one.store.load(id));
  expect(await other.records.verify(id)).toEqual(await one.records.verify(id));
  expect(await other.records.verify(id)).toMatchObject({ events: texts.length, breaks: [] });
  expect(await other.rows.pending('', 10)).toEqual([]);
});

test('a session is pending until its last event and its title were pushed', async () => {
  const { store, rows } = await machine();
  const row = await written(store, ['a', 'b']);
  const pending = async () => (await rows.pending('', 10)).map(({ row: { id }, end }) => [id, end.seq]);
  expect(await pending()).toEqual([[row.id, 2]]);
  const link = await rows.link(row.id, 2);
  await rows.note(row.id, { pushed: { seq: 2, link }, owner: null, token: null }, row);
  expect(await pending()).toEqual([]);
  await store.update(row.id, { title: 'a "quoted"\ttitle \u0001 é' });
  expect(await pending()).toEqual([[row.id, 2]]);
  await rows.note(row.id, { pushed: { seq: 2, link }, owner: null, token: null }, (await store.session(row.id)) ?? row);
  expect(await pending()).toEqual([]);
  await store.append(row.id, event(3));
  expect(await pending()).toEqual([[row.id, 3]]);
  expect(await rows.pending(row.id, 10)).toEqual([]);
});

test('a session that went on in two places keeps both: the branch of this machine is a new session', async () => {
  const [one, other] = [await machine(), await machine()];
  const { id } = await written(one.store, ['a', 'b']);
  await other.rows.receive(await handed(one.rows, id));
  await one.store.append(id, event(3, { content: 'there' }));
  await other.store.append(id, event(3, { content: 'here' }));
  await other.store.append(id, event(4, { content: 'here, too' }));
  await other.ends.note({ sessionId: id, seq: 4, cwd: '/work/project' });
  const after = { seq: 2, link: await other.rows.link(id, 2) };
  const seen = { seq: 4, link: await other.rows.link(id, 4) };
  const branch = sessionRow({ title: 'ours' });
  const received = await handed(one.rows, id, { after, seen, branch });
  expect(await other.rows.receive(received)).toEqual({ kind: 'stored', events: 1 });
  expect(await contents(other.store, id)).toEqual(['a', 'b', 'there']);
  expect(await contents(other.store, branch.id)).toEqual(['a', 'b', 'here', 'here, too']);
  expect(await other.store.session(branch.id)).toMatchObject({ parentId: id, title: 'ours' });
  expect(await other.records.verify(null)).toMatchObject({ sessions: 2, events: 7, breaks: [] });
  expect(other.ends.list()).toEqual([]);
  expect((await other.rows.pending('', 10)).map(({ row }) => row.id)).toEqual([branch.id]);
});

test('nothing is taken while the session is in use, or when it went on meanwhile', async () => {
  const [one, other] = [await machine(), await machine()];
  const { id } = await written(one.store, ['a', 'b', 'c']);
  const first = await handed(one.rows, id);
  await other.rows.receive({ ...first, pages: paged(one.rows, id, 0, 1) });
  await one.store.append(id, event(4, { content: 'there' }));
  const seen = { seq: 3, link: await other.rows.link(id, 3) };
  const lease = await other.store.acquire(id);
  expect(await other.rows.receive(await handed(one.rows, id, { after: seen, seen }))).toEqual({ kind: 'in_use' });
  if (lease.held) await lease.release();
  await other.store.append(id, event(4, { content: 'here' }));
  expect(await other.rows.receive(await handed(one.rows, id, { after: seen, seen }))).toEqual({ kind: 'changed' });
  expect(await contents(other.store, id)).toEqual(['a', 'b', 'c', 'here']);
});

test.each<[string, (event: StoredEvent) => StoredEvent]>([
  ['another text', (stored) => ({ ...stored, content: 'forged' })],
  ['another link', (stored) => ({ ...stored, hash: Buffer.alloc(16) })],
  ['no link', (stored) => ({ ...stored, hash: null })],
  ['another place', (stored) => ({ ...stored, seq: stored.seq + 1 })],
  ['data that is not JSON', (stored) => ({ ...stored, dataJson: '{' })],
])('a forged event is not taken, nor anything with it: %s', async (_name, forge) => {
  const [one, other] = [await machine(), await machine()];
  const { id } = await written(one.store, ['a', 'b', 'c']);
  const honest = await one.rows.events(id, 0, 10);
  const forged = honest.map((stored) => (stored.seq === 2 ? forge(stored) : stored));
  async function* pages() {
    yield* [forged.slice(0, 1), forged.slice(1)];
  }
  const reception = await other.rows.receive(await handed(one.rows, id, { pages: pages() }));
  expect(reception.kind).toBe('broken');
  expect(await other.store.session(id)).toBeNull();
  expect(await other.rows.receive(await handed(one.rows, id))).toMatchObject({ kind: 'stored', events: 3 });
});

test('a redaction is noted here, and follows one from elsewhere without being noted again', async () => {
  const [one, other] = [await machine(), await machine()];
  const { id } = await written(one.store, ['a', 'secret', 'c']);
  await other.rows.receive(await handed(one.rows, id));
  expect(await one.rows.redactions()).toEqual([]);
  await one.records.redact(id, 2, { content: '[redacted]', data: null });
  const redactions = await one.rows.redactions();
  expect(redactions).toMatchObject([{ sessionId: id, event: { seq: 2, content: '[redacted]' } }]);
  await one.rows.redactionsSent(redactions);
  expect(await one.rows.redactions()).toEqual([]);
  expect([await other.rows.redact(redactions), await other.rows.redact(redactions)]).toEqual([1, 0]);
  expect(await contents(other.store, id)).toEqual(['a', '[redacted]', 'c']);
  expect(await other.rows.redactions()).toEqual([]);
  expect(await other.records.verify(id)).toMatchObject({ redacted: 1, breaks: [] });
});

test('a removed session is remembered', async () => {
  const { store, rows } = await machine();
  const row = await written(store, ['a']);
  expect(await rows.session(row.id)).toMatchObject({ end: { seq: 1 }, state: null, rowPushed: false });
  await rows.note(row.id, { pushed: { seq: 1, link: await rows.link(row.id, 1) }, owner: 'alice', token: 't' }, row);
  expect(await rows.session(row.id)).toMatchObject({ rowPushed: true, state: { owner: 'alice', token: 't' } });
  await store.remove(row.id);
  expect([await rows.session(row.id), await rows.session('0')]).toEqual(['removed', null]);
});

test('contents come without those that hold a secret', async () => {
  const { rows, store } = await machine();
  const bytes = Buffer.from('contents '.repeat(500));
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  await rows.keepBlob(sha256, bytes);
  expect(Buffer.from((await rows.plainBlob(sha256)) ?? []).equals(bytes)).toBe(true);
  await store.close();
  const sealed = await openSqliteStore({
    file: join(folder, `${++files}.db`),
    now: clock,
    seal: { key: () => Buffer.alloc(32, 7), holdsSecret: () => true },
  });
  const row = await written(sealed.store, []);
  await sealed.store.append(row.id, event(1), [{ sha256, bytes }]);
  expect(await (await syncRows(sealed.tables)).plainBlob(sha256)).toBeNull();
  expect(await sealed.store.blob(sha256)).not.toBeNull();
});

test('a directory goes on with the newest session of its own, whenever that came here', async () => {
  const [one, other] = [await machine(), await machine()];
  const older = await written(one.store, ['older']);
  const own = await written(other.store, ['own']);
  const theirs = await written(one.store, ['theirs']);
  await other.rows.receive(await handed(one.rows, older.id));
  expect((await other.store.newest(own.cwd))?.id).toBe(own.id);
  await other.rows.receive(await handed(one.rows, theirs.id, { owner: 'alice' }));
  expect((await other.store.newest(own.cwd))?.id).toBe(own.id);
  expect((await other.store.list(9)).map(({ id }) => id)).toEqual([theirs.id, own.id, older.id]);
});
