import { expect, test } from 'vitest';
import type { SessionParts } from '../../../src/kernel/agent/session.js';
import type { Event } from '../../../src/kernel/core/event.js';
import { planNews, planNotes, type Policy, type Rule } from '../../../src/kernel/core/policy.js';
import type { ModelChunk } from '../../../src/kernel/core/provider.js';
import { allowAll, askAlways, calls, end, envelopes, kinds, noteTool, reader, rig, scripted, text } from './harness.js';
import { openMemoryStore } from '../../../src/kernel/store/memory-store.js';

const never = calls(['note', '{"text":"again"}']);

test('rows, events and memory agree on what happened, in the order of the contract', async () => {
  const provider = scripted([
    [
      text('I will '),
      text('note.'),
      { type: 'usage', usage: { input: 5, cacheRead: 1, cacheWrite: 0, output: 2 }, costUsd: 0.1 },
      ...calls(['note', '{"text":"a"}', 'x'], ['note', '{"text":"b"}', 'y']),
    ],
    [text('Done.'), end()],
  ]);
  const tool = noteTool();
  const { session, seen, rows } = rig({ provider, tools: [tool] });
  const turn = await session.submit('go');
  expect(turn).toEqual({ status: 'completed', text: 'Done.', turns: 1, toolCalls: 2, denials: [] });
  expect(kinds(session.events())).toBe(
    'system tools user usage assistant tool_call tool_call tool_started tool_result tool_started tool_result assistant',
  );
  expect(await rows()).toEqual(session.events());
  expect(seen.flatMap((event) => (event.type === 'event' ? [event.event] : []))).toEqual(session.events());
  expect(tool.ran).toEqual(['a', 'b']);
  expect(provider.requests[1]?.conversation.messages.at(-1)).toMatchObject({
    role: 'assistant',
    text: 'I will note.',
    calls: [
      { id: 'x', result: { output: '{"output":"noted a"}' } },
      { id: 'y', result: { output: '{"output":"noted b"}' } },
    ],
  });
});

test('a model that never stops gets three turns, the limit fields and one last request without tools', async () => {
  const tool = noteTool();
  const provider = scripted([never]);
  const { session } = rig({
    provider,
    tools: [tool],
    limits: { maxToolTurns: 3, maxToolCalls: 100, loopLimit: 6, maxOutputBytes: 1000 },
  });
  const turn = await session.submit('go');
  expect(turn).toEqual({ status: 'limit_reached', text: '', turns: 4, toolCalls: 3, denials: [] });
  expect(provider.requests.map((request) => request.toolChoice)).toEqual(['auto', 'auto', 'auto', 'none']);
  expect(envelopes(session.events())).toEqual([
    { output: 'noted again' },
    { output: 'noted again' },
    {
      output: 'noted again',
      repeated: 3,
      repeated_message: expect.stringContaining('3 times'),
      limit_reached: true,
      limit_message: 'Tool call limit reached (3). Stopping tool loop.',
    },
    { error: 'Tool call limit reached (3). Stopping tool loop.', code: 'limit_reached' },
  ]);
  expect(tool.ran).toHaveLength(3);
  await session.submit('and now');
  expect(provider.requests[4]?.toolChoice).toBe('auto');
});

test('calls beyond the cap of one response are refused, the others run', async () => {
  const tool = noteTool();
  const provider = scripted([
    calls(['note', '{"text":"1"}'], ['note', '{"text":"2"}'], ['note', '{"text":"3"}']),
    [text('ok'), end()],
  ]);
  const { session } = rig({
    provider,
    tools: [tool],
    limits: { maxToolTurns: 50, maxToolCalls: 2, loopLimit: 6, maxOutputBytes: 1000 },
  });
  await session.submit('go');
  expect(tool.ran).toEqual(['1', '2']);
  expect(envelopes(session.events()).map((envelope) => envelope.code)).toEqual([undefined, undefined, 'limit_reached']);
});

