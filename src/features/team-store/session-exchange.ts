import { parseJson } from '../../kernel/core/json.js';
import { addAll } from '../../kernel/core/lists.js';
import { randomUUID } from 'node:crypto';
import { isRecord } from '../../kernel/core/json.js';
import type { Blob, SessionRow } from '../../kernel/core/store.js';
import type {
  ChainPoint,
  Exchange,
  ExchangeScope,
  LocalSession,
  ExchangeOutcome,
  Redacted,
  StoredEvent,
  SyncRows,
  Team,
  TeamSession,
} from './team.js';
import { StoreError } from '../../kernel/store/errors.js';
import { type ChainRow, linkProblem } from '../../kernel/store/hash-chain.js';
import { sameLink } from './sync-rows.js';
import { blankedBy } from './foreign-redactions.js';

/** The two sides, and what belongs to this machine. */
export interface ExchangeParts {
  readonly rows: SyncRows;
  readonly team: Team;
  readonly machine: string;
  /** The role whose members may read what is pushed. */
  readonly sharedWith: string | null;
  /** Returns true if the sessions of a directory are never sent. */
  readonly isExcluded: (cwd: string) => boolean;
  /** A new id for a session. */
  readonly newId: () => string;
  /** Waits until there is time for the next piece of work. False: there is none
   * any more. */
  readonly pause: () => Promise<boolean>;
  /** Events of one statement. */
  readonly batch: number;
}

const listedSessions = 500;
const start: ChainPoint = { seq: 0, link: null };

/** Leases of open sessions, by session; '' where there is none yet. */
type Kept = Map<string, string>;

/** Exchanges sessions with the server of a team. Every call may reject as the store and the server do; completed work
 * stays, and the next call continues from there. */
export function openExchange(parts: ExchangeParts): Exchange {
  const { leases } = parts.team;
  const kept: Kept = new Map();
  return {
    push: async (scope = {}) => {
      const outcomes: ExchangeOutcome[] = [];
      await pushRedactions(parts);
      for await (const local of pendingSessions(parts, scope, kept)) {
        addAll(outcomes, await pushListed(parts, local.row.id, kept));
        if (!(await parts.pause())) break;
      }
      return outcomes;
    },
    pull: async (scope = {}) => await pullSessions(parts, scope, kept),
    keep: (sessionId) => kept.set(sessionId, kept.get(sessionId) ?? ''),
    beat: async () => {
      for (const [id, token] of kept) if (token !== '' && !(await leases.beat(id, token))) kept.set(id, '');
    },
    release: async () => {
      for (const [id, token] of kept) if (token !== '') await leases.release(id, token);
      kept.clear();
    },
  };
}

async function* pendingSessions(
  { rows }: ExchangeParts,
  { sessionId, since = 0, after: from = '' }: ExchangeScope,
  kept: Kept,
): AsyncGenerator<LocalSession> {
  for (const id of sessionId === undefined ? kept.keys() : [sessionId]) {
    const local = await rows.session(id);
    if (local !== null && local !== 'removed') yield local;
  }
  for (let after = from, more = sessionId === undefined; more;) {
    const page = await rows.pending(after, listedSessions);
    yield* page.filter(({ row }) => row.updatedAt >= since && !kept.has(row.id));
    after = page.at(-1)?.row.id ?? after;
    more = page.length === listedSessions;
  }
}

/** Pushes a session as it is now: another process of this machine may have sent it since it was listed. */
async function pushListed(parts: ExchangeParts, id: string, kept: Kept): Promise<readonly ExchangeOutcome[]> {
  const local = await parts.rows.session(id);
  const outcomes = local === null || local === 'removed' ? [] : await pushSession(parts, local, kept);
  return await Promise.all(
    outcomes.map(async (outcome) =>
      outcome.kind === 'left' ? { ...outcome, ...(await unsentOf(parts, outcome.sessionId)) } : outcome,
    ),
  );
}

