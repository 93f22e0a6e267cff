import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { statsAt } from '../../kernel/disk/path-stats.js';
import { firstLine } from '../../kernel/core/text.js';
import { readBoundedText } from '../../kernel/disk/bounded-file.js';
import { callOf, partsOf, type PartsOf, summaryIn } from './content-parts.js';
import {
  countOf,
  directoryIn,
  type TurnFields,
  fieldsOf,
  fileEnds,
  filesBelow,
  firstTime,
  type FoundConversation,
  type HistoryPlace,
  type HistoryReader,
  isDirectoryPath,
  jsonLines,
  listOf,
  objectOf,
  type Source,
  nonEmptyText,
  timeOf,
  type Turn,
  writtenAt,
} from './neutral-turns.js';

/** Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.jsonl`. A message is written again when it has grown; a resume
 * writes a second header and a copy of all messages. Before 0.58 one object in a `.json`. Seen in 0.30 and 0.61,
 * November 2026. */
export const geminiCli: HistoryReader = {
  title: 'Gemini CLI',
  sources: function* ({ env, home }): Generator<Source> {
    const folder = join(nonEmptyText(env['GEMINI_CLI_HOME']) ?? home, '.gemini/tmp');
    for (const file of filesBelow(folder, 2, /^session-.*\.jsonl?$/))
      if (file.endsWith('l') || !existsSync(`${file}l`)) yield { file };
  },
  head,
  turns,
};

function head(source: Source, { home }: HistoryPlace): FoundConversation | null {
  const { file } = source;
  const ends: FileEnds | null = isWhole(file) ? wholeEnds(file) : fileEnds(file);
  if (ends === null) return null;
  const lines = [...ends.first, ...ends.last];
  const headers = lines.filter((line) => typeof line['sessionId'] === 'string');
  const messages = ends.first.flatMap((line) => messagesIn(line));
  if (headers.length === 0 && messages.length === 0 && !isTooLarge(ends)) return null;
  if (headers.some((line) => line['kind'] === 'subagent')) return null;
  const header = headers[0] ?? {};
  const changes = lines.map((line) => fieldsOf(line['$set']));
  const written = writtenAt(file);
  const started = lines.map((line) => line['startTime'] ?? line['timestamp']);
  const updated = [...lines, ...changes].map((line) => line['lastUpdated'] ?? line['timestamp']);
  return {
    ...source,
    id: nonEmptyText(header['sessionId']) ?? basename(file),
    cwd: directoryIn([directoryOf(dirname(dirname(file)), nonEmptyText(header['projectHash']))], home),
    startedAt: firstTime(started, written),
    updatedAt: firstTime(updated.toReversed(), written),
    title: lastText([...headers, ...changes], 'summary'),
    prompt: messages.map(promptOf).find((text) => text !== null) ?? null,
    version: null,
    model: lastText(lines, 'model'),
    bytes: ends.bytes,
  };
}

function lastText(lines: readonly TurnFields[], name: string): string | null {
  return lines.map((line) => nonEmptyText(line[name])).findLast((text) => text !== null) ?? null;
}

function isWhole(file: string): boolean {
  return file.endsWith('.json');
}

const maxWholeBytes = 64 * 1024 * 1024;

/** The header and the messages of a file that is one object. Throws an Error whose message is a clause. */
function wholeRecords(file: string): readonly TurnFields[] {
  const text = readBoundedText(file, { maxBytes: maxWholeBytes, longer: 'refuse', links: 'follow' });
  if (text === null) throw new Error('it has more than 64 MB in one object, or cannot be read');
  const whole = objectOf(text);
  if (whole === null) throw new Error('it is damaged: it is not a JSON object');
  const { messages, ...header } = whole;
  return [header, ...listOf(messages).map(fieldsOf)];
}

/** `first` and `last`: records of a file; none of one that is too large to be read. */
type FileEnds = NonNullable<ReturnType<typeof fileEnds>>;

