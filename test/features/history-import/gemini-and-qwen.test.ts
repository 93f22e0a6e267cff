import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { geminiCli } from '../../../src/features/history-import/gemini.js';
import { qwenCode } from '../../../src/features/history-import/qwen.js';
import { dropped, homeWith, readAll, told } from './recorded-home.js';

const chat = '.gemini/tmp/shop/chats/session-2026-11-22T10-00-aaaa.jsonl';
const header = { sessionId: 'g-1', projectHash: 'x', startTime: '2026-11-22T10:00:00.000Z', kind: 'main' };

let clock = 0;
function stamp(): { readonly timestamp: string } {
  return { timestamp: new Date(Date.UTC(2026, 10, 22, 10) + ++clock * 1000).toISOString() };
}

const context = {
  id: 'c',
  ...stamp(),
  type: 'user',
  content: [{ text: '<session_context>\nToday\n</session_context>' }],
};
const typed = (id: string, text: string): object => ({ id, ...stamp(), type: 'user', content: [{ text }] });
const answered = (id: string, content: unknown, more: object = {}): object => ({
  id,
  ...stamp(),
  type: 'gemini',
  model: 'gemini-2.5-pro',
  content,
  ...more,
});
const response = (id: string, output: string): object => ({
  functionResponse: { id, name: 'read_file', response: { output } },
});
const called = (id: string, output: string | null): object => ({
  id,
  name: 'read_file',
  args: { file_path: 'a' },
  status: 'success',
  ...(output === null ? {} : { result: [response(id, output)] }),
});

function onlyGemini(lines: readonly (object | string)[]) {
  const [conversation] = readAll(geminiCli, homeWith({ [chat]: lines }));
  if (!conversation) throw new Error('there is no conversation');
  return conversation;
}

test('a message of Gemini CLI that is written again is taken in its last form and in its first place', () => {
  const read = onlyGemini([
    header,
    { $set: { messages: [context] } },
    typed('u1', 'Look'),
    answered('a1', 'I look.', { thoughts: [{ subject: 'Thinking' }] }),
    typed('u2', 'Meanwhile'),
    answered('a1', 'I look.', { thoughts: [{ subject: 'Thinking' }], toolCalls: [called('r1', 'contents')] }),
    { id: 'u3', ...stamp(), type: 'user', content: [response('r1', 'contents')] },
    { id: 'i1', ...stamp(), type: 'info', content: 'Update available' },
    answered('a2', 'Done.'),
  ]);
  expect(told(read)).toEqual(['Look', ['I look.', 'read_file: {"output":"contents"}'], 'Meanwhile', ['Done.']]);
  expect(dropped(read)).toEqual({ contexts: 1, reasoning: 1, notices: 1 });
});

test('the copies that a resume of Gemini CLI makes are taken only where they are not known yet', () => {
  const copies = [
    context,
    typed('u1', 'Look'),
    answered('a1', [
      { text: 'Hm', thought: true },
      { text: 'I look.' },
      { functionCall: { id: 'r1', name: 'read_file', args: {} } },
    ]),
    { id: 'a1_response', ...stamp(), type: 'user', content: [response('r1', 'contents')] },
  ];
  const known = [typed('u1', 'Look'), answered('a1', 'I look.', { toolCalls: [called('r1', 'contents')] })];
  const rest = [
    { ...header, startTime: '2026-11-22T11:00:00.000Z' },
    { $set: { messages: copies } },
    typed('u2', 'More'),
  ];
  const expected = ['Look', ['I look.', 'read_file: {"output":"contents"}'], 'More'];
  expect(told(onlyGemini([header, ...known, ...rest]))).toEqual(expected);
  expect(told(onlyGemini(rest))).toEqual(expected);
  expect(told(onlyGemini([...rest, { $set: { messages: copies } }]))).toEqual(expected);
});

test('what was taken back in Gemini CLI is left out, and a summary stands for what came before it', () => {
  const read = onlyGemini([
    header,
    typed('u1', 'First'),
    answered('a1', 'Yes.'),
    typed('u2', 'Taken back'),
    answered('a2', 'Nobody kept this.'),
    { $rewindTo: 'u2' },
    typed('u2', 'Second'),
    {
      $set: {
        messages: [typed('s1', '<state_snapshot>They asked twice.</state_snapshot>'), answered('k1', 'Got it.')],
      },
    },
    typed('u4', 'Third'),
  ]);
  expect(dropped(read)).toEqual({ left_branches: 1 });
  expect(told(read)).toEqual([expect.stringContaining('They asked twice.'), ['Got it.'], 'Third']);
  expect(
    read.events
      .filter(({ kind }) => kind === 'user')
      .map(({ content }) => content)
      .slice(0, 3),
  ).toEqual(['First', 'Second', 'Third']);
});

