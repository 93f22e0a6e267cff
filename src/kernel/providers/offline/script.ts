import rememberName from '../../../../config/offline/remember-name.json' with { type: 'json' };
import smallTools from '../../../../config/offline/small-tools.json' with { type: 'json' };
import search from '../../../../config/offline/search.json' with { type: 'json' };
import ovenReminder from '../../../../config/offline/oven-reminder.json' with { type: 'json' };
import weekdayNews from '../../../../config/offline/weekday-news.json' with { type: 'json' };
import lightsOff from '../../../../config/offline/lights-off.json' with { type: 'json' };
import { resolve } from 'node:path';
import { setImmediate as nextTick } from 'node:timers/promises';
import { isRecord, isTooDeep, maxJsonDepth, parseJson } from '../../core/json.js';
import type { Fault, FaultCode, ModelChunk, ModelRequest } from '../../core/provider.js';
import { readBounded } from '../../disk/bounded-file.js';

/** A long answer gives the event loop a turn after so many chunks, as one from a network does. */
const chunksPerTick = 64;
const endOfScript = 'End of script.';
const noTools = 'The script asks for tools here, and this request forbids them.';

/** Plays one turn: turn k answers the request whose conversation holds k responses, so a repeated request gets the same
 * turn. After the last turn it gives a fixed sentence, or starts over where the script loops. */
export async function* playTurn(
  script: Script,
  request: ModelRequest,
  sleep: (delayMs: number, signal: AbortSignal) => Promise<void>,
): AsyncGenerator<ModelChunk> {
  const responses = request.conversation.messages.filter((message) => message.role === 'assistant').length;
  const turn = script.turns[script.loop ? responses % script.turns.length : responses];
  if (turn === undefined) {
    yield* said(endOfScript, request.signal);
    return;
  }
  if (turn.delayMs > 0) await sleep(turn.delayMs, request.signal);
  if (request.signal.aborted) return;
  const withCalls = request.toolChoice !== 'none' || turn.ignoreToolChoice;
  if (!withCalls && turn.calls.length > 0 && turn.text === '') {
    yield* said(noTools, request.signal);
    return;
  }
  yield* spoken(turn, request.signal);
  if (request.signal.aborted) return;
  if (turn.fault !== null) {
    yield { type: 'fault', fault: turn.fault };
    return;
  }
  yield* finish(turn, withCalls, responses);
}

/** Yields reasoning and text, and ends early where the signal aborts. */
async function* spoken(turn: ScriptTurn, signal: AbortSignal): AsyncGenerator<ModelChunk> {
  for (const [index, chunk] of [
    ...textChunks('reasoning', turn.reasoning),
    ...textChunks('text', turn.text),
  ].entries()) {
    if (index % chunksPerTick === chunksPerTick - 1) await nextTick();
    if (signal.aborted) return;
    yield chunk;
  }
}

function* finish(turn: ScriptTurn, withCalls: boolean, responses: number): Generator<ModelChunk> {
  const calls = withCalls ? turn.calls : [];
  for (const [index, call] of calls.entries()) {
    yield {
      type: 'tool_call',
      call: { id: call.id ?? `script_${responses}_${index}`, name: call.name, arguments: call.arguments },
    };
  }
  const { costUsd = 0, ...usage } = turn.usage ?? { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 };
  yield { type: 'usage', usage, costUsd };
  yield { type: 'end', stop: turn.stop ?? (calls.length > 0 ? 'tool' : 'stop') };
}

function* said(text: string, signal: AbortSignal): Generator<ModelChunk> {
  for (const chunk of textChunks('text', text)) {
    if (signal.aborted) return;
    yield chunk;
  }
  yield { type: 'usage', usage: { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 }, costUsd: 0 };
  yield { type: 'end', stop: 'stop' };
}

