import { basename, join } from 'node:path';
import { firstLine } from '../../kernel/core/text.js';
import { typedPart } from './injected-texts.js';
import {
  contentText,
  countOf,
  directoryIn,
  type TurnFields,
  fieldsOf,
  fileEnds,
  filesBelow,
  type FoundConversation,
  type HistoryPlace,
  type HistoryReader,
  jsonLines,
  listOf,
  longerStart,
  type NamedModel,
  numberIn,
  objectOf,
  type Source,
  nonEmptyText,
  timeOf,
  timesOf,
  type Turn,
} from './neutral-turns.js';

/** Codex: `~/.codex/sessions/<year>/<month>/<day>/rollout-<time>-<uuid>.jsonl`. Every message is written twice:
 * `response_item` counts, `event_msg` is for the screen. Seen in 0.169, November 2026. */
export const codex: HistoryReader = {
  title: 'Codex',
  sources: function* ({ env, home }): Generator<Source> {
    const folder = nonEmptyText(env['CODEX_HOME']) ?? join(home, '.codex');
    const name = /^rollout-.*\.jsonl$/;
    for (const file of filesBelow(join(folder, 'sessions'), 3, name)) yield { file };
    for (const file of filesBelow(join(folder, 'archived_sessions'), 0, name)) yield { file };
  },
  head,
  turns,
};

const itemTypes = /^(?:message|reasoning|(?:function|custom_tool|local_shell|web_search)_call(?:_output)?)$/;
const lineTypes = /^(?:session_meta|turn_context|response_item|event_msg|compacted|world_state|token_usage_record)$/;

/** The payload of a line. Early versions wrote bare items. */
interface LineParts {
  readonly type: string;
  readonly payload: TurnFields;
}

function partsOf(line: TurnFields): LineParts {
  const type = nonEmptyText(line['type']) ?? '';
  if (lineTypes.test(type)) return { type, payload: fieldsOf(line['payload']) };
  if (itemTypes.test(type)) return { type: 'response_item', payload: line };
  return { type: line['id'] !== undefined && line['instructions'] !== undefined ? 'session_meta' : '', payload: line };
}

function head(source: Source, { home }: HistoryPlace): FoundConversation | null {
  const ends = fileEnds(source.file);
  const parts = ends?.first.map(partsOf) ?? [];
  if (ends === null || parts.every(({ type }) => type === '')) return null;
  const meta = payloadOf(parts, 'session_meta');
  if (isOfAgent(meta)) return null;
  const first = payloadOf(parts, 'turn_context');
  const last = payloadOf(ends.last.map(partsOf).toReversed(), 'turn_context');
  return {
    ...source,
    ...timesOf(source.file, ends),
    id: nonEmptyText(meta['id']) ?? basename(source.file, '.jsonl').replace(/^.*-(?=(?:[\da-f]+-){4}[\da-f]{12}$)/, ''),
    cwd: directoryIn([meta['cwd'], first['cwd']], home),
    title: null,
    prompt: firstPrompt(parts) ?? firstPrompt(longerStart(source.file, ends).map(partsOf)),
    version: nonEmptyText(meta['cli_version']),
    model: nonEmptyText(last['model']) ?? nonEmptyText(first['model']),
    bytes: ends.bytes,
  };
}

function payloadOf(parts: readonly LineParts[], wanted: string): TurnFields {
  return fieldsOf(parts.find(({ type }) => type === wanted)?.payload);
}

/** The session of an agent that works for another one. */
function isOfAgent(meta: TurnFields): boolean {
  return meta['thread_source'] === 'subagent' || fieldsOf(meta['source'])['subagent'] !== undefined;
}

function firstPrompt(parts: readonly LineParts[]): string | null {
  const prompt = parts.map(promptOf).find((text) => text !== null);
  return prompt === undefined ? null : firstLine(prompt.trim(), 120);
}

/** Returns what the user typed; null for any other line. */
function promptOf({ type, payload }: LineParts): string | null {
  if (type !== 'response_item' || payload['type'] !== 'message' || payload['role'] !== 'user') return null;
  const kinds = fieldsOf(payload['internal_chat_message_metadata_passthrough'])['content_item_kinds'];
  const said = listOf(payload['content']).filter(
    (_item, index) => !Array.isArray(kinds) || String(listOf(kinds)[index]).startsWith('user.'),
  );
  const texts = said.map((item) => contentText([item])).filter((text) => text.trim() !== '');
  // The request may stand in another item than its heading.
  const whole = texts.join('\n\n');
  const typed = whole.includes('\n## My request') || whole.startsWith('## My request') ? [whole] : texts;
  const text = typed
    .map(typedPart)
    .filter((part) => part !== '')
    .join('\n\n');
  if (text.trim() !== '') return text;
  return said.some((item) => contentText([item]).trim() === '') ? '[a file that was not imported]' : null;
}

/** Reads on where a response ends: behind its tokens, its results, or before the next message. */
class Responses {
  readonly #left: readonly (readonly [number, number])[];
  readonly #file: string;
  #from: NamedModel = { provider: 'openai', model: 'unknown' };
  #number = 0;
  #isClosed = false;
  #counted = -1;

  constructor(file: string) {
    this.#file = file;
    this.#left = leftRanges(file);
  }

