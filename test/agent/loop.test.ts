import { expect, test } from 'vitest';
import { askAlways, calls, end, envelopes, kinds, noteTool, rig, scripted, text } from './harness.js';

const never = calls(['note', '{"text":"again"}']);

test('rows, events and memory agree on what happened, in the order of the contract', async () => {
  const provider = scripted([
    [text('I will '), text('note.'), { type: 'usage', usage: { input: 5, cacheRead: 1, cacheWrite: 0, output: 2 }, costUsd: 0.1 }, ...calls(['note', '{"text":"a"}', 'x'], ['note', '{"text":"b"}', 'y'])],
    [text('Done.'), end()],
  ]);
  const tool = noteTool();
  const { session, seen, rows } = rig({ provider, tools: [tool] });
  const turn = await session.submit('go');
  expect(turn).toEqual({ status: 'completed', text: 'Done.', turns: 1, toolCalls: 2, denied: 0 });
  expect(kinds(session.events())).toBe('system tools user usage assistant tool_call tool_call tool_started tool_result tool_started tool_result assistant');
  expect(await rows()).toEqual(session.events());
  expect(seen.flatMap((event) => (event.type === 'event' ? [event.event] : []))).toEqual(session.events());
  expect(tool.ran).toEqual(['a', 'b']);
  expect(provider.requests[1]?.conversation.messages.at(-1)).toMatchObject({ role: 'assistant', text: 'I will note.', calls: [
    { id: 'x', result: { output: '{"output":"noted a"}' } }, { id: 'y', result: { output: '{"output":"noted b"}' } },
  ] });
});

test('a model that never stops gets three turns, the limit fields and one last request without tools', async () => {
  const tool = noteTool();
  const provider = scripted([never]);
  const { session } = rig({ provider, tools: [tool], limits: { maxToolTurns: 3, maxToolCalls: 100, maxOutputBytes: 1000 } });
  const turn = await session.submit('go');
  expect(turn).toMatchObject({ status: 'limit_reached', turns: 3, toolCalls: 3 });
  expect(provider.requests.map((request) => request.toolChoice)).toEqual(['auto', 'auto', 'auto', 'none']);
  expect(envelopes(session.events())).toEqual([
    { output: 'noted again' }, { output: 'noted again' },
    { output: 'noted again', limit_reached: true, limit_message: 'Tool call limit reached (3). Stopping tool loop.' },
    { error: 'Tool call limit reached (3). Stopping tool loop.', code: 'limit_reached' },
  ]);
  expect(tool.ran).toHaveLength(3);
  await session.submit('and now');
  expect(provider.requests[4]?.toolChoice).toBe('auto');
});

test('calls beyond the cap of one response are refused, the others run', async () => {
  const tool = noteTool();
  const provider = scripted([calls(['note', '{"text":"1"}'], ['note', '{"text":"2"}'], ['note', '{"text":"3"}']), [text('ok'), end()]]);
  const { session } = rig({ provider, tools: [tool], limits: { maxToolTurns: 50, maxToolCalls: 2, maxOutputBytes: 1000 } });
  await session.submit('go');
  expect(tool.ran).toEqual(['1', '2']);
  expect(envelopes(session.events()).map((envelope) => envelope.code)).toEqual([undefined, undefined, 'limit_reached']);
});

test('after three responses whose calls all failed the model is asked for an answer', async () => {
  const provider = scripted([calls(['missing', '{}']), calls(['note', 'not json']), calls(['note', '{"text":1}']), [text('I cannot.'), end()]]);
  const { session } = rig({ provider, tools: [noteTool()] });
  expect(await session.submit('go')).toMatchObject({ status: 'completed', text: 'I cannot.', turns: 3 });
  expect(provider.requests.map((request) => request.toolChoice)).toEqual(['auto', 'auto', 'auto', 'none']);
  expect(envelopes(session.events()).map((envelope) => envelope.code)).toEqual(['unknown_tool', 'invalid_args', 'invalid_args']);
});

test('a response cut for length never runs its calls', async () => {
  const tool = noteTool();
  const provider = scripted([[{ type: 'tool_call', call: { id: 'a', name: 'note', arguments: '{"text":"x"}' } }, end('length')], [text('ok'), end()]]);
  const { session } = rig({ provider, tools: [tool] });
  await session.submit('go');
  expect(tool.ran).toEqual([]);
  expect(envelopes(session.events())[0]).toMatchObject({ code: 'invalid_args', details: { reason: 'output_limit' } });
});

test('an answer cut for length without calls completes, and a notice says that it was cut', async () => {
  const { session, seen } = rig({ provider: scripted([[text('The first of'), end('length')], [text('ok'), end()]]) });
  expect(await session.submit('go')).toMatchObject({ status: 'completed', text: 'The first of' });
  const notices = seen.filter((event) => event.type === 'notice');
  expect(notices).toEqual([{ type: 'notice', level: 'warn', code: 'output_limit', message: expect.stringContaining('cut') }]);
  await session.submit('again');
  expect(seen.filter((event) => event.type === 'notice')).toHaveLength(1);
});