test('tokens of Gemini CLI are disjoint', () => {
  const tokens = { input: 100, output: 7, cached: 60, thoughts: 5, tool: 2, total: 114 };
  const { events } = onlyGemini([header, typed('u1', 'Hi'), answered('a1', 'Hello', { tokens })]);
  expect(events.find(({ kind }) => kind === 'usage')?.data).toMatchObject({
    input_tokens: 42,
    output_tokens: 12,
    cache_read_tokens: 60,
    provider: 'google',
    model: 'gemini-2.5-pro',
  });
});

test('a call of Gemini CLI without a result is answered by what was shown, or as interrupted', () => {
  const failed = { ...called('r1', null), status: 'cancelled', resultDisplay: 'The person said no.' };
  const read = onlyGemini([
    header,
    typed('u1', 'Look'),
    answered('a1', '', { toolCalls: [failed, called('r2', null), { ...called('r3', null), result: 'as text' }] }),
    { id: 'u2', ...stamp(), type: 'user', content: { inlineData: { data: 'iVBO' } } },
    '{"id":"a2","type":"gem',
  ]);
  expect(told(read)).toEqual([
    'Look',
    [
      '',
      expect.stringContaining('"The person said no."'),
      expect.stringContaining('"code":"interrupted"'),
      'read_file: {"output":"as text"}',
    ],
    '[a file that was not imported]',
  ]);
  expect(dropped(read)).toEqual({ files: 1, torn_lines: 1 });
});

test('the directory of a conversation of Gemini CLI is found in three ways', () => {
  const projects = JSON.stringify({ projects: { '/home/ann/shop': 'shop', '/home/ann/other': 'other' } });
  const hash = createHash('sha256').update('/home/ann/other').digest('hex');
  const lines = [header, typed('u1', 'Hi')];
  const cwds = [
    { [chat]: lines, '.gemini/tmp/shop/.project_root': '/home/ann/root\n', '.gemini/projects.json': projects },
    { [chat]: lines, '.gemini/projects.json': projects },
    { [`.gemini/tmp/${hash}/chats/session-1.jsonl`]: lines, '.gemini/projects.json': projects },
  ].map((files) => readAll(geminiCli, homeWith(files))[0]?.found.cwd);
  expect(cwds).toEqual(['/home/ann/root', '/home/ann/shop', '/home/ann/other']);
});

test('a clock that is wrong spoils neither the id nor the order', () => {
  const times = ['+200000-01-01T00:00:00.000Z', '-000001-01-01T00:00:00.000Z', 'soon', -5, 9e15, null];
  for (const time of times) {
    const { found, events } = onlyGemini([
      { ...header, startTime: time },
      { ...typed('u1', 'Hi'), timestamp: time },
      answered('a1', 'Hello'),
      { ...typed('u2', 'Before?'), timestamp: '2001-01-01T00:00:00.000Z' },
    ]);
    expect(found.startedAt).toBeGreaterThan(Date.UTC(2026, 0, 1));
    expect(found.startedAt).toBeLessThan(Date.UTC(2100, 0, 1));
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
    expect(events.every(({ createdAt }) => createdAt > 0 && Number.isSafeInteger(createdAt))).toBe(true);
  }
});

test('helpers of Gemini CLI and files that became lines are no conversations; a damaged first line hides none', () => {
  const home = homeWith({
    [chat]: ['{"sessionId":"g-', typed('u1', 'Still there')],
    [chat.replace('aaaa.jsonl', 'bbbb.jsonl')]: [{ ...header, kind: 'subagent' }, typed('u1', 'for a helper')],
    [chat.replace('aaaa.jsonl', 'aaaa.json')]: JSON.stringify({ ...header, messages: [typed('u1', 'Still there')] }),
    [chat.replace('aaaa.jsonl', 'cccc.json')]: '{"sessionId":',
  });
  expect(readAll(geminiCli, home).map(told)).toEqual([['Still there']]);
});

