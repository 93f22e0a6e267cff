import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Event } from '../../kernel/core/event.js';
import { lastTools, type ModelRef } from '../../kernel/core/projection.js';
import type { Schedule } from '../../kernel/core/runtime.js';
import type { AgentEvent, QueuedMessage, SessionPort } from '../../kernel/core/session-port.js';
import type { SessionRow, Store } from '../../kernel/core/store.js';
import { addToTotals, noTotals } from '../../kernel/core/usage-totals.js';
import { readBoundedText } from '../../kernel/disk/bounded-file.js';
import { version } from '../../kernel/console/version.js';
import { createTranscripts } from '../../kernel/tools/transcripts.js';
import { contextWindowOf } from '../../kernel/providers/models.js';
import type { StatusFacts } from '../../ui/components/status-line.js';
import type { ReplHandle } from '../../ui/repl-options.js';
import type { View } from '../../ui/view.js';
import type { OwnStatus } from './status-command.js';
import { createLineCount, type StatusDetails, statusInput, type StatusMoment } from './status-input.js';
import { isPlainTerminal } from '../../ui/early-frame.js';
import type { OwnerHost } from '../../app/live/owner-host.js';
import { createAgentSession, type Assembly, type Run } from '../../app/create-session.js';
import { repositoryRoot } from '../../app/instructions/instruction-places.js';
import { chosenRow } from '../../app/find-session.js';
import { directoryId } from '../../kernel/disk/directory-id.js';
import type { SessionChoice, Settings } from '../../kernel/console/run-settings.js';
import { titleByModel } from '../../kernel/agent/model-titles.js';
import { createOwnStatus } from './status-command.js';

/** The session that a REPL shows, and how another one takes its place. */
export interface ReplSessions {
  /** The session on the screen: the end of a long one that is resumed, until all of it is read. */
  shown(): SessionPort;
  /** Resolves once `current` may be asked; rejects where the session cannot be opened. */
  ready(): Promise<void>;
  /** Starts to read the rest of a long session, once the screen shows its end. */
  readRest(): void;
  current(): Assembly;
  /** Sets what the front end does for other processes, in this session and those that are opened later. */
  serve(host: OwnerHost): void;
  /** The title that the current session was given, or null. */
  title(): string | null;
  rename(title: string): Promise<void>;
  /** Opens another session, then closes the current one. Where the other cannot be opened, the current one stays and
   * the error is thrown. */
  open(choice: SessionChoice): Promise<SessionPort>;
  /** Returns how many events of all sessions could not be saved. */
  close(): Promise<number>;
}

/** Calls back after the first event: a session has its row from then on. */
export function afterFirstEvent(session: SessionPort, callback: () => void): void {
  const stop = session.subscribe((event) => {
    if (event.type !== 'event') return;
    stop();
    callback();
  });
}

interface Naming extends Pick<ReplSessions, 'title' | 'rename'> {
  /** Another session is on the screen now. */
  begin(opened: Assembly): Promise<void>;
  end(): void;
}

/** Knows what the current session is called, and has one without a title named by its model where that is wanted. */
function createNaming({ settings, store }: Run, current: () => Assembly, before: string | null): Naming {
  let title = before;
  let stop = (): void => {
    /* Nothing is to be named. */
  };
  const rename = async (given: string): Promise<void> => {
    const { session, secrets } = current();
    const next = secrets.text(given);
    const save = (): Promise<void> => store.update(session.id, { title: next });
    if ((await store.session(session.id)) !== null) await save();
    else
      afterFirstEvent(session, () => {
        if (title === next) void save().catch(() => null);
      });
    title = next;
  };
  return {
    title: () => title,
    rename,
    begin: async ({ row, session }) => {
      stop();
      ({ title } = row);
      const { provider, model } = session.ref();
      const isConnected = provider !== 'offline' || model !== 'offline';
      if (settings.config.ui.titles !== 'model' || title !== null || !isConnected) return;
      stop = titleByModel(session, () => title, rename);
    },
    end: () => {
      stop();
    },
  };
}

/** The time for the screen to paint the end of a long session: reading the rest holds it up. */
const paintMs = 100;

