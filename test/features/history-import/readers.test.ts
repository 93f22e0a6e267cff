import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Event } from '../../../src/kernel/core/event.js';
import { isRecord } from '../../../src/kernel/core/json.js';
import { project } from '../../../src/kernel/core/projection.js';
import { claudeCode } from '../../../src/features/history-import/claude-code.js';
import { codex } from '../../../src/features/history-import/codex.js';
import { forClaudeCode, forCodex } from '../../../src/features/history-import/for-other-programs.js';
import { directoryIn, type HistoryReader } from '../../../src/features/history-import/neutral-turns.js';
import { pi } from '../../../src/features/history-import/pi.js';
import { toEvents } from '../../../src/features/history-import/to-events.js';

const files: Readonly<Record<string, string>> = {
  'claude-code': '.claude/projects/-home-ann-shop/6f1c1c1e-0000-4000-8000-000000000001.jsonl',
  codex: '.codex/sessions/2026/11/20/rollout-2026-11-20T10-00-00-01a2051a-fa34-7a82-a5ef-7b782768ea44.jsonl',
  pi: '.pi/agent/sessions/--home-ann-shop--/2026-11-20T10-00-00-000Z_01a2051b-138f-738b-ac08-9a6083925242.jsonl',
};

/** A home with one conversation: objects are lines of JSON, texts lines as they are. */
function homeWith(tool: string, lines: readonly (object | string)[]): string {
  const home = mkdtempSync(join(tmpdir(), 'agent-histories-'));
  onTestFinished(() => {
    rmSync(home, { recursive: true, force: true });
  });
  const file = join(home, files[tool] ?? '');
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n'));
  return home;
}

const opening = [{ kind: 'system', content: 'ours', data: null }] as const;

/** Reads the only conversation below a home; null where there is none. */
function read(reader: HistoryReader, home: string): readonly Event[] | null {
  const place = { home, env: {}, cwd: home };
  const [source] = [...reader.sources(place)];
  const found = source ? reader.head(source, place) : null;
  if (found === null) return null;
  const facts = { tool: 'x', title: reader.title, found, sha256: '', opening, maxOutputBytes: 1000 };
  return [...toEvents(reader.turns(found), facts)];
}

/** What a model is told: each message as a text, calls with their results. */
function told(events: readonly Event[] | null): readonly unknown[] {
  return project(events ?? [])
    .messages.map((message) =>
      message.role === 'user'
        ? message.content
        : [message.text, ...message.calls.map(({ name, result }) => `${name}: ${result.output}`)],
    )
    .slice(0, -1);
}

function dropped(events: readonly Event[] | null): unknown {
  const data = events?.find(({ kind }) => kind === 'import')?.data;
  return isRecord(data) ? data['dropped'] : null;
}

let clock = 0;
function stamp(): { readonly timestamp: string } {
  return { timestamp: new Date(Date.UTC(2026, 10, 20, 10) + ++clock * 1000).toISOString() };
}

const item = (payload: object): object => ({ ...stamp(), type: 'response_item', payload });
const event = (payload: object): object => ({ ...stamp(), type: 'event_msg', payload });
const typed = (text: string, kind = 'user.text'): object =>
  item({
    type: 'message',
    role: 'user',
    content: [{ type: 'input_text', text }],
    internal_chat_message_metadata_passthrough: { content_item_kinds: [kind] },
  });
const answer = (text: string): object =>
  item({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] });
const asks = (id: string, cmd: string): object =>
  item({ type: 'function_call', name: 'exec_command', arguments: JSON.stringify({ cmd }), call_id: id });
const gives = (id: string, output: unknown): object => item({ type: 'function_call_output', call_id: id, output });
const used = (input: number, cached: number): object => ({
  ...stamp(),
  type: 'token_usage_record',
  payload: { usage: { input_tokens: input, cached_input_tokens: cached, output_tokens: 7 } },
});
const meta = {
  ...stamp(),
  type: 'session_meta',
  payload: { id: 'c-1', cwd: '/home/ann/shop', cli_version: '0.169.0', model_provider: 'openai' },
};

