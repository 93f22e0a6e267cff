import type { Json } from '../../core/json.js';
import type { ModelChunk } from '../../core/provider.js';
import { createSseReader } from '../wires/sse.js';
import type { ServerEvent, StreamDecoder, Wire, WireChunk } from '../wires/wire.js';
import { readText } from './body.js';
import { type Answer, HttpFailure } from './exchange.js';
import { type Failed, isRetryableAnswer, retryAfterMs } from './retry.js';

/** Caps of one answer. Source: security 2.42. */
const maxTextChars = 8 * 1024 * 1024;
const maxBodyBytes = 64 * 1024 * 1024;
const maxErrorBytes = 64 * 1024;

export interface AnswerReader {
  readonly wire: Wire;
  readonly host: string;
  readonly maxCalls: number | undefined;
  /** False: an answer that says nothing and calls nothing does not count. */
  readonly takesEmpty: boolean;
  /** What an empty answer before this one used. */
  readonly spent: Spent | null;
  now(): number;
  /** A byte has come. */
  alive(): void;
  /** What a request costs in USD by the table; a provider's own figure wins. */
  cost(usage: Extract<WireChunk, { type: 'usage' }>): number | null;
}

type Spent = Extract<ModelChunk, { type: 'usage' }>;

/** How an answer ended: complete (`end` was given), or why it did not count. `empty`: it was complete, with nothing in
 * it; `spent` is what it used. */
export type Outcome =
  | { readonly complete: true }
  | { readonly complete: false; readonly failed: Failed; readonly empty?: true; readonly spent?: Spent };

/** Reads one answer. Text and reasoning are given as they come; calls, usage and `end` only once the answer is
 * complete, so that nothing of an unfinished one can run. Throws an `HttpFailure` where the connection breaks. */
export async function* readAnswer(answer: Answer, reader: AnswerReader): AsyncGenerator<ModelChunk, Outcome> {
  if (answer.status < 200 || answer.status > 299) return { complete: false, failed: await refused(answer, reader) };
  if (answer.status === 204 || answer.status === 205) return { complete: false, failed: nothingInIt(answer, reader) };
  const gate = createGate(reader);
  for await (const chunks of wireChunks(answer, reader)) {
    for (const chunk of chunks) {
      const shown = gate.take(chunk);
      if (shown !== null) yield shown;
      if (gate.failed !== null) {
        answer.body.destroy();
        return { complete: false, failed: gate.failed };
      }
      if (!gate.complete) continue;
      await answer.body.release();
      if (gate.isEmpty() && !reader.takesEmpty) return emptied(gate, reader);
      yield* gate.held;
      return { complete: true };
    }
  }
  return { complete: false, failed: unreadable(`${reader.host} gave no answer that can be read`, true) };
}

/** Holds back what an unfinished answer must not give. */
interface Gate {
  readonly held: ModelChunk[];
  complete: boolean;
  failed: Failed | null;
  take(chunk: WireChunk): ModelChunk | null;
  /** True where the answer is over and there is nothing in it. */
  isEmpty(): boolean;
}

function createGate(reader: AnswerReader): Gate {
  let chars = 0;
  let said = false;
  return {
    held: [],
    complete: false,
    failed: null,
    isEmpty() {
      const last = this.held.at(-1);
      return !said && last?.type === 'end' && last.stop === 'stop' && last.reasoning === undefined;
    },
    take(chunk) {
      switch (chunk.type) {
        case 'text':
        case 'reasoning':
          chars += chunk.text.length;
          said ||= chunk.text.trim() !== '';
          if (chars <= maxTextChars) return chunk;
          this.failed = unreadable(
            `the answer of ${reader.host} is longer than ${maxTextChars / 1024 / 1024} MiB of text`,
            false,
          );
          return null;
        case 'tool_call':
          this.held.push(chunk);
          return null;
        case 'usage':
          this.held.push(together(reader.spent, { type: 'usage', usage: chunk.usage, costUsd: reader.cost(chunk) }));
          return null;
        case 'end':
          this.held.push(chunk);
          this.complete = true;
          return null;
        case 'fault':
          this.failed = { fault: chunk.fault, retryable: chunk.retryable };
          return null;
        default:
          chunk satisfies never;
          return null;
      }
    },
  };
}

function emptied(gate: Gate, { host }: AnswerReader): Outcome {
  const spent = gate.held.find((chunk) => chunk.type === 'usage');
  const failed: Failed = {
    fault: { code: 'stream_incomplete', message: `${host} gave an empty answer` },
    retryable: true,
  };
  return { complete: false, failed, empty: true, ...(spent === undefined ? {} : { spent }) };
}

/** Two requests that count as one. */
function together(before: Spent | null, now: Spent): Spent {
  if (before === null) return now;
  const { usage: one } = before;
  const { usage: two } = now;
  const usage = {
    input: one.input + two.input,
    cacheRead: one.cacheRead + two.cacheRead,
    cacheWrite: one.cacheWrite + two.cacheWrite,
    output: one.output + two.output,
  };
  return {
    type: 'usage',
    usage,
    costUsd: before.costUsd === null || now.costUsd === null ? null : before.costUsd + now.costUsd,
  };
}

