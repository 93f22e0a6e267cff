import { join } from 'node:path';
import { expect, test } from 'vitest';
import { connect } from '../../../src/kernel/store/connection.js';
import { loadDriver } from '../../../src/kernel/store/driver.js';
import { insertEvent, readEvents } from '../../../src/kernel/store/event-rows.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { clock, event, sessionRow, temporaryFolder } from './samples.js';

const folder = temporaryFolder();

test('a long text comes back as it was, and SQLite checks the JSON of every row', async () => {
  const file = join(folder, 'agent.db');
  const { store } = await openSqliteStore({ file, now: clock });
  const row = sessionRow();
  await store.createSession(row);
  await store.close();

  const connection = connect(await loadDriver(), file);
  const data = {
    tool_call_id: 'c1',
    output: '{"output":"é\\n\\"x"}'.repeat(20_000),
    lone: `\ud800${'y'.repeat(70_000)}`,
  };
  insertEvent(connection, row.id, event(1, { kind: 'tool_result', data }), 'now');
  insertEvent(connection, row.id, event(2, { kind: 'tool_result', data }), 'later');
  expect(readEvents(connection, row.id).events.map((item) => item.data)).toEqual(
    [1, 2].map(() => ({ ...data, lone: `\ufffd${'y'.repeat(70_000)}` })),
  );
  const broken = (): unknown =>
    connection
      .sql('INSERT INTO events (session_id, seq, kind, data_json, created_at) VALUES (?, 3, ?, ?, 0)')
      .run(row.id, 'user', '{');
  expect(broken).toThrow(/CHECK constraint failed/);
  connection.db.close();
});
