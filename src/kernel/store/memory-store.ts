import { parseJson } from '../core/json.js';
import { hostname } from 'node:os';
import { attachmentsOf, type Event, knownEvent, tookMs, typedText } from '../core/event.js';
import type { KeptMessage, QueuedMessage } from '../core/session-port.js';
import { isRecord } from '../core/json.js';
import { noFilters } from '../core/files/search-filters.js';
import type {
  CallFilter,
  Lease,
  RecordedCall,
  Records,
  RecordScope,
  RecordTotals,
  SessionChange,
  SessionPages,
  SessionRow,
  SessionScope,
  SessionSummary,
  SpendingRow,
  Store,
} from '../core/store.js';
import { wellFormed, wellFormedDeep } from '../core/text.js';
import { dataJson, noSession, rowOfEvent, seqTaken } from './event-rows.js';
import { chainLink, type ChainRow, digestsOf, eventChecksum, eventDigests, verifySessions } from './hash-chain.js';
import { findSession, promptLine, sessionExists, type SessionIndex } from './session-rows.js';

interface StoredSession {
  row: SessionRow;
  readonly events: Event[];
  /** The digests of redacted texts, as JSON, by `seq`. */
  readonly redacted: Map<number, string>;
  /** Grows with every event of the store; 0 for a session without events. */
  lastWrite: number;
}

/** Opens a store that ends with the process and behaves like the database. It
 * speaks no SQL. */
export function openMemoryStore({ now }: { readonly now: () => number }): Store & { readonly records: Records } {
  return new MemoryStore(now);
}

/** Adds up a record that keeps no totals. */
export async function totalsOf(
  records: Pick<Records, 'calls' | 'spending'>,
  scope: RecordScope = {},
): Promise<RecordTotals> {
  const { addUp } = await import('./add-up.js');
  return addUp(await records.calls(scope), await records.spending(scope));
}

/** Browses a store that lists all of its sessions at once. */
export async function browseList(list: Store['list'], scope: SessionScope = {}): Promise<SessionPages> {
  const all = await list(Number.MAX_SAFE_INTEGER, scope.cwd, scope.agentsToo);
  const rows = all.filter(({ updatedAt }) => scope.before === undefined || updatedAt < scope.before);
  const pages = async function* (): AsyncGenerator<readonly SessionSummary[]> {
    yield rows;
  };
  return { count: rows.length, pages: pages() };
}

