import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ToolSpec } from '../../../../src/kernel/core/event.js';
import { type AnsweredCall, type Message, project } from '../../../../src/kernel/core/projection.js';
import { createTextScanner } from '../../../../src/kernel/providers/text/call-scanner.js';
import { createTextProtocol, createTextStep, describeTools } from '../../../../src/kernel/providers/text/protocol.js';
import type { WireChunk, WireOptions } from '../../../../src/kernel/providers/wires/wire.js';
import { conversation } from '../http/http-rig.js';
import { logs } from '../logs.js';
import { decode, fold, wires } from '../wires/recordings.js';
import { rules, schemaError } from '../wires/request-rules.js';
import { propertyRuns } from '../../../property-runs.js';

const tools = new Map([
  ['glob', { type: 'object', properties: { pattern: { type: 'string' } } }],
  ['bash', {}],
  ['file_write', {}],
]);
const options: WireOptions = {
  provider: 'here',
  model: 'model-1',
  toolChoice: 'auto',
  quirks: { tool_protocol: 'text' },
};

function read(pieces: readonly string[], stop: Extract<WireChunk, { type: 'end' }>['stop'] = 'stop') {
  const step = createTextStep(tools);
  const given: readonly WireChunk[] = [
    ...pieces.map((text): WireChunk => ({ type: 'text', text })),
    { type: 'usage', usage: { input: 1, cacheRead: 0, cacheWrite: 0, output: 1 } },
    { type: 'end', stop },
  ];
  const chunks = given.flatMap((chunk) => step(chunk));
  const { text, reasoning, calls, stop: ended } = fold(chunks);
  return {
    text,
    reasoning,
    calls: calls.map(({ name, arguments: args }) => `${name} ${args}`),
    stop: ended,
    order: chunks
      .map(({ type }) => type)
      .filter((type) => type !== 'text' && type !== 'reasoning')
      .join(' '),
  };
}

const block = (tool: string, args: string): string => `\`\`\`json\n{"tool": "${tool}", "args": ${args}}\n\`\`\``;

