import { expect, test } from 'vitest';
import { type Decoded, fold, wires } from './recordings.js';

type WireName = 'chat' | 'messages' | 'responses';
/** A piece of a call: its index (null: none), its id, its name, its arguments. */
type Piece = readonly [place: number | null, id: string, name: string, text: string];

function play(wire: WireName, events: readonly object[]): Decoded {
  const decoder = wires[wire]!.decoder();
  return fold([
    ...events.flatMap((event) => decoder.push({ event: '', data: JSON.stringify(event) })),
    ...decoder.end(),
  ]);
}

const writers: Readonly<Record<WireName, (pieces: readonly Piece[]) => readonly object[]>> = {
  chat: (pieces) => [
    ...pieces.map(([index, id, name, text]) => ({
      choices: [
        {
          index: 0,
          delta: {
            tool_calls: [
              {
                ...(index === null ? {} : { index }),
                ...(id === '' ? {} : { id }),
                type: 'function',
                function: { ...(name === '' ? {} : { name }), arguments: text },
              },
            ],
          },
        },
      ],
    })),
    { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] },
  ],
  messages: (pieces) => [
    { type: 'message_start', message: { id: 'm', usage: { input_tokens: 1, output_tokens: 0 } } },
    ...pieces.flatMap(([index, id, name, text]) => [
      ...(name === ''
        ? []
        : [{ type: 'content_block_start', ...at(index), content_block: { type: 'tool_use', id, name, input: {} } }]),
      ...(text === ''
        ? []
        : [{ type: 'content_block_delta', ...at(index), delta: { type: 'input_json_delta', partial_json: text } }]),
    ]),
    { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 1 } },
    { type: 'message_stop' },
  ],
  responses: (pieces) => [
    ...pieces.flatMap(([index, id, name, text]) => {
      const place = index === null ? {} : { output_index: index };
      return [
        ...(name === ''
          ? []
          : [
              {
                type: 'response.output_item.added',
                ...place,
                item: { type: 'function_call', ...(id === '' ? {} : { call_id: id }), name, arguments: '' },
              },
            ]),
        ...(text === '' ? [] : [{ type: 'response.function_call_arguments.delta', ...place, delta: text }]),
      ];
    }),
    { type: 'response.completed', response: { status: 'completed', output: [] } },
  ],
};

function at(index: number | null): object {
  return index === null ? {} : { index };
}

const one = '{"command":"a"}';
const two = '{"command":"b"}';
const half = '{"command"';
const rest = ':"a"}';