test('a turn makes as many calls as it may, and the model sums up without tools', async () => {
  const limits = { maxToolTurns: 50, maxToolCalls: 100, loopLimit: 0, maxOutputBytes: 1000 };
  const pair = calls(['note', '{"text":"1"}'], ['note', '{"text":"2"}']);
  const tool = noteTool();
  const provider = scripted([pair, pair, [text('ok'), end()]]);
  const { session } = rig({ provider, tools: [tool], limits: { ...limits, turnCalls: () => 3 } });
  expect(await session.submit('go')).toMatchObject({ status: 'limit_reached', turns: 2, toolCalls: 4 });
  expect(tool.ran).toEqual(['1', '2', '1']);
  expect(provider.requests.map((request) => request.toolChoice)).toEqual(['auto', 'auto', 'none']);
  expect(envelopes(session.events()).at(-1)).toEqual({
    error: 'Not run: a request may make at most 3 calls here.',
    code: 'limit_reached',
    limit_reached: true,
    limit_message: 'Tool call limit reached (3). Stopping tool loop.',
  });
});

test('a turn that may make no calls is answered without tools, whatever the model asks for', async () => {
  const tool = noteTool();
  const provider = scripted([never]);
  const limits = { maxToolTurns: 50, maxToolCalls: 100, loopLimit: 0, maxOutputBytes: 1000, turnCalls: () => 0 };
  const { session } = rig({ provider, tools: [tool], limits });
  expect(await session.submit('go')).toMatchObject({ status: 'failed', toolCalls: 0, turns: 1 });
  expect(provider.requests.map((request) => request.toolChoice)).toEqual(['none']);
  expect(tool.ran).toEqual([]);
  expect(envelopes(session.events())).toEqual([
    { error: 'Tools are not allowed here. Answer without tools.', code: 'limit_reached' },
  ]);
});

const thought: readonly ModelChunk[] = [
  { type: 'end', stop: 'stop', reasoning: [{ type: 'thinking', thinking: 'Now.' }] },
];

test.each([
  ['reasoning alone', [thought, [text('Here.'), end()]], ['auto', 'auto'], 'completed', 'Here.'],
  ['nothing', [[end()], [text('Here.'), end()]], ['auto', 'auto'], 'completed', 'Here.'],
  [
    'white space, and then a call',
    [[text(' \n'), end()], calls(['note', '{"text":"a"}']), [text('Ok.'), end()]],
    ['auto', 'auto', 'auto'],
    'completed',
    'Ok.',
  ],
  ['nothing twice', [thought, [end()]], ['auto', 'auto'], 'failed', ''],
  [
    'nothing again behind a call',
    [[end()], calls(['note', '{"text":"a"}']), [end()]],
    ['auto', 'auto', 'auto'],
    'failed',
    '',
  ],
  ['nothing at the output limit', [[end('length')], [end('length')]], ['auto', 'auto'], 'failed', ''],
] as const)(
  'an answer of %s is asked for once more in a turn; one that stays empty is a failure',
  async (_name, answers, choices, status, said) => {
    const provider = scripted(answers);
    const { session, seen } = rig({ provider, tools: [noteTool()] });
    expect(await session.submit('go')).toMatchObject({
      status,
      text: said,
      ...(status === 'failed'
        ? { fault: { code: 'protocol', message: expect.stringMatching(/text\.$/) as string } }
        : {}),
    });
    expect(provider.requests.map(({ toolChoice }) => toolChoice)).toEqual(choices);
    expect(provider.requests[1]?.conversation.messages.at(-1)).toMatchObject({
      role: 'user',
      content: expect.stringContaining('had no text') as string,
    });
    expect(seen.flatMap((event) => (event.type === 'notice' ? [event.code] : []))).toContain('empty_answer');
  },
);