const forms: readonly (readonly [name: string, answer: string, text: string, calls: readonly string[]])[] = [
  [
    'a fenced block',
    `Let me look.\n\n${block('glob', '{"pattern":"*.ts"}')}`,
    'Let me look.',
    ['glob {"pattern":"*.ts"}'],
  ],
  [
    'two blocks with words between',
    `A\n${block('glob', '{}')}\nB\n${block('bash', '{"command":"ls"}')}\n`,
    'A\n\nB',
    ['glob {}', 'bash {"command":"ls"}'],
  ],
  ['an unknown tool is a call: the loop answers it', block('nosuch', '{}'), '', ['nosuch {}']],
  ['arguments beside the name', '```json\n{"tool": "glob", "pattern": "*"}\n```', '', ['glob {"pattern":"*"}']],
  ['a fence without line break before its end', '```json\n{"tool":"glob","args":{}}```', '', ['glob {}']],
  [
    'a trailing comma and single quotes',
    "```json\n{'tool': 'glob', 'args': {'pattern': '*',},}\n```",
    '',
    ['glob {"pattern":"*"}'],
  ],
  [
    'a raw line break in an argument',
    '```json\n{"tool":"file_write","args":{"path":"a","content":"x\ny"}}\n```',
    '',
    ['file_write {"path":"a","content":"x\\ny"}'],
  ],
  [
    'broken JSON comes back as a call that cannot run',
    '```json\n{"tool":"glob","args":{"pattern": say "hi"}}\n```',
    '',
    ['glob {"tool":"glob","args":{"pattern": say "hi"}}'],
  ],
  [
    'JSON that is not a call stays text',
    '```json\n{"name": "x", "version": 1}\n```\nDone.',
    '```json\n{"name": "x", "version": 1}\n```\nDone.',
    [],
  ],
  [
    'code in another language stays text, with what looks like a call in it',
    '```python\n<tool_call>{"name":"bash","arguments":{}}</tool_call>\n```\nok',
    '```python\n<tool_call>{"name":"bash","arguments":{}}</tool_call>\n```\nok',
    [],
  ],
  [
    'code in a line stays text',
    'Write `{"tool":"bash","args":{}}` or `<tool_call>`.',
    'Write `{"tool":"bash","args":{}}` or `<tool_call>`.',
    [],
  ],
  [
    'a quoted call in a sentence stays text',
    'It says {"tool":"bash","args":{"command":"x"}} there.',
    'It says {"tool":"bash","args":{"command":"x"}} there.',
    [],
  ],
  ['a cut block stays text', '```json\n{"tool":"bash","args":{"comm', '```json\n{"tool":"bash","args":{"comm', []],
  ['thinking is reasoning, its calls do not count', `<think>I could ${block('bash', '{}')}</think>Hello`, 'Hello', []],
  [
    'calls before a lone end of thinking do not count',
    'Hm <tool_call>{"name":"bash","arguments":{}}</tool_call></think>Hello',
    'Hm Hello',
    [],
  ],
  [
    'Qwen XML',
    '<tool_call>\n<function=file_write>\n<parameter=path>\na\n</parameter>\n' +
      '<parameter=content>\nx\n\ny\n</parameter>\n</function>\n</tool_call>',
    '',
    ['file_write {"path":"a","content":"x\\n\\ny"}'],
  ],
  [
    "Qwen XML: Python's literals, numbers and objects are read where the schema does not say text",
    '<tool_call><function=bash><parameter=a>True</parameter><parameter=b>False</parameter>' +
      "<parameter=c>None</parameter><parameter=d>3</parameter><parameter=e>{'x': 1}</parameter><parameter=f>word</parameter></function></tool_call>",
    '',
    ['bash {"a":true,"b":false,"c":null,"d":3,"e":{"x":1},"f":"word"}'],
  ],
  [
    'Mistral list',
    'Sure. [TOOL_CALLS][{"name":"glob","arguments":{"pattern":"a"}},{"name":"bash","arguments":{"command":"b"}}]',
    'Sure.',
    ['glob {"pattern":"a"}', 'bash {"command":"b"}'],
  ],
  [
    'Llama, after its tag',
    '<|python_tag|>{"name": "glob", "parameters": {"pattern": "a"}}',
    '',
    ['glob {"pattern": "a"}'],
  ],
  [
    'DeepSeek',
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>glob\n```json\n{"pattern":"a"}\n```' +
      '<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    '',
    ['glob {"pattern":"a"}'],
  ],
  [
    'a number too large for JavaScript stays exact',
    block('glob', '{"n": 12345678901234567890}'),
    '',
    ['glob {"n": 12345678901234567890}'],
  ],
  [
    'a bare list',
    'Two:\n[{"name":"glob","arguments":{"pattern":"*"}},{"name":"bash","arguments":{"command":"ls"}}]\nDone.',
    'Two:\n\nDone.',
    ['glob {"pattern":"*"}', 'bash {"command":"ls"}'],
  ],
  [
    'a bare list with tool and args',
    '[{"tool":"glob","args":{}},\n {"tool":"bash","args":{"command":"ls"}}]',
    '',
    ['glob {}', 'bash {"command":"ls"}'],
  ],
  [
    'a bare list of which one is not a call stays text, whole',
    '[{"name":"glob","arguments":{}},{"name":"x"}]',
    '[{"name":"glob","arguments":{}},{"name":"x"}]',
    [],
  ],
  [
    'a list that is none of calls stays text',
    'See [1], [x](y) and [{"name": "a"}].',
    'See [1], [x](y) and [{"name": "a"}].',
    [],
  ],
  ['a bare tool_call', '{"tool_call": {"name": "glob", "arguments": {"pattern":"*"}}}', '', ['glob {"pattern":"*"}']],
  [
    'a fenced tool_call, with words around it',
    `A\n\`\`\`json\n{ "tool_call": { "name": "glob", "arguments": {"pattern":"*"} } }\n\`\`\`\nB`,
    'A\n\nB',
    ['glob {"pattern":"*"}'],
  ],
  [
    'a fenced tool_call of an unknown tool: the loop answers it',
    '```json\n{"tool_call":{"name":"nosuch","arguments":{}}}\n```',
    '',
    ['nosuch {}'],
  ],
  [
    'tool_calls as OpenAI writes them',
    '{"tool_calls":[{"id":"1","type":"function","function":{"name":"glob","arguments":"{\\"pattern\\":\\"*\\"}"}}]}',
    '',
    ['glob {"pattern":"*"}'],
  ],
  [
    'a list of tool_call',
    '[{"tool_call":{"name":"glob","arguments":{}}},{"tool_call":{"name":"bash","arguments":{}}}]',
    '',
    ['glob {}', 'bash {}'],
  ],
  [
    'a quoted tool_call in a sentence stays text, with what is in it',
    'It says {"tool_call":{"name":"bash","arguments":{}}} there.',
    'It says {"tool_call":{"name":"bash","arguments":{}}} there.',
    [],
  ],
  ['plain text with every opening character', 'if (a < b) { x[0] = `y`; } f()', 'if (a < b) { x[0] = `y`; } f()', []],
  ['blanks at the ends stay where there is no call', '  hi \n\n', '  hi \n\n', []],
];

