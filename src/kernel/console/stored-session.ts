import { parseJson } from '../core/json.js';
import { createHash } from 'node:crypto';
import { attachmentsOf, type Event } from '../core/event.js';
import { isRecord } from '../core/json.js';
import { type Blob, maxMatches, type SessionCatalogue, type SessionLog, type SessionRow } from '../core/store.js';
import { CliError, exit, type Repl, type SessionRequest } from './command.js';

/** Finds a session by id, unique prefix or title. Throws a `CliError` with exit code 7 otherwise. */
export async function findSession(store: SessionCatalogue, text: string): Promise<SessionRow> {
  const match = await store.find(text);
  switch (match.found) {
    case 'one':
      return match.session;
    case 'many':
      throw new CliError(
        exit.session,
        `${match.sessions.length < maxMatches ? '' : 'at least '}${match.sessions.length} sessions match \`${text}\``,
        `Give more of the id: ${match.sessions
          .slice(0, 5)
          .map((row) => row.id)
          .join(', ')}`,
      );
    case 'none':
      throw new CliError(
        exit.session,
        `there is no session \`${text}\``,
        match.nearest.length > 0 ? `Nearest: ${match.nearest.join(', ')}` : 'agent sessions list shows them.',
      );
    default:
      return match satisfies never;
  }
}

/** Opens another session in the REPL and shows it, with what changed for it. */
export async function goToSession({ screen, sessions }: Pick<Repl, 'screen' | 'sessions'>, request: SessionRequest) {
  screen.attach(await sessions.open(request));
  for (const { level, message } of sessions.current().notices ?? []) screen.notice(level, message);
}

/** A session outside the store. `writtenAddress`: the base URL that a file names; it is not trusted, so it is not part
 * of the row. */
export interface ExportedSession {
  readonly row: SessionRow;
  readonly events: readonly Event[];
  readonly writtenAddress?: string;
  /** The images and documents of its messages and results, as far as they are stored. */
  readonly blobs?: readonly Blob[];
}

/** Reads the images and documents that the events refer to. */
export async function attachedBlobs(
  events: readonly Event[],
  store: Pick<SessionLog, 'blob'>,
): Promise<Pick<ExportedSession, 'blobs'>> {
  const hashes = new Set(events.flatMap(({ data }) => attachmentsOf(data)).map(({ sha256 }) => sha256));
  const blobs: Blob[] = [];
  for (const sha256 of hashes) {
    const bytes = await store.blob(sha256);
    if (bytes !== null) blobs.push({ sha256, bytes });
  }
  return blobs.length === 0 ? {} : { blobs };
}

/** A session that is read while it is written elsewhere, so that a long one is never whole in memory. */
export interface PagedSession {
  readonly row: SessionRow;
  /** Its events in order. Can be read once. */
  readonly pages: AsyncIterable<readonly Event[]>;
  readonly blob: (sha256: string) => Promise<Uint8Array | null>;
}

const pageEvents = 200;

/** Returns the pages of a stored session. */
export function storedPages(store: Pick<SessionLog, 'page' | 'blob'>, row: SessionRow): PagedSession {
  return { row, pages: readPages(store, row.id), blob: (sha256) => store.blob(sha256) };
}

async function* readPages(store: Pick<SessionLog, 'page'>, id: string): AsyncGenerator<readonly Event[]> {
  for (let last = Number.MIN_SAFE_INTEGER; ;) {
    const page = await store.page(id, last, pageEvents);
    const end = page.at(-1);
    if (end === undefined) return;
    yield page;
    last = end.seq;
  }
}

/** Returns a session that is in memory as one page. */
export function inOnePage({ row, events, blobs = [] }: ExportedSession): PagedSession {
  const bytes = new Map(blobs.map((blob) => [blob.sha256, blob.bytes]));
  return { row, pages: onePage(events), blob: (sha256) => Promise.resolve(bytes.get(sha256) ?? null) };
}

async function* onePage(events: readonly Event[]): AsyncGenerator<readonly Event[]> {
  yield events;
}

/** Writes the canonical form: a line for the session, then one for each event, in order, then its images and documents.
 * `readJsonl` reads it. */
export async function* jsonlOf({ row, pages, blob }: PagedSession): AsyncGenerator<string> {
  const hashes = new Set<string>();
  yield jsonLine(headOf(row));
  for await (const events of pages) {
    for (const { data } of events) for (const { sha256 } of attachmentsOf(data)) hashes.add(sha256);
    yield events.map((event) => jsonLine(lineOf(event))).join('');
  }
  for (const sha256 of hashes) {
    const bytes = await blob(sha256);
    if (bytes !== null) yield jsonLine({ type: 'blob', sha256, base64: Buffer.from(bytes).toString('base64') });
  }
}

