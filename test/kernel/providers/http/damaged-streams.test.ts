import type { EventWire } from './http-rig.js';
import { afterEach, expect, test } from 'vitest';
import type { Json } from '../../../../src/kernel/core/json.js';
import type { WireChunk } from '../../../../src/kernel/providers/wires/wire.js';
import { kinds, noteTool, rig } from '../../agent/harness.js';
import { rules } from '../wires/request-rules.js';
import { type FaultServer, startFaultServer } from './fault-server.js';
import { testEndpoint, testProvider, wires } from './http-rig.js';

/** `AGENT_DAMAGED_STREAMS=all` sends every damaged stream through a session; by default a session gets a sample. */
const sampled = process.env.AGENT_DAMAGED_STREAMS === 'all' ? 1 : 40;

const servers: FaultServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

const chat = (delta: object, finish: string | null = null): object => ({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const call = (index: number, id: string, text: string): object => ({
  tool_calls: [{ index, id, type: 'function', function: { name: 'note', arguments: text } }],
});
const item = (id: string, text: string): object => ({
  type: 'function_call',
  id,
  call_id: `call_${id}`,
  name: 'note',
  arguments: text,
});

/** One whole answer with reasoning, text, two calls, usage and an end, and one of text alone. */
const answers: Readonly<Record<EventWire, { readonly whole: readonly object[]; readonly last: readonly object[] }>> = {
  'openai-chat': {
    whole: [
      chat({ role: 'assistant', content: null, reasoning_content: 'I think.' }),
      chat({ content: 'Looking.' }),
      chat(call(0, 'x', '')),
      chat({ tool_calls: [{ index: 0, function: { arguments: '{"text":"a"}' } }] }),
      chat({
        tool_calls: [
          {
            index: 1,
            id: 'y',
            type: 'function',
            function: { name: 'note', arguments: '{"text":"b"}' },
            extra_content: { google: { thought_signature: 'SIG' } },
          },
        ],
      }),
      chat({}, 'tool_calls'),
      {
        id: 'c',
        choices: [],
        usage: {
          prompt_tokens: 9,
          completion_tokens: 3,
          total_tokens: 12,
          prompt_tokens_details: { cached_tokens: 1 },
        },
      },
    ],
    last: [chat({ content: 'Done.' }), chat({}, 'stop')],
  },
  'anthropic-messages': {
    whole: [
      {
        type: 'message_start',
        message: { id: 'm', role: 'assistant', content: [], usage: { input_tokens: 9, output_tokens: 1 } },
      },
      { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'I think.' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 'c2ln' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'Looking.' } },
      { type: 'content_block_stop', index: 1 },
      { type: 'content_block_start', index: 2, content_block: { type: 'tool_use', id: 'x', name: 'note', input: {} } },
      { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '{"text":"a"}' } },
      { type: 'content_block_stop', index: 2 },
      { type: 'message_delta', delta: { stop_reason: 'tool_use', stop_sequence: null }, usage: { output_tokens: 3 } },
      { type: 'message_stop' },
    ],
    last: [
      {
        type: 'message_start',
        message: { id: 'm', role: 'assistant', content: [], usage: { input_tokens: 9, output_tokens: 1 } },
      },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'Done.' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 3 } },
      { type: 'message_stop' },
    ],
  },
  'openai-responses': {
    whole: [
      { type: 'response.created', response: { id: 'r', status: 'in_progress' } },
      { type: 'response.output_item.added', output_index: 0, item: { type: 'reasoning', id: 'rs', summary: [] } },
      {
        type: 'response.reasoning_summary_text.delta',
        item_id: 'rs',
        output_index: 0,
        summary_index: 0,
        delta: 'I think.',
      },
      {
        type: 'response.output_item.done',
        output_index: 0,
        item: {
          type: 'reasoning',
          id: 'rs',
          summary: [{ type: 'summary_text', text: 'I think.' }],
          encrypted_content: 'gAAA',
        },
      },
      { type: 'response.output_text.delta', item_id: 'ms', output_index: 1, content_index: 0, delta: 'Looking.' },
      { type: 'response.output_item.added', output_index: 2, item: item('x', '') },
      { type: 'response.function_call_arguments.delta', item_id: 'x', output_index: 2, delta: '{"text":"a"}' },
      { type: 'response.output_item.done', output_index: 2, item: item('x', '{"text":"a"}') },
      {
        type: 'response.completed',
        response: { id: 'r', status: 'completed', output: [], usage: { input_tokens: 9, output_tokens: 3 } },
      },
    ],
    last: [
      { type: 'response.output_text.delta', item_id: 'ms', output_index: 0, delta: 'Done.' },
      { type: 'response.completed', response: { id: 'r', status: 'completed', output: [] } },
    ],
  },
};

