import fc from 'fast-check';
import type { Event } from '../../../src/kernel/core/event.js';

/** Who may have made a response. The first is the one the requests are for, on each wire. */
export const makers = [
  { provider: 'here', model: 'model-1' },
  { provider: 'here', model: 'model-2' },
  { provider: 'there', model: 'model-1' },
] as const;

const apis = ['openai-chat', 'openai-responses', 'anthropic-messages'] as const;
const text = fc.oneof(
  fc.constantFrom('', ' ', '\n', 'Hello', 'a\ud83d', '\ude00b', '😀', 'line\nline', '{"tool":"x"}', '"'),
  fc.string({ unit: 'binary', maxLength: 12 }),
);
const args = fc.oneof(
  fc.constantFrom(
    '',
    '{}',
    '{"path":"a"}',
    ' {"a": 1e400} ',
    '[1]',
    'null',
    '"x"',
    '{"a":',
    '{"\\ud83d":"\\ude00"}',
    `${'{"a":'.repeat(80)}1${'}'.repeat(80)}`,
    '{"a":1}{"b":2}',
  ),
  fc.json(),
  text,
);
const id = fc.oneof(
  fc.constantFrom('', 'call_1', 'toolu_01', 'functions.glob:0', 'with space', 'é', '\ud83d', 'x'.repeat(90)),
  fc.string({ maxLength: 6 }),
);

const thinking = { type: 'thinking', thinking: 'Hm.', signature: 'S==' };
const reasonings: Readonly<Record<(typeof apis)[number], readonly (readonly unknown[])[]>> = {
  'openai-chat': [
    [{ type: 'reasoning_content', text: 'Hm.' }],
    [{ type: 'reasoning.text', text: 'Hm.', signature: 'S==', format: 'anthropic-claude-v1', index: 0 }],
  ],
  'openai-responses': [
    [{ id: 'rs_1', type: 'reasoning', summary: [], encrypted_content: 'gAAA' }],
    [{ id: 'rs_2', type: 'reasoning', summary: [] }],
    [
      { type: 'layout_call' },
      { id: 'rs_3', type: 'reasoning', summary: [], encrypted_content: 'gBBB' },
      { type: 'layout_text', units: 2, phase: 'commentary' },
    ],
  ],
  'anthropic-messages': [
    [thinking],
    [{ type: 'redacted_thinking', data: 'Em==' }, thinking],
    [{ type: 'thinking', thinking: 'unsigned' }],
    [
      thinking,
      { type: 'layout_text', units: 3 },
      { type: 'redacted_thinking', data: 'Em==' },
      { type: 'layout_call' },
      thinking,
    ],
    [{ type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} }],
  ],
};

type Draft = Omit<Event, 'seq' | 'createdAt'>;

const data = fc.record({
  maker: fc.constantFrom(makers[0], ...makers),
  api: fc.constantFrom(...apis),
  pick: fc.nat(4),
  interrupted: fc.boolean(),
});
const call = fc.record({
  id,
  name: fc.constantFrom('glob', 'bash', 'no such tool!', '', 'é'),
  args,
  answer: fc.constantFrom('result', 'failed', 'started', 'none', 'twice'),
  output: text,
});

/** One response with its calls and what happened to them. `number` keeps response ids apart. */
const response = fc
  .record({
    text: fc.oneof(fc.constant(''), text),
    data: fc.option(data),
    calls: fc.array(call, { maxLength: 3 }),
    split: fc.boolean(),
  })
  .map(({ text: said, data: of, calls, split }) => (number: number): Draft[] => {
    const response_id = `r${number}`;
    const drafts: Draft[] = [];
    if (of) {
      const { provider, model } = of.maker;
      const options = reasonings[of.api];
      const reasoning = options[of.pick];
      drafts.push({
        kind: 'assistant',
        content: said,
        data: {
          response_id,
          provider,
          api: of.api,
          model,
          stop: 'stop',
          ...(reasoning ? { reasoning } : {}),
          ...(of.interrupted ? { interrupted: true } : {}),
        },
      });
    }
    const made = calls.map((item) => ({
      kind: 'tool_call',
      content: '',
      data: { id: item.id, type: 'function', function: { name: item.name, arguments: item.args }, response_id },
    }));
    const ends = calls.map((item): Draft[] => {
      const end = {
        kind: 'tool_result',
        content: '',
        data: {
          tool_call_id: item.id,
          name: item.name,
          output: JSON.stringify({ output: item.output }),
          success: item.answer !== 'failed',
          duration_ms: 1,
        },
      };
      if (item.answer === 'none') return [];
      const start = { kind: 'tool_started', content: null, data: { tool_call_id: item.id } };
      return item.answer === 'started' ? [start] : item.answer === 'twice' ? [start, end, end] : [start, end];
    });
    // As the loop writes them, or call by call.
    drafts.push(...(split ? made.flatMap((item, index) => [item, ...(ends[index] ?? [])]) : [...made, ...ends.flat()]));
    return drafts;
  });

const step = fc.oneof(
  response,
  text.map((content) => (): Draft[] => [{ kind: 'user', content, data: null }]),
  fc
    .constantFrom<Draft>(
      {
        kind: 'tool_result',
        content: '',
        data: { tool_call_id: 'gone', name: 'glob', output: '{"output":""}', success: true, duration_ms: 1 },
      },
      { kind: 'rewind', content: null, data: { to: 3 } },
      { kind: 'assistant', content: 'no data', data: null },
      { kind: 'usage', content: null, data: {} },
    )
    .map((draft) => (): Draft[] => [draft]),
);

const tools = [
  {
    name: 'glob',
    description: 'Finds files.',
    input_schema: { type: 'object', properties: { pattern: { type: 'string' } }, required: ['pattern'] },
  },
];

/** Event logs in every state a session can be left in. */
export const logs: fc.Arbitrary<readonly Event[]> = fc
  .record({
    system: fc.constantFrom('', 'You are agent.', 'lone \ud83d'),
    hasTools: fc.boolean(),
    steps: fc.array(step, { maxLength: 8 }),
  })
  .map(({ system, hasTools, steps }) =>
    number([
      { kind: 'system', content: system, data: null },
      {
        kind: 'tools',
        content: '',
        data: {
          tools: hasTools ? tools : [],
          settings: { model_output_size: 32_768, max_output_tokens: 4000, effort: 'low' },
        },
      },
      ...steps.flatMap((make, index) => make(index)),
    ]),
  );

export function number(drafts: readonly Draft[]): readonly Event[] {
  return drafts.map((draft, index) => ({ ...draft, seq: index + 1, createdAt: index }));
}