const cases: readonly (readonly [
  name: string,
  pieces: readonly Piece[],
  want: readonly string[],
  wires: readonly WireName[],
])[] = [
  [
    'pieces',
    [
      [0, 'x', 'bash', ''],
      [0, '', '', half],
      [0, '', '', rest],
    ],
    [one],
    ['chat', 'messages', 'responses'],
  ],
  [
    'pieces, then the whole call',
    [
      [0, 'x', 'bash', half],
      [0, '', '', rest],
      [0, 'x', 'bash', one],
    ],
    [one],
    ['chat', 'messages'],
  ],
  [
    'pieces, then the whole call without an id',
    [
      [0, 'x', 'bash', half],
      [0, '', '', rest],
      [0, '', 'bash', one],
    ],
    [one],
    ['chat'],
  ],
  [
    'pieces, then the whole call under another index',
    [
      [0, 'x', 'bash', half],
      [0, '', '', rest],
      [1, 'x', 'bash', one],
    ],
    [one],
    ['chat', 'messages'],
  ],
  [
    'half a call, then the whole call',
    [
      [0, 'x', 'bash', half],
      [0, 'x', 'bash', one],
    ],
    [one],
    ['chat'],
  ],
  [
    'the whole call twice',
    [
      [0, 'x', 'bash', one],
      [0, 'x', 'bash', one],
    ],
    [one],
    ['chat', 'messages'],
  ],
  [
    'the whole call twice, spaced otherwise',
    [
      [0, 'x', 'bash', one],
      [0, 'x', 'bash', '{ "command": "a" }'],
    ],
    [one],
    ['chat', 'messages'],
  ],
  [
    'the whole call twice without index and id',
    [
      [null, '', 'bash', one],
      [null, '', 'bash', one],
    ],
    [one],
    ['chat'],
  ],
  [
    'the whole call twice with an index alone',
    [
      [0, '', 'bash', one],
      [0, '', 'bash', one],
    ],
    [one],
    ['chat', 'messages'],
  ],
  [
    'the pieces twice',
    [
      [0, 'x', 'bash', half],
      [0, '', '', rest],
      [0, 'x', 'bash', half],
      [0, '', '', rest],
    ],
    [one],
    ['chat'],
  ],
  [
    'id and name in each piece',
    [
      [0, 'x', 'bash', half],
      [0, 'x', 'bash', rest],
      [0, 'x', 'bash', '\n'],
    ],
    [one],
    ['chat', 'messages'],
  ],
  [
    'id and name in each piece without index',
    [
      [null, 'x', 'bash', half],
      [null, 'x', 'bash', rest],
      [null, 'x', 'bash', '\n'],
    ],
    [one],
    ['chat', 'messages'],
  ],
  [
    'another id in each piece',
    [
      [0, 'x', 'bash', half],
      [0, 'y', 'bash', rest],
      [0, 'z', 'bash', '\n'],
    ],
    [one],
    ['chat', 'messages'],
  ],
  [
    'another id in each piece, then the whole call',
    [
      [0, 'x', 'bash', half],
      [0, 'y', '', rest],
      [0, 'z', 'bash', one],
    ],
    [one],
    ['chat'],
  ],
  [
    'another id in each piece without index',
    [
      [null, 'x', 'bash', half],
      [null, 'y', '', rest],
    ],
    [one],
    ['chat'],
  ],
  [
    'a line end under an id of its own',
    [
      [0, 'x', 'bash', one],
      [0, 'y', 'bash', '\n'],
    ],
    [one],
    ['chat'],
  ],
  [
    'no index and no id',
    [
      [null, '', 'bash', half],
      [null, '', '', rest],
    ],
    [one],
    ['chat', 'messages'],
  ],
  [
    'two calls without index and id',
    [
      [null, '', 'bash', one],
      [null, '', 'bash', two],
    ],
    [one, two],
    ['chat', 'messages'],
  ],
  [
    'two calls that are alike, with ids',
    [
      [0, 'x', 'bash', one],
      [1, 'y', 'bash', one],
    ],
    [one, one],
    ['chat', 'messages', 'responses'],
  ],
  [
    'two calls that are alike, under one index',
    [
      [0, 'x', 'bash', one],
      [0, 'y', 'bash', one],
    ],
    [one, one],
    ['chat', 'messages'],
  ],
  [
    'two calls that are alike, with indexes alone',
    [
      [0, '', 'bash', one],
      [1, '', 'bash', one],
    ],
    [one, one],
    ['chat', 'messages', 'responses'],
  ],
  [
    'two calls under one index',
    [
      [0, 'x', 'bash', one],
      [0, 'y', 'bash', two],
    ],
    [one, two],
    ['chat', 'messages'],
  ],
  [
    'two calls under one id',
    [
      [0, 'x', 'bash', one],
      [1, 'x', 'bash', two],
    ],
    [one, two],
    ['chat', 'messages'],
  ],
  [
    'two calls in pieces under one index',
    [
      [0, 'x', 'bash', ''],
      [0, '', '', one],
      [0, 'y', 'bash', ''],
      [0, '', '', one],
    ],
    [one, one],
    ['chat', 'messages'],
  ],
  [
    'interleaved by index',
    [
      [0, 'x', 'bash', half],
      [1, 'y', 'bash', half],
      [0, '', '', rest],
      [1, '', '', ':"b"}'],
    ],
    [one, two],
    ['chat', 'messages', 'responses'],
  ],
  [
    'interleaved by id, without index',
    [
      [null, 'x', 'bash', half],
      [null, 'y', 'bash', half],
      [null, 'x', '', rest],
      [null, 'y', '', ':"b"}'],
    ],
    [one, two],
    ['chat'],
  ],
  [
    'three without index',
    [
      [null, 'x', 'bash', one],
      [null, 'y', 'bash', two],
      [null, 'z', 'bash', one],
    ],
    [one, two, one],
    ['chat', 'messages'],
  ],
];

