import { expect, test } from 'vitest';
import { contextTokens } from '../../../src/kernel/agent/budget.js';
import type { AgentEvent } from '../../../src/kernel/core/session-port.js';
import type { EventDraft } from '../../../src/kernel/core/event.js';
import { project } from '../../../src/kernel/core/projection.js';
import type { ModelChunk, ModelRequest } from '../../../src/kernel/core/provider.js';
import { calls, end, kinds, noteTool, rig, scripted, text } from './harness.js';

const say = (value: string): readonly ModelChunk[] => [text(value), end()];
const used = (input: number): ModelChunk => ({
  type: 'usage',
  usage: { input, cacheRead: 0, cacheWrite: 0, output: 10 },
  costUsd: 0,
});
const overflow: readonly ModelChunk[] = [
  { type: 'fault', fault: { code: 'context_overflow', message: 'prompt is too long' } },
];
const long = 'word '.repeat(600);
const notices = (seen: readonly AgentEvent[]): readonly string[] =>
  seen.flatMap((event) => (event.type === 'notice' ? [event.code] : []));
const texts = (request: ModelRequest | undefined): readonly string[] =>
  request?.conversation.messages.map((message) => (message.role === 'user' ? message.content : `<${message.text}>`)) ??
  [];
const result = (id: string, path: string, changed: boolean): readonly EventDraft[] => [
  {
    kind: 'tool_call',
    content: 'x()',
    data: { id, type: 'function', function: { name: 'x', arguments: '{}' }, response_id: `r_${id}` },
  },
  {
    kind: 'tool_result',
    content: 'ok',
    data: {
      tool_call_id: id,
      name: 'x',
      output: '{"output":"ok"}',
      success: true,
      duration_ms: 1,
      files: [{ path, sha256: 'aa' }],
      ...(changed ? { changes: [{ path, what: 'changed', before: 'bb', after: 'aa', captured: true } as const] } : {}),
    },
  },
];

test("a compaction has the user's messages word for word, the files from the log and the model's summary", async () => {
  const provider = scripted([say('Hello.'), say('Fine.'), [used(7), ...say('They want X; Y is done.')], say('On.')]);
  const { session } = rig({ provider, tools: [noteTool()] });
  await session.submit('always use tabs');
  for (const draft of [...result('c1', '/work/read.ts', false), ...result('c2', '/work/made.ts', true)])
    await session.append(draft);
  await session.append({ kind: 'user', content: '[Note: today is 2026-01-02]', data: { note: true } });
  await session.submit('and no semicolons');
  expect(await session.compact('the names of functions')).toMatchObject({ done: true });
  expect(provider.requests[2]).toMatchObject({ toolChoice: 'none' });
  expect(texts(provider.requests[2]).at(-1)).toMatch(
    /^Write a summary[^]*The user asks to keep in particular: the names of functions$/,
  );
  expect(provider.requests[2]?.conversation.messages.slice(0, -2)).toEqual(provider.requests[1]?.conversation.messages);
  await session.submit('go on');
  expect(texts(provider.requests[3])).toEqual([
    [
      '[The conversation from event 3 to 11 was compacted; the text below replaces it. ' +
        'The whole text of an event in it can be read with file_read path="event:N".]',
      '## What the user said, word for word\n(event 3) always use tabs\n(event 10) and no semicolons',
      '## Files changed in this session (event of the last change)\n- /work/made.ts (8)',
      '## Files read (event)\n- /work/read.ts (6)',
      '## Summary\nThey want X; Y is done.',
    ].join('\n\n'),
    'go on',
  ]);
  expect(kinds(session.events())).toBe(
    'system tools user assistant tool_call tool_result tool_call tool_result user user assistant ' +
      'usage compaction user assistant',
  );
  expect(session.events()[11]).toMatchObject({ data: { purpose: 'compaction' } });
});

