import { isRecord } from '../../kernel/core/json.js';
import { firstLine } from '../../kernel/core/text.js';
import { type ForeignMessages, maxMessageBytes, parseMessage, tooLong } from './foreign-messages.js';
import { visible } from './foreign-tools.js';

const maxErrorBytes = 64 * 1024;

/** Makes a `fetch` that gives the SDK the messages of a server as it accepts them. A request is never left without an
 * answer: a body that is no message, or a stream that ends before the answer, fails it at once.
 * Source: Model Context Protocol 2025-11-25, "Streamable HTTP". */
export function createMessageFetch(messages: ForeignMessages, send: typeof fetch): typeof fetch {
  return async (input, init) => {
    const sent = init?.method === 'POST' && typeof init.body === 'string' ? parseMessage(init.body) : null;
    const request = isRecord(sent) && sent['jsonrpc'] === '2.0' ? sent : null;
    if (request) messages.sent(request);
    const response = await send(input, init);
    return request || init?.method === 'GET' ? await answered(response, messages, request?.['id']) : response;
  };
}

async function answered(response: Response, messages: ForeignMessages, asked: unknown): Promise<Response> {
  const { body, status } = response;
  if (body === null || status === 202) return response;
  const type = response.headers.get('content-type') ?? '';
  if (!response.ok) return withBody(response, type, (await readText(body, maxErrorBytes)).text);
  const id = typeof asked === 'number' || typeof asked === 'string' ? asked : null;
  if (type.includes('text/event-stream')) return withBody(response, type, streamOf(readEvents(body, messages, id)));
  return id === null
    ? response
    : withBody(response, 'application/json', await readAnswers(body, messages, { id, type }));
}

function withBody(response: Response, type: string, body: BodyInit): Response {
  const headers = new Headers(response.headers);
  for (const name of ['content-encoding', 'content-length']) headers.delete(name);
  headers.set('content-type', type);
  return new Response(body, { status: response.status, statusText: response.statusText, headers });
}

type Body = AsyncIterable<Uint8Array>;
type Id = string | number;

/** Returns the messages of a body as JSON, with the answer to the request among them. */
async function readAnswers(
  body: Body,
  messages: ForeignMessages,
  { id, type }: { readonly id: Id; readonly type: string },
): Promise<string> {
  const { text, isWhole } = await readText(body, maxMessageBytes);
  const value = isWhole ? parseMessage(text) : undefined;
  const found = [value].flat().flatMap((item) => messages.received(item) ?? []);
  const start = firstLine(visible(text.trim()), 100);
  const why = isWhole
    ? `it answered with ${type === '' ? 'no content type' : type} that contains no answer${start === '' ? '' : `: ${start}`}`
    : tooLong;
  const missing = messages.fail(id, why);
  return JSON.stringify(missing ? [...found, missing] : found);
}

async function readText(body: Body, maxBytes: number): Promise<{ readonly text: string; readonly isWhole: boolean }> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    chunks.push(chunk);
    if (bytes > maxBytes) break;
  }
  return { text: Buffer.concat(chunks).subarray(0, maxBytes).toString('utf8'), isWhole: bytes <= maxBytes };
}

/** Yields the lines of a stream of events, with the data of each as the SDK accepts it. The end of a stream that cannot
 * be resumed answers the request `id` where nothing else has.
 * Source: WHATWG HTML, section 9.2.6 "Interpreting an event stream". */
async function* readEvents(body: Body, messages: ForeignMessages, id: Id | null): AsyncGenerator<string> {
  let data: string[] = [];
  let canResume = false;
  let problem = 'its stream ended before the answer';
  try {
    for await (const line of linesOf(body)) {
      if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''));
      else if (line === '') {
        yield eventOf(messages.received(parseMessage(data.join('\n'))));
        data = [];
      } else yield `${line}\n`;
      canResume ||= line.startsWith('id:');
    }
  } catch (error) {
    problem = error instanceof Error && error.message === tooLong ? tooLong : problem;
    canResume &&= problem !== tooLong;
  }
  const failed = id === null || canResume ? null : messages.fail(id, problem);
  if (failed) yield `\n${eventOf(failed)}`;
}

function eventOf(message: unknown): string {
  return message === null ? '\n' : `data: ${JSON.stringify(message)}\n\n`;
}

async function* linesOf(body: Body): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest: string[] = [];
  let length = 0;
  for await (const chunk of body) {
    const text = decoder.decode(chunk, { stream: true });
    length += text.length;
    if (length > maxMessageBytes) throw new Error(tooLong);
    rest.push(text);
    if (!/[\n\r]/.test(text)) continue;
    const lines = rest.join('').split(/\r\n|\n|\r(?!$)/);
    rest = [lines.pop() ?? ''];
    length = rest[0]?.length ?? 0;
    yield* lines;
  }
  yield* [rest.join('').replace(/\r$/, ''), ''];
}

function streamOf(texts: AsyncGenerator<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const { done, value } = await texts.next();
      if (done === true) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    cancel: async () => {
      await texts.return(undefined);
    },
  });
}