test('an answer with very many calls is read up to a limit, and a notice says so', async () => {
  const tool = noteTool();
  const many = Array.from({ length: 22 }, (_unused, n) => ['note', `{"text":"${n}"}`] as const);
  const provider = scripted([calls(...many), [text('ok'), end()]]);
  const { session, seen } = rig({
    provider,
    tools: [tool],
    limits: { maxToolTurns: 50, maxToolCalls: 2, maxOutputBytes: 1000, loopLimit: 0 },
  });
  await session.submit('go');
  expect(provider.requests[0]?.maxCalls).toBe(22);
  expect(tool.ran).toEqual(['0', '1']);
  expect(envelopes(session.events()).filter(({ code }) => code === 'limit_reached')).toHaveLength(20);
  expect(seen.filter((event) => event.type === 'notice')).toMatchObject([
    { code: 'call_limit', message: expect.stringMatching(/22 calls or more: 2 are run/) as string },
  ]);
});

test('a call that the server could not read gets an error with the reason, and the turn goes on', async () => {
  const tool = noteTool();
  const refused = { id: '', name: 'note', arguments: '{"text":"x"}', refused: 'Failed to call a function.' };
  const provider = scripted([
    [{ type: 'tool_call', call: refused }, end('tool')],
    [text('ok'), end()],
  ]);
  const { session } = rig({ provider, tools: [tool] });
  expect(await session.submit('go')).toMatchObject({ status: 'completed', text: 'ok', turns: 1 });
  expect(tool.ran).toEqual([]);
  expect(envelopes(session.events())).toMatchObject([
    {
      code: 'invalid_args',
      error: expect.stringContaining('Failed to call a function.') as string,
      details: { written: '{"text":"x"}' },
    },
  ]);
});

test('the text of a call that was written in another form is recorded', async () => {
  const provider = scripted([
    [
      { type: 'tool_call', call: { id: 'a', name: 'note', arguments: '{"text":"x"}', received: "{'text': 'x'}" } },
      end('tool'),
    ],
    [text('ok'), end()],
  ]);
  const { rows, session } = rig({ provider, tools: [noteTool()] });
  await session.submit('go');
  expect((await rows()).find(({ kind }) => kind === 'tool_call')?.data).toMatchObject({
    function: { arguments: '{"text":"x"}' },
    received: "{'text': 'x'}",
  });
});