const names = Object.keys(answers) as readonly EventWire[];

type Path = readonly (string | number)[];

function pathsOf(value: Json, path: Path = []): readonly Path[] {
  if (typeof value !== 'object' || value === null) return [path];
  const inner = Object.entries(value).flatMap(([name, part]) =>
    pathsOf(part, [...path, Array.isArray(value) ? Number(name) : name]),
  );
  return path.length === 0 ? inner : [path, ...inner];
}

const absent = Symbol('absent');

function replaced(value: Json, path: Path, by: unknown): unknown {
  const [first, ...rest] = path;
  if (first === undefined) return by;
  if (Array.isArray(value)) {
    const parts = value.map((part: Json, at) => (at === first ? replaced(part, rest, by) : part));
    return parts.filter((part) => part !== absent);
  }
  const fields = Object.entries(value as Readonly<Record<string, Json>>);
  return Object.fromEntries(
    fields
      .map(([name, part]) => [name, name === first ? replaced(part, rest, by) : part])
      .filter(([, part]) => part !== absent),
  );
}

const deep = (levels: number): Json => JSON.parse('{"a":'.repeat(levels) + '1' + '}'.repeat(levels)) as Json;
const damages: Readonly<Record<string, unknown>> = {
  null: null,
  'a text': 'x',
  'a number': 5,
  'a boolean': true,
  'an array': [null],
  'an object': { x: 1 },
  absent,
  'a huge number': 1e308,
  'a negative number': -1,
  'a deep object': deep(400),
  'a lone surrogate': '\ud83d',
};

interface Damaged {
  readonly name: string;
  readonly events: readonly unknown[];
}

function* damagedStreams(events: readonly object[], isHugeToo: boolean): Generator<Damaged> {
  for (const [at, event] of events.entries()) {
    const others = (put: readonly unknown[]): readonly unknown[] => [
      ...events.slice(0, at),
      ...put,
      ...events.slice(at + 1),
    ];
    for (const path of pathsOf(event as Json)) {
      for (const [what, by] of Object.entries(damages))
        yield { name: `${at}: ${path.join('.')} is ${what}`, events: others([replaced(event as Json, path, by)]) };
      if (isHugeToo)
        yield {
          name: `${at}: ${path.join('.')} is huge`,
          events: others([replaced(event as Json, path, 'y'.repeat(1_000_000))]),
        };
    }
    yield { name: `${at} is repeated`, events: others([event, event]) };
    yield { name: `${at} is absent`, events: others([]) };
    yield { name: `${at} is first`, events: [event, ...others([])] };
    yield { name: `${at} is last`, events: [...others([]), event] };
    yield { name: `cut after ${at}`, events: events.slice(0, at + 1) };
    for (const junk of [null, 5, 'x', [], {}, [[]]])
      yield { name: `${at}, then ${JSON.stringify(junk)}`, events: others([event, junk]) };
  }
}

function decode(api: EventWire, events: readonly unknown[]): readonly WireChunk[] {
  const decoder = wires[api].decoder();
  return [
    ...events.flatMap((event) => decoder.push({ event: '', data: JSON.stringify(event) ?? '' })),
    ...decoder.end(),
  ];
}

test.each(names)('%s: a stream with any field damaged ends once, gives no call twice and never throws', (api) => {
  let count = 0;
  for (const { name, events } of damagedStreams(answers[api].whole, true)) {
    count++;
    const chunks = decode(api, events);
    const endings = chunks.filter(({ type }) => type === 'end' || type === 'fault');
    expect([name, endings.length, endings.at(-1) === chunks.at(-1)]).toEqual([name, 1, true]);
    const calls = chunks.flatMap((chunk) => (chunk.type === 'tool_call' ? [chunk.call] : []));
    if (calls.length > 0) expect([name, chunks.at(-1)?.type]).toEqual([name, 'end']);
    const written = calls
      .filter(({ id }) => id !== '')
      .map(({ id, name: tool, arguments: text }) => `${id} ${tool} ${text}`);
    expect([name, new Set(written).size]).toEqual([name, written.length]);
    for (const one of calls)
      expect([name, typeof one.id, typeof one.name, typeof one.arguments]).toEqual([
        name,
        'string',
        'string',
        'string',
      ]);
  }
  expect(count).toBeGreaterThan(300);
});

const sse = (events: readonly unknown[]): string =>
  events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
const eventStream = { 'content-type': 'text/event-stream' };