test.each(forms)('%s', (_name, answer, text, calls) => {
  for (const pieces of [[answer], [...answer], answer.match(/[\s\S]{1,5}/g) ?? []]) {
    const got = read(pieces);
    expect({ text: got.text, calls: got.calls }).toEqual({ text, calls });
    expect(got.stop).toBe(calls.length > 0 ? 'tool' : 'stop');
    expect(got.order).toBe([...calls.map(() => 'tool_call'), 'usage', 'end'].join(' '));
  }
});

const wish = block('bash', '{"command":"x"}');
const thoughts: readonly (readonly [open: string, close: string])[] = [
  ['<think>', '</think>'],
  ['<thinking>', '</thinking>'],
  ['<Thinking mode="deep">', '</Thinking >'],
  ['<thought>', '</thought>'],
  ['<reasoning>', '</reasoning>'],
  ['<reflection>', '</reflection>'],
  ['<scratchpad>', '</scratchpad>'],
  ['<seed:think>', '</seed:think>'],
  ['<mm:think>', '</mm:think>'],
  ['[THINK]', '[/THINK]'],
  ['<|START_THINKING|>', '<|END_THINKING|>'],
  ['<|inner_prefix|>', '<|inner_suffix|>'],
  ['<|begin_of_thought|>', '<|end_of_thought|>'],
  ['◁think▷', '◁/think▷'],
  ['<|channel>thought', '<channel|>'],
  ['<|channel|>analysis<|message|>', '<|end|>'],
];

test.each(thoughts)('no call between %s and %s is run, and none after it where it is not closed', (open, close) => {
  const inside = `\nI could\n${wish}\nor {"name":"bash","arguments":{}} or [TOOL_CALLS]bash[ARGS]{"command":"y"}.`;
  const answers: readonly (readonly [answer: string, text: string, calls: readonly string[]])[] = [
    [`${open}${inside}${close}No.`, 'No.', []],
    [`${open}${inside}`, '', []],
    [`Well.\n${open}${inside}${close}\n${wish}`, 'Well.', ['bash {"command":"x"}']],
    [`${wish}\n${open}${inside}${close}`, '', ['bash {"command":"x"}']],
    [`Write \`${open}\` and think.\n${wish}`, `Write \`${open}\` and think.`, ['bash {"command":"x"}']],
  ];
  for (const [answer, text, calls] of answers) {
    for (const pieces of [[answer], [...answer], answer.match(/[\s\S]{1,5}/g) ?? []]) {
      const got = read(pieces);
      expect({ text: got.text.trim(), calls: got.calls }, answer).toEqual({ text, calls });
      expect(got.reasoning.includes('I could')).toBe(answer.includes('I could'));
    }
  }
});

test.each(thoughts.slice(0, 14))('calls before a lone end of thinking do not count: %s', (_open, close) => {
  expect(read([`Hm.\n${wish}${close}Hello`])).toMatchObject({ text: 'Hm.\nHello', calls: [] });
});

test('where gpt-oss goes on to its answer, the answer is text', () => {
  const answer =
    '<|channel|>analysis<|message|>I could {"name":"bash","arguments":{}}' +
    '<|start|>assistant<|channel|>final<|message|>Hello';
  expect(read([...answer])).toMatchObject({ text: '<|start|>assistant<|channel|>final<|message|>Hello', calls: [] });
});

test('a call that the output limit cut is given as one that the loop refuses', () => {
  expect(read(['Writing.\n```json\n{"tool":"file_write","args":{"path":"a","content":"ab'], 'length')).toMatchObject({
    stop: 'length',
    calls: [expect.stringContaining('file_write')],
    text: 'Writing.',
  });
});

