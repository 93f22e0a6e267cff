import { basename, join } from 'node:path';
import { firstLine } from '../../kernel/core/text.js';
import { partsOf } from './content-parts.js';
import {
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
  type Source,
  nonEmptyText,
  timeOf,
  timesOf,
  type Turn,
} from './neutral-turns.js';

/** Qwen Code: `~/.qwen/projects/<directory>/chats/<uuid>.jsonl`, a tree of records whose last one is the leaf. Seen in
 * 0.15.10, November 2026. */
export const qwenCode: HistoryReader = {
  title: 'Qwen Code',
  sources: function* ({ env, home }): Generator<Source> {
    const folder = nonEmptyText(env['QWEN_RUNTIME_DIR']) ?? nonEmptyText(env['QWEN_HOME']) ?? join(home, '.qwen');
    for (const file of filesBelow(join(folder, 'projects'), 2, /^[\da-f-]{32,36}\.jsonl$/i)) yield { file };
  },
  head,
  turns,
};

function head(source: Source, { home }: HistoryPlace): FoundConversation | null {
  const ends = fileEnds(source.file);
  if (ends === null) return null;
  const own = [...ends.first, ...ends.last].filter(
    (line) => typeof line['uuid'] === 'string' && typeof line['sessionId'] === 'string',
  );
  if (own.length === 0) return null;
  const said = (name: string): readonly (string | null)[] => own.map((line) => nonEmptyText(line[name]));
  return {
    ...source,
    ...timesOf(source.file, ends),
    id: said('sessionId')[0] ?? basename(source.file, '.jsonl'),
    cwd: directoryIn(said('cwd'), home),
    title: own.map(titleOf).findLast((title) => title !== null) ?? null,
    prompt: own.map(promptOf).find((text) => text !== null) ?? null,
    version: said('version').find((version) => version !== null) ?? null,
    model: said('model').findLast((model) => model !== null) ?? null,
    bytes: ends.bytes,
  };
}

function titleOf(record: TurnFields): string | null {
  if (record['subtype'] !== 'custom_title') return null;
  return nonEmptyText(fieldsOf(record['systemPayload'])['customTitle']);
}

function promptOf(record: TurnFields): string | null {
  const text = record['type'] === 'user' ? messageOf(record, '').texts.join('\n') : '';
  return text === '' ? null : firstLine(text.trim(), 120);
}

function messageOf(record: TurnFields, id: string) {
  return partsOf(listOf(fieldsOf(record['message'])['parts']), id);
}

function* turns({ file }: FoundConversation): Generator<Turn> {
  const chain = chainOf(file);
  const recent = new RecentMessages();
  for (const record of jsonLines(file)) {
    if (typeof record === 'string') {
      yield { kind: 'dropped', what: record };
      continue;
    }
    const id = nonEmptyText(record['uuid']);
    if (id === null) continue;
    if (chain.has(id)) yield* turnsOf(record, id, recent);
    else if (record['type'] !== 'system') yield { kind: 'dropped', what: 'left_branches' };
  }
}

/** Returns the records from the first to the leaf. If one in between is damaged, the record before its child in the
 * file replaces it. */
function chainOf(file: string): ReadonlySet<string> {
  const places = new Map<string, number>();
  const ids: string[] = [];
  const parents: (string | null)[] = [];
  for (const record of jsonLines(file)) {
    const id = typeof record === 'string' ? null : nonEmptyText(record['uuid']);
    if (id === null || typeof record === 'string' || places.has(id)) continue;
    places.set(id, ids.length);
    ids.push(id);
    parents.push(nonEmptyText(record['parentUuid']));
  }
  const chain = new Set<string>();
  for (let at = ids.length - 1; at >= 0;) {
    const parent = parents[at] ?? null;
    chain.add(ids[at] ?? '');
    if (parent === null) break;
    const above = places.get(parent) ?? at - 1;
    at = above < at ? above : at - 1;
  }
  return chain;
}

/** The last messages by what is in them, to find where a compaction begins to keep them. */
class RecentMessages {
  readonly #ids = new Map<string, string>();

  add(parts: unknown, id: string): void {
    this.#ids.set(signOf(parts), id);
    const [oldest] = this.#ids.keys();
    if (this.#ids.size > 256 && oldest !== undefined) this.#ids.delete(oldest);
  }

  find(parts: unknown): string | undefined {
    return this.#ids.get(signOf(parts));
  }
}

function signOf(parts: unknown): string {
  const { texts, calls, results } = partsOf(parts, '');
  return JSON.stringify([texts, calls, results.map(({ callId }) => callId).slice(0, 1)]);
}

function* turnsOf(record: TurnFields, id: string, recent: RecentMessages): Generator<Turn> {
  if (record['isSidechain'] === true) yield { kind: 'dropped', what: 'sidechains' };
  else if (record['type'] === 'system') yield* compaction(record, recent);
  else {
    recent.add(fieldsOf(record['message'])['parts'], id);
    if (record['type'] === 'assistant') yield* answer(record, id);
    else yield* said(record, id);
  }
}

/** The new history begins with the summary and a word that it was understood; the rest was kept. */
function* compaction(record: TurnFields, recent: RecentMessages): Generator<Turn> {
  if (record['subtype'] !== 'chat_compression') return;
  const [first, , kept] = listOf(fieldsOf(record['systemPayload'])['compressedHistory']).map(fieldsOf);
  const text = partsOf(first?.['parts'], '').texts.join('\n\n');
  const keepsFrom = kept === undefined ? undefined : recent.find(kept['parts']);
  const at = timeOf(record['timestamp']);
  if (text !== '') yield { kind: 'summary', at, text, ...(keepsFrom === undefined ? {} : { keepsFrom }) };
}

function* said(record: TurnFields, id: string): Generator<Turn> {
  const at = timeOf(record['timestamp']);
  const { texts, results, dropped } = messageOf(record, id);
  for (const result of results) yield { kind: 'result', at, ...result };
  for (const what of dropped) yield { kind: 'dropped', what };
  const text = texts.join('\n\n');
  if (text !== '') yield { kind: 'user', at, text, key: id };
  else if (dropped.includes('files')) yield { kind: 'user', at, text: '[a file that was not imported]', key: id };
}

function* answer(record: TurnFields, id: string): Generator<Turn> {
  const part = { at: timeOf(record['timestamp']), response: id, key: id };
  const from = { provider: 'qwen', model: nonEmptyText(record['model']) ?? 'unknown' };
  const { texts, calls, dropped } = messageOf(record, id);
  for (const what of dropped) yield { kind: 'dropped', what };
  for (const text of texts) yield { ...part, kind: 'text', text, from };
  for (const call of calls) yield { ...part, kind: 'call', ...call };
  const usage = fieldsOf(record['usageMetadata']);
  if (Object.keys(usage).length > 0) yield { ...part, kind: 'usage', from, ...tokensOf(usage) };
}

/** Returns the tokens of a response. The total shows if the answer includes the thoughts, which differs with the
 * provider. */
function tokensOf(usage: TurnFields) {
  const input = countOf(usage['promptTokenCount']);
  const cacheRead = Math.min(input, countOf(usage['cachedContentTokenCount']));
  const answered = countOf(usage['candidatesTokenCount']);
  return {
    input: input - cacheRead,
    output: Math.max(answered, countOf(usage['totalTokenCount']) - input),
    cacheRead,
    cacheWrite: 0,
    costUsd: null,
  };
}