test('an answer that pauses goes on with the next request, which counts as a round of calls', async () => {
  const pause: ModelChunk = { type: 'end', stop: 'pause' };
  const provider = scripted([
    [text('Searching.'), pause],
    [text('Found.'), end()],
  ]);
  const { session } = rig({ provider });
  expect(await session.submit('go')).toMatchObject({ status: 'completed', text: 'Found.', turns: 1, toolCalls: 0 });
  expect(provider.requests[1]?.conversation.messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
  const endless = scripted([[text('Searching.'), pause]]);
  const { session: other } = rig({
    provider: endless,
    limits: { maxToolTurns: 3, maxToolCalls: 2, maxOutputBytes: 1000, loopLimit: 0 },
  });
  expect(await other.submit('go')).toMatchObject({ status: 'limit_reached', turns: 3 });
  expect(endless.requests).toHaveLength(4);
});

test('after three responses whose calls all failed the model is asked for an answer', async () => {
  const provider = scripted([
    calls(['missing', '{}']),
    calls(['note', 'not json']),
    calls(['note', '{"text":1}']),
    [text('I cannot.'), end()],
  ]);
  const { session } = rig({ provider, tools: [noteTool()] });
  expect(await session.submit('go')).toMatchObject({ status: 'completed', text: 'I cannot.', turns: 3 });
  expect(provider.requests.map((request) => request.toolChoice)).toEqual(['auto', 'auto', 'auto', 'none']);
  expect(envelopes(session.events()).map((envelope) => envelope.code)).toEqual([
    'unknown_tool',
    'invalid_args',
    'invalid_args',
  ]);
});

test('a response cut for length never runs its calls', async () => {
  const tool = noteTool();
  const provider = scripted([
    [{ type: 'tool_call', call: { id: 'a', name: 'note', arguments: '{"text":"x"}' } }, end('length')],
    [text('ok'), end()],
  ]);
  const { session } = rig({ provider, tools: [tool] });
  await session.submit('go');
  expect(tool.ran).toEqual([]);
  expect(envelopes(session.events())[0]).toMatchObject({ code: 'invalid_args', details: { reason: 'output_limit' } });
});

test('an answer cut for length without calls completes, and a notice says that it was cut', async () => {
  const { session, seen } = rig({
    provider: scripted([
      [text('The first of'), end('length')],
      [text('ok'), end()],
    ]),
  });
  expect(await session.submit('go')).toMatchObject({ status: 'completed', text: 'The first of' });
  const notices = seen.filter((event) => event.type === 'notice');
  expect(notices).toEqual([
    { type: 'notice', level: 'warn', code: 'output_limit', message: expect.stringContaining('cut') },
  ]);
  await session.submit('again');
  expect(seen.filter((event) => event.type === 'notice')).toHaveLength(1);
});

test('an answer that money cut short ends the turn, and one that ends by itself does not', async () => {
  const priced: ModelChunk = {
    type: 'usage',
    usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 },
    costUsd: 0.004,
  };
  const budget = { maxCostUsd: 0.02, price: { input: 0, output: 10 }, maxOutputTokens: 100_000, isEnforced: true };
  const provider = scripted([
    [text('whole'), priced, end('stop')],
    [text('half'), priced, end('length')],
  ]);
  const { session } = rig({ provider, budget: () => budget });
  expect(await session.submit('go')).toEqual({
    status: 'completed',
    text: 'whole',
    turns: 0,
    toolCalls: 0,
    denials: [],
  });
  expect(await session.submit('and more')).toMatchObject({
    status: 'failed',
    text: 'half',
    fault: {
      code: 'max_cost',
      message: 'The answer was cut at the spend limit of $0.02: $0.008 is spent.',
    },
  });
  expect(provider.requests.map((request) => request.conversation.settings.max_output_tokens)).toEqual([2000, 1600]);
});

test('missing and repeated call ids are made unique, in the log and on the wire', async () => {
  const provider = scripted([
    calls(['note', '{"text":"1"}', ''], ['note', '{"text":"2"}', 'same'], ['note', '{"text":"3"}', 'same']),
    calls(['note', '{"text":"4"}', 'same']),
    [text('ok'), end()],
  ]);
  const { session } = rig({ provider, tools: [noteTool()] });
  await session.submit('go');
  const ids = session
    .events()
    .filter((event) => event.kind === 'tool_call')
    .map((event) => (event.data as { id: string }).id);
  expect(ids).toEqual(['call_r4_1', 'same', 'same_2', 'same_3']);
  const answered = session
    .events()
    .filter((event) => event.kind === 'tool_result')
    .map((event) => (event.data as { tool_call_id: string }).tool_call_id);
  expect(answered).toEqual(ids);
});

test('the text of an attempt that is retried is not recorded twice', async () => {
  const provider = scripted([
    [text('Hel'), { type: 'retry', attempt: 1, maxRetries: 5, delayMs: 0, reason: 'reset' }, text('Hello'), end()],
  ]);
  const { session, seen } = rig({ provider });
  expect(await session.submit('go')).toMatchObject({ status: 'completed', text: 'Hello' });
  expect(session.events().at(-1)?.content).toBe('Hello');
  expect(seen).toContainEqual({ type: 'retry_scheduled', attempt: 1, maxRetries: 5, delayMs: 0, reason: 'reset' });
});