test('a call that was mended keeps what the model wrote', () => {
  const scanner = createTextScanner(tools);
  const mended = '```json\n{"tool":"glob","args":{"pattern": "*",}}\n```';
  scanner.push(`${mended}\n${block('bash', '{"command":"ls"}')}`);
  expect(scanner.end(false).calls).toEqual([
    { id: '', name: 'glob', arguments: '{"pattern":"*"}', received: mended },
    { id: '', name: 'bash', arguments: '{"command":"ls"}' },
  ]);
});

test('calls of a refused answer are not given', () => {
  expect(read([block('bash', '{}')], 'refusal')).toMatchObject({ stop: 'refusal', calls: [] });
});

test('nothing of an answer is lost or doubled, wherever it is cut', () => {
  const alphabet = fc.constantFrom(
    '`',
    '```',
    '```json\n',
    '\n',
    '{"tool":"glob","args":{}}',
    '{',
    '}',
    '<tool_call>',
    '</tool_call>',
    '<',
    'a ',
    '"',
    '[TOOL_CALLS]',
    '</think>',
    '<thinking>',
    '[/THINK]',
    '<|channel|>analysis',
    '<function=glob>',
    '[',
    ']',
    ',',
    '{"tool_call":',
    '{"name":"glob","arguments":{}}',
    '\\',
    '😀',
  );
  let cases = 0;
  fc.assert(
    fc.property(
      fc.array(alphabet, { maxLength: 14 }).map((parts) => parts.join('')),
      fc.integer({ min: 1, max: 9 }),
      (answer, size) => {
        cases++;
        const whole = read([answer]);
        expect(read(answer.match(new RegExp(`[\\s\\S]{1,${size}}`, 'g')) ?? [])).toEqual(whole);
        if (whole.calls.length === 0 && !/think|analysis/i.test(answer)) expect(whole.text).toBe(answer);
      },
    ),
    { numRuns: propertyRuns(3000) },
  );
  console.log(`Text protocol: ${cases} answers, cut and whole`);
});

test('an answer made to be slow is read in time that grows with its length', () => {
  for (const piece of [
    '```json\n{"tool":',
    '<tool_call>{',
    '{"name":',
    '</tool_call>',
    '<function=x>',
    '```\n',
    '<think>',
    '[TOOL_CALLS]a',
    '<arg_key>',
  ]) {
    const scanner = createTextScanner(tools);
    for (let n = 0; n < 2000; n++) scanner.push(piece.repeat(10));
    expect(scanner.end(false).calls.length).toBeLessThan(2000);
  }
});

test('in native mode, text that looks like a call is text', () => {
  const answer = block('bash', '{"command":"ls"}');
  const events = [
    { choices: [{ index: 0, delta: { content: answer } }] },
    { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
  ];
  const bytes = [Buffer.from(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''))];
  const asked = conversation([{ role: 'user', seq: 3, content: 'x' }]);
  const native = createTextProtocol().wire(wires.chat!, asked, {});
  expect(fold(decode(native, bytes))).toMatchObject({ text: answer, calls: [], stop: 'stop' });
  const asText = createTextProtocol().wire(wires.chat!, asked, { tool_protocol: 'text' });
  expect(fold(decode(asText, bytes))).toMatchObject({
    text: '',
    calls: [{ name: 'bash', arguments: '{"command":"ls"}' }],
    stop: 'tool',
  });
  const frozen = { ...asked, settings: { ...asked.settings, tool_protocol: 'native' as const } };
  expect(createTextProtocol().wire(wires.chat!, frozen, { tool_protocol: 'text' })).toBe(wires.chat);
});