/** An answer that is not 2xx. */
async function refused(answer: Answer, reader: AnswerReader): Promise<Failed> {
  const { status, headers } = answer;
  if (status >= 300 && status < 400) {
    answer.body.destroy();
    const message = `${reader.host} answered with a redirect (${status})${redirectTarget(headers.location)}; redirects are not followed, so that no key goes astray`;
    return {
      fault: { code: 'protocol', message, hint: 'set the base URL to where the server really is', status },
      retryable: false,
    };
  }
  const fault = reader.wire.fault(status, await readText(answer.body, maxErrorBytes));
  const wait = retryAfterMs(headers, reader.now());
  return {
    fault: { status, ...fault },
    retryable: isRetryableAnswer(status, headers, fault),
    ...(wait === undefined ? {} : { retryAfterMs: wait }),
  };
}

/** An answer that says by its status that it is empty will be empty again. */
function nothingInIt(answer: Answer, { host }: AnswerReader): Failed {
  answer.body.destroy();
  const { status } = answer;
  return {
    fault: {
      code: 'protocol',
      message: `${host} answered ${status}, which is an answer without a body`,
      hint: 'check the base URL',
      status,
    },
    retryable: false,
  };
}

function redirectTarget(location: string | undefined): string {
  if (location === undefined || !URL.canParse(location, 'http://here.invalid')) return '';
  const url = new URL(location, 'http://here.invalid');
  return ` to ${url.host === 'here.invalid' ? url.pathname : url.origin}`;
}

/** What the body means, as much at once as came at once: a stream of events, or one JSON document where the server did
 * not stream. */
async function* wireChunks(answer: Answer, reader: AnswerReader): AsyncGenerator<readonly WireChunk[]> {
  const sse = createSseReader();
  const decoder = reader.wire.decoder(reader.maxCalls);
  const whole: Uint8Array[] = [];
  let kind: 'unknown' | 'events' | 'json' = 'unknown';
  let bytes = 0;
  const broken: { error?: unknown } = {};
  for await (const chunk of untilBroken(answer.body, broken)) {
    reader.alive();
    bytes += chunk.length;
    if (bytes > maxBodyBytes)
      throw tooLarge(answer, reader, `an answer of more than ${maxBodyBytes / 1024 / 1024} MiB`);
    if (kind === 'unknown') kind = sniff(chunk, answer.headers['content-type'] ?? '', reader.host);
    if (kind === 'json') {
      whole.push(chunk);
      continue;
    }
    yield joined(sse.push(chunk), decoder);
    if (sse.overflowed) throw tooLarge(answer, reader, 'a line of more than 16 MiB');
  }
  if ('error' in broken) {
    yield endOfBroken(kind === 'events' ? decoder.end() : [], broken.error);
    return;
  }
  if (kind === 'json') {
    yield decodeWhole(whole, reader);
    return;
  }
  yield joined(sse.end(), decoder);
  yield decoder.end();
}

/** What events mean. Text that came together stays together: each piece on its way through the loop costs more than its
 * text. */
function joined(events: readonly ServerEvent[], decoder: StreamDecoder): readonly WireChunk[] {
  const chunks: WireChunk[] = [];
  for (const part of events.flatMap((event) => decoder.push(event))) {
    const last = chunks.at(-1);
    if (last && (last.type === 'text' || last.type === 'reasoning') && part.type === last.type)
      chunks[chunks.length - 1] = { type: last.type, text: last.text + part.text };
    else chunks.push(part);
  }
  return chunks;
}

/** All that counts may have come before the break: then the answer is complete, and asking again would cost it twice.
 * Throws the break otherwise. */
function endOfBroken(last: readonly WireChunk[], error: unknown): readonly WireChunk[] {
  if (!last.some((chunk) => chunk.type === 'end')) throw error;
  return last;
}

/** The chunks of a body; where reading fails, `broken` gets the error and the chunks end. */
async function* untilBroken(body: Answer['body'], broken: { error?: unknown }): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    broken.error = error;
  }
}

/** What a body is, by its first bytes rather than by what the server calls it. Throws for a web page. */
function sniff(chunk: Uint8Array, contentType: string, host: string): 'unknown' | 'events' | 'json' {
  const first = chunk.findIndex((byte) => byte !== 32 && (byte < 9 || byte > 13));
  const start = first < 0 ? '' : new TextDecoder().decode(chunk.subarray(first, first + 64)).trimStart();
  if (start === '') return 'unknown';
  if (start.startsWith('{') || start.startsWith('[')) return 'json';
  if (start.startsWith('<') || contentType.startsWith('text/html')) {
    throw new HttpFailure(
      {
        code: 'protocol',
        message: `${host} answered with a web page instead of a model's answer`,
        hint: 'check the base URL, and whether the network wants you to log in first',
      },
      false,
    );
  }
  return 'events';
}

function decodeWhole(whole: readonly Uint8Array[], reader: AnswerReader): readonly WireChunk[] {
  let body: Json;
  try {
    body = JSON.parse(Buffer.concat(whole).toString('utf8')) as Json;
  } catch {
    throw new HttpFailure(
      { code: 'stream_incomplete', message: `the answer of ${reader.host} is not whole JSON` },
      true,
    );
  }
  return reader.wire.decodeBody(body, reader.maxCalls);
}

function tooLarge(answer: Answer, reader: AnswerReader, what: string): HttpFailure {
  answer.body.destroy();
  return new HttpFailure({ code: 'protocol', message: `${reader.host} sent ${what}` }, false);
}

function unreadable(message: string, retryable: boolean): Failed {
  return { fault: { code: 'protocol', message }, retryable };
}
