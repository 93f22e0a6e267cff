import { createHash } from 'node:crypto';
import { basename, dirname, join } from 'node:path';
import { statsAt } from '../../kernel/disk/path-stats.js';
import { readBoundedText } from '../../kernel/disk/bounded-file.js';
import {
  countOf,
  directoryIn,
  type TurnFields,
  fieldsOf,
  filesBelow,
  firstTime,
  type FoundConversation,
  type HistoryPlace,
  type HistoryReader,
  type NamedModel,
  objectOf,
  type Source,
  nonEmptyText,
  timeOf,
  type Turn,
  writtenAt,
} from './neutral-turns.js';

/** A database of opencode. */
interface Rows {
  readonly sessions: () => readonly TurnFields[];
  readonly session: (id: string) => TurnFields | null;
  readonly messages: (session: string) => readonly TurnFields[];
  readonly parts: (message: string) => readonly TurnFields[];
}

/** Opens a database for reading; null for any other file. */
export type OpenRows = (file: string) => Rows | null;

/** opencode: `~/.local/share/opencode/opencode.db`; before 1.2 `storage/**.json` beside it. Where a move into the
 * database has stopped half-way, a conversation lies in both: they are joined by id. Seen in 1.1 and 1.18, November
 * 2026. */
export function opencode(open: OpenRows): HistoryReader {
  return {
    title: 'opencode',
    sources: function* ({ env, home }): Generator<Source> {
      const data = nonEmptyText(env['XDG_DATA_HOME']) ?? join(home, '.local/share');
      const folder = join(data, 'opencode');
      const seen = new Set<string>();
      for (const file of databases(folder))
        for (const source of inDatabase(open, file)) {
          if (seen.has(source.session)) continue;
          seen.add(source.session);
          yield source;
        }
      for (const file of filesBelow(join(folder, 'storage/session'), 1, /^ses_.*\.json$/))
        if (!seen.has(basename(file, '.json'))) yield { file };
    },
    within: (file) => (file.endsWith('.db') ? inDatabase(open, file) : [{ file }]),
    head: (source, place) => headOf(storedOf(open, source), source, place),
    turns: (found) => turnsOf(storedOf(open, found)),
    sha256: (found) => hashOf(storedOf(open, found)),
  };
}

function databases(folder: string): Iterable<string> {
  return filesBelow(folder, 0, /^opencode(?:-[\w.-]+)?\.db$/);
}

function inDatabase(open: OpenRows, file: string) {
  const sessions = open(file)?.sessions() ?? [];
  return sessions.flatMap(({ id, parent_id: parent }) =>
    typeof id === 'string' && parent === null ? [{ file, session: id }] : [],
  );
}

/** One conversation, wherever it is kept. */
interface Stored {
  readonly id: string;
  readonly rows: Rows | null;
  /** The folder `storage`. */
  readonly storage: string;
}

function storedOf(open: OpenRows, { file, session }: Source): Stored {
  if (session !== undefined) return { id: session, rows: open(file), storage: join(dirname(file), 'storage') };
  const storage = dirname(dirname(dirname(file)));
  const [database] = databases(dirname(storage));
  return { id: basename(file, '.json'), rows: database === undefined ? null : open(database), storage };
}

const maxBytes = 64 * 1024 * 1024;

function objectIn(file: string): TurnFields | null {
  return objectOf(readBoundedText(file, { maxBytes, longer: 'refuse', links: 'follow' }) ?? '');
}

/** Returns what is known of the session: a row and a file name the same things differently. */
function infoOf({ id, rows, storage }: Stored): TurnFields | null {
  const row = rows?.session(id);
  if (row) {
    const revert = objectOf(nonEmptyText(row['revert']) ?? '');
    const { directory, title, version, parent_id, time_created, time_updated } = row;
    const model = nonEmptyText(fieldsOf(objectOf(nonEmptyText(row['model']) ?? ''))['id']);
    return {
      directory,
      title,
      version,
      parent: parent_id,
      created: time_created,
      updated: time_updated,
      revert,
      model,
    };
  }
  for (const file of filesBelow(join(storage, 'session'), 1, /^ses_.*\.json$/)) {
    if (basename(file, '.json') !== id) continue;
    const info = objectIn(file);
    if (info === null) return null;
    const { created, updated } = fieldsOf(info['time']);
    const { directory, title, version, parentID: parent, revert } = info;
    return { directory, title, version, parent: parent ?? null, created, updated, revert, model: null };
  }
  return null;
}