test('the request describes the tools, writes calls as blocks and results as what the user says', () => {
  const call = (id: string, args: string): AnsweredCall => ({
    id,
    name: 'bash',
    arguments: args,
    result: { output: '{"output":"a\\n```","exit_code":0}', success: true },
  });
  const messages: readonly Message[] = [
    { role: 'user', seq: 3, content: 'list' },
    {
      role: 'assistant',
      seq: 4,
      text: 'Looking.',
      data: null,
      calls: [call('1', '{"command":"ls"}'), call('2', '{broken')],
    },
    { role: 'user', seq: 9, content: 'and then?' },
  ];
  const asked = conversation(messages);
  const wire = createTextProtocol().wire(wires.chat!, asked, options.quirks);
  const body = wire.request(asked, options) as {
    tools?: unknown;
    messages: readonly { role: string; content: string }[];
  };
  expect(body.tools).toBeUndefined();
  expect(body.messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user']);
  expect(body.messages[0]?.content).toMatch(
    /^test\n\n# Tools[\s\S]*"tool": "<name>"[\s\S]*## bash\nRun\nArguments, as a JSON Schema: \{"type"/,
  );
  expect(body.messages[2]?.content).toBe(
    'Looking.\n\n```json\n{"tool": "bash", "args": {"command":"ls"}}\n```\n\n' +
      '```json\n{"tool": "bash", "args": {}}\n```',
  );
  expect(body.messages[3]?.content).toBe(
    'Result 1 of 2, of bash:\n{"output":"a\\n```","exit_code":0}\n\n' +
      'Result 2 of 2, of bash:\n{"output":"a\\n```","exit_code":0}\n\nand then?',
  );
  const forbidden = wire.request(asked, { ...options, toolChoice: 'none' }) as typeof body;
  expect(forbidden.tools).toBeUndefined();
  expect(forbidden.messages.at(-1)?.content).toMatch(/and then\?\n\nAnswer now/);
});

test('the prompt shows how to call the tools of tasks where they are offered, and nothing of them elsewhere', () => {
  const named = (...names: readonly string[]): readonly ToolSpec[] =>
    names.map((name) => ({ name, description: 'D', input_schema: { type: 'object' } }));
  expect(describeTools(named('bash', 'add_reminder'))).toMatch(
    /## add_reminder\nD\n[^\n]*\n\n# Examples\n\nUser: "Remind me in 10 minutes to check the oven"\nAssistant:\n```json\n\{"tool":"add_reminder","args":\{"delay":"10m","message":"check the oven"\}\}\n```$/,
  );
  expect(describeTools(named('add_reminder', 'add_recurring_task')).match(/^User: /gm)).toHaveLength(3);
  expect(describeTools(named('bash'))).not.toContain('Examples');
});

test('the examples of the prompt are calls that would be read', () => {
  const tools = ['add_reminder', 'add_recurring_task'].map((name) => ({
    name,
    description: '',
    input_schema: { type: 'object' },
  }));
  const shown = describeTools(tools).split('# Examples')[1] ?? '';
  const step = createTextStep(new Map(tools.map(({ name, input_schema }) => [name, input_schema])));
  const chunks = [...step({ type: 'text', text: shown }), ...step({ type: 'end', stop: 'stop' })];
  expect(chunks.flatMap((chunk) => (chunk.type === 'tool_call' ? [chunk.call.name] : []))).toEqual([
    'add_reminder',
    'add_recurring_task',
    'add_recurring_task',
  ]);
});

test('every log gives requests that the vendors accept, as text too', () => {
  let cases = 0;
  const protocol = createTextProtocol();
  fc.assert(
    fc.property(logs, fc.constantFrom('auto' as const, 'none' as const), (events, toolChoice) => {
      const asked = project(events);
      for (const [name, api, schema] of [
        ['chat', 'openai-chat', 'openai-chat:request'],
        ['messages', 'anthropic-messages', 'anthropic-messages:request'],
        ['responses', 'openai-responses', 'openai-responses:request'],
      ] as const) {
        cases++;
        const quirks = { tool_protocol: 'text' as const, default_max_output_tokens: 4000 };
        const body = protocol.wire(wires[name]!, asked, quirks).request(asked, { ...options, toolChoice, quirks });
        expect(rules[api]?.(body), name).toEqual([]);
        expect(schemaError(schema, body), name).toBeNull();
      }
    }),
    { numRuns: propertyRuns(300) },
  );
  console.log(`Text protocol: ${cases} requests checked`);
});

test.each([
  ['and text behind it', '\nThen I look.'],
  ['and another call behind it', `\n${block('glob', '{"pattern":"*.ts"}')}`],
  ['and nothing behind it', ''],
])('a long call in small pieces %s is read as in one piece', (_what, behind) => {
  const args = JSON.stringify({ path: 'a.ts', content: 'const a = f(b[0], { c: `d` });\n'.repeat(2000) });
  for (const call of [
    block('file_write', args),
    `<tool_call>\n{"name":"file_write","arguments":${args}}\n</tool_call>`,
  ]) {
    const answer = `I write it.\n\n${call}${behind}`;
    const pieces = answer.match(/[^]{1,20}/g) ?? [];
    const whole = read([answer]);
    expect(whole.calls[0]).toBe(`file_write ${args}`);
    expect(read(pieces)).toEqual(whole);
  }
});
