import { existsSync, readFileSync, statSync } from 'node:fs';
import { afterEach, expect, test } from 'vitest';
import type { Event, EventDraft } from '../../../src/kernel/core/event.js';
import { createTranscripts } from '../../../src/kernel/tools/transcripts.js';

const transcripts = createTranscripts('/work');
afterEach(transcripts.close);

const drafts: readonly EventDraft[] = [
  { kind: 'system', content: 'You are', data: null },
  { kind: 'user', content: 'from the start', data: { note: true } },
  { kind: 'user', content: 'read it', data: null },
  {
    kind: 'usage',
    content: null,
    data: {
      response_id: 'r4',
      provider: 'p',
      model: 'm',
      input_tokens: 5,
      output_tokens: 2,
      cache_read_tokens: 3,
      cache_write_tokens: 1,
      cost_usd: null,
    },
  },
  {
    kind: 'assistant',
    content: 'I look.',
    data: { response_id: 'r4', provider: 'p', api: 'a', model: 'm', stop: 'tool' },
  },
  {
    kind: 'tool_call',
    content: 'file_read(a.ts)',
    data: {
      id: 'c1',
      type: 'function',
      function: { name: 'file_read', arguments: '{"path":"a.ts"}' },
      response_id: 'r4',
    },
  },
  { kind: 'tool_started', content: null, data: { tool_call_id: 'c1' } },
  {
    kind: 'tool_result',
    content: 'read',
    data: {
      tool_call_id: 'c1',
      name: 'file_read',
      output: '{"error":"gone","code":"not_found"}',
      success: false,
      duration_ms: 1,
    },
  },
  {
    kind: 'compaction',
    content: 'Summary.',
    data: { from_seq: 2, to_seq: 8, trigger: 'auto', tokens_before: 9, tokens_after: 1 },
  },
];
const events: readonly Event[] = drafts.map((draft, index) => ({ ...draft, seq: index + 1, createdAt: 1000 }));

const read = (path: string): readonly Readonly<Record<string, unknown>>[] =>
  readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);

test('a conversation has the lines that readers of such transcripts expect, each pointing to the one before', () => {
  const path = transcripts.write('s1', events);
  const lines = read(path);
  const usage = {
    input_tokens: 5,
    cache_creation_input_tokens: 1,
    cache_read_input_tokens: 3,
    output_tokens: 2,
  };
  const answer = { id: 'r4', type: 'message', role: 'assistant', model: 'm', stop_sequence: null, usage };
  const call = { type: 'tool_use', id: 'c1', name: 'Read', input: { file_path: '/work/a.ts' } };
  const result = { tool_use_id: 'c1', type: 'tool_result', content: 'gone', is_error: true };
  expect(lines.map(({ type, message }) => ({ type, message }))).toEqual([
    { type: 'user', message: { role: 'user', content: 'from the start' } },
    { type: 'user', message: { role: 'user', content: 'read it' } },
    {
      type: 'assistant',
      message: { ...answer, content: [{ type: 'text', text: 'I look.' }], stop_reason: 'tool_use' },
    },
    { type: 'assistant', message: { ...answer, content: [call], stop_reason: 'tool_use' } },
    { type: 'user', message: { role: 'user', content: [result] } },
    { type: 'user', message: { role: 'user', content: 'Summary.' } },
  ]);
  expect(lines.map(({ parentUuid }) => parentUuid)).toEqual([null, ...lines.slice(0, -1).map(({ uuid }) => uuid)]);
  expect(lines[0]).toMatchObject({
    isMeta: true,
    isSidechain: false,
    sessionId: 's1',
    cwd: '/work',
    timestamp: '1970-01-01T00:00:01.000Z',
  });
  expect(lines.at(-1)).toMatchObject({ isCompactSummary: true });
});

test('a file grows by what is new, is for its owner alone, and goes with the program', () => {
  const path = transcripts.write('s1', events.slice(0, 3));
  const before = readFileSync(path, 'utf8');
  expect(transcripts.write('s1', events)).toBe(path);
  expect(readFileSync(path, 'utf8').startsWith(before)).toBe(true);
  expect(read(path)).toHaveLength(6);
  expect(read(transcripts.write('s1', events))).toHaveLength(6);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  transcripts.close();
  expect(existsSync(path)).toBe(false);
});
