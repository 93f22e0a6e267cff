import { expect, test as anyTest } from 'vitest';
import { event, sessionRow } from '../../kernel/store/samples.js';
import { share } from './samples-team.js';
import { openAs, serverOfFile } from './server.js';

const { installed, server } = serverOfFile(2);
const test = installed ? anyTest : anyTest.skip;

const insert = `INSERT INTO agent.events(session_id, seq, kind, content, content_json, data_json, created_at)
  VALUES ($1, $2, 'user', $3, $4, $5, 1)`;

test('the server takes no event whose JSON is broken or nested without end, whoever writes it', async () => {
  const database = await server().database();
  const team = openAs(server(), database, 'alice');
  const row = sessionRow();
  await share(team, row, [event(1, { content: 'a \0 and half a pair \ud800', data: { a: '\ud800\0' } })]);
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  const broken: readonly (readonly [content: string, isJson: boolean, data: string | null])[] = [
    ['x', false, '{"a":'],
    ['"x', true, '{}'],
    ['x', false, deep],
    ['x', false, ''],
  ];
  for (const [content, isJson, data] of broken)
    await expect(server().sql(database, insert, [row.id, 2, content, isJson, data])).rejects.toThrow(/events_json/);
  await server().sql(database, insert, [row.id, 2, '"x"', true, '{"a":1}']);
  await server().sql(database, insert, [row.id, 3, null, false, null]);
  expect(await team.log.events(row.id, 0, 100)).toHaveLength(3);
  await team.close();
});

test('of older tables the program says that `agent db init` is needed', async () => {
  const database = await server().database();
  const team = openAs(server(), database, 'alice');
  await server().sql(
    database,
    'DELETE FROM agent.schema_version WHERE version = (SELECT max(version) FROM agent.schema_version)',
  );
  await expect(team.facts()).rejects.toMatchObject({
    code: 'older',
    message: expect.stringContaining('tables of an older version'),
    hint: expect.stringContaining('agent db init'),
  });
  await team.close();
});
