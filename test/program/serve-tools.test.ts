import { existsSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { agent, lines, place } from './inside.js';

type Message = Readonly<Record<string, unknown>>;
type Place = ReturnType<typeof place>;

/** How the other program talks: what it opens with, and what it adds to each request. */
interface Dialect {
  readonly opening: readonly Message[];
  readonly meta: Message | undefined;
}

const info = { name: 'tried\u001b[31m', version: '1' };

const dialects: Readonly<Record<string, (capabilities: Message) => Dialect>> = {
  '2025-11-25': (capabilities) => ({
    opening: [
      { id: 'hello', method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities, clientInfo: info } },
      { method: 'notifications/initialized' },
    ],
    meta: undefined,
  }),
  '2026-07-28': (capabilities) => ({
    opening: [],
    meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': info,
      'io.modelcontextprotocol/clientCapabilities': capabilities,
    },
  }),
};

/** Speaks with `agent mcp serve` until `said` has sent its last message. Returns all messages of the server. */
async function served(
  at: Place,
  dialect: Dialect,
  requests: readonly Message[],
  said: (message: Message) => Message | readonly Message[] | null = () => null,
): Promise<readonly Message[]> {
  const stdin = new PassThrough();
  const send = (message: Message): void => {
    const params = { ...(message['params'] as Message | undefined), ...(dialect.meta && { _meta: dialect.meta }) };
    const whole = 'method' in message && message['method'] !== 'initialize' ? { ...message, params } : message;
    stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...whole })}\n`);
  };
  let open = requests.length;
  let seen = 0;
  const onStdout = (text: string): void => {
    const whole = lines(text.slice(0, text.lastIndexOf('\n') + 1));
    for (const message of whole.slice(seen)) {
      seen += 1;
      const reply = said(message);
      if (reply) [reply].flat().forEach(send);
      else if ('id' in message && message['id'] !== 'hello' && !('method' in message)) open -= 1;
    }
    if (open === 0) stdin.end();
  };
  for (const message of [...dialect.opening, ...requests]) send(message);
  const { code, stdout } = await agent(at, ['mcp', 'serve'], { stdin, onStdout });
  expect(code).toBe(0);
  return lines(stdout);
}

function calling(id: number, name: string, args: Message): Message {
  return { id, method: 'tools/call', params: { name, arguments: args } };
}

function resultOf(messages: readonly Message[], id: number): unknown {
  return messages.find((message) => message['id'] === id && !('method' in message))?.['result'];
}

describe.each(Object.entries(dialects))('over %s', (_version, dialectFor) => {
  test('the tools are listed, called and recorded, and nothing but messages is printed', async () => {
    const at = place({ 'a.txt': 'hello\n' });
    const messages = await served(at, dialectFor({}), [
      { id: 1, method: 'tools/list' },
      calling(2, 'file_read', { path: 'a.txt' }),
      calling(3, 'file_read', { path: 7 }),
      calling(4, 'bash', { command: 'exit 3' }),
    ]);
    expect(resultOf(messages, 1)).toMatchObject({
      tools: expect.arrayContaining([
        expect.objectContaining({
          name: 'file_read',
          inputSchema: expect.objectContaining({ type: 'object', required: ['path'] }) as unknown,
          annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
        }),
      ]) as unknown,
    });
    expect(resultOf(messages, 2)).toMatchObject({ content: [{ type: 'text', text: 'hello\n' }] });
    expect(resultOf(messages, 3)).toMatchObject({
      isError: true,
      content: [{}, { text: expect.stringContaining('"code":"invalid_args"') as string }],
    });
    expect(resultOf(messages, 4)).toMatchObject({ content: [{ text: '' }, { text: '{"exit_code":3}' }] });
    const audit = JSON.parse((await agent(at, ['audit', '--json'])).stdout) as readonly Message[];
    expect(audit.map(({ tool }) => tool)).toEqual(['file_read', 'file_read', 'bash']);
  });

  test('without a client that can ask, what needs a yes is denied', async () => {
    const at = place();
    const kept = at.file('kept.txt', '');
    const messages = await served(at, dialectFor({}), [calling(1, 'bash', { command: 'rm -rf kept.txt' })]);
    expect(resultOf(messages, 1)).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('this run cannot ask') as string }, {}],
    });
    expect(existsSync(kept)).toBe(true);
  });

  test.each([
    ['yes, once', false],
    ['no', true],
    ['perhaps', true],
  ])('the person is asked and says %j', async (word, isKept) => {
    const at = place();
    const kept = at.file('kept.txt', '');
    const asked: unknown[] = [];
    const command = calling(1, 'bash', { command: 'rm -rf kept.txt' });
    const messages = await served(at, dialectFor({ elicitation: {} }), [command], (message) => {
      const result = message['result'] as Message | undefined;
      const answer = { action: 'accept', content: { answer: word } };
      if (message['method'] === 'elicitation/create') {
        asked.push(message['params']);
        return { id: message['id'], result: answer };
      }
      if (result?.['resultType'] !== 'input_required') return null;
      const requests = result['inputRequests'] as { readonly answer: { readonly params: unknown } };
      asked.push(requests.answer.params);
      const params = {
        ...(command['params'] as Message),
        inputResponses: { answer },
        requestState: result['requestState'],
      };
      return { id: 2, method: 'tools/call', params };
    });
    expect(asked).toMatchObject([
      {
        message: `Run this command?  Dangerous: deletes recursively\n  rm -rf kept.txt\n→ ${kept}`,
        requestedSchema: { properties: { answer: { enum: ['no', 'yes, once', expect.any(String)] } } },
      },
    ]);
    expect(existsSync(kept)).toBe(isKept);
    const last = messages.findLast((message) => 'result' in message)?.['result'];
    if (isKept)
      expect(last).toMatchObject({
        isError: true,
        content: [{ text: expect.stringMatching(/^The user denied this/) as string }, {}],
      });
  });
});

test('the question about an edit says which lines it would change', async () => {
  const at = place();
  at.file('kept.txt', 'one\ntwo\nthree\n');
  at.env['AGENT_APPROVAL'] = 'always';
  const asked: unknown[] = [];
  const edit = calling(1, 'file_edit', { path: 'kept.txt', old_string: 'two', new_string: '2' });
  const dialect = dialects['2025-11-25']?.({ elicitation: {} });
  if (!dialect) throw new Error('no such dialect');
  await served(at, dialect, [edit], (message) => {
    if (message['method'] !== 'elicitation/create') return null;
    asked.push(message['params']);
    return { id: message['id'], result: { action: 'decline' } };
  });
  expect(asked).toMatchObject([
    {
      message: expect.stringMatching(
        /^Edit kept\.txt\? {2}\+1 -1\n {2}@@ line 1\n {3}one\n {2}-two\n {2}\+2\n {3}three\n→ \/.*kept\.txt\n/,
      ) as string,
    },
  ]);
});

test('a call that is taken back ends, tells no more, and those behind it run', async () => {
  const at = place();
  const dialect = dialects['2025-11-25']?.({});
  if (!dialect) throw new Error('no such dialect');
  const slow = { name: 'bash', arguments: { command: 'echo begun; sleep 600' }, _meta: { progressToken: 'p' } };
  const messages = await served(at, dialect, [{ id: 1, method: 'tools/call', params: slow }], ({ method }) =>
    method === 'notifications/progress'
      ? [{ method: 'notifications/cancelled', params: { requestId: 1 } }, calling(2, 'bash', { command: 'echo after' })]
      : null,
  );
  expect(messages.filter(({ method }) => method === 'notifications/progress')).toMatchObject([
    { params: { progressToken: 'p', progress: 1, message: 'begun' } },
  ]);
  expect(resultOf(messages, 1)).toBeUndefined();
  expect(resultOf(messages, 2)).toMatchObject({ content: [{ text: 'after\n' }, {}] });
});