test('an answer that broke off is recorded as interrupted, and none of its calls run', async () => {
  const tool = noteTool();
  const provider = scripted([
    [
      text('Part'),
      ...calls(['note', '{"text":"x"}']).slice(0, 1),
      { type: 'fault', fault: { code: 'network', message: 'connection reset' } },
    ],
  ]);
  const { session } = rig({ provider, tools: [tool] });
  expect(await session.submit('go')).toMatchObject({ status: 'failed', fault: { code: 'network' } });
  expect(tool.ran).toEqual([]);
  expect(
    session
      .events()
      .slice(3)
      .map((event) => [event.kind, event.content]),
  ).toEqual([
    ['assistant', 'Part'],
    ['error', 'connection reset'],
  ]);
  expect(session.events()[3]?.data).toMatchObject({ interrupted: true });
});

test('a refusal ends the turn as failed', async () => {
  const { session } = rig({ provider: scripted([[text('No.'), end('refusal')]]) });
  expect(await session.submit('go')).toMatchObject({
    status: 'failed',
    text: 'No.',
    fault: { message: 'The model refused to answer.' },
  });
});

test('a call that needs a yes is denied where nobody can be asked, and the turn goes on', async () => {
  const tool = noteTool();
  const provider = scripted([calls(['note', '{"text":"x"}']), [text('Without it.'), end()]]);
  const { session } = rig({ provider, tools: [tool], policy: askAlways });
  expect(await session.submit('go')).toMatchObject({
    status: 'completed',
    denials: [{ name: 'note', unasked: true }],
  });
  expect(tool.ran).toEqual([]);
  expect(kinds(session.events().slice(3))).toBe('tool_call approval tool_result assistant');
  expect(envelopes(session.events())[0]).toMatchObject({
    code: 'permission_denied',
    error: expect.stringContaining('--approval') as unknown,
  });
});

test('a tool gets ready before its call is judged, also where the call is then denied', async () => {
  const order: string[] = [];
  const tool = { ...noteTool(), prepare: () => order.push('prepare') };
  const policy: Policy = {
    assess: async (...asked) => {
      order.push('assess');
      return await askAlways.assess(...asked);
    },
  };
  const provider = scripted([calls(['note', '{"text":"a"}']), [text('No.'), end()]]);
  const { session } = rig({ provider, tools: [tool], policy, interactive: false });
  await session.submit('go');
  expect([order, tool.ran]).toEqual([['prepare', 'assess'], []]);
});

test('a tool that throws gives a redacted result and a full log entry', async () => {
  const logged: unknown[] = [];
  const provider = scripted([calls(['note', '{"text":"x"}']), [text('ok'), end()]]);
  const { session } = rig({
    provider,
    tools: [noteTool(() => Promise.reject(new Error('secret path /x/y')))],
    log: (entry) => {
      logged.push(entry);
    },
  });
  await session.submit('go');
  expect(envelopes(session.events())).toEqual([
    { error: 'note failed inside the program; see the log file for details.', code: 'internal' },
  ]);
  expect(JSON.stringify(logged)).toContain('secret path /x/y');
});

test('messages sent meanwhile follow the results of the response, in the same turn', async () => {
  const box: { send?: () => void } = {};
  const tool = noteTool(() => {
    box.send?.();
    return Promise.resolve({ envelope: { output: 'ok' }, summary: 'ok' });
  });
  const provider = scripted([calls(['note', '{"text":"1"}'], ['note', '{"text":"2"}', 'two']), [text('ok'), end()]]);
  const { session, seen } = rig({ provider, tools: [tool] });
  box.send = () => {
    session.enqueue({ text: 'wait', when: 'steer' });
    session.enqueue({ text: 'later', when: 'after' });
    delete box.send;
  };
  expect(await session.submit('go')).toMatchObject({ turns: 1 });
  expect(kinds(session.events().slice(3))).toBe(
    'tool_call tool_call tool_started tool_result tool_started tool_result user assistant',
  );
  expect(session.takeQueue()).toEqual([{ text: 'later', when: 'after' }]);
  expect(seen.flatMap((event) => (event.type === 'queue_changed' ? [event.queue.length] : []))).toEqual([1, 2, 1, 0]);
});

