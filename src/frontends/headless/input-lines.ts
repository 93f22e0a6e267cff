import { isRecord, parseJson } from '../../kernel/core/json.js';

/** One line of `--input-format stream-json`, as Claude Code reads them. Source: `@anthropic-ai/claude-agent-sdk`
 * 0.3.330, `SDKUserMessage` and `SDKControlRequest`, read 2026-11-22. */
export type InputLine =
  /** `now`: it is delivered to the turn that runs. */
  | ({ readonly type: 'message'; readonly now: boolean } & InputMessage)
  | { readonly type: 'request'; readonly id: string; readonly request: ControlRequest }
  /** `null`: the request was refused. */
  | { readonly type: 'response'; readonly id: string; readonly response: Readonly<Record<string, unknown>> | null }
  | { readonly type: 'nothing' }
  | { readonly type: 'unreadable'; readonly problem: string };

/** The content of a message. */
export interface InputMessage {
  readonly text: string;
  /** The bytes of images and documents. */
  readonly files: readonly Uint8Array[];
  /** The kinds of blocks that are not read. */
  readonly leftOut: readonly string[];
}

/** A request of the other program besides its messages. */
export interface ControlRequest {
  readonly subtype: string;
  readonly [more: string]: unknown;
}

/** No model takes a longer message, so no more than this is held in memory. */
export const maxLineBytes = 32 * 1024 * 1024;

/** Splits bytes into lines, at LF alone: a message may hold every other character that ends a line somewhere. A longer
 * line than any message can be is null. */
export async function* splitLines(chunks: AsyncIterable<Uint8Array | string>): AsyncGenerator<string | null> {
  let parts: Buffer[] = [];
  let bytes = 0;
  const take = (part: Buffer): void => {
    bytes += part.length;
    if (bytes <= maxLineBytes) parts.push(part);
    else parts = [];
  };
  const line = (): string | null => {
    const text = bytes > maxLineBytes ? null : Buffer.concat(parts).toString('utf8');
    parts = [];
    bytes = 0;
    return text;
  };
  for await (const chunk of chunks) {
    const data = Buffer.from(chunk);
    let from = 0;
    for (let at = data.indexOf(10); at >= 0; at = data.indexOf(10, from)) {
      take(data.subarray(from, at));
      yield line();
      from = at + 1;
    }
    take(data.subarray(from));
  }
  if (bytes > 0) yield line();
}

export function readInputLine(text: string | null): InputLine {
  if (text === null) return unreadable(`a line has more than ${maxLineBytes} bytes`);
  if (text.trim() === '') return { type: 'nothing' };
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (error) {
    return unreadable(`a line is not JSON: ${error instanceof Error ? error.message : ''}`);
  }
  if (!isRecord(value)) return unreadable('a line is not a JSON object');
  switch (value['type']) {
    case 'user':
      return messageOf(value);
    case 'control_request':
      return requestOf(value);
    case 'control_response':
      return responseOf(value);
    case 'control_cancel_request':
    case 'keep_alive':
      return { type: 'nothing' };
    default:
      return unreadable(
        `a line has the type ${JSON.stringify(value['type'])?.slice(0, 80)}; user and control_request are supported`,
      );
  }
}

function unreadable(problem: string): InputLine {
  return { type: 'unreadable', problem };
}

type Line = Readonly<Record<string, unknown>>;

function messageOf({ message, priority }: Line): InputLine {
  const content = isRecord(message) ? message['content'] : undefined;
  const blocks: readonly unknown[] = typeof content === 'string' ? [{ type: 'text', text: content }] : listOf(content);
  const said = blocks.map(blockOf);
  const text = said
    .flatMap((block) => block.text ?? [])
    .join('\n')
    .toWellFormed();
  const files = said.flatMap((block) => block.file ?? []);
  if (text.trim() === '' && files.length === 0) return unreadable('a user line has no text');
  return {
    type: 'message',
    text,
    files,
    now: priority === 'now',
    leftOut: said.flatMap((block) => block.leftOut ?? []),
  };
}

interface Block {
  readonly text?: string;
  readonly file?: Uint8Array;
  readonly leftOut?: string;
}

/** Returns one block of a message. Its bytes decide the type of an image. */
function blockOf(block: unknown): Block {
  if (!isRecord(block)) return { leftOut: 'a block that is not an object' };
  const { type, text, source } = block;
  if (type === 'text' && typeof text === 'string') return { text };
  const data = isRecord(source) && source['type'] === 'base64' ? source['data'] : undefined;
  if ((type === 'image' || type === 'document') && typeof data === 'string')
    return { file: Buffer.from(data, 'base64') };
  return { leftOut: String(type).slice(0, 40) };
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function requestOf({ request_id: id, request }: Line): InputLine {
  const subtype = isRecord(request) ? request['subtype'] : undefined;
  if (typeof id !== 'string' || !isRecord(request) || typeof subtype !== 'string')
    return unreadable('a control_request needs a request_id and a request with a subtype');
  return { type: 'request', id, request: { ...request, subtype } };
}

function responseOf({ response }: Line): InputLine {
  const { request_id: id, subtype, response: answer } = isRecord(response) ? response : {};
  if (typeof id !== 'string') return unreadable('a control_response needs a request_id');
  return { type: 'response', id, response: subtype === 'success' && isRecord(answer) ? answer : null };
}