const codexLines: readonly object[] = [
  meta,
  typed('<environment_context>\n</environment_context>', 'environments.environment_context'),
  { ...stamp(), type: 'turn_context', payload: { cwd: '/home/ann/shop', model: 'gpt-5.2-codex' } },
  typed('Look at both'),
  event({ type: 'user_message', message: 'Look at both' }),
  item({ type: 'reasoning', encrypted_content: 'sealed' }),
  answer('I look.'),
  asks('c1', 'make'),
  asks('c2', 'ls'),
  used(100, 60),
  gives('c2', 'Wall time: 0.2500 seconds\nProcess exited with code 0\nOutput:\na\n'),
  gives('c1', 'Wall time: 0.0000 seconds\nProcess exited with code 2\nOutput:\nProcess exited with code 9\n'),
  event({ type: 'token_count', info: { last_token_usage: { input_tokens: 100, output_tokens: 7 } } }),
  answer('One failed.'),
  used(120, 100),
];

test('what Codex says twice is taken once, and what it says in the name of the person is left out', () => {
  const events = read(codex, homeWith('codex', codexLines));
  expect(told(events)).toEqual([
    'Look at both',
    [
      'I look.',
      `exec_command: ${JSON.stringify({
        output: 'Wall time: 0.0000 seconds\nProcess exited with code 2\nOutput:\nProcess exited with code 9\n',
        exit_code: 2,
      })}`,
      `exec_command: ${JSON.stringify({
        output: 'Wall time: 0.2500 seconds\nProcess exited with code 0\nOutput:\na\n',
        exit_code: 0,
      })}`,
    ],
    ['One failed.'],
  ]);
  expect(dropped(events)).toEqual({ meta: 1, reasoning: 1 });
  expect(events?.flatMap(({ kind, data }) => (kind === 'usage' ? [data] : []))).toMatchObject([
    { response_id: 'response_1', provider: 'openai', input_tokens: 40, cache_read_tokens: 60, output_tokens: 7 },
    { response_id: 'response_2', model: 'gpt-5.2-codex', input_tokens: 20, cache_read_tokens: 100 },
  ]);
});

test('a first line that is damaged, early lines without an envelope and a turn taken back hide no conversation of Codex', () => {
  const early = [
    '{"id":"c-1","instr',
    {
      type: 'message',
      role: 'user',
      content: [{ type: 'input_text', text: '<environment_context></environment_context>' }],
    },
    { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'First' }] },
    { type: 'function_call', name: 'shell', arguments: '{"command":["ls"]}', call_id: 'c1' },
    { type: 'function_call_output', call_id: 'c1', output: '{"output":"a\\n","metadata":{"exit_code":1}}' },
    typed('Second, taken back'),
    answer('Nobody kept this.'),
    event({ type: 'thread_rolled_back', num_turns: 1 }),
    typed('Third'),
  ];
  const events = read(codex, homeWith('codex', early));
  expect(told(events)).toEqual(['First', ['', `shell: ${JSON.stringify({ output: 'a\n', exit_code: 1 })}`], 'Third']);
  expect(dropped(events)).toEqual({ damaged_lines: 1, left_branches: 2, meta: 1 });
});

test.each([
  ['has', { id: 'early', instructions: null }, 'early'],
  ['has no', { id: 'early' }, '01a2051a-fa34-7a82-a5ef-7b782768ea44'],
])('an early first line of Codex that %s instructions names the conversation so', (_has, first, id) => {
  const place = { home: homeWith('codex', [first, typed('Hi')]), env: {}, cwd: '/' };
  const [source] = [...codex.sources(place)];
  expect(source && codex.head(source, place)?.id).toBe(id);
});

test('a summary of Codex stands for what came before it; one that is sealed does not', () => {
  const summary = (message: string): object => ({ ...stamp(), type: 'compacted', payload: { message } });
  const lines = [meta, typed('One'), answer('Two'), summary(''), typed('Three'), summary('All so far.'), typed('Four')];
  const events = read(codex, homeWith('codex', lines));
  expect(told(events)).toEqual([
    '[Codex compacted the conversation from event 2 to 4; its summary replaces it.]\n\nAll so far.',
    'Four',
  ]);
  expect(dropped(events)).toEqual({ sealed_summaries: 1 });
});