test('a session in which no messages leaves nothing behind', async () => {
  const store = openMemoryStore({ now: () => 1 });
  const { session } = rig({ provider: scripted([]), store });
  await session.record.flush();
  expect(await store.list(10)).toEqual([]);
  await session.submit('go');
  expect(await store.list(10)).toHaveLength(1);
});

test('the conversation of the first request is known before it', () => {
  const { session } = rig({ provider: scripted([]) });
  expect(session.record.conversation()).toMatchObject({
    system: 'S',
    tools: [reader],
    messages: [],
    settings: { model_output_size: 1000 },
  });
});

const limitsWith = (loopLimit: number): SessionParts['limits'] => ({
  maxToolTurns: 50,
  maxToolCalls: 100,
  loopLimit,
  maxOutputBytes: 1_048_576,
});
const repeatedIn = (events: readonly Event[]): readonly unknown[] =>
  envelopes(events).map((envelope) => envelope.repeated ?? null);

test('the same call with the same result is counted from the third time on, and the sixth ends the turn', async () => {
  const tool = noteTool();
  const { session, seen } = rig({
    provider: scripted([...Array.from({ length: 6 }, () => never), [text('I went round in circles.'), end()]]),
    tools: [tool],
  });
  expect(await session.submit('go')).toMatchObject({
    status: 'limit_reached',
    limit: 'repeated_calls',
    turns: 6,
    text: 'I went round in circles.',
  });
  expect(repeatedIn(session.events())).toEqual([null, null, 3, 4, 5, 6]);
  expect(envelopes(session.events()).at(2)).toMatchObject({
    output: 'noted again',
    repeated_message: expect.stringMatching(/3 times in a row/),
  });
  expect(envelopes(session.events()).at(5)).toMatchObject({ limit_reached: true, limit: 'repeated_calls' });
  const told = seen.flatMap((event) => {
    if (event.type === 'notice') return [event.code];
    return event.type === 'event' && event.event.kind === 'tool_result' ? ['result'] : [];
  });
  expect(told).toEqual([...Array.from({ length: 6 }, () => 'result'), 'repeated_calls']);
  expect(tool.ran).toHaveLength(6);
  await session.submit('once more'); // the answer above ended the count
  expect(envelopes(session.events()).slice(6)).toEqual([]);
});

test('a result that changes, a call with other arguments and an answer in between are no loop', async () => {
  let count = 0;
  const clock = noteTool(() => Promise.resolve({ envelope: { output: `at ${++count}` }, summary: '' }));
  const changing = rig({
    provider: scripted([...Array.from({ length: 12 }, () => never), [text('ok'), end()]]),
    tools: [clock],
  });
  expect(await changing.session.submit('go')).toMatchObject({ status: 'completed', turns: 12 });
  expect(repeatedIn(changing.session.events()).every((repeated) => repeated === null)).toBe(true);
  const between = rig({
    provider: scripted(Array.from({ length: 4 }, () => [never, never, [text('ok'), end()]]).flat()),
    tools: [noteTool()],
  });
  for (let turn = 0; turn < 4; turn++) await between.session.submit('the same, please');
  expect(repeatedIn(between.session.events())).toEqual(Array.from({ length: 8 }, () => null));
  const working = rig({
    provider: scripted([
      ...Array.from({ length: 12 }, (_, index) =>
        calls(['note', index % 2 === 0 ? '{"text":"test"}' : `{"text":"edit ${index}"}`]),
      ),
      [text('ok'), end()],
    ]),
    tools: [noteTool()],
  });
  expect(await working.session.submit('go')).toMatchObject({ status: 'completed', turns: 12 });
  expect(repeatedIn(working.session.events()).every((repeated) => repeated === null)).toBe(true);
});

test('calls that alternate and bring nothing new are a loop too', async () => {
  const provider = scripted([
    ...Array.from({ length: 20 }, (_, index) => calls(['note', `{"text":"${index % 2}"}`])),
    [text('ok'), end()],
  ]);
  const { session } = rig({ provider, tools: [noteTool()] });
  expect(await session.submit('go')).toMatchObject({ status: 'limit_reached', limit: 'repeated_calls', turns: 13 });
});

