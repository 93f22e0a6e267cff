import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { onTestFinished } from 'vitest';

/** One answer of the scripted model. `pieces`: how many characters of arguments go into one chunk. */
export interface Turn {
  readonly text?: string;
  readonly calls?: readonly { readonly name: string; readonly arguments: unknown }[];
  /** Why a chat answer ends. */ readonly finish?: string;
  /** Headers beside its own. */ readonly headers?: Readonly<Record<string, string>>;
  /** The answer begins so much later. */ readonly delayMs?: number;
  /** The answer begins when this has resolved. */ readonly after?: Promise<unknown>;
  /** The request is refused. */ readonly refused?: { readonly status: number; readonly body: unknown };
}
type Kind = 'chat' | 'messages' | 'responses';
interface Received {
  readonly kind: Kind;
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers: IncomingMessage['headers'];
}
export interface ModelServer {
  readonly url: string;
  readonly requests: readonly Received[];
  /** All that was ever received, on whatever connection. */
  bytes(): number;
  /** Resolves once every connection is closed. */
  closed(): Promise<void>;
}

type Send = (event: string, data: unknown) => void;
const pieces = (text: string): readonly string[] => text.match(/[\s\S]{1,7}/g) ?? [''];

/** A model on loopback over real HTTP: turn k answers the k-th request, in the wire the request's path speaks; a
 * function answers by what is asked. Requests that `refuses` returns true for get 401. Closed when the test ends. */
export async function modelServer(
  turns: readonly Turn[] | ((body: Received['body']) => Turn),
  refuses: (headers: IncomingMessage['headers']) => boolean = () => false,
): Promise<ModelServer> {
  const requests: Received[] = [];
  const server = createServer((request, response) => {
    void readBody(request).then(async (body) => {
      const kind: Kind = request.url?.endsWith('/messages')
        ? 'messages'
        : request.url?.endsWith('/responses')
          ? 'responses'
          : 'chat';
      if (request.method === 'POST') requests.push({ kind, body, headers: request.headers });
      if (request.method !== 'POST') {
        response.writeHead(404).end();
        return;
      }
      if (refuses(request.headers)) {
        requests.pop();
        response.writeHead(401, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ error: { message: 'Incorrect API key provided', code: 'invalid_api_key' } }));
        return;
      }
      const scripted = typeof turns === 'function' ? turns(body) : turns[requests.length - 1];
      const turn = scripted ?? { text: 'End of script.' };
      if (turn.delayMs !== undefined) await wait(turn.delayMs);
      await turn.after;
      if (turn.refused !== undefined) {
        response.writeHead(turn.refused.status, { 'content-type': 'application/json', ...turn.headers });
        response.end(JSON.stringify(turn.refused.body));
        return;
      }
      play(kind, turn, requests.length, response);
    });
  });
  const sockets: Socket[] = [];
  server.on('connection', (socket: Socket) => {
    sockets.push(socket);
  });
  // Whoever closes a connection, it is not a time-out within a test.
  server.keepAliveTimeout = 300_000;
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    bytes: () => sockets.reduce((sum, { bytesRead }) => sum + bytesRead, 0),
    closed: async () => {
      for (const socket of sockets) if (!socket.closed) await once(socket, 'close');
    },
  };
}

async function readBody(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
}

function play(kind: Kind, turn: Turn, number: number, response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', ...turn.headers });
  const send: Send = (event, data) => {
    response.write(`${event === '' ? '' : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`);
  };
  ({ chat: playChat, messages: playMessages, responses: playResponses })[kind](turn, number, send);
  response.end(kind === 'chat' ? 'data: [DONE]\n\n' : '');
}

function playChat(turn: Turn, number: number, send: Send): void {
  const chunk = (delta: unknown, finish: string | null = null): void => {
    send('', {
      id: `c${number}`,
      object: 'chat.completion.chunk',
      created: 1,
      model: 'm',
      choices: [{ index: 0, delta, finish_reason: finish }],
    });
  };
  chunk({ role: 'assistant', content: '' });
  for (const piece of turn.text ? pieces(turn.text) : []) chunk({ content: piece });
  for (const [index, call] of (turn.calls ?? []).entries()) {
    chunk({
      tool_calls: [
        { index, id: `call_${number}_${index}`, type: 'function', function: { name: call.name, arguments: '' } },
      ],
    });
    for (const piece of pieces(JSON.stringify(call.arguments)))
      chunk({ tool_calls: [{ index, function: { arguments: piece } }] });
  }
  chunk({}, turn.finish ?? (turn.calls ? 'tool_calls' : 'stop'));
  send('', {
    id: `c${number}`,
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [],
    usage: { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 },
  });
}

function playMessages(turn: Turn, number: number, send: Send): void {
  const event: Send = (type, data) => {
    send(type, { type, ...(data as object) });
  };
  event('message_start', {
    message: {
      id: `m${number}`,
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 100, output_tokens: 1 },
    },
  });
  let index = 0;
  const block = (start: unknown, deltas: readonly unknown[]): void => {
    event('content_block_start', { index, content_block: start });
    for (const delta of deltas) event('content_block_delta', { index, delta });
    event('content_block_stop', { index });
    index += 1;
  };
  if (turn.text)
    block(
      { type: 'text', text: '' },
      pieces(turn.text).map((text) => ({ type: 'text_delta', text })),
    );
  for (const [at, call] of (turn.calls ?? []).entries()) {
    block(
      { type: 'tool_use', id: `toolu_${number}_${at}`, name: call.name, input: {} },
      pieces(JSON.stringify(call.arguments)).map((partial_json) => ({ type: 'input_json_delta', partial_json })),
    );
  }
  event('message_delta', {
    delta: { stop_reason: turn.calls ? 'tool_use' : 'end_turn', stop_sequence: null },
    usage: { output_tokens: 10 },
  });
  event('message_stop', {});
}

function playResponses(turn: Turn, number: number, send: Send): void {
  const message = turn.text
    ? [
        {
          type: 'message',
          id: `msg_${number}`,
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text: turn.text, annotations: [] }],
        },
      ]
    : [];
  const calls = (turn.calls ?? []).map((call, at) => ({
    type: 'function_call',
    id: `fc_${number}_${at}`,
    call_id: `call_${number}_${at}`,
    name: call.name,
    arguments: JSON.stringify(call.arguments),
    status: 'completed',
  }));
  const output = [...message, ...calls];
  const base = {
    id: `resp_${number}`,
    object: 'response',
    created_at: 1,
    model: 'm',
    error: null,
    incomplete_details: null,
    parallel_tool_calls: true,
    tool_choice: 'auto',
    tools: [],
  };
  send('response.created', { type: 'response.created', response: { ...base, status: 'in_progress', output: [] } });
  for (const [at, item] of output.entries()) {
    send('response.output_item.added', {
      type: 'response.output_item.added',
      output_index: at,
      item: { ...item, status: 'in_progress' },
    });
    if (item.type === 'message')
      for (const delta of pieces(turn.text ?? ''))
        send('response.output_text.delta', {
          type: 'response.output_text.delta',
          item_id: item.id,
          output_index: at,
          content_index: 0,
          delta,
        });
    send('response.output_item.done', { type: 'response.output_item.done', output_index: at, item });
  }
  send('response.completed', {
    type: 'response.completed',
    response: {
      ...base,
      status: 'completed',
      output,
      usage: {
        input_tokens: 100,
        output_tokens: 10,
        total_tokens: 110,
        input_tokens_details: { cached_tokens: 0 },
        output_tokens_details: { reasoning_tokens: 0 },
      },
    },
  });
}