async function pushSession(parts: ExchangeParts, local: LocalSession, kept: Kept): Promise<readonly ExchangeOutcome[]> {
  const { team } = parts;
  const { id, cwd } = local.row;
  if (parts.isExcluded(cwd) || local.end.seq === 0) return [];
  const { state } = local;
  const isNew = state === null || local.end.seq > state.pushed.seq;
  if (!isNew && local.rowPushed) return [];
  if (state?.owner != null) return isNew ? await settleTwo(parts, local, kept) : [];
  const lease = await leaseFor(parts, id);
  if ('reason' in lease) return [{ kind: 'left', sessionId: id, reason: lease.reason }];
  try {
    const done = await sendEvents(parts, local, lease.token);
    return done === 'diverged' ? await settleTwo(parts, local, kept) : done;
  } finally {
    if (kept.has(id)) kept.set(id, lease.token);
    else await team.leases.release(id, lease.token).catch(() => null);
  }
}

/** The number of events of a session that the server is not known to have. */
async function unsentOf({ rows }: ExchangeParts, id: string): Promise<{ readonly unsent?: number }> {
  const local = await rows.session(id);
  const unsent = local === null || local === 'removed' ? 0 : local.end.seq - (local.state?.pushed.seq ?? 0);
  return unsent > 0 ? { unsent } : {};
}

/** This machine keeps one token for a session, written down before it is used: the lease of a pusher that was killed
 * belongs to the next one, and pushers at the same time have one lease. */
async function leaseFor(
  { rows, team }: ExchangeParts,
  id: string,
): Promise<{ readonly token: string } | { readonly reason: string }> {
  const token = await rows.token(id, randomUUID());
  try {
    const lease = await team.leases.acquire(id, token);
    return lease.held ? lease : { reason: `it is in use on ${lease.holder.host} (process ${lease.holder.pid})` };
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== 'exists') throw error;
    return { reason: 'a session of this id belongs to somebody else' };
  }
}

/** The progress of sending a session. */
interface Sending {
  readonly after: ChainPoint;
  readonly sent: number;
  /** The number of times that the server's end differed from the expected one. */
  readonly fruitless: number;
  /** The number of times that the lease was gone, because another process of this machine ended its push. */
  readonly lost: number;
  /** The server has the session. */
  readonly isThere: boolean;
  /** It has the row as it is here. */
  readonly isNamed: boolean;
}

type Stop = 'done' | 'diverged' | { readonly reason: string };

/** Sends batch after batch from where the server is. */
async function sendEvents(
  parts: ExchangeParts,
  local: LocalSession,
  token: string,
): Promise<readonly ExchangeOutcome[] | 'diverged'> {
  const sessionId = local.row.id;
  const known = local.state?.pushed ?? start;
  const isKnown = sameLink(known.link, await parts.rows.link(sessionId, known.seq));
  let at: Sending = { after: isKnown ? known : start, sent: 0, fruitless: 0, lost: 0, isThere: false, isNamed: false };
  for (;;) {
    const next = await sendBatch(parts, local.row, token, at);
    if (next === 'diverged') return next;
    if (next === 'done') break;
    if ('reason' in next) return [{ kind: 'left', sessionId, reason: next.reason }];
    at = next;
    if (!(await parts.pause())) break;
  }
  return at.isNamed ? [{ kind: 'pushed', sessionId, events: at.sent }] : [];
}

/** Sends contents of files, then the events that refer to them. */
async function sendBatch(
  parts: ExchangeParts,
  session: SessionRow,
  token: string,
  at: Sending,
): Promise<Sending | Stop> {
  const { rows, team, machine, sharedWith } = parts;
  const { after } = at;
  const events = await rows.events(session.id, after.seq, parts.batch);
  if (events.length === 0 && at.isNamed) return 'done';
  const broken = brokenAt(after, events);
  if (broken !== null) return { reason: `event ${broken} is not as written (agent audit verify)` };
  const hashes = blobsOf(events);
  // Contents belong to a session that the server has.
  const sending = hashes.length > 0 && !at.isThere ? [] : events;
  if (sending === events) await sendBlobs(parts, session.id, hashes);
  const pushed = await team.log.push({ session, team: sharedWith, machine, after, events: sending, token });
  if (pushed.kind === 'lease_lost') return await takeAgain(team, session.id, token, at);
  if (pushed.kind === 'diverged') return 'diverged';
  if (pushed.kind === 'behind') return await goBack(rows, session.id, at, pushed.end);
  if (sending !== events) return { ...at, isThere: true };
  const end = endOf(events, after);
  await rows.note(session.id, { pushed: end, owner: null, token }, session);
  const sent = at.sent + (pushed.kind === 'stored' ? events.length : 0);
  return { ...at, after: end, sent, isThere: true, isNamed: true };
}