class MemoryStore implements Store {
  readonly #now: () => number;
  readonly #sessions = new Map<string, StoredSession>();
  readonly #leases = new Map<string, { readonly since: number }>();
  readonly #contents = new Map<string, Uint8Array>();
  readonly #kept = new Map<string, readonly KeptMessage[]>();
  readonly #queues = new Map<string, readonly QueuedMessage[]>();
  #writes = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  createSession: Store['createSession'] = async (row) => {
    const same = this.#sessions.get(row.id);
    if (!same || same.events.length > 0 || JSON.stringify(same.row) !== JSON.stringify(row)) this.#add(row, []);
  };
  sync: Store['sync'] = () => Promise.resolve();
  append: Store['append'] = async (sessionId, event, blobs = []) => {
    const item = this.#stored(sessionId);
    for (const { sha256, bytes } of blobs) this.#contents.set(sha256, bytes);
    const clean = cleanEvent(event);
    const isNext = event.seq > (item.events.at(-1)?.seq ?? 0);
    const taken = isNext ? undefined : item.events.find((other) => other.seq === event.seq);
    if (taken && JSON.stringify(taken) === JSON.stringify(clean)) return;
    if (taken) throw seqTaken(sessionId, event.seq);
    item.events.push(clean);
    if (!isNext) item.events.sort((a, b) => a.seq - b.seq);
    item.lastWrite = ++this.#writes;
    item.row = { ...item.row, updatedAt: event.createdAt };
  };
  queue: Store['queue'] = async (sessionId) => this.#queues.get(sessionId) ?? [];
  setQueue: Store['setQueue'] = async (sessionId, messages) => {
    if (this.#sessions.has(sessionId)) this.#queues.set(sessionId, messages);
  };
  keepMessage: Store['keepMessage'] = async (sessionId, message) => {
    if (!this.#sessions.has(sessionId)) return false;
    const kept = this.#kept.get(sessionId) ?? [];
    if (!kept.some(({ id }) => id === message.id)) this.#kept.set(sessionId, [...kept, message]);
    return true;
  };
  keptMessages: Store['keptMessages'] = async (sessionId) => this.#kept.get(sessionId) ?? [];
  dropMessage: Store['dropMessage'] = async (sessionId, id) => {
    const kept = this.#kept.get(sessionId) ?? [];
    this.#kept.set(
      sessionId,
      kept.filter((message) => message.id !== id),
    );
  };
  blob: Store['blob'] = async (sha256) => this.#contents.get(sha256) ?? null;
  load: Store['load'] = async (sessionId) => [...(this.#sessions.get(sessionId)?.events ?? [])];
  tail: Store['tail'] = async (sessionId, count) =>
    count < 1 ? [] : (this.#sessions.get(sessionId)?.events.slice(-count) ?? []);
  page: Store['page'] = async (sessionId, seq, count) =>
    (this.#sessions.get(sessionId)?.events ?? []).filter((event) => event.seq > seq).slice(0, count);

  session: Store['session'] = async (id) => this.#sessions.get(id)?.row ?? null;
  find: Store['find'] = async (text) => findSession(sessionIndex(this.#newestFirst().map((item) => item.row)), text);
  newest: Store['newest'] = async (cwd) => this.#listed(cwd).find(isPersons)?.row ?? null;
  newestOfDirectory: Store['newestOfDirectory'] = async (directoryId) =>
    this.#listed().find((item) => item.row.directoryId === directoryId && isPersons(item))?.row ?? null;
  relocate: Store['relocate'] = async (...move) => {
    relocate(this.#sessions.values(), ...move);
  };
  list: Store['list'] = async (limit, ...scope) =>
    this.#listed(...scope)
      .slice(0, limit)
      .map((item) => summary(item, copiesIn(this.#sessions.values())));
  browse: Store['browse'] = (scope) => browseList(this.list, scope);
  count: Store['count'] = async (...scope) => this.#listed(...scope).length;
  agentsOf: Store['agentsOf'] = async (parentId) =>
    [...this.#sessions.values()].map(({ row }) => row).filter((row) => isAgentOf(row, parentId));
  search: Store['search'] = async (text, limit, cwd, filters = noFilters) =>
    (await import('./memory-search.js')).searchIn(this.#newestFirst(cwd), text, filters).slice(0, limit);
  searchCoverage: Store['searchCoverage'] = () => Promise.resolve(1);
  update: Store['update'] = async (id, change) => {
    changeRow(this.#stored(id), change);
  };
  remove: Store['remove'] = async (id) => {
    const agents = (await this.agentsOf(id)).map((row) => row.id);
    for (const gone of [id, ...agents]) for (const map of [this.#sessions, this.#queues, this.#kept]) map.delete(gone);
    dropUnreferred(this.#contents, this.#sessions.values());
  };
  fork: Store['fork'] = async (parentId, row, uptoSeq = Number.MAX_SAFE_INTEGER) => {
    const { events, redacted } = this.#stored(parentId);
    const copied = events.filter((event) => event.seq <= uptoSeq).map((event) => ({ ...event }));
    this.#add({ ...row, parentId }, copied, new Map([...redacted].filter(([seq]) => seq <= uptoSeq)));
  };
  adopt: Store['adopt'] = async (row, events, blobs = []) => {
    this.#add(row, Array.from(events, cleanEvent));
    for (const { sha256, bytes } of blobs) this.#contents.set(sha256, bytes);
  };
  acquire: Store['acquire'] = async (sessionId) => acquireIn(this.#leases, sessionId, this.#now());
  close: Store['close'] = async () => {
    this.#leases.clear();
  };

  readonly records: Records = {
    calls: async (filter = {}) => callsOf(this.#sessions.values(), filter),
    eachCall: async function* (filter = {}) {
      yield await this.calls(filter);
    },
    spending: async (scope = {}) => spendingOf(this.#sessions.values(), scope),
    totals: (scope) => totalsOf(this.records, scope),
    checkTotals: null,
    verify: async (sessionId) => {
      const ids = sessionId === null ? [...this.#sessions.keys()].sort() : [sessionId];
      return verifySessions(ids, (id) => chainRows(this.#sessions.get(id)));
    },
    redact: async (sessionId, seq, replacement) => {
      const changed = redactCopies(this.#sessions, sessionId, seq, replacement);
      dropUnreferred(this.#contents, this.#sessions.values());
      return changed;
    },
    erase: null,
    completeIndex: null,
    compact: () => Promise.resolve(),
    ask: null,
  };

  #stored(id: string): StoredSession {
    const found = this.#sessions.get(id);
    if (!found) throw noSession(id);
    return found;
  }

  #listed(cwd?: string, agentsToo = false): StoredSession[] {
    return this.#newestFirst(cwd).filter(({ row }) => agentsToo || row.parentCallId === undefined);
  }

  #newestFirst(cwd?: string): StoredSession[] {
    return [...this.#sessions.values()]
      .filter((item) => cwd === undefined || item.row.cwd === cwd)
      .sort((a, b) => b.lastWrite - a.lastWrite || b.row.updatedAt - a.row.updatedAt || compare(b.row.id, a.row.id));
  }

  #add(row: SessionRow, events: readonly Event[], redacted?: StoredSession['redacted']): void {
    if (this.#sessions.has(row.id)) throw sessionExists(row.id);
    this.#writes += events.length;
    this.#sessions.set(row.id, {
      row: { ...row, title: row.title === null ? null : wellFormed(row.title) },
      events: [...events],
      redacted: new Map(redacted),
      lastWrite: events.length > 0 ? this.#writes : 0,
    });
  }
}

function isPersons({ row }: StoredSession): boolean {
  return row.door === undefined;
}

function isAgentOf({ parentId, parentCallId }: SessionRow, id: string): boolean {
  return parentId === id && parentCallId !== undefined;
}

function changeRow(item: StoredSession, change: SessionChange): void {
  const { api, baseUrl, ...row } = {
    ...item.row,
    ...change,
    ...(change.title === undefined ? {} : { title: wellFormed(change.title) }),
  };
  item.row = { ...row, ...(api ? { api } : {}), ...(baseUrl ? { baseUrl } : {}) };
}

function relocate(sessions: Iterable<StoredSession>, directoryId: string, from: string, to: string): void {
  for (const item of sessions) {
    if (item.row.directoryId !== directoryId || item.row.cwd !== from) continue;
    const moves = [...(item.row.moves ?? []), { from, to, lastSeq: item.events.at(-1)?.seq ?? 0 }];
    item.row = { ...item.row, cwd: to, moves };
  }
}

function acquireIn(leases: Map<string, { readonly since: number }>, sessionId: string, since: number): Lease {
  const other = leases.get(sessionId);
  if (other) return { held: false, holder: { pid: process.pid, host: hostname(), since: other.since } };
  const mine = { since };
  leases.set(sessionId, mine);
  return {
    held: true,
    release: async () => {
      if (leases.get(sessionId) === mine) leases.delete(sessionId);
    },
  };
}

function sessionIndex(recent: readonly SessionRow[]): SessionIndex {
  const byId = [...recent].sort((a, b) => (a.id < b.id ? 1 : -1));
  return {
    byId: (id) => recent.find((row) => row.id === id) ?? null,
    byPrefix: (prefix, max) => byId.filter((row) => row.id.startsWith(prefix)).slice(0, max),
    byTitle: (title) => byId.filter((row) => row.title?.toLowerCase() === title.toLowerCase()),
    recent: (max) => recent.slice(0, max),
  };
}

/** Copies an event as the database would return it. */
function cleanEvent(event: Event): Event {
  const text = dataJson(event.data);
  return {
    ...wellFormedDeep({ seq: event.seq, kind: event.kind, content: event.content }),
    data: text === null ? null : parseJson(text),
    createdAt: event.createdAt,
  };
}

function summary({ row, events }: StoredSession, copies: ReadonlySet<Event>): SessionSummary {
  const typed = events.map((event) => {
    const known = event.kind === 'user' ? knownEvent(event) : null;
    return known?.kind === 'user' ? typedText(known) : null;
  });
  const prompt = typed.find((text) => text !== null) ?? null;
  const costs = events
    .filter((event) => (event.kind === 'usage' || event.kind === 'agent_usage') && !copies.has(event))
    .map((event) => (event.data as { readonly cost_usd?: unknown } | null)?.cost_usd)
    .filter((cost) => typeof cost === 'number');
  return {
    ...row,
    prompt: promptLine(prompt),
    events: events.length,
    costUsd: costs.length === 0 ? null : costs.reduce((sum, cost) => sum + cost, 0),
  };
}

/** Removes contents that no event refers to any more. */
function dropUnreferred(contents: Map<string, Uint8Array>, sessions: Iterable<StoredSession>): void {
  const referred = new Set(
    [...sessions].flatMap(({ events }) =>
      events.flatMap((event) => [
        ...listIn(event, 'changes').flatMap(hashesOf),
        ...attachmentsOf(event.data).map(({ sha256 }) => sha256),
      ]),
    ),
  );
  for (const sha256 of contents.keys()) if (!referred.has(sha256)) contents.delete(sha256);
}

function listIn({ data }: Event, name: string): readonly unknown[] {
  const list = isRecord(data) ? data[name] : null;
  return Array.isArray(list) ? (list as readonly unknown[]) : [];
}

function hashesOf(change: unknown): readonly unknown[] {
  return isRecord(change) ? [change['before'], change['after']] : [];
}

/** The rows that the database would hold for a session. */
function chainRows(item: StoredSession | undefined): readonly ChainRow[] {
  let link: Buffer | null = null;
  return (item?.events ?? []).map((event): ChainRow => {
    const row = rowOfEvent(event);
    const redacted = item?.redacted.get(event.seq) ?? null;
    link = chainLink(link, row, digestsOf({ ...row, redacted }));
    return { ...row, redacted, crc32: eventChecksum(row), hash: link };
  });
}

function redactCopies(
  sessions: ReadonlyMap<string, StoredSession>,
  sessionId: string,
  seq: number,
  replacement: Pick<Event, 'content' | 'data'>,
): number {
  const wanted = chainRows(sessions.get(sessionId)).find((row) => row.seq === seq);
  if (!wanted?.hash) return 0;
  let changed = 0;
  for (const item of sessions.values()) {
    for (const [index, row] of chainRows(item).entries()) {
      const event = item.events[index];
      if (!event || !row.hash?.equals(wanted.hash)) continue;
      item.redacted.set(row.seq, row.redacted ?? JSON.stringify(eventDigests(row)));
      item.events[index] = cleanEvent({ ...event, ...replacement });
      changed++;
    }
  }
  return changed;
}

/** Returns the events that are copies: forks and imports copy events, and the one that was stored first counts. It is
 * the rule of `isOriginal` in the database. */
function copiesIn(sessions: Iterable<StoredSession>): ReadonlySet<Event> {
  const [copies, known] = [new Set<Event>(), new Set<string>()];
  for (const item of sessions) {
    const marks = chainRows(item).map(identitiesOf);
    if (item.row.parentCallId === undefined)
      for (const [index, event] of item.events.entries())
        if (marks[index]?.some((mark) => known.has(mark))) copies.add(event);
    for (const mark of marks.flat()) known.add(mark);
  }
  return copies;
}

/** Returns texts that are equal for two copies of an event and differ for two different events. */
function identitiesOf({ seq, hash, kind, content, data_json: data, created_at: at }: ChainRow): readonly string[] {
  return [
    ...(seq === 1 || hash === null ? [] : [hash.toString('hex')]),
    ...(data?.includes('"response_id":') ? [JSON.stringify([at, kind, content, data])] : []),
  ];
}

function callsOf(sessions: Iterable<StoredSession>, filter: CallFilter): readonly RecordedCall[] {
  const all = [...sessions];
  const copies = copiesIn(all);
  const found = all
    .flatMap((item) =>
      item.events.flatMap((event, index) =>
        event.kind === 'tool_call' && !copies.has(event) ? [callOf(item.row, event, item.events.slice(index + 1))] : [],
      ),
    )
    .filter((call) => fitsFilter(call, filter))
    .sort((a, b) => a.createdAt - b.createdAt || compare(a.sessionId, b.sessionId) || a.seq - b.seq);
  return filter.limit === undefined ? found : found.slice(Math.max(0, found.length - filter.limit));
}

function compare(one: string, other: string): number {
  return one === other ? 0 : one < other ? -1 : 1;
}

export function fitsFilter(call: RecordedCall, filter: CallFilter): boolean {
  const { sessionId, cwd, tool, decidedBy, since = 0, exceptOk = false } = filter;
  const equal = [
    [sessionId, call.sessionId],
    [cwd, call.cwd],
    [tool, call.tool],
    [decidedBy, call.decidedBy],
  ] as const;
  return (
    equal.every(([wanted, found]) => wanted === undefined || wanted === found) &&
    since <= call.createdAt &&
    hasStatus(call, filter.status) &&
    !(exceptOk && call.status === 'ok')
  );
}

function hasStatus({ status }: RecordedCall, wanted: string | undefined): boolean {
  if (wanted === 'failed') return status !== 'ok' && status !== 'open';
  return wanted === undefined || wanted === status;
}

/** A call with its outcome, from the events behind it. */
export function callOf(row: SessionRow, event: Event, later: readonly Event[]): RecordedCall {
  const call = recordOf(event.data);
  const named = recordOf(call['function']);
  const callId = stringOrNull(call['id']);
  const isOfCall = (other: Event): boolean => recordOf(other.data)['tool_call_id'] === callId;
  const end = later.findIndex((other) => other.kind === 'tool_result' && isOfCall(other));
  const meanwhile = (end < 0 ? later : later.slice(0, end)).filter(isOfCall);
  const outcome = outcomeOf(end < 0 ? null : recordOf(later[end]?.data));
  return {
    sessionId: row.id,
    seq: event.seq,
    createdAt: event.createdAt,
    cwd: row.cwd,
    callId,
    tool: stringOrNull(named['name']),
    arguments: stringOrNull(named['arguments']),
    summary: event.content,
    ...outcome,
    ...decisionOf(meanwhile, outcome.status),
  };
}

function outcomeOf(
  result: Readonly<Record<string, unknown>> | null,
): Pick<RecordedCall, 'status' | 'durationMs' | 'error'> {
  if (result === null) return { status: 'open', durationMs: null, error: null };
  const output = parsedOutput(result['output']);
  const durationMs = tookMs(result);
  const status = result['success'] === true ? 'ok' : (stringOrNull(output['code']) ?? 'failed');
  return { status, durationMs, error: stringOrNull(output['error']) };
}

/** A call that ran or was refused without a question was decided by the policy. */
function decisionOf(
  meanwhile: readonly Event[],
  status: string,
): Pick<RecordedCall, 'started' | 'decision' | 'decidedBy' | 'risk'> {
  const approval = recordOf(meanwhile.find((other) => other.kind === 'approval')?.data);
  const started = meanwhile.some((other) => other.kind === 'tool_started');
  const unasked = started ? 'allow' : status === 'permission_denied' ? 'deny' : null;
  return {
    started,
    decision: stringOrNull(approval['decision']) ?? unasked,
    decidedBy: stringOrNull(approval['by']) ?? (unasked === null ? null : 'policy'),
    risk: stringOrNull(approval['risk']),
  };
}

function spendingOf(sessions: Iterable<StoredSession>, { since = 0, cwd }: RecordScope): readonly SpendingRow[] {
  const all = [...sessions];
  const copies = copiesIn(all);
  return all
    .filter(({ row }) => cwd === undefined || row.cwd === cwd)
    .flatMap(({ row, events }) =>
      events
        .filter((event) => event.createdAt >= since && !copies.has(event))
        .filter((event) => event.kind === 'usage' || row.parentCallId === undefined)
        .flatMap((event) => spendingRow(row, event)),
    )
    .sort((a, b) => compare(a.sessionId, b.sessionId));
}

export function spendingRow(row: SessionRow, event: Event): readonly SpendingRow[] {
  const { kind } = event;
  if (kind !== 'usage' && kind !== 'tool_call' && kind !== 'user') return [];
  const data = recordOf(event.data);
  if (kind === 'tool_call' && data['by'] !== undefined) return [];
  if (kind === 'user' && data['note'] === true) return [];
  const count = (name: string): number => (typeof data[name] === 'number' ? data[name] : 0);
  return [
    {
      sessionId: ownerOf(row),
      kind,
      responseId: stringOrNull(data['response_id']) ?? (kind === 'usage' ? `r${event.seq}` : null),
      createdAt: event.createdAt,
      cwd: row.cwd,
      provider: stringOrNull(data['provider']),
      model: stringOrNull(data['model']),
      role: usageRole(row, kind, data),
      inputTokens: count('input_tokens') + count('cache_read_tokens') + count('cache_write_tokens'),
      outputTokens: count('output_tokens'),
      costUsd: typeof data['cost_usd'] === 'number' ? data['cost_usd'] : null,
    },
  ];
}

/** Returns the role of a request, also of one that an earlier version recorded; null for what is no request. */
function usageRole(
  { parentCallId }: SessionRow,
  kind: SpendingRow['kind'],
  data: Readonly<Record<string, unknown>>,
): string | null {
  if (kind !== 'usage') return null;
  const ofTurns = parentCallId === undefined ? 'main' : 'subagent';
  return stringOrNull(data['role']) ?? stringOrNull(data['purpose']) ?? ofTurns;
}

/** The session in which the user paid for it. */
function ownerOf({ id, parentId, parentCallId }: SessionRow): string {
  return parentCallId === undefined ? id : (parentId ?? id);
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

function stringOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function parsedOutput(text: unknown): Readonly<Record<string, unknown>> {
  try {
    return recordOf(parseJson(stringOrNull(text) ?? 'null'));
  } catch {
    return {};
  }
}
