import { expect, test } from 'vitest';
import { noFilters } from '../../../src/kernel/core/files/search-filters.js';
import { searchOf } from '../../../src/kernel/store/search-query.js';
import type { QueryRows } from '../../../src/features/team-store/server-connection.js';
import { findHits } from '../../../src/features/team-store/team-search.js';

test('an event whose JSON is broken is left out of a search of the team, and counted', async () => {
  const row = { kind: 'user', content: 'zebra', content_json: false, data_json: '{}', created_at: 1, session_id: 's' };
  const rows = [
    { ...row, seq: 5, data_json: '{"a":' },
    { ...row, seq: 4, content: '"zebra', content_json: true },
    { ...row, seq: 3, data_json: `${'['.repeat(100_000)}${']'.repeat(100_000)}` },
    { ...row, seq: 2 },
  ].map((item) => ({ ...item, cwd: '/', title: null, owner: 'alice' }));
  const read = (async () => await Promise.resolve(rows)) as unknown as QueryRows;
  const query = searchOf('zebra', noFilters);
  if (query === null) throw new Error('no words');
  let unreadable = 0;
  const hits = await findHits(read, { query, scope: {}, filters: noFilters }, 20, (count) => {
    unreadable = count;
  });
  expect([hits.map(({ seq }) => seq), unreadable]).toEqual([[2], 3]);
});