/** Continues with the lease if it is free, or has the token of this machine. */
async function takeAgain(team: Team, id: string, token: string, at: Sending): Promise<Sending | Stop> {
  const lease = at.lost < maxLost ? await team.leases.acquire(id, token) : null;
  return lease?.held === true ? { ...at, lost: at.lost + 1 } : { reason: 'another process took it meanwhile' };
}

function endOf(events: readonly StoredEvent[], after: ChainPoint): ChainPoint {
  const last = events.at(-1);
  return last ? { seq: last.seq, link: last.hash } : after;
}

/** The server may say that it is elsewhere: once since it is asked for the
 * first time, and when another process of this machine pushes, too. */
const maxFruitless = 3;
/** Pushers of one machine at the same time may each end the lease once. */
const maxLost = 20;

/** Continues from the server's end, if the session contains it. */
async function goBack(rows: SyncRows, id: string, at: Sending, end: ChainPoint): Promise<Sending | Stop> {
  if (end.seq > 0 && !sameLink(end.link, await rows.link(id, end.seq))) return 'diverged';
  if (at.fruitless === maxFruitless) return { reason: 'the server lacks events that are gone here, too' };
  return { ...at, after: end.seq === 0 ? start : end, fruitless: at.fruitless + 1, isThere: false };
}

const maxSentBytes = 4 * 1024 * 1024;

/** Contents that hold secrets are kept back: the server would keep them readable. */
async function sendBlobs({ rows, team }: ExchangeParts, id: string, hashes: readonly string[]): Promise<void> {
  const blobs: Blob[] = [];
  for (const sha256 of hashes.length === 0 ? [] : await team.blobs.missing(id, hashes)) {
    const bytes = await rows.plainBlob(sha256);
    if (bytes !== null) blobs.push({ sha256, bytes });
    if (blobs.reduce((sum, blob) => sum + blob.bytes.byteLength, 0) > maxSentBytes)
      await team.blobs.put(id, blobs.splice(0));
  }
  if (blobs.length > 0) await team.blobs.put(id, blobs);
}

/** Returns the hashes of contents that events refer to: changed files, images, documents. */
function blobsOf(events: readonly StoredEvent[]): readonly string[] {
  const hashes = new Set<string>();
  for (const { dataJson } of events) {
    if (dataJson === null || !/"(?:changes|attachments)"/.test(dataJson)) continue;
    const data: unknown = parseJson(dataJson);
    if (!isRecord(data)) continue;
    for (const list of [data['changes'], data['attachments']])
      for (const item of Array.isArray(list) ? (list as readonly unknown[]) : [])
        if (isRecord(item))
          for (const hash of [item['before'], item['after'], item['sha256']])
            if (typeof hash === 'string') hashes.add(hash);
  }
  return [...hashes];
}

/** The first event that does not follow from the one before it. */
function brokenAt(after: ChainPoint, events: readonly StoredEvent[]): number | null {
  let last: Pick<ChainRow, 'seq' | 'hash'> = { seq: after.seq, hash: bufferOf(after.link) };
  for (const event of events) {
    const row = { ...event, data_json: event.dataJson, created_at: event.createdAt, hash: bufferOf(event.hash) };
    if (event.seq !== last.seq + 1 || linkProblem(last, row) !== null) return event.seq;
    last = row;
  }
  return null;
}