const qwenFile = '.qwen/projects/-home-ann-shop/chats/1a95d057-8336-4256-96fd-f2f037f2ad94.jsonl';
const record = (uuid: string, parentUuid: string | null, type: string, more: object): object => ({
  uuid,
  parentUuid,
  sessionId: 'q-1',
  ...stamp(),
  type,
  cwd: '/home/ann/shop',
  version: '0.15.10',
  ...more,
});
const parts = (role: string, ...list: readonly object[]): object => ({ message: { role, parts: list } });
const asked = (uuid: string, parent: string | null, text: string, more: object = {}): object =>
  record(uuid, parent, 'user', { ...parts('user', { text }), ...more });
const replied = (uuid: string, parent: string | null, ...list: readonly object[]): object =>
  record(uuid, parent, 'assistant', { model: 'qwen3-coder', ...parts('model', ...list) });

function onlyQwen(lines: readonly (object | string)[]) {
  const [conversation] = readAll(qwenCode, homeWith({ [qwenFile]: lines }));
  if (!conversation) throw new Error('there is no conversation');
  return conversation;
}

test('the last record of Qwen Code says which branch counts, and a damaged one in between cuts nothing off', () => {
  const lines = [
    asked('u1', null, 'First'),
    replied('a1', 'u1', { text: 'Yes.' }),
    asked('u2', 'a1', 'Taken back'),
    replied('a2', 'u2', { text: 'Nobody kept this.' }),
    asked('u3', 'a1', 'Second'),
    replied('a3', 'u3', { text: 'Well.' }),
    asked('s1', 'a3', 'for a helper', { isSidechain: true }),
    record('t1', 's1', 'system', { subtype: 'custom_title', systemPayload: { customTitle: 'Two questions' } }),
  ];
  const read = onlyQwen(lines);
  expect(told(read)).toEqual(['First', ['Yes.'], 'Second', ['Well.']]);
  expect(dropped(read)).toEqual({ left_branches: 2, sidechains: 1 });
  expect(read.found.title).toBe('Two questions');
  const damaged = onlyQwen(lines.map((line, at) => (at === 5 ? '{"uuid":"a3' : line)));
  expect(told(damaged)).toEqual(['First', ['Yes.'], 'Second']);
});

test('records of Qwen Code whose parents go in a circle end', () => {
  const circle = [asked('u1', 'a1', 'First'), replied('a1', 'u1', { text: 'Yes.' }), asked('u2', 'u2', 'Second')];
  expect(told(onlyQwen(circle))).toEqual(['First', ['Yes.'], 'Second']);
});

test('a compaction of Qwen Code leaves what it kept', () => {
  const kept = [asked('u2', 'a1', 'Second'), replied('a2', 'u2', { text: 'Yes to the second.' })];
  const history = [
    { role: 'user', parts: [{ text: '<state_snapshot>They asked once.</state_snapshot>' }] },
    { role: 'model', parts: [{ text: 'Got it.' }] },
    { role: 'user', parts: [{ text: 'Second' }] },
    { role: 'model', parts: [{ text: 'Yes to the second.' }] },
  ];
  const read = onlyQwen([
    asked('u1', null, 'First'),
    replied('a1', 'u1', { text: 'Yes to the first.' }),
    ...kept,
    record('c1', 'a2', 'system', { subtype: 'chat_compression', systemPayload: { compressedHistory: history } }),
    asked('u3', 'c1', 'Third'),
  ]);
  expect(told(read)).toEqual([expect.stringContaining('They asked once.'), 'Second', ['Yes to the second.'], 'Third']);
});

test('tokens of Qwen Code are disjoint, with the thoughts counted once', () => {
  const usage = (more: object): unknown => {
    const line = { ...replied('a1', 'u1', { text: 'Hello' }), usageMetadata: { promptTokenCount: 100, ...more } };
    return onlyQwen([asked('u1', null, 'Hi'), line]).events.find(({ kind }) => kind === 'usage')?.data;
  };
  const inside = { candidatesTokenCount: 12, thoughtsTokenCount: 5, totalTokenCount: 112, cachedContentTokenCount: 60 };
  const beside = { candidatesTokenCount: 7, thoughtsTokenCount: 5, totalTokenCount: 112, cachedContentTokenCount: 60 };
  for (const counts of [inside, beside])
    expect(usage(counts)).toMatchObject({ input_tokens: 40, output_tokens: 12, cache_read_tokens: 60 });
});