  *turns(): Generator<Turn> {
    let number = 0;
    for (const line of jsonLines(this.#file)) {
      number++;
      if (typeof line === 'string') yield { kind: 'dropped', what: line };
      else if (this.#left.some(([first, last]) => number >= first && number <= last)) {
        if (partsOf(line).type === 'response_item') yield { kind: 'dropped', what: 'left_branches' };
      } else yield* this.#line(line);
    }
  }

  *#line(line: TurnFields): Generator<Turn> {
    const { type, payload } = partsOf(line);
    const at = timeOf(line['timestamp']);
    switch (type) {
      case 'session_meta':
        this.#from = { ...this.#from, provider: nonEmptyText(payload['model_provider']) ?? this.#from.provider };
        break;
      case 'turn_context':
        this.#from = { ...this.#from, model: nonEmptyText(payload['model']) ?? this.#from.model };
        break;
      case 'response_item':
        // The line `compacted` repeats a summary.
        if (fieldsOf(line['metadata'])['compaction_output'] !== true) yield* this.#item(payload, at);
        break;
      case 'token_usage_record':
        yield* this.#used(fieldsOf(payload['usage']), at);
        this.#isClosed = true;
        break;
      case 'event_msg':
        if (payload['type'] === 'token_count')
          yield* this.#used(fieldsOf(fieldsOf(payload['info'])['last_token_usage']), at);
        break;
      case 'compacted':
        yield* compacted(payload, at);
        break;
      default:
    }
  }

  #part(at: number): { readonly at: number; readonly response: string } {
    if (this.#isClosed) this.#number++;
    this.#isClosed = false;
    return { at, response: `response_${this.#number}` };
  }

  *#item(payload: TurnFields, at: number): Generator<Turn> {
    const { type } = payload;
    if (type === 'message') yield* this.#message(payload, at);
    else if (type === 'reasoning') yield { kind: 'dropped', what: 'reasoning' };
    else if (type === 'function_call' || type === 'custom_tool_call' || type === 'local_shell_call')
      yield { ...this.#part(at), kind: 'call', ...callOf(payload) };
    else if (type === 'function_call_output' || type === 'custom_tool_call_output') {
      this.#isClosed = true;
      yield result(payload, at);
    } else yield { kind: 'dropped', what: 'other_items' };
  }

  *#message(payload: TurnFields, at: number): Generator<Turn> {
    if (payload['role'] === 'assistant') {
      const text = contentText(payload['content']);
      if (text.trim() !== '') yield { ...this.#part(at), kind: 'text', text, from: this.#from };
      return;
    }
    const text = promptOf({ type: 'response_item', payload });
    if (text === null) yield { kind: 'dropped', what: 'meta' };
    else {
      this.#isClosed = true;
      yield { kind: 'user', at, text };
    }
  }

  /** The tokens of a response are in a separate record, in its event, or in both. */
  *#used(usage: TurnFields, at: number): Generator<Turn> {
    const input = countOf(usage['input_tokens']);
    const cacheRead = Math.min(input, countOf(usage['cached_input_tokens']));
    const cacheWrite = Math.min(input - cacheRead, countOf(usage['cache_write_input_tokens']));
    const output = countOf(usage['output_tokens']);
    if (input + output === 0 || this.#counted === this.#number) return;
    this.#counted = this.#number;
    const response = `response_${this.#number}`;
    const tokens = { input: input - cacheRead - cacheWrite, output, cacheRead, cacheWrite, costUsd: null };
    yield { kind: 'usage', at, response, from: this.#from, ...tokens };
  }
}

function* turns({ file }: FoundConversation): Generator<Turn> {
  yield* new Responses(file).turns();
}

/** Returns the lines, from 1, of turns that the user took back. */
function leftRanges(file: string): readonly (readonly [number, number])[] {
  const ranges: (readonly [number, number])[] = [];
  const prompts: number[] = [];
  let number = 0;
  for (const line of jsonLines(file)) {
    number++;
    if (typeof line === 'string') continue;
    const parts = partsOf(line);
    if (promptOf(parts) !== null) prompts.push(number);
    if (parts.type !== 'event_msg' || parts.payload['type'] !== 'thread_rolled_back') continue;
    const gone = prompts.splice(-Math.max(1, countOf(parts.payload['num_turns'])));
    if (gone[0] !== undefined) ranges.push([gone[0], number]);
  }
  return ranges;
}

/** Yields the summary. If it is encrypted, the conversation stays. */
function* compacted({ message }: TurnFields, at: number): Generator<Turn> {
  const text = nonEmptyText(message);
  if (text === null) yield { kind: 'dropped', what: 'sealed_summaries' };
  else yield { kind: 'summary', at, text };
}

function callOf(payload: TurnFields) {
  const { name, arguments: text, input, action } = payload;
  const given = typeof text === 'string' ? text : JSON.stringify(action ?? { input: input ?? '' });
  return {
    id: nonEmptyText(payload['call_id']) ?? nonEmptyText(payload['id']) ?? '',
    name: nonEmptyText(name) ?? 'local_shell',
    arguments: given,
  };
}

function result(payload: TurnFields, at: number): Turn {
  const { output } = payload;
  // Earlier versions put a JSON text there, others an object or a list of contents.
  const inner = fieldsOf(typeof output === 'string' ? objectOf(output) : output);
  const text = nonEmptyText(inner['output']) ?? nonEmptyText(inner['content']) ?? contentText(output);
  return {
    kind: 'result',
    at,
    callId: nonEmptyText(payload['call_id']) ?? '',
    text,
    isError: inner['success'] === false,
    ...endOf(text, fieldsOf(inner['metadata'])['exit_code']),
  };
}

/** Reads how a command ended in the lines before its output. */
function endOf(text: string, code: unknown) {
  const heading = text.slice(0, 400).split('\nOutput:')[0] ?? '';
  const seconds = numberIn(heading, /^Wall time: ([\d.]+) seconds$/m);
  return {
    exitCode:
      typeof code === 'number' ? code : numberIn(heading, /^(?:Exit code: |Process exited with code )(\d{1,3})$/m),
    durationMs: seconds === undefined ? undefined : Math.round(seconds * 1000),
  };
}
