import { parseJson } from '../../kernel/core/json.js';
import { tookMs } from '../../kernel/core/event.js';
import { isRecord } from '../../kernel/core/json.js';
import type { StoredEvent } from './team.js';
import { foldedWords, type SearchQuery } from '../../kernel/store/search-query.js';

/** The columns that the server keeps of an event besides its bytes, to count, select and search. */
export interface EventColumns {
  readonly tool: string | null;
  readonly callId: string | null;
  readonly ok: boolean | null;
  readonly durationMs: number | null;
  readonly code: string | null;
  readonly model: string | null;
  readonly tokensIn: number | null;
  readonly tokensOut: number | null;
  readonly costUsd: number | null;
  /** The text of a `tsvector`; null for events that are not searched. */
  readonly words: string | null;
}

type Data = Readonly<Record<string, unknown>>;

/** Reads the columns out of a stored event. */
export function columnsOf(event: Pick<StoredEvent, 'kind' | 'content' | 'dataJson'>): EventColumns {
  const data = parseData(event.dataJson);
  const call = recordOf(data['function']);
  const output = event.kind === 'tool_result' ? parseData(cleanText(data['output'])) : {};
  const text = searchText(event, data);
  return {
    tool: cleanText(call['name']) ?? (event.kind === 'tool_result' ? cleanText(data['name']) : null),
    callId: cleanText(event.kind === 'tool_call' ? data['id'] : data['tool_call_id']),
    ok: typeof data['success'] === 'boolean' ? data['success'] : null,
    durationMs: wholeOf(tookMs(data)),
    code: cleanText(output['code']),
    ...spentOf(event.kind, data),
    words: text === null ? null : vectorOf(text),
  };
}

function spentOf(kind: string, data: Data): Pick<EventColumns, 'model' | 'tokensIn' | 'tokensOut' | 'costUsd'> {
  if (kind !== 'usage' && kind !== 'agent_usage')
    return { model: null, tokensIn: null, tokensOut: null, costUsd: null };
  const count = (name: string): number => wholeOf(data[name]) ?? 0;
  const model = [data['provider'], data['model']].map(cleanText).filter((name) => name !== null);
  return {
    model: model.length === 0 ? null : clean(model.join('/')),
    tokensIn: count('input_tokens') + count('cache_read_tokens') + count('cache_write_tokens'),
    tokensOut: count('output_tokens'),
    costUsd: typeof data['cost_usd'] === 'number' ? data['cost_usd'] : null,
  };
}

function recordOf(value: unknown): Data {
  return isRecord(value) ? value : {};
}

function parseData(text: string | null): Data {
  try {
    return recordOf(parseJson(text ?? 'null'));
  } catch {
    return {};
  }
}

function cleanText(value: unknown): string | null {
  return typeof value === 'string' ? clean(value) : null;
}

/** PostgreSQL refuses U+0000 in texts. */
export function clean(text: string): string {
  return text.replaceAll('\0', '\ufffd');
}

function wholeOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? Math.round(value) : null;
}

/** Characters of one event that are indexed, and that long results are read
 * for. The numbers and the shapes below are those of the view `search_text`
 * in SQLite, so that both stores find the same. */
const maxIndexed = 16_384;
const maxParsed = 131_072;
const maxEscaped = 24_576;
const outputStart = String.raw`"output":"{\"output\":\"`;
const maxStart = 1024;

/** The text that an event is found by; null for events that are not searched. */
export function searchTextOf(event: Pick<StoredEvent, 'kind' | 'content' | 'dataJson'>): string | null {
  return searchText(event, null);
}

type Searched = Pick<StoredEvent, 'content' | 'dataJson'>;

/** Returns the words of an event of each kind. */
const texts: Readonly<Record<string, (event: Searched, data: () => Data) => string | null>> = {
  user: ({ content }) => start(content ?? ''),
  assistant: ({ content }) => start(content ?? ''),
  shell: ({ content }, data) => `${looseText(data()['command'])}\n${start(content ?? '')}`,
  side_question: (_event, data) => `${looseText(data()['question'])}\n${start(looseText(data()['answer']))}`,
  limit: ({ content }, data) => `${content ?? ''}\n${start(looseText(data()['message']))}`,
  tool_call: (_event, data) => {
    const { name, arguments: args } = recordOf(data()['function']);
    if (typeof name !== 'string' || typeof args !== 'string') return null;
    return `${name} ${start(args.replaceAll(String.raw`\n`, ' ').replaceAll(String.raw`\t`, ' '))}`;
  },
  tool_result: ({ content, dataJson }, data) =>
    `${content ?? ''}\n${start(longOutput(dataJson ?? '') ?? outputText(data()))}`,
};

function searchText(event: Searched & Pick<StoredEvent, 'kind'>, known: Data | null): string | null {
  const text = Object.hasOwn(texts, event.kind) ? texts[event.kind] : undefined;
  return text?.(event, () => known ?? parseData(event.dataJson)) ?? null;
}

/** The first characters, counted as SQLite counts them. */
function start(text: string): string {
  if (text.length <= maxIndexed) return text;
  return [...text.slice(0, 2 * maxIndexed)].slice(0, maxIndexed).join('');
}

function outputText(data: Data): string {
  const { output } = data;
  if (typeof output !== 'string') return looseText(output);
  try {
    const envelope = recordOf(parseJson(output));
    const details = recordOf(envelope['details']);
    return [envelope['output'], envelope['error'], details['output']].map(looseText).join('');
  } catch {
    return output;
  }
}

function looseText(value: unknown): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The start of the output in a long result, unescaped well enough to find its
 * words; null for any other. */
function longOutput(dataJson: string): string | null {
  if (dataJson.length <= maxParsed) return null;
  const at = dataJson.indexOf(outputStart);
  if (at < 0 || at > maxStart - outputStart.length) return null;
  return dataJson
    .slice(at + outputStart.length, at + outputStart.length + maxEscaped)
    .replaceAll(String.raw`\\n`, '\n')
    .replaceAll(String.raw`\\t`, ' ')
    .replaceAll(String.raw`\\\"`, '"');
}

/** A word of over 2,046 bytes would be refused, and one of over 255 is no
 * word. */
const maxWordBytes = 255;
/** A whole vector may have a megabyte. */
const maxVectorBytes = 500_000;

/** Words hold letters and digits alone, so nothing in them needs an escape. */
function vectorOf(text: string): string {
  let bytes = 0;
  const words: string[] = [];
  for (const word of new Set(foldedWords(text).map(cutWord))) {
    bytes += Buffer.byteLength(word) + 8;
    if (bytes > maxVectorBytes) break;
    words.push(`'${word}'`);
  }
  return words.join(' ');
}

function cutWord(word: string): string {
  const bytes = Buffer.from(word);
  if (bytes.length <= maxWordBytes) return word;
  let end = maxWordBytes;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}

/** The question as the text of a `tsquery`. The order of words in a phrase is
 * looked at afterwards. */
export function tsquery({ terms }: SearchQuery): string {
  return terms
    .map(({ words, open }) =>
      words.map((word, index) => `'${cutWord(word)}'${open && index === words.length - 1 ? ':*' : ''}`).join(' & '),
    )
    .join(' & ');
}