function jsonLine(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}

function headOf(row: SessionRow): unknown {
  return {
    type: 'session',
    format: 'agent-session',
    version: 1,
    id: row.id,
    parent_id: row.parentId,
    ...(row.parentCallId === undefined ? {} : { kind: 'agent', parent_call_id: row.parentCallId }),
    cwd: row.cwd,
    title: row.title,
    provider: row.provider,
    model: row.model,
    api: row.api ?? null,
    base_url: row.baseUrl ?? null,
    created_at: row.createdAt,
    updated_at: row.updatedAt,
  };
}

function lineOf(event: Event): unknown {
  return {
    type: 'event',
    seq: event.seq,
    kind: event.kind,
    content: event.content,
    data: event.data ?? null,
    created_at: event.createdAt,
  };
}

/** Reads a session. Throws an Error that names the line and its problem. Skips lines of unknown types. */
export function readJsonl(text: string): ExportedSession {
  let row: SessionRow | null = null;
  let address: unknown = null;
  const events: Event[] = [];
  const blobs: Blob[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    const value = parseLine(line, index + 1);
    if (row === null) {
      row = sessionOf(value, index + 1);
      address = value.base_url;
    } else if (value.type === 'event') events.push(eventOf(value, index + 1, events.at(-1)?.seq ?? 0));
    else if (value.type === 'blob') blobs.push(blobOf(value, index + 1));
  }
  if (row === null) throw new Error('the file is empty');
  const hashes = new Set(events.flatMap(({ data }) => attachmentsOf(data)).map(({ sha256 }) => sha256));
  const known = blobs.filter(({ sha256 }) => hashes.has(sha256));
  return {
    row,
    events,
    ...(typeof address === 'string' ? { writtenAddress: address } : {}),
    ...(known.length > 0 ? { blobs: known } : {}),
  };
}

function blobOf({ sha256, base64 }: Line, number: number): Blob {
  const bytes = Buffer.from(typeof base64 === 'string' ? base64 : '', 'base64');
  if (createHash('sha256').update(bytes).digest('hex') !== sha256)
    throw new Error(`line ${number}: \`base64\` is not what \`sha256\` says`);
  return { sha256, bytes };
}

type Line = Readonly<Record<string, unknown>>;

function parseLine(line: string, number: number): Line {
  let value: unknown = null;
  try {
    value = parseJson(line);
  } catch {
    /* named below */
  }
  if (!isRecord(value)) throw new Error(`line ${number} is not a JSON object`);
  return value;
}

function sessionOf(line: Line, number: number): SessionRow {
  if (line.type !== 'session' || line.format !== 'agent-session')
    throw new Error(`line ${number} is not the head of an exported session`);
  if (line.version !== 1) throw new Error(`line ${number}: version ${String(line.version)} is not known here`);
  const { id, cwd, created_at: createdAt, updated_at: updatedAt } = line;
  if (typeof id !== 'string' || !/^[\w.-]{1,128}$/.test(id)) throw new Error(`line ${number}: \`id\` must be a word`);
  if (typeof cwd !== 'string') throw new Error(`line ${number}: \`cwd\` must be a string`);
  if (!isTime(createdAt) || !isTime(updatedAt))
    throw new Error(`line ${number}: \`created_at\` and \`updated_at\` must be unix milliseconds`);
  const text = (key: string): string | null => (typeof line[key] === 'string' ? line[key] : null);
  return {
    id,
    parentId: text('parent_id'),
    cwd,
    title: text('title'),
    provider: text('provider'),
    model: text('model'),
    createdAt,
    updatedAt,
  };
}

function eventOf(line: Line, number: number, before: number): Event {
  const { seq, kind, content = null, data = null, created_at: createdAt } = line;
  if (!isTime(seq) || seq <= before) throw new Error(`line ${number}: \`seq\` must be a whole number above ${before}`);
  if (typeof kind !== 'string' || kind === '') throw new Error(`line ${number}: \`kind\` must be a string`);
  if (content !== null && typeof content !== 'string')
    throw new Error(`line ${number}: \`content\` must be a string or null`);
  if (!isTime(createdAt)) throw new Error(`line ${number}: \`created_at\` must be unix milliseconds`);
  return { seq, kind, content, data, createdAt };
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