export async function openReplSessions(run: Run, choice: SessionChoice): Promise<ReplSessions> {
  const end = isPlainTerminal(run.settings.env) ? null : await endOfSession(run.store, choice, run.settings.cwd);
  let opened: Assembly | null = null;
  const current = (): Assembly => {
    if (opened === null) throw new Error('The session is still loading.');
    return opened;
  };
  const naming = createNaming(run, current, end?.title ?? null);
  let host: OwnerHost = {};
  let readRest = (): void => {
    /* Nothing waits for it. */
  };
  let isRead = end === null;
  let unsaved = 0;
  const ready = (async (): Promise<void> => {
    if (end) {
      await new Promise<void>((resolve) => {
        readRest = resolve;
      });
      await wait(paintMs);
    }
    opened = await createAgentSession(run, choice, true);
    opened.owner.serve(host);
    await naming.begin(opened);
  })();
  if (end) ready.catch(() => undefined);
  else await ready;
  return {
    shown: () => opened?.session ?? end?.session ?? current().session,
    ready: () => ready,
    readRest: () => {
      isRead = true;
      readRest();
    },
    current,
    serve: (next) => {
      host = next;
      opened?.owner.serve(host);
    },
    title: naming.title,
    rename: naming.rename,
    open: async (next) => {
      const old = current();
      const other = await createAgentSession(run, { ...next, after: old.session.ownRef() }, true);
      opened = other;
      other.owner.serve(host);
      await naming.begin(other);
      old.session.interrupt('leaving');
      unsaved += await old.close();
      return other.session;
    },
    close: async () => {
      if (!isRead) return unsaved;
      await ready.catch(() => undefined);
      naming.end();
      return unsaved + ((await opened?.close()) ?? 0);
    },
  };
}

const branchMs = 2000;

/** The status line. */
export interface Status {
  /** Returns its facts for each frame. Only the branch is read from the disk, at most every two seconds. `vimMode`: the
   * mode of vim's keys. */
  readonly facts: (view: View, vimMode?: string | null) => StatusFacts;
  /** Has the user's own program write it, where there is one. */
  begin(screen: Pick<ReplHandle, 'notice' | 'refresh'>, schedule: Schedule): Promise<void>;
  close(): void;
}

export function createStatus(run: Run, sessions: ReplSessions): Status {
  let own: OwnStatus | null = null;
  const factsOf = createFacts(run, sessions);
  const details = createDetails(run.settings);
  return {
    facts: (view, vimMode = null) => {
      const facts = factsOf();
      if (own === null) return facts;
      details.follow(view);
      const session = sessions.shown();
      const moment = momentOf(run, sessions, facts, view, vimMode);
      const key = `${session.recent().at(-1)?.seq ?? 0} ${JSON.stringify(moment)}`;
      return { ...facts, own: own.line(key, () => statusInput(moment, details.of(session))) };
    },
    begin: async (screen, schedule) => {
      if (run.settings.config.ui.statusCommand.length === 0) return;
      own = createOwnStatus({
        settings: run.settings,
        processes: run.toolbox.processes,
        schedule,
        onChange: screen.refresh.bind(screen),
        onProblem: (problem) => {
          screen.notice('warn', problem);
        },
      });
      screen.refresh();
    },
    close: () => {
      own?.close();
      details.close();
    },
  };
}

/** Measures and collects what the program of the status line is given beside the facts of each frame. */
function createDetails({ cwd, config }: Pick<Settings, 'cwd' | 'config'>): {
  readonly follow: (view: View) => void;
  readonly of: (session: SessionPort) => StatusDetails;
  readonly close: () => void;
} {
  const startedAt = performance.now();
  const transcripts = createTranscripts(cwd);
  const countLines = createLineCount();
  let apiMs = 0;
  /** The time of the last frame that showed a request. */
  let requestAt: number | null = null;
  return {
    follow: ({ busy, calls, questions }) => {
      const now = performance.now();
      if (requestAt !== null) apiMs += now - requestAt;
      requestAt = busy && calls.length === 0 && questions.length === 0 ? now : null;
    },
    of: (session) => {
      const events = session.events();
      // Only the end of a long session is there until all of it is read.
      const whole = (events[0]?.seq ?? 1) === 1 ? events : [];
      return {
        version,
        events,
        lines: countLines(session.id, whole),
        durationMs: performance.now() - startedAt,
        apiDurationMs: apiMs,
        transcript: transcripts.write(session.id, whole),
        outputStyle: config.request.outputStyle,
      };
    },
    close: transcripts.close.bind(transcripts),
  };
}

function momentOf(
  { settings }: Run,
  sessions: ReplSessions,
  facts: StatusFacts,
  { busy, totals }: View,
  vimMode: string | null,
): StatusMoment {
  const session = sessions.shown();
  const { provider, model } = session.ref();
  return {
    provider,
    model,
    sessionId: session.id,
    title: sessions.title(),
    cwd: settings.cwd,
    addedFolders: settings.directories.list().map(({ path }) => path),
    branch: facts.branch ?? null,
    approval: facts.approval,
    sandbox: facts.sandbox,
    busy,
    effort: facts.effort ?? null,
    vimMode,
    costUsd: totals.costUsd,
    costKnown: totals.costKnown,
    tokens: {
      input: totals.input,
      output: totals.output,
      cache_read: totals.cacheRead,
      cache_write: totals.cacheWrite,
    },
    contextTokens: totals.context,
    contextWindow: facts.contextWindow ?? null,
  };
}