function wholeEnds(file: string): FileEnds | null {
  const bytes = statsAt(file)?.size ?? 0;
  if (bytes > maxWholeBytes) return { first: [], last: [], bytes };
  try {
    const records = wholeRecords(file);
    return { first: records, last: records, bytes };
  } catch {
    return null;
  }
}

/** `turns` says so. */
function isTooLarge({ first, bytes }: FileEnds): boolean {
  return first.length === 0 && bytes > maxWholeBytes;
}

/** Returns the directory that a folder of Gemini CLI is for; null where nothing says it. */
function directoryOf(project: string, hash: string | null): string | null {
  const read = { maxBytes: 1024 * 1024, longer: 'refuse', links: 'follow' } as const;
  const root = readBoundedText(join(project, '.project_root'), read)?.trim();
  if (root !== undefined && isDirectoryPath(root)) return root;
  const known = objectOf(readBoundedText(join(project, '../../projects.json'), read) ?? '');
  const fits = ([path, name]: readonly [string, unknown]): boolean =>
    name === basename(project) || [hash, basename(project)].includes(createHash('sha256').update(path).digest('hex'));
  return Object.entries(fieldsOf(known?.['projects'])).find(fits)?.[0] ?? null;
}

function isMessage(record: TurnFields): boolean {
  return typeof record['id'] === 'string' && typeof record['type'] === 'string';
}

/** The messages of a record: its own, or the copies in it. */
function messagesIn(record: TurnFields): readonly TurnFields[] {
  if (isMessage(record)) return [record];
  return [...listOf(fieldsOf(record['$set'])['messages']), ...listOf(record['messages'])]
    .map(fieldsOf)
    .filter(isMessage);
}

function promptOf(message: TurnFields): string | null {
  if (message['type'] !== 'user') return null;
  const text = partsOf(message['content'], '').texts.filter(isTyped).join('\n');
  return text === '' ? null : firstLine(text.trim(), 120);
}

function isTyped(text: string): boolean {
  return !/^\s*<(?:session_context|state_snapshot)>/.test(text);
}

function* recordsOf(file: string): Generator<TurnFields | string> {
  if (isWhole(file)) yield* wholeRecords(file);
  else yield* jsonLines(file);
}

/** The facts of a file that are read before its messages. */
interface Plan {
  /** For each message its last record, counted. */
  readonly last: ReadonlyMap<string, number>;
  /** Messages that the user has taken back. */
  readonly left: ReadonlySet<string>;
}

function planOf(file: string): Plan {
  const last = new Map<string, number>();
  const left = new Set<string>();
  let index = 0;
  for (const record of recordsOf(file)) {
    index += 1;
    if (typeof record === 'string') continue;
    const back = nonEmptyText(record['$rewindTo']);
    if (back !== null && last.has(back))
      for (const id of [...last.keys()].slice([...last.keys()].indexOf(back))) left.add(id);
    if (!isMessage(record)) continue;
    last.set(String(record['id']), index);
    left.delete(String(record['id']));
  }
  return { last, left };
}

function* turns({ file }: FoundConversation): Generator<Turn> {
  const { last, left } = planOf(file);
  const answered = new Set<string>();
  const seen = new Set<string>();
  /** Messages in the order of their first record, each with its last one once that is read. */
  const waiting = new Map<string, TurnFields | null>();
  let index = 0;
  for (const record of recordsOf(file)) {
    index += 1;
    if (typeof record === 'string') yield { kind: 'dropped', what: record };
    else
      for (const message of messagesIn(record)) {
        const id = String(message['id']);
        if (message !== record && (seen.has(id) || last.has(id.replace(/_response$/, '')))) continue;
        seen.add(id);
        if (!waiting.has(id)) waiting.set(id, null);
        if (message !== record || index === last.get(id)) waiting.set(id, message);
      }
    yield* ready(waiting, left, answered);
  }
  yield* ready(waiting, left, answered);
}