const entry = (id: string, parentId: string | null, fields: object): object => ({
  ...stamp(),
  id,
  parentId,
  ...fields,
});
const message = (id: string, parentId: string | null, role: string, content: unknown, more: object = {}): object =>
  entry(id, parentId, { type: 'message', message: { role, content, ...more } });
const text = (value: string): object => ({ type: 'text', text: value });
const toolCall = (id: string, command: string): object => ({
  type: 'toolCall',
  id,
  name: 'bash',
  arguments: { command },
});
const returned = (id: string, parentId: string, toolCallId: string, value: string, isError = false): object =>
  message(id, parentId, 'toolResult', [text(value)], { toolCallId, toolName: 'bash', isError });
const cost = { input: 10, output: 2, cacheRead: 3, cacheWrite: 0, cost: { total: 0.25 } };

const piLines: readonly object[] = [
  { ...stamp(), type: 'session', version: 3, id: 'p-1', cwd: '/home/ann/shop' },
  entry('m', null, { type: 'model_change', provider: 'anthropic', modelId: 'claude-sonnet-4-5' }),
  message('u1', 'm', 'user', 'Look at both'),
  message(
    'a1',
    'u1',
    'assistant',
    [{ type: 'thinking', thinking: 'hm' }, toolCall('c1|fc_1', 'make'), toolCall('c2', 'ls')],
    {
      provider: 'anthropic',
      model: 'claude-sonnet-4-5',
      usage: cost,
    },
  ),
  returned('r1', 'a1', 'c1|fc_1', 'no rule\n\nCommand exited with code 2', true),
  returned('r2', 'r1', 'c2', 'a'),
  message('x', 'r2', 'user', 'taken back'),
  message('a2', 'r2', 'assistant', [text('One failed.')]),
  message('b', 'a2', 'bashExecution', undefined, { command: 'id', output: 'ann', exitCode: 0 }),
];

test('the leaf of pi says which branch counts', () => {
  const events = read(pi, homeWith('pi', piLines));
  expect(told(events)).toEqual([
    'Look at both',
    [
      '',
      `bash: ${JSON.stringify({ output: 'no rule\n\nCommand exited with code 2', exit_code: 2 })}`,
      `bash: ${JSON.stringify({ output: 'a' })}`,
    ],
    ['One failed.'],
    'Ran `id`\n```\nann\n```',
  ]);
  expect(dropped(events)).toEqual({ reasoning: 1, left_branches: 1 });
  expect(events?.find(({ kind }) => kind === 'usage')?.data).toMatchObject({ cache_read_tokens: 3, cost_usd: 0.25 });
});

test('a summary of pi leaves what it kept, and a damaged parent cuts nothing off', () => {
  const lines = [
    ...piLines,
    'damaged',
    message('u2', 'gone', 'user', 'And now?'),
    entry('s', 'u2', { type: 'compaction', summary: 'All so far.', firstKeptEntryId: 'b' }),
    message('u3', 's', 'user', 'Go on'),
  ];
  expect(told(read(pi, homeWith('pi', lines)))).toEqual([
    expect.stringContaining('All so far.'),
    'Ran `id`\n```\nann\n```',
    'And now?',
    'Go on',
  ]);
});

const block = (id: string, parentUuid: string, response: string, content: object): object => ({
  ...stamp(),
  type: 'assistant',
  uuid: id,
  parentUuid,
  sessionId: 's',
  message: { id: response, model: 'claude-sonnet-4-5', content: [content] },
});
const person = (uuid: string, parentUuid: string | null, content: unknown, more: object = {}): object => ({
  ...stamp(),
  type: 'user',
  uuid,
  parentUuid,
  sessionId: 's',
  cwd: '/home/ann/shop',
  message: { content },
  ...more,
});
const use = (id: string): object => ({ type: 'tool_use', id, name: 'Read', input: {} });
const result = (uuid: string, parentUuid: string, id: string): object =>
  person(uuid, parentUuid, [{ type: 'tool_result', tool_use_id: id, content: `of ${id}` }]);