function headOf(stored: Stored, source: Source, { home }: HistoryPlace): FoundConversation | null {
  const info = infoOf(stored);
  if (info === null || nonEmptyText(info['parent']) !== null) return null;
  const title = nonEmptyText(info['title']);
  const written = writtenAt(source.file);
  return {
    ...source,
    id: stored.id,
    cwd: directoryIn([info['directory']], home),
    startedAt: firstTime([info['created']], written),
    updatedAt: firstTime([info['updated']], written),
    // What a session is called until it has a title.
    title: title === null || /^New session - \d/.test(title) ? null : title,
    prompt: null,
    version: nonEmptyText(info['version']),
    model: nonEmptyText(info['model']) ?? lastModel(stored),
    bytes: statsAt(source.file)?.size ?? 0,
  };
}

/** Returns the model of the last message, of a version that does not say it of the session. */
function lastModel({ id, rows, storage }: Stored): string | null {
  const file = [...filesBelow(join(storage, 'message', id), 0, /\.json$/)].at(-1);
  const row = rows?.messages(id).at(-1);
  const last = file === undefined ? objectOf(nonEmptyText(row?.['data']) ?? '') : objectIn(file);
  return nonEmptyText(last?.['modelID']) ?? nonEmptyText(fieldsOf(last?.['model'])['modelID']);
}

interface Entry {
  readonly id: string;
  /** Null: it is damaged. */
  readonly data: TurnFields | null;
}

function readEntries(rows: readonly TurnFields[], folder: string): readonly Entry[] {
  const entries = new Map<string, Entry>();
  for (const file of filesBelow(folder, 0, /\.json$/)) {
    const id = basename(file, '.json');
    entries.set(id, { id, data: objectIn(file) });
  }
  for (const { id, data } of rows)
    if (typeof id === 'string')
      entries.set(id, { id, data: objectOf(nonEmptyText(data) ?? '') ?? entries.get(id)?.data ?? null });
  return [...entries.values()];
}

function byId(one: Entry, other: Entry): number {
  return one.id < other.id ? -1 : 1;
}

function messagesOf({ id, rows, storage }: Stored): readonly Entry[] {
  const createdAt = ({ data }: Entry): number => timeOf(fieldsOf(data?.['time'])['created']) || 0;
  return readEntries(rows?.messages(id) ?? [], join(storage, 'message', id)).toSorted(
    (one, other) => createdAt(one) - createdAt(other) || byId(one, other),
  );
}

function partsOf({ rows, storage }: Stored, message: string): readonly Entry[] {
  return readEntries(rows?.parts(message) ?? [], join(storage, 'part', message)).toSorted(byId);
}

/** Of the conversation: its database holds others. */
function hashOf(stored: Stored): string {
  const hash = createHash('sha256');
  for (const message of messagesOf(stored))
    for (const entry of [message, ...partsOf(stored, message.id)]) hash.update(JSON.stringify(entry));
  return hash.digest('hex');
}

function* turnsOf(stored: Stored): Generator<Turn> {
  const revert = fieldsOf(infoOf(stored)?.['revert']);
  const taken = nonEmptyText(revert['messageID']);
  const takenPart = nonEmptyText(revert['partID']);
  for (const { id, data } of messagesOf(stored)) {
    if (data === null) {
      yield { kind: 'dropped', what: 'damaged_messages' };
      continue;
    }
    if (taken !== null && (id > taken || (id === taken && takenPart === null))) {
      yield { kind: 'dropped', what: 'left_branches' };
      continue;
    }
    const isLast = id === taken;
    const parts = partsOf(stored, id).filter((part) => !isLast || takenPart === null || part.id < takenPart);
    yield* data['role'] === 'assistant' ? answer(data, id, parts) : said(data, id, parts);
  }
}