test('a compaction of a compaction still has every word of the user', async () => {
  const provider = scripted([say(long), say('SUMMARY 1'), say(long), say('SUMMARY 2'), say('c')]);
  const { session } = rig({ provider });
  await session.submit('first wish');
  await session.compact('');
  await session.submit('second wish');
  await session.compact('');
  await session.submit('third');
  const [summary = ''] = texts(provider.requests.at(-1));
  expect(summary).toContain('(event 3) first wish\n(event 6) second wish');
  expect(summary).toContain('## Summary\nSUMMARY 2');
  expect(texts(provider.requests.at(-1))).toHaveLength(2);
});

test('an undone compaction sends the originals again, to the byte', async () => {
  const provider = scripted([say(long), say('SUMMARY'), say('b')]);
  const { session } = rig({ provider });
  await session.submit('one');
  const before = project(session.events());
  const compacted = await session.compact('');
  expect(project(session.events())).not.toEqual(before);
  await session.append({
    kind: 'compaction_undone',
    content: null,
    data: { compaction_seq: compacted.done ? compacted.seq : 0 },
  });
  expect(project(session.events())).toEqual(before);
});

test('near the end of the window the conversation is compacted once, and the question stays as it is', async () => {
  const provider = scripted([[used(900), ...say('long')], say('SUMMARY'), [used(100), ...say('answer')], say('more')]);
  const { session, seen } = rig({ provider, contextWindow: () => 1000 });
  await session.submit(long);
  expect(await session.submit('two')).toMatchObject({ status: 'completed', text: 'answer' });
  expect(texts(provider.requests[2]).at(-1)).toBe('two');
  expect(texts(provider.requests[2])[0]).toContain('## Summary\nSUMMARY');
  await session.submit('three');
  expect(provider.requests).toHaveLength(4);
  expect(notices(seen)).toEqual(['compacted']);
});

test('a turn in the middle of its calls is compacted too and goes on', async () => {
  const provider = scripted([
    [used(950), ...calls(['note', '{"text":"1"}'])],
    say('SUMMARY'),
    [used(50), ...say('done')],
  ]);
  const { session } = rig({ provider, tools: [noteTool()], contextWindow: () => 1000 });
  expect(await session.submit(long)).toMatchObject({ status: 'completed', text: 'done', toolCalls: 1 });
  expect(texts(provider.requests[2])).toHaveLength(1);
});

test('after an overflow there is one compaction and one retry', async () => {
  const provider = scripted([say(long), overflow, say('SUMMARY'), say('b')]);
  const { session, seen } = rig({ provider });
  await session.submit('one');
  expect(await session.submit('two')).toMatchObject({ status: 'completed', text: 'b' });
  expect(texts(provider.requests[3])).toEqual([expect.stringContaining('## Summary\nSUMMARY'), 'two']);
  expect(notices(seen)).toEqual(['compacted']);
});

test('an overflow that comes again ends the turn with a sentence and no further request', async () => {
  const provider = scripted([say(long), overflow]);
  const { session } = rig({ provider });
  await session.submit('one');
  const turn = await session.submit('x'.repeat(5000));
  expect(turn).toMatchObject({
    status: 'failed',
    fault: {
      code: 'context_overflow',
      message:
        'prompt is too long. Compacting the conversation does not help. The last message alone has 5000 characters.',
    },
  });
  expect(provider.requests).toHaveLength(4);
});

test('a turn that goes on after an overflow may overflow again', async () => {
  const answers = (n: number) => [text(long), ...calls(['note', JSON.stringify({ text: `${n} ${long}` })])];
  const script = [1, 2, 3].flatMap((n) => [answers(n), overflow, say(`SUMMARY ${n}`)]);
  const { session, seen } = rig({ provider: scripted([...script, say('done')]), tools: [noteTool()] });
  expect(await session.submit(long)).toMatchObject({ status: 'completed', text: 'done' });
  expect(notices(seen)).toEqual(['compacted', 'compacted', 'compacted']);
});