/** Four parallel calls whose results hang on four branches, one behind the next answer. */
const claudeLines: readonly object[] = [
  person('u1', null, 'Read four'),
  block('a1', 'u1', 'm1', use('t1')),
  block('a2', 'a1', 'm1', use('t2')),
  result('r1', 'a1', 't1'),
  block('a3', 'a2', 'm1', use('t3')),
  result('r2', 'a2', 't2'),
  block('a4', 'a3', 'm1', use('t4')),
  result('r3', 'a3', 't3'),
  block('a5', 'r3', 'm2', text('Three are here.')),
  result('r4', 'a4', 't4'),
  person('u2', 'a5', 'Go on'),
];

test('results of parallel calls on different branches of Claude Code are all there, also one that comes late', () => {
  const events = read(claudeCode, homeWith('claude-code', claudeLines));
  const results = ['t1', 't2', 't3', 't4'].map((id) => `Read: {"output":"of ${id}"}`);
  expect(told(events)).toEqual(['Read four', ['', ...results], ['Three are here.'], 'Go on']);
});

test('a summary of Claude Code stands for what came before it', () => {
  const summary = person('c', null, 'All so far.', { isCompactSummary: true });
  const lines = [...claudeLines, summary, person('u3', 'c', 'Next')];
  expect(told(read(claudeCode, homeWith('claude-code', lines)))).toEqual([
    expect.stringMatching(/^\[Claude Code compacted .*\]\n\nAll so far\.$/),
    'Next',
  ]);
});

test.each([
  ['claude-code', claudeCode, claudeLines],
  ['codex', codex, codexLines],
  ['pi', pi, piLines],
] as const)('wherever a file of %s ends, every call has one answer', (tool, reader, lines) => {
  let calls = 0;
  for (let count = 1; count <= lines.length; count++) {
    const torn = JSON.stringify(lines[count] ?? {}).slice(0, -5);
    const events = read(reader, homeWith(tool, [...lines.slice(0, count), torn])) ?? [];
    const ids = (kind: string, name: string): readonly unknown[] =>
      events.flatMap((one) => (one.kind === kind && isRecord(one.data) ? [one.data[name]] : []));
    expect(ids('tool_result', 'tool_call_id')).toEqual(ids('tool_call', 'id'));
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_event, index) => index + 1));
    calls += ids('tool_call', 'id').length;
  }
  expect(calls).toBeGreaterThan(5);
});

test.each([
  ['claude-code', claudeCode, forClaudeCode],
  ['codex', codex, forCodex],
] as const)('what is written for %s is read again as the same conversation', (tool, reader, write) => {
  const events = read(pi, homeWith('pi', piLines)) ?? [];
  const row = {
    id: '01M82HP4WGQAV5NYHCRDPXQ24X',
    cwd: '/home/ann/shop.d',
    title: 'Both',
    createdAt: 1_795_000_000_000,
  };
  const { text: written, file, command } = write({ row, events });
  const place = { home: homeWith(tool, written.trimEnd().split('\n')), env: {}, cwd: '/' };
  const [source] = [...reader.sources(place)];
  const found = source ? reader.head(source, place) : null;
  expect(found).toMatchObject({ cwd: '/home/ann/shop.d', prompt: 'Look at both' });
  const again = told(read(reader, place.home));
  expect(again[0]).toEqual('Look at both');
  expect(again[1]).toEqual([
    '',
    expect.stringContaining('Exit code: 2\\nOutput:\\nno rule'),
    `bash: ${JSON.stringify({ output: 'a' })}`,
  ]);
  expect(again.slice(2)).toEqual([
    ['One failed.'],
    'Ran `id`\n```\nann\n```',
    expect.stringContaining('Imported from'),
  ]);
  expect(file).toMatch(
    tool === 'codex' ? /^\.codex\/sessions\/2026\/11\/18\/rollout-/ : /projects\/-home-ann-shop-d\//,
  );
  expect(command).toContain(/[\da-f-]{36}(?=\.jsonl$)/.exec(file)?.[0] ?? 'no id');
});

