import fc from 'fast-check';
import { expect, test } from 'vitest';
import { project } from '../../../../src/kernel/core/projection.js';
import type { Quirks } from '../../../../src/kernel/providers/quirks.js';
import type { Wire, WireOptions } from '../../../../src/kernel/providers/wires/wire.js';
import { logs, makers, number } from '../logs.js';
import { wires } from './recordings.js';
import { asMessages, hasSchemas, loneSurrogates, mistralTurns, rules, schemaError } from './request-rules.js';
import { propertyRuns } from '../../../property-runs.js';

if (!hasSchemas) console.log("Requests: ../shared/fixtures/schemas is absent, the vendors' schemas are skipped");

type Name = keyof typeof wires;
/** Each wire as its vendors are spoken to, and the schema its requests obey. */
const speakers: readonly (readonly [wire: Name, schema: string, quirks: Quirks])[] = [
  ['chat', 'openai-chat:request', {}],
  [
    'chat',
    'openai-chat:request',
    {
      max_tokens_field: 'max_completion_tokens',
      parallel_tool_calls: true,
      effort: 'reasoning_effort',
      empty_content_as_text: true,
      call_id_form: 'nine',
    },
  ],
  [
    'chat',
    'openai-chat:request',
    { reasoning_return: 'reasoning_content', tool_choice: false, stream_usage: false, effort: 'thinking' },
  ],
  [
    'chat',
    'openrouter-chat:request',
    { reasoning_return: 'reasoning_details', cache_control_models: '^model', effort: 'reasoning.effort' },
  ],
  ['chat', 'openai-chat:request', { assistant_after_tool_models: '^MODEL' }],
  ['responses', 'openai-responses:request', { effort: 'reasoning.effort', parallel_tool_calls: true }],
  ['responses', 'openai-responses:request', { assistant_after_tool_models: '^MODEL' }],
  ['messages', 'anthropic-messages:request', {}],
  ['messages', 'anthropic-messages:request', { effort: 'thinking' }],
  ['messages', 'anthropic-messages:request', { effort: 'adaptive' }],
];

const options = (quirks: Quirks, toolChoice: 'auto' | 'none' = 'auto'): WireOptions => ({
  ...makers[0],
  toolChoice,
  quirks,
});

/** Everything that is wrong with the requests for this log. */
function broken(events: Parameters<typeof project>[0], toolChoice: 'auto' | 'none'): readonly string[] {
  const conversation = project(events);
  return speakers.flatMap(([name, schema, quirks]) => {
    const wire: Wire = wires[name]!;
    const text = wire.requestParts(conversation, options(quirks, toolChoice)).join('');
    const body = JSON.parse(text) as Record<string, unknown>;
    const error = schemaError(schema, body);
    const lone = loneSurrogates(body);
    const alternates =
      quirks.assistant_after_tool_models === undefined
        ? []
        : mistralTurns((body.messages ?? asMessages(body.input as [])) as []);
    return [
      ...(error === null ? [] : [error]),
      ...(lone > 0 ? ['lone surrogates'] : []),
      ...(rules[wire.api]?.(body) ?? ['no rules']),
      ...alternates,
    ].map((what) => `${name}: ${what}`);
  });
}

const choice = fc.constantFrom<'auto' | 'none'>('auto', 'none');

test('any prefix of any log gives requests that every vendor accepts', () => {
  let cases = 0;
  fc.assert(
    fc.property(logs, fc.nat(60), choice, (events, length, toolChoice) => {
      cases += speakers.length * 2;
      expect(broken(events, toolChoice)).toEqual([]);
      expect(broken(events.slice(0, Math.min(length, events.length)), toolChoice)).toEqual([]);
    }),
    { numRuns: propertyRuns(1500) },
  );
  console.log(`Requests: ${cases} checked against schemas and pairing rules`);
});

test('a log with events missing gives requests that every vendor accepts', () => {
  let cases = 0;
  fc.assert(
    fc.property(logs, fc.array(fc.nat(40), { maxLength: 5 }), (events, missing) => {
      cases += speakers.length;
      expect(
        broken(
          events.filter((_event, index) => !missing.includes(index)),
          'auto',
        ),
      ).toEqual([]);
    }),
    { numRuns: propertyRuns(400) },
  );
  console.log(`Requests: ${cases} checked with events missing`);
});