function createFacts(run: Run, sessions: ReplSessions): () => StatusFacts {
  const { settings } = run;
  const root = repositoryRoot(settings.cwd);
  let branch: string | undefined;
  let readAt = -Infinity;
  const effortOf = createEffort(settings);
  return () => {
    const now = performance.now();
    if (root !== null && now - readAt > branchMs) {
      branch = readBranch(root);
      readAt = now;
    }
    const { provider, model } = sessions.shown().ref();
    const name = `${provider}/${model}`;
    const contextWindow = contextWindowOf(settings, provider, model);
    return {
      model: name,
      effort: effortOf(sessions.shown()),
      jobs: run.parts.running(),
      more: run.parts.status(sessions.shown()),
      approval: run.policy.planning() ? 'plan' : run.policy.acceptsEdits() ? 'accept-edits' : run.policy.mode(),
      sandbox: run.policy.sandbox(),
      branch,
      contextWindow,
      directory:
        settings.cwd === settings.home || settings.cwd.startsWith(`${settings.home}/`)
          ? `~${settings.cwd.slice(settings.home.length)}`
          : settings.cwd,
    };
  };
}

/** Returns the effort that the requests of a session ask for; null where the model decides. For each frame only new
 * events are looked through. */
function createEffort({ config }: Pick<Settings, 'config'>): (session: SessionPort) => string | null {
  let last: { readonly id: string; readonly count: number; readonly effort: string | null } | null = null;
  return (session) => {
    const events = session.recent();
    const known = last?.id === session.id && last.count <= events.length ? last : null;
    const tools = lastTools(events.slice(known?.count ?? 0));
    const effort = tools ? (tools.settings.effort ?? null) : (known?.effort ?? config.request.effort ?? null);
    last = { id: session.id, count: events.length, effort };
    return effort;
  };
}

/** Returns the branch that is checked out, or the first digits of a detached commit; undefined where it cannot be
 * read. */
function readBranch(root: string): string | undefined {
  try {
    const git = join(root, '.git');
    const folder = statSync(git).isDirectory()
      ? git
      : resolve(
          root,
          small(git)
            .replace(/^gitdir: /, '')
            .trim(),
        );
    const head = small(join(folder, 'HEAD')).trim();
    if (head === '') return undefined;
    return head.startsWith('ref: refs/heads/') ? head.slice('ref: refs/heads/'.length) : head.slice(0, 8);
  } catch {
    return undefined;
  }
}

function small(path: string): string {
  return readBoundedText(path, { maxBytes: 65_536, longer: 'refuse', links: 'follow' }) ?? '';
}

/** A session with fewer events is read without a visible delay. */
const longSession = 5_000;
const shownEvents = 500;

interface SessionEnd {
  readonly session: SessionPort;
  readonly title: string | null;
}

/** Returns the end of a long session that is resumed as it is, to be shown while the rest is read; null for any
 * other. */
export async function endOfSession(store: Store, choice: SessionChoice, cwd: string): Promise<SessionEnd | null> {
  if (choice.fork || choice.at !== undefined) return null;
  try {
    const row = await chosenRow(store, choice, { cwd, directoryId: directoryId(cwd) ?? undefined });
    if (row === null) return null;
    const [last] = await store.tail(row.id, 1);
    if (last === undefined || last.seq < longSession) return null;
    const events = await store.tail(row.id, shownEvents);
    return showsAnExchange(events) ? { session: waitingSession(row, cwd, events), title: row.title } : null;
  } catch {
    return null; // Opening the whole session says what is wrong.
  }
}

/** A rewind may reach further back than these events. */
function showsAnExchange(events: readonly Event[]): boolean {
  return events.some(({ kind }) => kind === 'user') && !events.some(({ kind }) => kind === 'rewind');
}

/** Makes a session of the last events alone. Messages wait in its queue until the whole session is there. */
function waitingSession(row: SessionRow, cwd: string, events: readonly Event[]): SessionPort {
  const listeners = new Set<(event: AgentEvent) => void>();
  const totals = events.reduce(addToTotals, noTotals);
  let queue: readonly QueuedMessage[] = [];
  const setQueue = (next: readonly QueuedMessage[]): void => {
    queue = next;
    for (const listener of listeners) listener({ type: 'queue_changed', queue });
  };
  const ref: ModelRef = { provider: row.provider ?? '', api: row.api ?? '', model: row.model ?? '' };
  const nothing = (): void => {
    /* No turn runs and nothing is asked. */
  };
  return {
    id: row.id,
    cwd,
    ref: () => ref,
    busy: () => true,
    submit: () => Promise.reject(new Error('The session is still loading.')),
    enqueue: (message) => {
      setQueue([...queue, message]);
    },
    takeQueue: () => {
      const taken = queue;
      if (taken.length > 0) setQueue([]);
      return taken;
    },
    interrupt: nothing,
    answer: nothing,
    switchModel: () => Promise.reject(new Error('The session is still loading.')),
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    events: () => events,
    recent: () => events,
    totals: () => totals,
  };
}