test('loop_limit says how often, and 0 switches it off', async () => {
  const few = rig({
    provider: scripted([never, never, [text('ok'), end()]]),
    tools: [noteTool()],
    limits: limitsWith(2),
  });
  expect(await few.session.submit('go')).toMatchObject({ status: 'limit_reached', turns: 2 });
  const off = rig({
    provider: scripted([...Array.from({ length: 12 }, () => never), [text('ok'), end()]]),
    tools: [noteTool()],
    limits: limitsWith(0),
  });
  expect(await off.session.submit('go')).toMatchObject({ status: 'completed', turns: 12 });
  expect(repeatedIn(off.session.events()).every((repeated) => repeated === null)).toBe(true);
});

test('identical calls of one response are counted too, and those behind the limit are not run', async () => {
  const tool = noteTool();
  const { session } = rig({
    provider: scripted([
      calls(...Array.from({ length: 8 }, () => ['note', '{"text":"again"}'] as const)),
      [text('ok'), end()],
    ]),
    tools: [tool],
  });
  expect(await session.submit('go')).toMatchObject({ status: 'limit_reached', limit: 'repeated_calls' });
  expect(tool.ran).toHaveLength(6);
  expect(envelopes(session.events()).map((envelope) => envelope.code ?? envelope.repeated ?? null)).toEqual([
    null,
    null,
    3,
    4,
    5,
    6,
    'limit_reached',
    'limit_reached',
  ]);
});

test('the count goes on after a resume, because it comes from the log', async () => {
  const first = rig({
    provider: scripted([
      never,
      never,
      never,
      never,
      never,
      (request) => {
        first.session.interrupt();
        return hangingUntil(request.signal);
      },
    ]),
    tools: [noteTool()],
  });
  expect(await first.session.submit('go')).toMatchObject({ status: 'interrupted' });
  const resumed = rig({
    provider: scripted([never, [text('ok'), end()]]),
    tools: [noteTool()],
    restored: first.session.events(),
    store: first.store,
  });
  expect(await resumed.session.submit('go on')).toMatchObject({ status: 'limit_reached', limit: 'repeated_calls' });
  expect(repeatedIn(resumed.session.events()).at(-1)).toBe(6);
});

test('the seventh time is a question to the person: a yes starts the count anew, a no goes to the model', async () => {
  const tool = noteTool();
  const { session, seen } = rig({
    provider: scripted([...Array.from({ length: 14 }, () => never), [text('ok'), end()]]),
    tools: [tool],
    interactive: true,
  });
  const answers = [{ answer: 'once' }, { answer: 'deny', message: 'enough' }] as const;
  let asked = 0;
  session.subscribe((event) => {
    if (event.type === 'approval_requested') session.answer(event.question.callId, answers[Math.min(asked++, 1)]!);
  });
  expect(await session.submit('go')).toMatchObject({ status: 'completed' });
  const questions = seen.flatMap((event) =>
    event.type === 'approval_requested' ? [event.question.verdict.reasons] : [],
  );
  expect(questions.slice(0, 2)).toEqual([
    ['this exact call has given the same result 6 times in a row'],
    ['this exact call has given the same result 6 times in a row'],
  ]);
  expect(repeatedIn(session.events()).slice(0, 12)).toEqual([null, null, 3, 4, 5, 6, null, null, 3, 4, 5, 6]);
  expect(envelopes(session.events()).at(12)).toMatchObject({
    code: 'denied_by_user',
    error: 'The user denied this: enough',
  });
  expect(tool.ran).toHaveLength(12);
});

async function* hangingUntil(signal: AbortSignal): AsyncIterable<ModelChunk> {
  if (!signal.aborted)
    await new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => {
        resolve();
      });
    });
  yield end();
}

const noteRule = { tool: 'note' };