/** Splits a text as a stream does: a few words at a time, cut after spaces and line ends, never inside a character. */
export function* textChunks(type: 'text' | 'reasoning', text: string, size = 24): Generator<ModelChunk> {
  let start = 0;
  while (start < text.length) {
    let end = Math.min(start + size, text.length);
    const space = text.lastIndexOf(' ', end);
    if (end < text.length && space > start) end = space + 1;
    else if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end++;
    yield { type, text: text.slice(start, end) };
    start = end;
  }
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

/** A scripted conversation; see docs/offline-script.md. */
export interface Script {
  readonly turns: readonly ScriptTurn[];
  readonly loop: boolean;
}

interface ScriptTurn {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly ScriptCall[];
  readonly stop: 'stop' | 'tool' | 'length' | 'refusal' | 'content_filter' | null;
  readonly usage: {
    readonly input: number;
    readonly cacheRead: number;
    readonly cacheWrite: number;
    readonly output: number;
    readonly costUsd: number | null;
  } | null;
  readonly fault: { readonly code: FaultCode; readonly message: string } | null;
  readonly delayMs: number;
  readonly ignoreToolChoice: boolean;
}

/** `arguments` is JSON text as the model sends it; `id` is null where the player invents one. */
interface ScriptCall {
  readonly name: string;
  readonly arguments: string;
  readonly id: string | null;
}

export type ScriptResult =
  | { readonly ok: true; readonly script: Script }
  | { readonly ok: false; readonly fault: Fault };

const maxScriptBytes = 64 * 1024 * 1024;

/** The conversations that come with the program, for `-m offline/<name>`. */
const shipped: Readonly<Record<string, unknown>> = {
  'remember-name': rememberName,
  'small-tools': smallTools,
  search,
  'oven-reminder': ovenReminder,
  'weekday-news': weekdayNews,
  'lights-off': lightsOff,
};

export const shippedScripts: readonly string[] = Object.keys(shipped);

/** Returns true where a model of the offline provider is a script: the path of one, or the name of one that comes with
 * the program. */
export function isScript(model: string): boolean {
  return model.endsWith('.json') || Object.hasOwn(shipped, model);
}

/** Reads a script. `path` may be relative to `cwd`, or the name of a script that comes with the program. A script that
 * cannot be used is a fault that names the file and the place in it. */
export async function readScript(path: string, cwd: string): Promise<ScriptResult> {
  if (Object.hasOwn(shipped, path)) return scriptOf(shipped[path], path);
  const found = readBounded(resolve(cwd, path), { maxBytes: maxScriptBytes, longer: 'refuse', links: 'follow' });
  if (found.kind === 'read') return parseScript(found.bytes.toString('utf8'), path);
  return bad(`cannot read the script ${path}: ${found.kind === 'missing' ? 'no such file' : found.reason}`);
}

/** Parses the text of a script. `name` names it in messages. */
function parseScript(text: string, name: string): ScriptResult {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (error) {
    return bad(
      isTooDeep(text)
        ? `${name}: nested deeper than ${maxJsonDepth} levels`
        : `${name}${positionOf(error, text)}: not JSON`,
    );
  }
  return scriptOf(value, name);
}

function scriptOf(value: unknown, name: string): ScriptResult {
  const wrong: string[] = [];
  const script = toScript(value, wrong);
  return wrong[0] === undefined ? { ok: true, script } : bad(`${name}: ${wrong[0]}`);
}

const rootKeys = ['turns', 'loop', 'noTools', '$schema', 'comment', 'idPrefix'];
const turnKeys = ['text', 'reasoning', 'calls', 'stop', 'usage', 'fault', 'delay_ms', 'ignore_tool_choice', 'comment'];
const callKeys = ['name', 'arguments', 'raw', 'id'];
const usageKeys = ['input_tokens', 'output_tokens', 'cache_read_tokens', 'cache_write_tokens', 'cost_usd'];
const faultCodes: readonly FaultCode[] = [
  'auth',
  'quota',
  'rate_limited',
  'bad_request',
  'context_overflow',
  'network',
  'protocol',
  'stream_incomplete',
  'max_cost',
  'internal',
];
const stops: Readonly<Record<string, NonNullable<ScriptTurn['stop']>>> = {
  stop: 'stop',
  end_turn: 'stop',
  tool: 'tool',
  tool_calls: 'tool',
  tool_use: 'tool',
  length: 'length',
  max_tokens: 'length',
  refusal: 'refusal',
  content_filter: 'content_filter',
};

function toScript(value: unknown, wrong: string[]): Script {
  const root = record(value, 'the script', rootKeys, wrong);
  if (!Array.isArray(root.turns)) wrong.push('`turns` must be a list');
  const turns: readonly unknown[] = Array.isArray(root.turns) ? root.turns : [];
  return { turns: turns.map((turn, index) => toTurn(turn, `turns[${index}]`, wrong)), loop: root.loop === true };
}

function toTurn(value: unknown, at: string, wrong: string[]): ScriptTurn {
  const turn = record(value, at, turnKeys, wrong);
  const calls: readonly unknown[] = Array.isArray(turn.calls) ? turn.calls : [];
  if (turn.calls !== undefined && !Array.isArray(turn.calls)) wrong.push(`\`${at}.calls\` must be a list`);
  const stop = string(turn.stop, `${at}.stop`, wrong);
  if (stop !== '' && !Object.hasOwn(stops, stop))
    wrong.push(`\`${at}.stop\` must be one of ${Object.keys(stops).join(', ')}`);
  return {
    text: string(turn.text, `${at}.text`, wrong),
    reasoning: string(turn.reasoning, `${at}.reasoning`, wrong),
    calls: calls.map((call, index) => toCall(call, `${at}.calls[${index}]`, wrong)),
    stop: stops[stop] ?? null,
    usage: turn.usage === undefined ? null : toUsage(turn.usage, `${at}.usage`, wrong),
    fault: turn.fault === undefined ? null : toFault(turn.fault, `${at}.fault`, wrong),
    delayMs: number(turn.delay_ms, `${at}.delay_ms`, wrong),
    ignoreToolChoice: turn.ignore_tool_choice === true,
  };
}

function toCall(value: unknown, at: string, wrong: string[]): ScriptCall {
  const call = record(value, at, callKeys, wrong);
  if (typeof call.name !== 'string') wrong.push(`\`${at}.name\` must be a string`);
  const raw = typeof call.raw === 'string' ? call.raw : null;
  if (call.raw !== undefined && raw === null) wrong.push(`\`${at}.raw\` must be a string`);
  return {
    name: typeof call.name === 'string' ? call.name : '',
    arguments: raw ?? (typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments ?? {})),
    id: call.id === undefined ? null : string(call.id, `${at}.id`, wrong),
  };
}

