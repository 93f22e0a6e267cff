import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises';
import type { Session } from '../../kernel/agent/session.js';
import { CliError, type DoctorCheck, exit, type CommandStore } from '../../kernel/console/command.js';
import { loadOnce } from '../../kernel/core/runtime.js';
import { isSessionId, type Store, ulid } from '../../kernel/core/store.js';
import {
  type Exchange,
  type ExchangeOutcome,
  redactedLine,
  type SyncRows,
  type Team,
  type TeamSession,
} from './team.js';
import { leaseBeatMs, type Tables } from '../../kernel/store/tables.js';
import { StoreError } from '../../kernel/store/errors.js';
import { printError } from '../../kernel/console/print.js';
import type { RunHost, RunPart } from '../../kernel/console/feature.js';
import type { Notice, Settings } from '../../kernel/console/run-settings.js';
import type { SessionChoice } from '../../kernel/console/run-settings.js';
import { syncTableSet } from './sync-tables.js';
import { compileGlobs } from '../../kernel/permissions/guarded-paths.js';
import { idOnServer } from './id-on-server.js';
import { openExchange } from './session-exchange.js';
import { pushInBackground } from './background-push.js';
import { initTeam, openTeam as openTeamStore } from './team-store.js';

/** The store that a team shares. */
export interface OpenedTeam {
  readonly team: Team;
  /** Makes or updates its tables, as the owner of the database. */
  init(): Promise<{ readonly from: number; readonly to: number }>;
}

/** Opens the store of the team, which connects with the first question. Throws
 * a `CliError` where none is set, and a StoreError for an address that cannot
 * be used. */
export async function openTeam({ config, env, home }: Pick<Settings, 'config' | 'env' | 'home'>): Promise<OpenedTeam> {
  const { url } = config.store;
  if (url === null)
    throw new CliError(
      exit.usage,
      'store.url is not set: there is no team database',
      'For example: agent config set store.url postgresql://you@host/agent',
    );
  const address = { url, env, home };
  return { team: openTeamStore(address), init: async () => await initTeam(address) };
}

/** Opens the store of the team for one command, and closes it again. */
export async function withTeam<T>(
  settings: Pick<Settings, 'config' | 'env' | 'home'>,
  use: (opened: OpenedTeam) => Promise<T>,
): Promise<T> {
  const opened = await openTeam(settings);
  try {
    return await use(opened);
  } finally {
    await opened.team.close();
  }
}

/** Opens the exchange of sessions between this machine and the server for one command. Throws a `CliError` (2) where
 * there is none. */
export async function withExchange<T>(
  { tables, settings }: Pick<CommandStore, 'tables' | 'settings'>,
  use: (exchange: Exchange, team: Team) => Promise<T>,
): Promise<T> {
  const rows = await syncRows(tables);
  return await withTeam(settings, async ({ team }) => {
    const pause = async (): Promise<boolean> => await turn().then(() => true);
    return await use(await openTeamExchange(settings, { rows, team, pause, batch: exchangedEvents }), team);
  });
}

/** Events of one statement to the server, where nobody waits at a screen. */
const exchangedEvents = 500;

/** Says whether the server answers, for `doctor`. Never rejects. */
export async function checkServer(settings: Pick<Settings, 'config' | 'env' | 'home'>): Promise<DoctorCheck> {
  const name = 'server';
  try {
    const { team } = await openTeam(settings);
    const facts = await team.facts();
    await team.close();
    const use = settings.config.store.mode === 'remote' ? 'sessions are stored only there' : 'sessions are sent there';
    const detail = `${facts.server}, PostgreSQL ${facts.version}, as ${facts.role}; ${use}`;
    return { name, status: 'ok', detail, fix: null };
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    const isNeeded = settings.config.store.mode === 'remote';
    return { name, status: isNeeded ? 'fail' : 'warn', detail: error.message, fix: error.hint };
  }
}

interface ExchangeUse {
  readonly rows: SyncRows;
  readonly team: Team;
  /** See `ExchangeParts`. */
  readonly pause: () => Promise<boolean>;
  readonly batch: number;
}

type SyncSettings = Pick<Settings, 'config' | 'env' | 'home' | 'log'>;

/** Opens what this machine knows of the exchange. Throws a `CliError` (2) where sessions lie on the server alone. */
export async function syncRows(tables: Tables): Promise<SyncRows> {
  const rows = await tables(syncTableSet);
  if (rows !== null) return rows;
  throw new CliError(exit.usage, 'store.mode is remote: sessions are at the server already', 'agent db status');
}

/** Opens the exchange of sessions with the server of the team. */
async function openTeamExchange({ config, home }: SyncSettings, use: ExchangeUse): Promise<Exchange> {
  const isExcluded = compileGlobs(
    config.sync.exclude.flatMap((glob) => [glob, `${glob}/**`]),
    home,
  );
  return openExchange({
    ...use,
    machine: hostname(),
    sharedWith: config.store.team,
    isExcluded,
    newId: () => ulid(Date.now(), randomBytes(16)),
  });
}