test('the same conversation gives the same bytes, kept or made anew, and the object shown is the text sent', () => {
  fc.assert(
    fc.property(logs, (events) => {
      const conversation = project(events);
      for (const [name, , quirks] of speakers) {
        const wire = wires[name]!;
        const first = wire.requestParts(conversation, options(quirks)).join('');
        expect(wire.requestParts(conversation, options(quirks)).join('')).toBe(first);
        expect(wire.requestParts(structuredClone(conversation), options(quirks)).join('')).toBe(first);
        expect(wire.request(conversation, options(quirks))).toEqual(JSON.parse(first));
      }
    }),
    { numRuns: propertyRuns(200) },
  );
});

test('a planted violation of each kind is found', () => {
  const call = { id: 'a', type: 'function', function: { name: 'glob', arguments: '{}' } };
  const use = { type: 'tool_use', id: 'a', name: 'glob', input: {} };
  const user = { role: 'user', content: 'x' };
  const typed = { type: 'message', ...user };
  expect(rules['openai-chat']?.({ messages: [user, { role: 'assistant', tool_calls: [call] }, user] })).toHaveLength(1);
  expect(
    rules['openai-chat']?.({
      messages: [
        { role: 'system' },
        { role: 'assistant', content: 'x' },
        { role: 'assistant', content: 'y' },
        user,
        user,
      ],
    }),
  ).toHaveLength(3);
  expect(
    rules['openai-responses']?.({
      input: [typed, { type: 'function_call', call_id: 'a', name: 'glob', arguments: '[]' }, typed],
    }),
  ).toHaveLength(3);
  expect(rules['openai-responses']?.({ input: [user, typed] })).toHaveLength(2);
  expect(mistralTurns([user, { role: 'assistant', tool_calls: [call] }, { role: 'tool' }, user])).toHaveLength(1);
  expect(
    rules['anthropic-messages']?.({
      messages: [
        { role: 'user', content: [{ type: 'text', text: ' ' }] },
        { role: 'assistant', content: [use] },
      ],
    }),
  ).toHaveLength(2);
  expect(loneSurrogates({ a: ['\ud83d'] })).toBe(1);
  if (hasSchemas)
    expect(
      speakers
        .map(([, schema]) => schemaError(schema, { model: 1, messages: [{ role: 'nobody' }], input: 5 }))
        .filter((error) => error === null),
    ).toEqual([]);
});

const mark = ',"cache_control":{"type":"ephemeral"}';

test('each request continues the bytes of the one before, cache marks aside', () => {
  const turn = (n: number): Parameters<typeof number>[0] => [
    { kind: 'user', content: `question ${n}`, data: null },
    {
      kind: 'assistant',
      content: `look ${n}`,
      data: {
        response_id: `r${n}`,
        ...makers[0],
        api: 'anthropic-messages',
        stop: 'tool',
        reasoning: [{ type: 'thinking', thinking: 'Hm.', signature: 'S==' }],
      },
    },
    {
      kind: 'tool_call',
      content: '',
      data: {
        id: `call_${n}`,
        type: 'function',
        function: { name: 'glob', arguments: '{"pattern":"*"}' },
        response_id: `r${n}`,
      },
    },
    {
      kind: 'tool_result',
      content: '',
      data: { tool_call_id: `call_${n}`, name: 'glob', output: '{"output":"a"}', success: true, duration_ms: 1 },
    },
    ...(n % 2 === 0 ? [{ kind: 'user', content: 'steer', data: null }] : []),
  ];
  const tools = [{ name: 'glob', description: '', input_schema: { type: 'object' } }];
  const drafts = [
    { kind: 'system', content: 'S', data: null },
    { kind: 'tools', content: '', data: { tools, settings: { model_output_size: 100 } } },
    ...Array.from({ length: 8 }, (_unused, n) => turn(n)).flat(),
  ];
  const events = number(drafts);
  for (const [name, , quirks] of speakers) {
    let before = '';
    const sent = events.flatMap((event, index) =>
      event.kind === 'user' || event.kind === 'tool_result' ? [index + 1] : [],
    );
    for (const length of sent) {
      const conversation = project(events.slice(0, length));
      const text = wires[name]!.requestParts(conversation, options(quirks)).join('').replaceAll(mark, '');
      expect(text.startsWith(before), `${name} at ${length}`).toBe(true);
      const forbidden = wires[name]!.requestParts(conversation, options(quirks, 'none')).join('').replaceAll(mark, '');
      // Without the brackets that close the message list.
      // What the user says next may go on in the last message of the user.
      const isText = name !== 'messages' && quirks.cache_control_models === undefined;
      before = text.slice(0, text.lastIndexOf(isText ? '"}]' : ']}]'));
      expect(forbidden.startsWith(before), `${name} at ${length}, tools forbidden`).toBe(true);
    }
  }
});