function toUsage(value: unknown, at: string, wrong: string[]): NonNullable<ScriptTurn['usage']> {
  const usage = record(value, at, usageKeys, wrong);
  const read = (key: string): number => number(usage[key], `${at}.${key}`, wrong);
  return {
    input: read('input_tokens'),
    output: read('output_tokens'),
    cacheRead: read('cache_read_tokens'),
    cacheWrite: read('cache_write_tokens'),
    costUsd: usage.cost_usd === undefined || usage.cost_usd === null ? null : read('cost_usd'),
  };
}

function toFault(value: unknown, at: string, wrong: string[]): NonNullable<ScriptTurn['fault']> {
  const fault = record(value, at, ['code', 'message'], wrong);
  const code = faultCodes.find((known) => known === fault.code);
  if (code === undefined) wrong.push(`\`${at}.code\` must be one of ${faultCodes.join(', ')}`);
  return {
    code: code ?? 'internal',
    message: string(fault.message, `${at}.message`, wrong) || 'a fault of the script',
  };
}

function record(
  value: unknown,
  at: string,
  keys: readonly string[],
  wrong: string[],
): Readonly<Record<string, unknown>> {
  if (!isRecord(value)) {
    wrong.push(`\`${at}\` must be an object`);
    return {};
  }
  const unknown = Object.keys(value).find((key) => !keys.includes(key));
  if (unknown !== undefined) wrong.push(`\`${at}\` has an unknown key \`${unknown}\`; known: ${keys.join(', ')}`);
  return value;
}

function string(value: unknown, at: string, wrong: string[]): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'string') return value;
  wrong.push(`\`${at}\` must be a string`);
  return '';
}

function number(value: unknown, at: string, wrong: string[]): number {
  if (value === undefined || value === null) return 0;
  if (typeof value === 'number' && value >= 0) return value;
  wrong.push(`\`${at}\` must be a number from 0`);
  return 0;
}

/** Returns `:line:column` where the JSON parser says how far it read. */
function positionOf(error: unknown, text: string): string {
  const offset = /at position (\d+)/.exec(String(error))?.[1];
  const before = text.slice(0, offset === undefined ? text.length : Number(offset));
  return `:${before.split('\n').length}:${before.length - before.lastIndexOf('\n')}`;
}

function bad(message: string): ScriptResult {
  return { ok: false, fault: { code: 'bad_request', message, hint: 'docs/offline-script.md describes the format' } };
}