function bufferOf(bytes: Uint8Array | null): Buffer | null {
  return bytes === null ? null : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

async function pushRedactions({ rows, team, isExcluded }: ExchangeParts): Promise<void> {
  const done: Redacted[] = [];
  for (const redacted of await rows.redactions()) {
    const local = await rows.session(redacted.sessionId);
    const isThere =
      local !== null &&
      local !== 'removed' &&
      !isExcluded(local.row.cwd) &&
      redacted.event.seq <= (local.state?.pushed.seq ?? 0);
    if (isThere) await team.log.redact(redacted.sessionId, redacted.event);
    done.push(redacted);
  }
  if (done.length > 0) await rows.redactionsSent(done);
}

/** Turns the local branch of a session that was continued in two places into a separate session, takes the server's
 * events in its place, and pushes the branch. */
async function settleTwo(parts: ExchangeParts, local: LocalSession, kept: Kept): Promise<readonly ExchangeOutcome[]> {
  const { rows, team } = parts;
  const sessionId = local.row.id;
  const remote = await team.log.session(sessionId);
  if (remote === null) return [{ kind: 'left', sessionId, reason: 'a session of this id belongs to somebody else' }];
  const common = await commonPoint(parts, sessionId, Math.min(local.end.seq, remote.end.seq));
  if (common.seq === local.end.seq) return [];
  const branch = branchRow(local.row, parts.newId());
  const taken = await take(parts, remote, { seen: local.end, after: common, branch });
  if (taken.kind !== 'pulled') return [taken];
  const made = await rows.session(branch.id);
  const pushed = made === null || made === 'removed' ? [] : await pushSession(parts, made, kept);
  return [{ kind: 'branched', sessionId, branch: branch.id }, ...pushed];
}

function branchRow(
  { cwd, title, provider, model, directoryId, api, baseUrl, moves, ...row }: SessionRow,
  id: string,
): SessionRow {
  const place = { ...(directoryId && { directoryId }), ...(api && { api }), ...(baseUrl && { baseUrl }) };
  const { createdAt, updatedAt } = row;
  return { id, parentId: row.id, cwd, ...place, ...(moves && { moves }), title, provider, model, createdAt, updatedAt };
}

/** The last event that both have: where the links agree, all before does. */
async function commonPoint({ rows, team }: ExchangeParts, id: string, atMost: number): Promise<ChainPoint> {
  let [common, different] = [start, atMost + 1];
  while (different - common.seq > 1) {
    const seq = atMost === different - 1 ? atMost : Math.floor((common.seq + different) / 2);
    const [theirs] = await team.log.events(id, seq - 1, 1);
    const ours = await rows.link(id, seq);
    if (theirs?.seq === seq && ours !== null && sameLink(ours, theirs.hash)) common = { seq, link: ours };
    else different = seq;
  }
  return common;
}

interface Taking {
  readonly seen: ChainPoint | null;
  readonly after: ChainPoint;
  readonly branch?: SessionRow;
}

/** Takes the rest of a session from the server, contents of files first. */
async function take({ rows, team }: ExchangeParts, remote: TeamSession, taking: Taking): Promise<ExchangeOutcome> {
  const sessionId = remote.id;
  for (const sha256 of await rows.missingBlobs(await team.blobs.of(sessionId))) {
    const bytes = await team.blobs.get(sha256);
    if (bytes !== null) await rows.keepBlob(sha256, bytes);
  }
  const pages = eventPages(team, sessionId, taking.after.seq);
  const owner = remote.isOwn ? null : remote.owner;
  const reception = await rows.receive({ row: remote, owner, ...taking, pages });
  if (reception.kind === 'stored') return { kind: 'pulled', sessionId, events: reception.events };
  const reasons = {
    in_use: taking.branch
      ? 'it also continued on another machine; the new events from here become a separate session when it is closed'
      : 'it is in use here',
    changed: 'it continued here',
    broken: `the server's event ${'seq' in reception ? reception.seq : 0} does not follow from the one before it`,
  };
  return { kind: 'left', sessionId, reason: reasons[reception.kind] };
}

/** Events of one question. */
const pulledEvents = 500;

async function* eventPages(team: Team, id: string, after: number): AsyncGenerator<readonly StoredEvent[]> {
  for (let last = after; ;) {
    const page = await team.log.events(id, last, pulledEvents);
    const end = page.at(-1);
    if (!end) return;
    yield page;
    last = end.seq;
  }
}

async function pullSessions(
  parts: ExchangeParts,
  scope: ExchangeScope,
  kept: Kept,
): Promise<readonly ExchangeOutcome[]> {
  const outcomes: ExchangeOutcome[] = [];
  for await (const listed of teamSessions(parts.team, scope)) {
    if (!parts.isExcluded(listed.cwd)) addAll(outcomes, await pullSession(parts, listed, scope, kept));
    if (!(await parts.pause())) break;
  }
  return outcomes;
}

async function* teamSessions(team: Team, { sessionId, since }: ExchangeScope): AsyncGenerator<TeamSession> {
  if (sessionId !== undefined) {
    const one = await team.log.session(sessionId);
    if (one) yield one;
    return;
  }
  for (let after = '', more = true; more;) {
    const page = await team.log.sessions(after, listedSessions, since);
    yield* page;
    after = page.at(-1)?.id ?? after;
    more = page.length === listedSessions;
  }
}

async function pullSession(
  parts: ExchangeParts,
  remote: TeamSession,
  scope: ExchangeScope,
  kept: Kept,
): Promise<readonly ExchangeOutcome[]> {
  const local = await parts.rows.session(remote.id);
  if (remote.end.seq === 0 || (local === 'removed' && scope.sessionId === undefined)) return [];
  if (local === null || local === 'removed') return [await take(parts, remote, { seen: null, after: start })];
  const ours = await bringUp(parts, local, remote, kept);
  return [...ours, ...(await pullRedactions(parts, remote))];
}

/** Brings a session that is here to where it is at the server. */
async function bringUp(
  parts: ExchangeParts,
  local: LocalSession,
  remote: TeamSession,
  kept: Kept,
): Promise<readonly ExchangeOutcome[]> {
  const { rows, team } = parts;
  const shorter = Math.min(local.end.seq, remote.end.seq);
  const [theirs] = shorter === remote.end.seq ? [] : await team.log.events(remote.id, shorter - 1, 1);
  const isSame = sameLink(await rows.link(remote.id, shorter), theirs ? theirs.hash : remote.end.link);
  if (!isSame) return await settleTwo(parts, local, kept);
  if (local.end.seq > remote.end.seq) return [];
  if (local.end.seq < remote.end.seq || isRenamed(local, remote))
    return [await take(parts, remote, { seen: local.end, after: local.end })];
  if (local.state === null)
    await rows.note(remote.id, { pushed: remote.end, owner: remote.isOwn ? null : remote.owner, token: null });
  return [];
}

/** There and not here. */
function isRenamed({ row, state, rowPushed }: LocalSession, remote: TeamSession): boolean {
  return (state === null || rowPushed) && (row.title !== remote.title || row.model !== remote.model);
}

/** Redacts here what was redacted there. */
async function pullRedactions({ rows, team }: ExchangeParts, remote: TeamSession): Promise<readonly ExchangeOutcome[]> {
  const open: Redacted[] = [];
  const isOurs = remote.isOwn && remote.parentId === null;
  for (const seq of remote.redacted) {
    const [here] = await rows.events(remote.id, seq - 1, 1);
    if (here === undefined || here.seq !== seq || here.redacted !== null) continue;
    const [event] = await team.log.events(remote.id, seq - 1, 1);
    // Whoever owns a session that this one was forked from may redact here, and nobody may write here.
    if (event && event.seq === seq) open.push({ sessionId: remote.id, event: isOurs ? event : blankedBy(event, here) });
  }
  if (open.length === 0) return [];
  await rows.redact(open);
  return isOurs ? [] : [{ kind: 'redacted', sessionId: remote.id, events: open.length }];
}