/** The title of the only conversation below a home, and what the model is told of it. */
function titled(reader: HistoryReader, home: string): readonly unknown[] {
  const place = { home, env: {}, cwd: home };
  const [source] = [...reader.sources(place)];
  const found = source ? reader.head(source, place) : null;
  return [found?.title ?? found?.prompt ?? null, told(read(reader, home)).filter((text) => typeof text === 'string')];
}

test.each([
  ['recommended plugins', '<recommended_plugins>\na\n</recommended_plugins>'],
  ['the editor', '# Context from my IDE setup:\n\n## Active file: a.lua\n\n## Open tabs:\n- a.lua'],
  ['files', '# Files mentioned by the user:\n\n## a.png: /tmp/a.png'],
  ['browser tabs', '# In app browser:\n- one tab'],
  ['surroundings', '<environment_context>\n  <cwd>/x</cwd>\n</environment_context>'],
  ['rules', '<user_instructions>be brief</user_instructions>'],
  ['rules of a file', '# AGENTS.md instructions for /x\n\nbe brief'],
])('Codex: %s are neither the title nor said by the user, and the request behind them is', (_name, added) => {
  const plain = (text: string): object =>
    item({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] });
  for (const heading of ['## My request for Codex:', '## My request:']) {
    const home = homeWith('codex', [
      { ...stamp(), type: 'session_meta', payload: { id: 'a', cwd: '/home/ann/shop' } },
      plain(added),
      plain(`${added}\n\n${heading}\nopen the door\n`),
      answer('It opens.'),
      plain('and close it'),
    ]);
    expect(titled(codex, home)).toEqual(['open the door', ['open the door', 'and close it']]);
  }
});

test.each([
  ['an open file', '<ide_opened_file>The user opened /x.ts in the IDE.</ide_opened_file>'],
  ['a selection', '<ide_selection>The user selected the lines 1 to 2: x</ide_selection>'],
  ['a reminder', '<system-reminder>\nA task ended\n</system-reminder>'],
  ['output of a command', '<local-command-stdout>Set model</local-command-stdout>'],
  ['output of the shell', '<bash-stdout>a.txt</bash-stdout><bash-stderr></bash-stderr>'],
  ['an interrupt', '[Request interrupted by user]'],
])('Claude Code: %s is neither the title nor said by the user, alone or before the request', (_name, added) => {
  const said = (uuid: string, parent: string | null, content: unknown): object => ({
    ...stamp(),
    type: 'user',
    sessionId: 's',
    cwd: '/home/ann/shop',
    uuid,
    parentUuid: parent,
    message: { role: 'user', content },
  });
  const home = homeWith('claude-code', [
    said('u0', null, '<command-name>/clear</command-name>\n<command-message>clear</command-message>'),
    said('u1', 'u0', [{ type: 'text', text: added }]),
    said('u2', 'u1', [
      { type: 'text', text: added },
      { type: 'text', text: 'open the door' },
    ]),
  ]);
  expect(titled(claudeCode, home)).toEqual(['open the door', ['/clear', 'open the door']]);
});

test('two objects in one line are both read, and a torn or damaged part of a line is counted', () => {
  const said = (text: string): string =>
    JSON.stringify(item({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] }));
  const meta = { ...stamp(), type: 'session_meta', payload: { id: 'a', cwd: '/home/ann/shop' } };
  const home = homeWith('codex', [
    JSON.stringify(meta) + said('first } { "'),
    said('second') + said('third'),
    `${said('fourth')}{"type":`,
    said('fifth'),
  ]);
  const events = read(codex, home);
  expect(told(events)).toEqual(['first } { "', 'second', 'third', 'fourth', 'fifth']);
  expect(dropped(events)).toMatchObject({ damaged_lines: 1 });
});

/** The conversation below a home, as lists show it. */
function found(reader: HistoryReader, home: string) {
  const place = { home, env: {}, cwd: home };
  const [source] = [...reader.sources(place)];
  return source ? reader.head(source, place) : null;
}

const plainPrompt = (text: string): object =>
  item({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] });
const claudePrompt = (uuid: string, parent: string | null, content: unknown, cwd = '/home/ann/shop'): object => ({
  ...stamp(),
  type: 'user',
  sessionId: 's',
  cwd,
  uuid,
  parentUuid: parent,
  message: { role: 'user', content },
});