test.each(cases.flatMap(([name, pieces, want, on]) => on.map((wire) => [wire, name, pieces, want] as const)))(
  '%s: %s',
  (wire, _name, pieces, want) => {
    const got = play(wire, writers[wire](pieces));
    expect([got.fault, got.calls.map((call) => [call.name, call.arguments])]).toEqual([
      null,
      want.map((text) => ['bash', text]),
    ]);
  },
);

const added = (fields: object, place: object = {}): object => ({
  type: 'response.output_item.added',
  ...place,
  item: { type: 'function_call', name: 'bash', arguments: '', ...fields },
});
const whole = (fields: object, place: object = {}): object => ({
  type: 'response.output_item.done',
  ...place,
  item: { type: 'function_call', name: 'bash', arguments: one, ...fields },
});
const delta = (text: string, fields: object = {}): object => ({
  type: 'response.function_call_arguments.delta',
  ...fields,
  delta: text,
});
const completed = (output: readonly object[] = []): object => ({
  type: 'response.completed',
  response: { status: 'completed', output },
});
const first = { output_index: 0 };

test.each<readonly [string, readonly object[], readonly string[]]>([
  [
    'another item id in each event',
    [
      added({ id: 'a', call_id: 'x' }, first),
      delta(half, { item_id: 'b', ...first }),
      delta(rest, { item_id: 'c', ...first }),
      whole({ id: 'd', call_id: 'x' }, first),
      completed(),
    ],
    [one],
  ],
  [
    'neither id nor index',
    [added({ call_id: 'x' }), delta(half), delta(rest), whole({ call_id: 'x' }), completed()],
    [one],
  ],
  ['no id at all', [added({}), delta(one), whole({}), completed()], [one]],
  [
    'the whole item twice',
    [whole({ id: 'a', call_id: 'x' }, first), whole({ id: 'a', call_id: 'x' }, first), completed()],
    [one],
  ],
  [
    'begun again behind its end',
    [
      whole({ id: 'a', call_id: 'x' }, first),
      added({ id: 'a', call_id: 'x' }, first),
      delta(one, { item_id: 'a' }),
      completed(),
    ],
    [one],
  ],
  [
    'two calls under one index',
    [whole({ id: 'a', call_id: 'x' }, first), whole({ id: 'b', call_id: 'y' }, first), completed()],
    [one, one],
  ],
  [
    'two calls under one index in pieces',
    [
      added({ id: 'a', call_id: 'x' }, first),
      added({ id: 'b', call_id: 'y' }, first),
      delta(one, { item_id: 'a' }),
      delta(two, { item_id: 'b' }),
      completed(),
    ],
    [one, two],
  ],
  [
    'a call in the whole response alone',
    [
      whole({ id: 'a', call_id: 'x' }, first),
      completed([
        { type: 'function_call', name: 'bash', id: 'a', call_id: 'x', arguments: one },
        { type: 'function_call', name: 'bash', id: 'b', call_id: 'y', arguments: two },
      ]),
    ],
    [one, two],
  ],
])('responses: %s', (_name, events, want) => {
  const got = play('responses', events);
  expect([got.fault, got.calls.map((call) => call.arguments)]).toEqual([null, want]);
});

test('Messages: a part of a block that never began is a missing part of the answer', () => {
  for (const part of [
    { type: 'input_json_delta', partial_json: one },
    { type: 'text_delta', text: 'Hi' },
  ]) {
    const got = play('messages', [{ type: 'content_block_delta', index: 3, delta: part }, { type: 'message_stop' }]);
    expect(got.fault).toMatchObject({ fault: { code: 'stream_incomplete' }, retryable: true });
  }
});

test('the older field of a call beside tool_calls is the same call, also in pieces', () => {
  const pieces = [half, rest].map((text, n) => ({
    choices: [
      {
        index: 0,
        delta: {
          tool_calls: [{ index: 0, ...(n === 0 ? { id: 'x' } : {}), function: { name: 'bash', arguments: text } }],
          function_call: { name: 'bash', arguments: text },
        },
      },
    ],
  }));
  const got = play('chat', [...pieces, { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] }]);
  expect(got.calls).toEqual([{ id: 'x', name: 'bash', arguments: one }]);
});