test('a compaction that failed is tried again some answers later', async () => {
  const note = (n: number) => [used(900), ...calls(['note', JSON.stringify({ text: String(n) })])];
  const gone: readonly ModelChunk[] = [{ type: 'fault', fault: { code: 'network', message: 'gone' } }];
  const notes = [1, 2, 3, 4, 5, 6].map(note);
  const provider = scripted([[used(900), ...say(long)], gone, ...notes, say('SUMMARY'), say('b')]);
  const { session, seen } = rig({ provider, tools: [noteTool()], contextWindow: () => 1000 });
  await session.submit(long);
  expect(await session.submit('two')).toMatchObject({ status: 'completed', text: 'b' });
  expect(notices(seen)).toEqual(['compaction_failed', 'compacted']);
});

test('a compaction that saves nothing is not made, and no summary is asked for', async () => {
  const provider = scripted([say('a'), overflow]);
  const { session, seen } = rig({ provider });
  await session.submit('one');
  expect(await session.compact('')).toEqual({
    done: false,
    reason: 'nothing to compact yet: a summary would be just as long',
  });
  expect(await session.submit('two')).toMatchObject({ status: 'failed', fault: { code: 'context_overflow' } });
  expect([kinds(session.events()), notices(seen), provider.requests.length]).toEqual([
    'system tools user assistant user error',
    [],
    2,
  ]);
  const wordy = scripted([say('Hello.'.repeat(200)), say('Fine.'), say('SUMMARY '.repeat(400))]);
  const other = rig({ provider: wordy });
  await other.session.submit('one');
  await other.session.submit('two');
  expect(await other.session.compact('')).toMatchObject({ done: false });
  expect(other.session.events().some(({ kind }) => kind === 'compaction')).toBe(false);
});

test("the user's messages take at most a quarter of the window that the server names", async () => {
  const said: readonly ModelChunk[] = [
    {
      type: 'fault',
      fault: {
        code: 'context_overflow',
        message: 'the request exceeds the available context size (2048 tokens), try increasing it',
      },
    },
  ];
  const provider = scripted([say('a'), say('b'), said, say('SUMMARY'), say('on')]);
  const { session } = rig({ provider });
  await session.submit(`first ${'x'.repeat(7000)}`);
  await session.submit(`second ${'y'.repeat(7000)}`);
  expect(await session.submit('third')).toMatchObject({ status: 'completed', text: 'on' });
  const [summary = '', last] = texts(provider.requests[4]);
  expect([summary.length < 3000, last]).toEqual([true, 'third']);
  expect(summary).toMatch(/\(event \d+\) second y+\n\[… \d+ bytes omitted; file_read path="event:5"\]/);
});

test('where prompt and tools are too long, the fault says so with the figures of the server', async () => {
  const said: readonly ModelChunk[] = [
    {
      type: 'fault',
      fault: {
        code: 'context_overflow',
        message: 'request (3766 tokens) exceeds the available context size (2048 tokens)',
        status: 400,
      },
    },
  ];
  const { session } = rig({
    provider: scripted([said]),
    opening: [
      { kind: 'system', content: 'S'.repeat(8000), data: null },
      { kind: 'tools', content: '', data: { tools: [], settings: { model_output_size: 1000 } } },
    ],
  });
  const { fault } = await session.submit('hi');
  expect(fault).toMatchObject({
    code: 'context_overflow',
    status: 400,
    hint: expect.stringContaining('--no-tools') as string,
  });
  expect(fault?.message).toMatch(
    /^request \(3766 tokens\) exceeds .*2048 tokens\)\. The system prompt and the tools.* about 2\d{3} tokens of it\.$/,
  );
});

test('a first message that overflows is not compacted at all', async () => {
  const provider = scripted([overflow]);
  const { session } = rig({ provider });
  expect(await session.submit('x'.repeat(5000))).toMatchObject({
    status: 'failed',
    fault: { code: 'context_overflow' },
  });
  expect(provider.requests).toHaveLength(1);
});

