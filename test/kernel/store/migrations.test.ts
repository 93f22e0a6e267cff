import { createHash } from 'node:crypto';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import type { Event } from '../../../src/kernel/core/event.js';
import { ownIdentity } from '../../../src/kernel/store/lease.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { answered, clock, event, sessionRow, temporaryFolder } from './samples.js';

const folder = temporaryFolder();

/** What the fifth version had and those after it have not, in its own words, and without what came later. */
const fifthVersion = `
CREATE INDEX sessions_title ON sessions(title COLLATE NOCASE) WHERE title IS NOT NULL;
CREATE INDEX sessions_dir_id ON sessions(dir_id) WHERE dir_id IS NOT NULL;
DROP INDEX events_cost;
CREATE INDEX events_cost ON events(session_id, json_extract(data_json, '$.cost_usd')) WHERE kind = 'usage';
DROP TABLE leases;
DROP TABLE kept_messages;
CREATE TABLE leases(
     session_id TEXT PRIMARY KEY, token TEXT NOT NULL, pid INTEGER NOT NULL, host TEXT NOT NULL,
     machine TEXT, started TEXT, since INTEGER NOT NULL);
DROP TRIGGER totals_deleted;
DROP TRIGGER totals_changed;
DROP TABLE turn_totals;
DROP TABLE request_totals;
DROP TABLE call_totals;
DROP TABLE totals_parts;
DROP TABLE totals_queue;
DROP TABLE totals_state;
DROP INDEX events_limits;
ALTER TABLE search_state DROP COLUMN gap_from;
ALTER TABLE search_state DROP COLUMN gap_to;
ALTER TABLE search_state DROP COLUMN claimed_by;
ALTER TABLE search_state DROP COLUMN claimed_to;
DROP TABLE events_fts;
CREATE VIRTUAL TABLE events_fts USING fts5(text, content='', contentless_delete=1,
  tokenize='unicode61 remove_diacritics 2');
INSERT INTO events_fts(rowid, text) SELECT id, text FROM search_text;
UPDATE search_state SET indexed_to = (SELECT max(id) FROM events);
ALTER TABLE sessions DROP COLUMN api;
ALTER TABLE sessions DROP COLUMN base_url;
ALTER TABLE sessions DROP COLUMN moves;
DROP TRIGGER attachment_refs_made;
DROP VIEW v_attachments;
DROP INDEX sessions_agents;
DROP INDEX events_agent_cost;
DROP INDEX events_found;
DROP INDEX events_changes;
DROP INDEX events_counted;
DROP VIEW v_tool_calls;
DROP VIEW v_requests;
DROP VIEW v_sessions;
CREATE VIEW v_tool_calls AS SELECT 1;
CREATE VIEW v_requests AS SELECT 1;
CREATE VIEW v_sessions AS SELECT 1;
ALTER TABLE sessions DROP COLUMN kind;
ALTER TABLE sessions DROP COLUMN parent_call_id;
PRAGMA user_version = 5;`;

const usage = {
  response_id: 'r2',
  provider: 'openai',
  model: 'gpt-5.2',
  input_tokens: 8,
  output_tokens: 0,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  cost_usd: 0.25,
};
const events = [
  event(1, { content: 'find the pink flamingo' }),
  event(2, { kind: 'usage', content: null, data: usage }),
  event(3, { kind: 'assistant', content: 'no flamingo, pink or not', data: { response_id: 'r2' } }),
];

/** Rows as that version wrote them: links of 32 bytes. Gives the id of a session with `events` that this very process
 * holds. */