test('missing and repeated call ids are made unique, in the log and on the wire', async () => {
  const provider = scripted([calls(['note', '{"text":"1"}', ''], ['note', '{"text":"2"}', 'same'], ['note', '{"text":"3"}', 'same']), calls(['note', '{"text":"4"}', 'same']), [text('ok'), end()]]);
  const { session } = rig({ provider, tools: [noteTool()] });
  await session.submit('go');
  const ids = session.events().filter((event) => event.kind === 'tool_call').map((event) => (event.data as { id: string }).id);
  expect(ids).toEqual(['call_r4_1', 'same', 'same_2', 'same_3']);
  const answered = session.events().filter((event) => event.kind === 'tool_result').map((event) => (event.data as { tool_call_id: string }).tool_call_id);
  expect(answered).toEqual(ids);
});

test('text of an attempt that is retried is not kept twice', async () => {
  const provider = scripted([[text('Hel'), { type: 'retry', attempt: 1, maxRetries: 5, delayMs: 0, reason: 'reset' }, text('Hello'), end()]]);
  const { session } = rig({ provider });
  expect(await session.submit('go')).toMatchObject({ status: 'completed', text: 'Hello' });
  expect(session.events().at(-1)?.content).toBe('Hello');
});

test('what an answer had said before it broke for good is kept and marked, and none of its calls run', async () => {
  const tool = noteTool();
  const provider = scripted([[text('Part'), ...calls(['note', '{"text":"x"}']).slice(0, 1), { type: 'fault', fault: { code: 'network', message: 'connection reset' } }]]);
  const { session } = rig({ provider, tools: [tool] });
  expect(await session.submit('go')).toMatchObject({ status: 'failed', fault: { code: 'network' } });
  expect(tool.ran).toEqual([]);
  expect(session.events().slice(3).map((event) => [event.kind, event.content])).toEqual([['assistant', 'Part'], ['error', 'connection reset']]);
  expect(session.events()[3]?.data).toMatchObject({ interrupted: true });
});

test('a refusal ends the turn as failed', async () => {
  const { session } = rig({ provider: scripted([[text('No.'), end('refusal')]]) });
  expect(await session.submit('go')).toMatchObject({ status: 'failed', text: 'No.', fault: { message: 'The model refused to answer.' } });
});

test('a call that needs a yes is denied where nobody can be asked, and the turn goes on', async () => {
  const tool = noteTool();
  const provider = scripted([calls(['note', '{"text":"x"}']), [text('Without it.'), end()]]);
  const { session } = rig({ provider, tools: [tool], policy: askAlways });
  expect(await session.submit('go')).toMatchObject({ status: 'completed', denied: 1 });
  expect(tool.ran).toEqual([]);
  expect(kinds(session.events().slice(3))).toBe('tool_call approval tool_result assistant');
  expect(envelopes(session.events())[0]).toMatchObject({ code: 'permission_denied', error: expect.stringContaining('--approval') as unknown });
});

test('a tool that throws gives a redacted result and a full log entry', async () => {
  const logged: unknown[] = [];
  const provider = scripted([calls(['note', '{"text":"x"}']), [text('ok'), end()]]);
  const { session } = rig({ provider, tools: [noteTool(() => Promise.reject(new Error('secret path /x/y')))], log: (entry) => { logged.push(entry); } });
  await session.submit('go');
  expect(envelopes(session.events())).toEqual([{ error: 'note failed inside the program; the log file has the details.', code: 'internal' }]);
  expect(JSON.stringify(logged)).toContain('secret path /x/y');
});

test('messages sent meanwhile follow the results of the response, in the same turn', async () => {
  const box: { send?: () => void } = {};
  const tool = noteTool(() => { box.send?.(); return Promise.resolve({ envelope: { output: 'ok' }, summary: 'ok' }); });
  const provider = scripted([calls(['note', '{"text":"1"}'], ['note', '{"text":"2"}', 'two']), [text('ok'), end()]]);
  const { session } = rig({ provider, tools: [tool] });
  box.send = () => { session.enqueue({ text: 'wait', when: 'steer' }); session.enqueue({ text: 'later', when: 'after' }); delete box.send; };
  expect(await session.submit('go')).toMatchObject({ turns: 1 });
  expect(kinds(session.events().slice(3))).toBe('tool_call tool_call tool_started tool_result tool_started tool_result user assistant');
  expect(session.takeQueue()).toEqual([{ text: 'later', when: 'after' }]);
});

test('a session in which nothing was said leaves nothing behind', async () => {
  const { session, store } = rig({ provider: scripted([]) });
  await session.flush();
  expect(await store.list(10)).toEqual([]);
  await session.submit('go');
  expect(await store.list(10)).toHaveLength(1);
});

test('what the first request is made of is known before it', () => {
  const { session } = rig({ provider: scripted([]) });
  expect(session.conversation()).toMatchObject({ system: 'S', tools: [], messages: [], settings: { model_output_size: 1000 } });
});
