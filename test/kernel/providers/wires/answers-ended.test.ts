import { expect, test } from 'vitest';
import { fold, wires } from './recordings.js';

/** How an answer of text ends with a finish reason: its stop, `again` where it is asked for again, `failed` where it is
 * reported. */
const reasons: Readonly<Record<string, readonly string[]>> = {
  stop: [
    'stop',
    'STOP',
    'end_turn',
    'endTurn',
    'stop_sequence',
    'completed',
    'complete',
    'COMPLETE',
    'eos',
    'eos_token',
  ],
  tool: ['tool_calls', 'tool-calls', 'tool_use', 'function_call', 'tool_call', 'TOOL_CALL'],
  length: ['length', 'max_tokens', 'MAX_TOKENS', 'max_output_tokens', 'model_length', 'model_context_window_exceeded'],
  pause: ['pause_turn'],
  refusal: ['refusal'],
  content_filter: [
    'content_filter',
    'content-filter',
    'ContentFilter',
    'SAFETY',
    'sensitive',
    'guardrail_intervened',
    'RECITATION',
  ],
  again: [
    'error',
    'network_error',
    'abort',
    'timeout',
    'server_error',
    'cancelled',
    'canceled',
    'insufficient_system_resource',
    'time_limit',
    'overloaded_error',
    'unload',
  ],
  failed: [
    'malformed_function_call',
    'MALFORMED_FUNCTION_CALL',
    'unexpected_tool_call',
    'other',
    'unknown',
    'weird',
    '42',
    'malformed_tool_use',
  ],
};

const streams: Readonly<Record<string, (reason: string) => readonly object[]>> = {
  chat: (reason) => [
    { choices: [{ index: 0, delta: { content: 'Half a' } }] },
    { choices: [{ index: 0, delta: {}, finish_reason: reason }] },
  ],
  messages: (reason) => [
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'Half a' } },
    { type: 'message_delta', delta: { stop_reason: reason }, usage: { output_tokens: 1 } },
    { type: 'message_stop' },
  ],
  responses: (reason) => [
    { type: 'response.output_text.delta', item_id: 'm', delta: 'Half a' },
    { type: 'response.incomplete', response: { status: 'incomplete', incomplete_details: { reason } } },
  ],
};

const rows = Object.entries(reasons).flatMap(([want, list]) => list.map((reason) => [reason, want] as const));

test.each(rows)('the finish reason %s means: %s', (reason, want) => {
  for (const [name, events] of Object.entries(streams)) {
    const decoder = wires[name]!.decoder();
    const chunks = events(reason).flatMap((event) => decoder.push({ event: '', data: JSON.stringify(event) }));
    const got = fold([...chunks, ...decoder.end()]);
    const ending = got.fault === null ? got.stop : got.fault.retryable ? 'again' : 'failed';
    expect([name, got.text, ending]).toEqual([name, 'Half a', want === 'tool' ? 'stop' : want]);
    if (got.fault !== null) expect(got.fault.fault.message).toContain(`"${reason}"`);
  }
});

test('a finish reason that is no word is none', () => {
  for (const reason of ['', ' ', 'null', null, 0, false, [], {}]) {
    const decoder = wires.chat!.decoder();
    const event = { choices: [{ index: 0, delta: { content: 'Hi' }, finish_reason: reason }] };
    decoder.push({ event: '', data: JSON.stringify(event) });
    expect(fold(decoder.end()).fault?.fault.code).toBe('stream_incomplete');
  }
});

const said = 'no healthy upstream';
test.each<readonly [string, string]>([
  ['an error text', `{"error":"${said}"}`],
  ['an error object', `{"error":{"message":"${said}","code":503,"type":"x"}}`],
  ['an error object in a text', `{"error":"{\\"message\\":\\"${said}\\"}"}`],
  ['a message', `{"message":"${said}"}`],
  ['a message with a code', `{"message":"${said}","code":503,"success":false}`],
  ['a detail', `{"detail":"${said}"}`],
  ['a list of details', `{"detail":[{"msg":"${said}","loc":["body","x"]}]}`],
  ['a list of errors', `{"success":false,"errors":[{"code":1000,"message":"${said}"}]}`],
  ['a list of texts', `{"errors":["${said}"]}`],
  ['an array', `[{"error":{"message":"${said}"}}]`],
  ['an array of messages', `[{"message":"${said}"}]`],
  ['a text in JSON', `"${said}"`],
  ['a plain text', said],
  ['a web page', `<html><head><title>${said}</title></head></html>`],
  ['a fault of an API gateway', `{"fault":{"faultstring":"${said}"}}`],
  ['a status message', `{"base_resp":{"status_code":1002,"status_msg":"${said}"}}`],
  ['a problem document', `{"type":"about:blank","title":"Bad","status":503,"detail":"${said}"}`],
  ['an object that is named', `{"object":"error","message":"${said}"}`],
])('what a provider says inside a stream is reported: %s', (_name, data) => {
  for (const [name, wire] of Object.entries(wires)) {
    for (const event of ['', 'error']) {
      const decoder = wire.decoder();
      const got = fold([...decoder.push({ event, data }), ...decoder.end()]);
      expect([name, event, got.fault?.fault.message]).toEqual([name, event, expect.stringContaining(said)]);
    }
  }
});

test('an event without an answer and without a failure ends nothing', () => {
  for (const wire of Object.values(wires)) {
    const decoder = wire.decoder();
    for (const data of [
      '{"type":"ping"}',
      '{"choices":[],"usage":null}',
      '{}',
      '[]',
      'null',
      '5',
      '{"error":null}',
      '{"base_resp":{"status_code":0,"status_msg":"success"}}',
    ])
      expect([data, decoder.push({ event: '', data })]).toEqual([data, []]);
  }
});