test('a conversation that overflowed is cut to at most half for its summary', async () => {
  const provider = scripted([calls(['note', '{"text":"1"}']), say('a'), overflow, say('SUMMARY'), say('b')]);
  const big = noteTool(() => Promise.resolve({ envelope: { output: 'z'.repeat(900) }, summary: 'ok' }));
  const { session } = rig({ provider, tools: [big] });
  await session.submit(`one ${'y'.repeat(20_000)}`);
  await session.submit('two');
  const size = (request: ModelRequest | undefined): number => JSON.stringify(request?.conversation.messages).length;
  expect(size(provider.requests[3])).toBeLessThan(size(provider.requests[2]) / 2 + 2000);
});

test('where no summary comes, the turn goes on and one notice says so', async () => {
  const provider = scripted([
    [used(900), ...say('a')],
    [{ type: 'fault', fault: { code: 'network', message: 'gone' } }],
    [used(900), ...calls(['note', '{"text":"1"}'])],
    [used(900), ...say('b')],
  ]);
  const { session, seen } = rig({ provider, tools: [noteTool()], contextWindow: () => 1000 });
  await session.submit(long);
  expect(await session.submit('two')).toMatchObject({ status: 'completed', text: 'b' });
  expect(notices(seen)).toEqual(['compaction_failed']);
  expect(session.events().some((event) => event.kind === 'compaction')).toBe(false);
});

test('an interrupted compaction leaves the conversation as it was', async () => {
  const provider = scripted([
    say(long),
    async function* (request) {
      yield text('half');
      await new Promise<void>((resolve) => {
        if (request.signal.aborted) resolve();
        else
          request.signal.addEventListener('abort', () => {
            resolve();
          });
      });
    },
  ]);
  const { session } = rig({ provider });
  await session.submit('one');
  const before = project(session.events());
  const compacting = session.compact('');
  expect(session.busy()).toBe(true);
  session.interrupt();
  expect(await compacting).toEqual({ done: false, reason: 'it was interrupted' });
  expect(project(session.events())).toEqual(before);
});

test('the plan of a compaction can be seen without a request', async () => {
  const provider = scripted([say('a')]);
  const { session } = rig({ provider });
  expect(await session.compactionPlan()).toBeNull();
  await session.submit('one');
  expect(await session.compactionPlan()).toMatchObject({ fromSeq: 3, toSeq: 4, messages: 2 });
  expect(provider.requests).toHaveLength(1);
});

test('a rewound conversation goes on from there, and the model can read what it no longer sees', async () => {
  const provider = scripted([say('a'), say('b'), calls(['note', '{"text":"5"}']), say('c')]);
  const read: (string | null)[] = [];
  const tool = noteTool((args, ctx) => {
    read.push(ctx.eventOutput(Number(args.text)));
    return Promise.resolve({ envelope: { output: '' }, summary: '' });
  });
  const { session } = rig({ provider, tools: [tool] });
  await session.submit('one');
  await session.submit('two');
  await session.append({ kind: 'rewind', content: '', data: { to_seq: 4 } });
  await session.submit('three');
  expect(texts(provider.requests[2])).toEqual(['one', '<a>', 'three']);
  expect(read).toEqual(['two']);
});

test('a compaction is the one time at which the prompt is renewed, and it is recorded where it has changed', async () => {
  const provider = scripted([
    say(long),
    say(long),
    say('A summary.'),
    say('On.'),
    say(long),
    say('Again.'),
    say('End.'),
  ]);
  const asked: string[] = [];
  const renewPrompt = (prompt: string): Promise<string> => {
    asked.push(prompt);
    return Promise.resolve('S with notes');
  };
  const { session } = rig({ provider, renewPrompt });
  await session.submit('one');
  await session.submit('two');
  expect(asked).toEqual([]);
  await session.compact('');
  await session.submit('three');
  await session.submit('four');
  await session.compact('');
  await session.submit('five');
  expect(asked).toEqual(['S', 'S with notes']);
  expect(provider.requests.map(({ conversation }) => conversation.system)).toEqual([
    ...['S', 'S', 'S'],
    ...Array.from({ length: 4 }, () => 'S with notes'),
  ]);
  expect(session.events().filter(({ kind }) => kind === 'system')).toHaveLength(2);
});