/** Yields the messages at the front that are whole. */
function* ready(waiting: Map<string, TurnFields | null>, left: Plan['left'], answered: Set<string>): Generator<Turn> {
  for (const [id, message] of waiting) {
    if (message === null) return;
    waiting.delete(id);
    if (left.has(id)) yield { kind: 'dropped', what: 'left_branches' };
    else if (message['type'] === 'gemini') yield* answer(message, id, answered);
    else if (message['type'] === 'user') yield* said(message, id, answered);
    else yield { kind: 'dropped', what: 'notices' };
  }
}

function* said(message: TurnFields, id: string, answered: Set<string>): Generator<Turn> {
  const at = timeOf(message['timestamp']);
  const { texts, results, dropped } = partsOf(message['content'], id);
  yield* given(results, at, answered);
  for (const what of dropped) yield { kind: 'dropped', what };
  const summary = texts.map(summaryIn).find((text) => text !== null);
  if (summary !== undefined && summary !== null) yield { kind: 'summary', at, text: summary };
  else if (texts.length > 0 && !texts.some(isTyped)) yield { kind: 'dropped', what: 'contexts' };
  else if (texts.length > 0) yield { kind: 'user', at, text: texts.filter(isTyped).join('\n\n'), key: id };
  else if (dropped.includes('files')) yield { kind: 'user', at, text: '[a file that was not imported]' };
}

/** The results of calls whose result has not been said yet: most are written twice. */
function* given(results: PartsOf['results'], at: number, answered: Set<string>): Generator<Turn> {
  for (const result of results) {
    if (answered.has(result.callId)) continue;
    answered.add(result.callId);
    yield { kind: 'result', at, ...result };
  }
}

function* answer(message: TurnFields, id: string, answered: Set<string>): Generator<Turn> {
  const at = timeOf(message['timestamp']);
  const part = { at, response: id, key: id };
  const from = { provider: 'google', model: nonEmptyText(message['model']) ?? 'unknown' };
  const { texts, calls, dropped } = partsOf(message['content'], id);
  for (const what of [...dropped, ...listOf(message['thoughts']).map(() => 'reasoning')])
    yield { kind: 'dropped', what };
  for (const text of texts) yield { ...part, kind: 'text', text, from };
  const tools = listOf(message['toolCalls']).map(fieldsOf);
  const all = [...tools.map((tool, at) => callOf(tool, `${id}-${at}`)), ...calls];
  for (const call of all) yield { ...part, kind: 'call', ...call };
  const tokens = fieldsOf(message['tokens']);
  if (countOf(tokens['total']) > 0) yield { ...part, kind: 'usage', from, ...tokensOf(tokens) };
  for (const [at, tool] of tools.entries()) yield* resultOf(tool, `${id}-${at}`, answered);
}

/** `input` has the cached ones in it; `output` has no thoughts in it. */
function tokensOf(tokens: TurnFields) {
  const cacheRead = countOf(tokens['cached']);
  return {
    input: Math.max(0, countOf(tokens['input']) - cacheRead) + countOf(tokens['tool']),
    output: countOf(tokens['output']) + countOf(tokens['thoughts']),
    cacheRead,
    cacheWrite: 0,
    costUsd: null,
  };
}

function* resultOf(tool: TurnFields, otherId: string, answered: Set<string>): Generator<Turn> {
  const callId = nonEmptyText(tool['id']) ?? otherId;
  const at = timeOf(tool['timestamp']);
  const { results, texts } = partsOf(tool['result'] ?? [], callId);
  const own = results.find((result) => result.callId === callId) ?? results[0];
  const shown = nonEmptyText(tool['resultDisplay']);
  const isError = tool['status'] === 'error' || tool['status'] === 'cancelled';
  if (own) yield* given([{ ...own, callId }], at, answered);
  else if (texts.length > 0) yield* given([{ callId, text: texts.join('\n\n'), isError }], at, answered);
  else if (isError && shown !== null) yield* given([{ callId, text: shown, isError }], at, answered);
}