async function madeByFifth(file: string): Promise<string> {
  const { store } = await openSqliteStore({ file, now: clock });
  const row = sessionRow({ title: 'Birds', directoryId: 'here' });
  await store.createSession(row);
  await store.close();
  const db = new Database(file);
  const insert = db.prepare(
    'INSERT INTO events (session_id, seq, kind, content, data_json, created_at, hash) VALUES (?, ?, ?, ?, ?, ?, ?)',
  );
  const digest = (text: string | null): string =>
    text === null ? '-' : createHash('sha256').update(text).digest('hex');
  let last = Buffer.alloc(0);
  for (const { seq, kind, content, data, createdAt } of events) {
    const json = data === null ? null : JSON.stringify(data);
    last = createHash('sha256')
      .update(last)
      .update([seq, kind, createdAt, digest(content), digest(json), ''].join('\n'))
      .digest();
    insert.run(row.id, seq, kind, content, json, createdAt, last);
  }
  db.exec(fifthVersion);
  const me = ownIdentity();
  db.prepare('INSERT INTO leases VALUES (?, ?, ?, ?, ?, ?, ?)').run(
    row.id,
    'token',
    me.pid,
    me.host,
    me.machine,
    me.started,
    clock(),
  );
  db.close();
  return row.id;
}

test('a database of the fifth version loses nothing: events, chain, costs, search, redaction, leases', async () => {
  const file = join(folder, 'fifth.db');
  const id = await madeByFifth(file);
  const { store, records, notices } = await openSqliteStore({ file, now: clock });
  expect([notices, await store.load(id)]).toEqual([[], events]);
  expect(await store.acquire(id)).toMatchObject({ held: false, holder: { pid: process.pid } });
  expect(await store.find('birds')).toMatchObject({ found: 'one', session: { id } });
  expect(await store.newestOfDirectory('here')).toMatchObject({ id });
  expect(await store.list(5)).toMatchObject([{ id, events: 3, costUsd: 0.25 }]);
  const added: Event = event(4, { kind: 'usage', content: null, data: { ...usage, response_id: 'r4', cost_usd: 0.5 } });
  await store.append(id, added);
  const fork = sessionRow();
  await store.fork(id, fork);
  await store.append(fork.id, event(5, { content: 'a pink flamingo at last' }));
  expect(await store.list(5)).toMatchObject([
    { id: fork.id, events: 5, costUsd: null },
    { id, events: 4, costUsd: 0.75 },
  ]);
  expect((await store.search('"pink flamingo"', 9)).map((hit) => [hit.sessionId === id, hit.seq])).toEqual([
    [false, 5],
    [false, 1],
    [true, 1],
  ]);

  expect(await records.redact(id, 3, { content: '[redacted]', data: null })).toBe(2);
  expect(await records.verify(null)).toMatchObject({ sessions: 2, events: 9, redacted: 2, breaks: [] });
  expect(
    await answered(
      records,
      `SELECT seq, response_id, model, input_tokens, output_tokens, cost_usd
       FROM v_requests WHERE session_id = ? ORDER BY seq`,
      [id],
    ),
  ).toEqual([
    { seq: 2, response_id: 'r2', model: 'gpt-5.2', input_tokens: 8, output_tokens: 0, cost_usd: 0.25 },
    { seq: 4, response_id: 'r4', model: 'gpt-5.2', input_tokens: 8, output_tokens: 0, cost_usd: 0.5 },
  ]);
  expect(
    await answered(records, 'SELECT seq, length(hash) AS bytes FROM events WHERE session_id = ? ORDER BY seq', [id]),
  ).toEqual([1, 2, 3, 4].map((seq) => ({ seq, bytes: seq === 4 ? 16 : 32 })));
  await store.close();
});

test.each([
  [0, 0],
  [70, 1],
])('%i MB of an old database: %i messages before it is updated, none afterwards', async (megabytes, count) => {
  const file = join(folder, `large-${megabytes}.db`);
  await madeByFifth(file);
  const db = new Database(file);
  const add = db.prepare("INSERT INTO blobs VALUES (?, 1000000, 'raw', zeroblob(1000000))");
  for (let index = 0; index < megabytes; index++) add.run(String(index));
  db.close();
  for (const expected of [count, 0]) {
    const messages: string[] = [];
    const { store } = await openSqliteStore({ file, now: clock, updating: (message) => messages.push(message) });
    await store.close();
    expect(messages.length).toBe(expected);
    for (const message of messages)
      expect(message).toMatch(/^Updating the session database \(70 MB\) for this version, \d+ steps …$/);
  }
});