test('the latest of each result that is to be kept stays, through two compactions', async () => {
  const provider = scripted([say('Hello.'), say('Fine.'), say('Summary.'), say('On.'), say('Summary.'), say('End.')]);
  const { session } = rig({ provider, tools: [noteTool()] });
  const kept = (id: string, keep: string, output: string): readonly EventDraft[] =>
    result(id, '/work/SKILL.md', false).map((draft) =>
      draft.kind === 'tool_result'
        ? { ...draft, data: { ...draft.data, output: JSON.stringify({ output, keep }) } }
        : draft,
    );
  const bulk = (id: string): readonly EventDraft[] =>
    result(id, '/work/a', false).map((draft) =>
      draft.kind === 'tool_result'
        ? { ...draft, data: { ...draft.data, output: JSON.stringify({ output: long.repeat(10) }) } }
        : draft,
    );
  await session.submit(long);
  for (const draft of [
    ...kept('c1', 'skill pdf', 'Old instructions.'),
    ...kept('c2', 'skill web', 'Of the web.'),
    ...kept('c3', 'skill pdf', 'Never guess.'),
    ...['c4', 'c5', 'c6', 'c7'].flatMap(bulk),
  ])
    await session.append(draft);
  await session.submit(long);
  const told = async (): Promise<string> => {
    expect(await session.compact('')).toMatchObject({ done: true });
    await session.submit('go on');
    return texts(provider.requests.at(-1))[0] ?? '';
  };
  const part = '## Instructions still in force, word for word\nOf the web.\nNever guess.\n\n## Summary';
  expect(await told()).toContain(part);
  for (const draft of ['c8', 'c9', 'c10', 'c11'].flatMap(bulk)) await session.append(draft);
  await session.submit(long);
  expect(await told()).toContain(part);
});

test('the list that the model keeps of its steps survives a compaction', async () => {
  const provider = scripted([say(long), [used(7), ...say('They want X.')], say('On.')]);
  const { session } = rig({ provider, tools: [noteTool()] });
  await session.submit('begin');
  const items = [
    { text: 'read', status: 'done' },
    { text: 'write', status: 'active' },
  ];
  const args = JSON.stringify({ items });
  await session.append({
    kind: 'tool_call',
    content: 'todo(2 items)',
    data: { id: 'c1', type: 'function', function: { name: 'todo', arguments: args }, response_id: 'r_1' },
  });
  await session.append({
    kind: 'tool_result',
    content: '2 of 2',
    data: { tool_call_id: 'c1', name: 'todo', output: '{"output":"kept"}', success: true, duration_ms: 1 },
  });
  expect(await session.compact('')).toMatchObject({ done: true });
  await session.submit('go on');
  expect(texts(provider.requests[2])[0]).toContain('Todo list\n[x] read\n[>] write\n\n');
});

test.each([1, 60, 6_830, 90_000])(
  'a compaction counts what the next request has as /context does, whatever the provider counted: %i',
  async (counted) => {
    const provider = scripted([
      [used(counted), ...say(long)],
      [used(counted), ...say('SUMMARY')],
    ]);
    const { session } = rig({ provider });
    await session.submit(long);
    const plan = await session.compactionPlan();
    const planned = plan?.tokens(plan.text('SUMMARY'));
    const before = contextTokens(session.events());
    const compacted = await session.compact('');
    const after = contextTokens(session.events());
    const { tokensBefore = 0, tokensAfter = 0 } = compacted.done ? compacted : {};
    expect({ tokensBefore, tokensAfter }).toEqual(planned);
    expect(Math.abs(tokensAfter - after)).toBeLessThan(20);
    expect(tokensBefore).toBeGreaterThan(tokensAfter);
    if (before > after) expect(tokensBefore).toBe(before);
  },
);