function* said(data: TurnFields, id: string, parts: readonly Entry[]): Generator<Turn> {
  const at = timeOf(fieldsOf(data['time'])['created']);
  const texts: string[] = [];
  let files = 0;
  for (const { data: part } of parts) {
    const text = textIn(part);
    if (text !== null && !isMeta(part)) texts.push(text);
    else if (text !== null) yield { kind: 'dropped', what: 'meta' };
    else if (part?.['type'] === 'file') {
      files += 1;
      yield { kind: 'dropped', what: 'files' };
    }
  }
  if (texts.length === 0 && files > 0) texts.push('[a file that was not imported]');
  if (texts.length > 0) yield { kind: 'user', at, text: texts.join('\n\n'), key: id };
}

/** True for a message of the user's that the program itself wrote. */
function isMeta(part: TurnFields | null): boolean {
  return part?.['synthetic'] === true || part?.['ignored'] === true;
}

function* answer(data: TurnFields, id: string, parts: readonly Entry[]): Generator<Turn> {
  const at = timeOf(fieldsOf(data['time'])['created']);
  const from = {
    provider: nonEmptyText(data['providerID']) ?? 'unknown',
    model: nonEmptyText(data['modelID']) ?? 'unknown',
  };
  if (data['summary'] === true) {
    yield { kind: 'summary', at, text: parts.flatMap(({ data: part }) => textIn(part) ?? []).join('\n\n') };
    return;
  }
  if (data['error'] !== undefined) yield { kind: 'dropped', what: 'errors' };
  let step = 0;
  for (const part of parts) {
    // A message has one step, or several in older versions: each is a response.
    const own = { at: startOf(part.data, at), response: step === 0 ? id : `${id}.${step}`, key: id };
    yield* partOf(part, own, from);
    if (part.data?.['type'] === 'step-finish') step += 1;
  }
}

interface Own {
  readonly at: number;
  readonly response: string;
  readonly key: string;
}

function* partOf({ id, data: part }: Entry, own: Own, from: NamedModel): Generator<Turn> {
  const text = textIn(part);
  if (text !== null) yield { ...own, kind: 'text', text, from };
  else if (part?.['type'] === 'tool') yield* tool(part, id, own);
  else if (part?.['type'] === 'step-finish') yield { ...own, kind: 'usage', from, ...tokensOf(part) };
  else if (part?.['type'] !== 'step-start') yield { kind: 'dropped', what: nameOf(part) };
}

function textIn(part: TurnFields | null): string | null {
  return part?.['type'] === 'text' ? nonEmptyText(part['text']) : null;
}

function startOf(part: TurnFields | null, otherwise: number): number {
  return firstTime(
    [fieldsOf(part?.['time'])['start'], fieldsOf(fieldsOf(part?.['state'])['time'])['start']],
    otherwise,
  );
}

function nameOf(part: TurnFields | null): string {
  if (part === null) return 'damaged_parts';
  return part['type'] === 'reasoning' ? 'reasoning' : 'other_parts';
}

function* tool(part: TurnFields, partId: string, own: Own): Generator<Turn> {
  const state = fieldsOf(part['state']);
  const id = nonEmptyText(part['callID']) ?? partId;
  yield {
    ...own,
    kind: 'call',
    id,
    name: nonEmptyText(part['tool']) ?? '',
    arguments: JSON.stringify(state['input'] ?? {}),
  };
  const { status, output, error, metadata, time } = state;
  if (status !== 'completed' && status !== 'error') return;
  const { start, end } = fieldsOf(time);
  const { exit } = fieldsOf(metadata);
  const took = timeOf(end) - timeOf(start);
  yield {
    kind: 'result',
    at: timeOf(end),
    callId: id,
    text: nonEmptyText(status === 'error' ? error : output) ?? '',
    isError: status === 'error',
    ...(typeof exit === 'number' ? { exitCode: exit } : {}),
    ...(took >= 0 ? { durationMs: took } : {}),
  };
}

function tokensOf({ tokens, cost }: TurnFields) {
  const { input, output, reasoning, cache } = fieldsOf(tokens);
  const { read, write } = fieldsOf(cache);
  return {
    input: countOf(input),
    output: countOf(output) + countOf(reasoning),
    cacheRead: countOf(read),
    cacheWrite: countOf(write),
    costUsd: typeof cost === 'number' && cost > 0 ? cost : null,
  };
}