/** Has a session hear an answer, and whole ones after it; then a second turn. */
async function converse(
  api: EventWire,
  body: Buffer,
  contentType = eventStream,
): Promise<{ readonly ended: string; readonly text: string; readonly problems: readonly string[] }> {
  const last = { status: 200, headers: eventStream, body: sse(answers[api].last) };
  const first = { status: 200, headers: contentType, stream: [{ base64: body.toString('base64') }] };
  const server = await startFaultServer([first, last]);
  servers.push(server);
  const provider = testProvider(testEndpoint(api, server.url), { maxRetries: 2 });
  const note = noteTool();
  const { session, rows } = rig({ provider, tools: [note] });
  const turn = await session.submit('go');
  const again = await session.submit('and now');
  provider.close();
  const events = await rows();
  const asked = events.filter(({ kind }) => kind === 'tool_call').length;
  const answered = events.filter(({ kind }) => kind === 'tool_result').length;
  const request = JSON.parse(server.requests.at(-1)?.body ?? '{}') as Readonly<Record<string, unknown>>;
  return {
    ended: turn.status,
    text: turn.text,
    problems: [
      ...(rules[api]?.(request) ?? []),
      ...(asked === answered ? [] : [`${asked} calls, ${answered} results: ${kinds(events)}`]),
      ...(turn.status === 'failed' && (turn.fault?.message ?? '') === '' ? ['failed without a sentence'] : []),
      ...(again.status === 'completed' ? [] : [`the next turn is ${again.status}: ${again.fault?.message}`]),
    ],
  };
}

test.each(names)(
  '%s: a session survives damaged streams: every call has one result, and the next request is valid',
  async (api) => {
    let at = 0;
    for (const { name, events } of damagedStreams(answers[api].whole, false)) {
      if (at++ % sampled !== 0) continue;
      const { ended, problems } = await converse(api, Buffer.from(sse(events)));
      expect([name, problems]).toEqual([name, []]);
      expect([name, ended]).toEqual([name, expect.stringMatching(/^(?:completed|failed)$/)]);
    }
  },
  sampled === 1 ? 3_600_000 : 60_000,
);

const bytes = (text: string): Buffer => Buffer.from(text);

test.each(names)('%s: what is not a part of an answer changes nothing in it', async (api) => {
  const good = answers[api].last;
  const text = sse(good);
  const empty: Readonly<Record<EventWire, object>> = {
    'openai-chat': chat({ content: '' }),
    'anthropic-messages': { type: 'ping' },
    'openai-responses': { type: 'response.in_progress', response: {} },
  };
  const cases: Readonly<Record<string, Buffer>> = {
    'a byte order mark': bytes(`\ufeff${text}`),
    'CR line ends': bytes(text.replaceAll('\n', '\r')),
    'CRLF line ends': bytes(text.replaceAll('\n', '\r\n')),
    'junk lines': bytes(`junk\n\nfoo: bar\n: comment\n\n${text}\nmore junk`),
    'empty data': bytes(`data:\n\ndata: \n\n${text}data:\n\n`),
    'no space behind the colon': bytes(text.replaceAll('data: ', 'data:')),
    'invalid UTF-8 in a comment': Buffer.concat([bytes(': '), Buffer.from([0xff, 0xfe, 0xc0]), bytes(`\n\n${text}`)]),
    '10,000 empty deltas': bytes(sse(Array.from({ length: 10_000 }, () => empty[api])) + text),
    'events without their blank line at the end': bytes(text.trimEnd()),
  };
  for (const [name, body] of Object.entries(cases))
    expect([name, await converse(api, body)]).toEqual([name, { ended: 'completed', text: 'Done.', problems: [] }]);
});

test.each(names)('%s: what is not an answer at all is reported in a sentence', async (api) => {
  const page = '<html><head><title>Log in</title></head></html>';
  const cases: Readonly<Record<string, Buffer>> = {
    'a web page': bytes(page),
    'a JSON error': bytes('{"error":{"message":"Log in","code":"invalid_request_error"}}'),
    'a JSON error in an array': bytes('[{"error":{"message":"Log in","status":"INVALID_ARGUMENT"}}]'),
    'a JSON error behind white space': bytes('\n\n {"error":{"message":"Log in","type":"invalid_request_error"}}'),
  };
  for (const [name, body] of Object.entries(cases)) {
    const server = await startFaultServer([
      { status: 200, headers: eventStream, stream: [{ base64: body.toString('base64') }] },
    ]);
    servers.push(server);
    const { session } = rig({ provider: testProvider(testEndpoint(api, server.url), { maxRetries: 1 }) });
    const turn = await session.submit('go');
    expect([name, turn.status, turn.fault?.message]).toEqual([name, 'failed', expect.stringContaining('Log in')]);
  }
});