/** Asks about each call, and keeps what is allowed for good. */
function ruledPolicy(rules: readonly Rule[] = [noteRule]): Policy & { readonly kept: (readonly Rule[])[] } {
  const kept: (readonly Rule[])[] = [];
  return {
    kept,
    assess: () => Promise.resolve({ risk: 'mutating', decision: 'ask', reasons: ['it writes'], sandbox: 'off', rules }),
    allow: (made) => {
      kept.push(made);
      return Promise.resolve({ done: true, said: 'Kept.' });
    },
  };
}

test.each(['session', 'always'] as const)('an answer for the %s holds for calls of the same rule', async (lasts) => {
  const policy = ruledPolicy();
  const { session, seen } = rig({
    provider: scripted([calls(['note', '{"text":"a"}'], ['note', '{"text":"b"}']), [text('ok'), end()]]),
    tools: [noteTool()],
    policy,
    interactive: true,
  });
  const questions: unknown[] = [];
  session.subscribe((event) => {
    if (event.type !== 'approval_requested') return;
    questions.push(event.question.verdict.rules);
    session.answer(event.question.callId, { answer: 'rules', lasts });
  });
  await session.submit('go');
  expect(questions).toEqual([[noteRule]]);
  expect(policy.kept).toEqual(lasts === 'always' ? [[noteRule]] : []);
  expect([...session.sessionRules.values()]).toEqual([noteRule]);
  const approvals = session.events().flatMap((item) => (item.kind === 'approval' ? [item.data] : []));
  expect(approvals).toMatchObject([{ by: 'user', rules: [noteRule], lasts }, { by: 'session_grant' }]);
  const notices = seen.flatMap((event) => (event.type === 'notice' ? [event.message] : []));
  expect(notices).toEqual(lasts === 'always' ? ['Kept.'] : []);
});

test('the model is told once that plan mode is on, and once that it is off', async () => {
  let isOn = true;
  const { session } = rig({
    provider: scripted([[text('ok'), end()]]),
    policy: { ...allowAll, news: (events) => planNews(isOn, events) },
  });
  await session.submit('one');
  await session.submit('two');
  isOn = false;
  await session.submit('three');
  const sent = session.events().flatMap(({ kind, content }) => (kind === 'user' ? [content] : []));
  expect(sent).toEqual([planNotes.on, 'one', 'two', planNotes.off, 'three']);
});

test('a rule that was taken back is asked about again, and the third yes says how to be asked no more', async () => {
  const { session, seen } = rig({
    provider: scripted([
      calls(...['a', 'b', 'c', 'd'].map((value): [string, string] => ['note', `{"text":"${value}"}`])),
      [text('ok'), end()],
    ]),
    tools: [
      noteTool(() => {
        session.sessionRules.clear();
        return Promise.resolve({ envelope: { output: '' }, summary: '' });
      }),
    ],
    policy: ruledPolicy(),
    interactive: true,
  });
  let asked = 0;
  session.subscribe((event) => {
    if (event.type !== 'approval_requested') return;
    asked++;
    session.answer(event.question.callId, asked === 1 ? { answer: 'rules', lasts: 'session' } : { answer: 'once' });
  });
  await session.submit('go');
  expect(asked).toBe(4);
  const notices = seen.flatMap((event) => (event.type === 'notice' ? [event.code] : []));
  expect(notices).toEqual(['rule_suggested']);
});

test('a yes for the rest of the session does not allow a call that repeats itself', async () => {
  const { session } = rig({
    provider: scripted([...Array.from({ length: 7 }, () => never), [text('ok'), end()]]),
    tools: [noteTool()],
    policy: askAlways,
    interactive: true,
  });
  const questions: string[] = [];
  session.subscribe((event) => {
    if (event.type !== 'approval_requested') return;
    questions.push(event.question.verdict.reasons[0] ?? '');
    session.answer(event.question.callId, { answer: 'session' });
  });
  await session.submit('go');
  expect(questions).toEqual(['it may hurt', 'this exact call has given the same result 6 times in a row']);
});