/** The delay before sending: at the start of a session, and after a turn. */
const firstRestMs = 1000;
const restMs = 300;
const longestEndMs = 2000;
/** A server that was not reached is tried again after this time, then after
 * twice that. */
const firstRetryMs = 30_000;
const longestRetryMs = 300_000;
/** The number of events at a time; few enough that the screen does not wait for them. */
const batch = 100;

/** Sends the sessions of a run to the server of the team while nobody waits for anything. Loads and asks nothing of a
 * server before there is something to send. */
export function openSyncPart(host: Pick<RunHost, 'settings' | 'options' | 'tables'>): RunPart {
  const pusher = new Pusher(host, () => syncRows(host.tables));
  return {
    find: async (choice, store) => await pusher.fetched(choice, store),
    sessionNotices: () => pusher.notices(),
    follow: ({ session, within }) => (within ? () => undefined : pusher.follow(session)),
    close: async () => {
      await pusher.end();
    },
  };
}

class Pusher {
  readonly #host: Pick<RunHost, 'settings' | 'options'>;
  readonly #settings: SyncSettings;
  readonly #rows: () => Promise<SyncRows>;
  readonly #sessions = new Set<Session>();
  readonly #told = new Set<string>();
  readonly #pending: Notice[] = [];
  readonly #team = loadOnce(async () => (await openTeam(this.#settings)).team);
  readonly #exchange = loadOnce(async () =>
    openTeamExchange(this.#settings, {
      rows: await this.#rows(),
      team: await this.#team.get(),
      pause: () => this.#pause(),
      batch,
    }),
  );
  #timer: NodeJS.Timeout | null = null;
  #beating: NodeJS.Timeout | null = null;
  #working: Promise<void> | null = null;
  readonly #startedAt = ulid(Date.now(), new Uint8Array(0));
  #pushedTo = '';
  /** The last push ended before all was sent. */
  #isCut = false;
  #retryAt = -Infinity;
  #retryMs = firstRetryMs;
  /** The time limit at the end of the run; null while the run is active. */
  #deadline: number | null = null;

  constructor(host: Pick<RunHost, 'settings' | 'options'>, rows: () => Promise<SyncRows>) {
    this.#host = host;
    this.#settings = host.settings;
    this.#rows = rows;
  }

  /** Sends a session after each of its turns, until the function that it returns is called. */
  follow(session: Session): () => void {
    this.#sessions.add(session);
    const stop = session.subscribe((event) => {
      if (event.type === 'turn_ended') this.#soon(restMs);
    });
    this.#soon(firstRestMs);
    return () => {
      stop();
      this.#sessions.delete(session);
    };
  }

  /** Fetches the session that is asked for from the server where it is not here. One of somebody else, and one that
   * another machine writes, continues in a copy. Throws a `CliError` (7) where it is nowhere. */
  async fetched(choice: SessionChoice, store: Store): Promise<SessionChoice> {
    const named = choice.resume === null ? null : await this.#named(choice.resume.trim(), store);
    if (named === null) return choice;
    const server = await this.#fetch(named.id, !named.isHere);
    const why = server === null ? null : await this.#whyCopied(server);
    if (why !== null && !choice.fork)
      this.#pending.push({
        level: 'info',
        code: 'sync',
        message: `Session ${named.id} ${why}; this session continues from a copy of it.`,
      });
    return why === null && !named.isHere ? choice : { ...choice, fork: true };
  }

  /** Returns what is to be said of that, once. */
  notices(): readonly Notice[] {
    return this.#pending.splice(0);
  }

  /** A session that the server may know better: it is not here, or it is somebody else's. Null for any other. */
  async #named(text: string, store: Store): Promise<{ readonly id: string; readonly isHere: boolean } | null> {
    const match = await store.find(text);
    if (match.found === 'none') {
      const id = isSessionId(text) ? text.toUpperCase() : await this.#idOnServer(text);
      return id === null ? null : { id, isHere: false };
    }
    if (match.found === 'many') return null;
    const local = await (await this.#rows()).session(match.session.id);
    const isOthers = local !== null && local !== 'removed' && (local.state?.owner ?? null) !== null;
    return isOthers ? { id: match.session.id, isHere: true } : null;
  }

  /** A server that cannot be asked knows no start of an id. */
  async #idOnServer(text: string): Promise<string | null> {
    try {
      return await idOnServer((await this.#team.get()).log, text);
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      this.#settings.log({ at: 'sync', message: 'the server was not asked', reason: error.message });
      return null;
    }
  }

  /** Fetches a session. Null: the server does not have it, or cannot be asked while the session is here already. */
  async #fetch(sessionId: string, needed: boolean): Promise<TeamSession | null> {
    try {
      const found = await (await this.#team.get()).log.session(sessionId);
      const outcomes = found === null ? [] : await (await this.#exchange.get()).pull({ sessionId });
      for (const outcome of outcomes) this.#hear(outcome);
      return found;
    } catch (error) {
      if (!needed) return null;
      if (!(error instanceof StoreError)) throw error;
      const message = `there is no session ${sessionId} here, and the server could not be asked: ${error.message}`;
      throw new CliError(exit.session, message, error.hint);
    }
  }

  async #whyCopied({ id, isOwn, owner }: TeamSession): Promise<string | null> {
    if (!isOwn) return `is one of ${owner}`;
    const { leases } = await this.#team.get();
    const lease = await leases.acquire(id);
    if (!lease.held) return `is written on ${lease.holder.host}`;
    await leases.release(id, lease.token);
    return null;
  }

  /** Sends what is left, for two seconds at most, and gives the leases back. A process in the background sends the
   * rest. Never rejects. */
  async end(): Promise<void> {
    this.#deadline = performance.now() + longestEndMs;
    if (this.#timer) clearTimeout(this.#timer);
    if (this.#beating) clearInterval(this.#beating);
    if (performance.now() < this.#retryAt) return;
    const isEnded = await Promise.race([this.#last(), wait(longestEndMs, false, { ref: false })]);
    if (isEnded && !this.#isCut) return;
    try {
      await pushInBackground(this.#host, await this.#rows());
    } catch (error) {
      this.#settings.log({ at: 'sync', message: 'the rest is not sent in the background', reason: String(error) });
    }
  }

  async #last(): Promise<true> {
    await this.#working;
    await this.#push(async (exchange) => {
      await exchange.release();
      await (await this.#team.get()).close();
    });
    return true;
  }

  #soon(delayMs: number): void {
    if (this.#deadline !== null) return;
    if (this.#timer) clearTimeout(this.#timer);
    const waitMs = Math.max(delayMs, this.#retryAt - performance.now());
    this.#timer = setTimeout(() => {
      if (this.#working !== null || !this.#isIdle()) return;
      this.#working = this.#push().finally(() => {
        this.#working = null;
      });
    }, waitMs).unref();
  }

  #isIdle(): boolean {
    return ![...this.#sessions].some((session) => session.busy());
  }

  async #pause(): Promise<boolean> {
    await turn();
    const goesOn = this.#deadline === null ? this.#isIdle() : performance.now() < this.#deadline;
    this.#isCut ||= !goesOn;
    return goesOn;
  }

  /** Never rejects. */
  async #push(after?: (exchange: Exchange) => Promise<void>): Promise<void> {
    try {
      const rows = await this.#rows();
      const isDone = async (): Promise<boolean> =>
        (await rows.pending('', 1)).length === 0 && (await rows.redactions()).length === 0;
      if (this.#beating === null && (await isDone())) return;
      const exchange = await this.#exchange.get();
      for (const { id } of this.#sessions) exchange.keep(id);
      this.#isCut = false;
      for (const outcome of await exchange.push({ after: this.#pushedTo })) this.#hear(outcome);
      // Later only sessions of this run can have come: to look at all of a large record takes a moment.
      if (!this.#isCut) this.#pushedTo = this.#startedAt;
      this.#beating ??= setInterval(() => void exchange.beat().catch(() => null), leaseBeatMs).unref();
      await after?.(exchange);
      this.#retryMs = firstRetryMs;
    } catch (error) {
      this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.#settings.log({ at: 'sync', message: 'nothing was sent', reason });
    if (error instanceof StoreError && error.code === 'busy') {
      // Other processes of this machine write at the same time.
      this.#isCut = true;
      this.#soon(firstRestMs);
      return;
    }
    this.#retryAt = performance.now() + this.#retryMs;
    this.#retryMs = Math.min(this.#retryMs * 2, longestRetryMs);
    const isAway = error instanceof StoreError && (error.code === 'unreachable' || error.code === 'slow');
    const hint = error instanceof StoreError && !isAway ? ` ${error.hint}` : '';
    this.#tell(isAway ? 'info' : 'warn', 'failed', `${reason}. Sessions are stored here and sent later.${hint}`);
  }

  #hear(outcome: ExchangeOutcome): void {
    this.#settings.log({ at: 'sync', message: outcome.kind, detail: true, session: outcome.sessionId });
    const { sessionId } = outcome;
    if (outcome.kind === 'branched')
      this.#tell(
        'warn',
        sessionId,
        `Session ${sessionId} also continued on another machine. The new events from here are now session ${outcome.branch}.`,
      );
    if (outcome.kind === 'redacted') this.#tell('warn', `redacted ${sessionId}`, redactedLine(outcome));
    if (outcome.kind === 'left') this.#tell('info', sessionId, `Session ${sessionId} is not sent: ${outcome.reason}.`);
  }

  /** Says each thing once. */
  #tell(level: 'info' | 'warn', about: string, message: string): void {
    if (this.#told.has(about)) return;
    this.#told.add(about);
    const open = [...this.#sessions];
    for (const session of open) session.notify({ level, code: 'sync', message });
    if (open.length === 0 && level === 'warn') printError(`agent: ${message}\n`);
  }
}