test.each(['d:\\Work\\shop', 'C:/Users/ann/shop', '\\\\server\\share\\shop'])(
  'a directory of Windows, %s, stays that of the conversation',
  (cwd) => {
    const codexHome = homeWith('codex', [
      { ...stamp(), type: 'session_meta', payload: { id: 'a', cwd } },
      plainPrompt('open the door'),
    ]);
    expect(found(codex, codexHome)?.cwd).toBe(cwd);
    expect(found(claudeCode, homeWith('claude-code', [claudePrompt('u', null, 'open the door', cwd)]))?.cwd).toBe(cwd);
  },
);

test('a directory of Windows is the one that WSL mounts, where that exists; a relative one is none', () => {
  const mounts = mkdtempSync(join(tmpdir(), 'agent-mounts-'));
  onTestFinished(() => {
    rmSync(mounts, { recursive: true, force: true });
  });
  mkdirSync(join(mounts, 'd/Work/shop'), { recursive: true });
  expect([
    directoryIn(['D:\\Work\\shop'], '/home/ann', mounts),
    directoryIn(['D:\\Work\\other'], '/home/ann', mounts),
    directoryIn(['shop', null, '/srv/shop'], '/home/ann', mounts),
    directoryIn(['d:shop'], '/home/ann', mounts),
  ]).toEqual([join(mounts, 'd/Work/shop'), 'D:\\Work\\other', '/srv/shop', '/home/ann']);
});

test('Codex: the request may begin in the line of its heading, and lines may end as on Windows', () => {
  const home = homeWith('codex', [
    { ...stamp(), type: 'session_meta', payload: { id: 'a', cwd: '/home/ann/shop' } },
    plainPrompt(
      '# Files mentioned by the user:\r\n\r\n## a.png:\r\nC:/a.png\r\n\r\n## My request for Codex:\r\nopen the door\r\n',
    ),
    plainPrompt('# Context from my IDE setup:\n\n## My request for Codex: and close it'),
  ]);
  expect(titled(codex, home)).toEqual(['open the door', ['open the door', 'and close it']]);
});

test.each([
  ['codex', codex],
  ['claude-code', claudeCode],
] as const)('%s: a heading that the user quotes takes no words away', (tool, reader) => {
  const text = 'Why is this in my log?\n\n## My request for Codex:\nopen the door';
  const home = homeWith(tool, [tool === 'codex' ? plainPrompt(text) : claudePrompt('u', null, text)]);
  expect(titled(reader, home)[1]).toEqual([text]);
});

test('the title is found behind much injected text', () => {
  const rules = `# AGENTS.md instructions for /x\n\n${'be brief '.repeat(30_000)}`;
  const codexHome = homeWith('codex', [
    { ...stamp(), type: 'session_meta', payload: { id: 'a', cwd: '/home/ann/shop' } },
    plainPrompt(rules),
    plainPrompt('open the door'),
  ]);
  expect(found(codex, codexHome)?.prompt).toBe('open the door');
  const claudeHome = homeWith('claude-code', [
    claudePrompt('u0', null, `<system-reminder>${'be brief '.repeat(30_000)}</system-reminder>`),
    claudePrompt('u1', 'u0', 'open the door'),
  ]);
  expect(found(claudeCode, claudeHome)?.prompt).toBe('open the door');
});

const typedCommand = (name: string): string =>
  `<command-name>${name}</command-name>\n            <command-message>x</command-message>\n            <command-args></command-args>`;

test.each([
  ['/clear', 'open the door'],
  ['/context', 'open the door'],
  ['/copy', 'open the door'],
  ['/plan-feature', '/plan-feature'],
  ['/init:docs', '/init:docs'],
  ['/review', '/review'],
])('Claude Code: a conversation that begins with %s is called %s', (command, title) => {
  const home = homeWith('claude-code', [
    claudePrompt('u0', null, typedCommand(command)),
    claudePrompt('u1', 'u0', 'open the door'),
  ]);
  expect(titled(claudeCode, home)[0]).toBe(title);
});
