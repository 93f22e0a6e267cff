import { type Event, type EventDraft, knownEvent } from '../core/event.js';
import { type Conversation, createProjection, project, type Projection } from '../core/projection.js';
import type { SecretGuard } from '../core/secrets/guard.js';
import type { Schedule } from '../core/runtime.js';
import type { AgentEvent } from '../core/session-port.js';
import type { Blob, RecentEvents, SessionLog, Synced } from '../core/store.js';
import { wellFormedDeep } from '../core/text.js';
import { addToTotals, noTotals, type UsageTotals } from '../core/usage-totals.js';
import { noteFiles } from './file-history.js';
import { createRepeats, type Repeats } from './loop-detection.js';

/** The events of one session: memory first, then the store, then the listeners. */
export interface Recorder {
  /** Of the session. */
  readonly id: string;
  /** Durable when it resolves, unless the store fails: then the session continues in memory, the user is warned once,
   * and unsaved events are tried again, in order, with every later event. Rejects only for an event that counts earlier
   * ones again, where these cannot be read. */
  append(draft: EventDraft, blobs?: readonly Blob[]): Promise<Event>;
  /** Records an event that nothing acts on before another follows: it reaches the disk with that one, and listeners
   * hear of both then. */
  note(draft: EventDraft): Promise<Event>;
  /** Brings noted events to the disk and to the listeners. */
  settle(): Promise<void>;
  /** Contents that an event refers to, also where the store does not have them yet. */
  blob(sha256: string): Promise<Uint8Array | null>;
  /** All events. Those of a long session that are not in memory are read from the store; throws where that fails. */
  events(): readonly Event[];
  /** The events in memory. Their conversation is that of all events. */
  recent(): readonly Event[];
  /** The number of the last event; 0 where there is none. */
  lastSeq(): number;
  /** The usage so far. */
  totals(): UsageTotals;
  readonly projection: Pick<Projection, 'hasCall' | 'openCalls'>;
  /** The conversation of the next request, with the opening that a new session has not recorded yet. */
  conversation(): Conversation;
  /** Files that the session has read or written: sha256 (hex) by absolute path, null for a file that did not exist. */
  readonly knownFiles: ReadonlyMap<string, string | null>;
  /** The counts of calls that gave the same result again. */
  readonly repeats: Repeats;
  /** Events that are in memory only. */
  unsaved(): readonly Event[];
  /** Returns the error of the store for the unsaved events; null if it has all events. */
  problem(): Error | null;
  /** One more try to save what is unsaved. */
  flush(): Promise<void>;
  /** Ends the tries that happen without an event. */
  end(): void;
}

export interface RecorderOptions {
  readonly store: SessionLog;
  readonly sessionId: string;
  readonly now: () => number;
  readonly emit: (event: AgentEvent) => void;
  /** Events the store already holds. */
  readonly restored: readonly Event[];
  /** Says which events are left out of them. Absent: none. */
  readonly left?: Pick<RecentEvents, 'leftOutTo' | 'totals'>;
  /** The first events of a new session (`system`, `tools`); recorded with the first that is appended. */
  readonly opening?: readonly EventDraft[];
  /** Makes the session's row and takes its lease; called before the first event is saved, again when that failed. */
  readonly begin?: () => Promise<void>;
  /** Masks secrets before anything sees the event. */
  readonly secrets?: SecretGuard;
  /** Starts tries to save that no event causes. Absent: there are none. */
  readonly schedule?: Schedule;
}

/** The interval of attempts to save to a failing store without a new event. A store that another process has locked is
 * usually free after a moment, so the user is warned only after `patientTries`. */
const retryMs = { busy: 1000, other: 15_000 } as const;
const patientTries = 10;

/** Most placeholders that a notice names. */
const maxNamed = 3;

export function createRecorder(options: RecorderOptions): Recorder {
  return new LiveRecorder(options);
}

interface Unsaved {
  readonly event: Event;
  readonly blobs: readonly Blob[];
  readonly synced: Synced;
}

class LiveRecorder implements Recorder {
  readonly id: string;
  readonly projection: Recorder['projection'] = {
    hasCall: (id) => this.#hasCall(id),
    openCalls: () => this.#projection.openCalls(),
  };
  readonly #options: RecorderOptions;
  #projection = createProjection();
  /** Events up to `#leftOutTo` may be missing. */
  #events: Event[] = [];
  #leftOutTo: number;
  /** Sums over all requests, also those of events that are left out. */
  #totals: UsageTotals;
  #repeats: Repeats;
  /** All events, from when they are asked for until the next message of the user. */
  #whole: Event[] | null = null;
  /** Null: not asked for yet. */
  #files: Map<string, string | null> | null = null;
  /** The ids of all calls; null: not asked for yet. */
  #callIds: Set<string> | null = null;
  readonly #opening: EventDraft[];
  readonly #unsaved: Unsaved[] = [];
  /** Listeners do not know of these: a power cut could still take them. */
  readonly #untold: Event[] = [];
  #saving: Promise<void> = Promise.resolve();
  #begun: boolean;
  #warned = false;
  /** False after a sync that failed, until one succeeds. */
  #isSynced = true;
  #problem: Error | null = null;
  #tries = 0;
  #cancelRetry: (() => void) | null = null;
  #isOver = false;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.id = options.sessionId;
    this.#opening = options.restored.length > 0 ? [] : [...(options.opening ?? [])];
    this.#begun = options.begin === undefined;
    this.#leftOutTo = options.left?.leftOutTo ?? 0;
    this.#totals = options.left?.totals ?? noTotals;
    this.#repeats = createRepeats(this.#events);
    for (const event of options.restored) this.#add(event);
  }

  async append(draft: EventDraft, blobs: readonly Blob[] = []): Promise<Event> {
    const event = await this.#record(draft, blobs, 'now');
    this.#tell(event.seq);
    return event;
  }

  note(draft: EventDraft): Promise<Event> {
    return this.#record(draft, [], 'later');
  }

  async settle(): Promise<void> {
    const last = this.#untold.at(-1);
    if (!last) return;
    this.#saving = this.#saving.then(() => this.#sync());
    await this.#saving;
    this.#tell(last.seq);
  }

  events(): readonly Event[] {
    if (this.#leftOutTo === 0) return this.#events;
    if (this.#whole) return this.#whole;
    const whole = [...this.#earlier()];
    for (const event of this.#events) if (event.seq > this.#leftOutTo) whole.push(event);
    this.#whole = whole;
    return whole;
  }

  recent(): readonly Event[] {
    return this.#events;
  }

  lastSeq(): number {
    return this.#events.at(-1)?.seq ?? 0;
  }

  totals(): UsageTotals {
    return this.#totals;
  }

  get repeats(): Repeats {
    return this.#repeats;
  }

  get knownFiles(): ReadonlyMap<string, string | null> {
    return (this.#files ??= this.#readFiles());
  }

  #readFiles(): Map<string, string | null> {
    const files = new Map<string, string | null>();
    if (this.#leftOutTo > 0) for (const event of this.#earlier(fileKinds)) noteFiles(files, event);
    for (const event of this.#events) if (event.seq > this.#leftOutTo) noteFiles(files, event);
    return files;
  }

  #hasCall(id: string): boolean {
    const isCall = ({ kind }: Event): boolean => kind === 'tool_call';
    this.#callIds ??= new Set(
      [
        ...(this.#leftOutTo > 0 ? this.#earlier(['tool_call']) : []),
        ...this.#events.filter((event) => isCall(event) && event.seq > this.#leftOutTo),
      ].flatMap((event) => callId(event) ?? []),
    );
    return this.#callIds.has(id) || this.#projection.hasCall(id);
  }

  /** Reads the events up to `#leftOutTo` from the store. */
  #earlier(kinds?: readonly string[]): readonly Event[] {
    const { history } = this.#options.store;
    return history?.earlier(this.id, this.#leftOutTo, kinds) ?? [];
  }

  conversation(): Conversation {
    if (this.#opening.length === 0) return this.#projection.conversation();
    return project(this.#opening.map((draft, index) => ({ ...draft, seq: index + 1, createdAt: this.#options.now() })));
  }

  async blob(sha256: string): Promise<Uint8Array | null> {
    const waiting = this.#unsaved.flatMap((item) => item.blobs).find((item) => item.sha256 === sha256);
    return waiting?.bytes ?? (await this.#options.store.blob(sha256));
  }

  unsaved(): readonly Event[] {
    return this.#unsaved.map(({ event }) => event);
  }

  problem(): Error | null {
    return this.#problem;
  }

  end(): void {
    this.#isOver = true;
    this.#cancelRetry?.();
  }

  flush(): Promise<void> {
    this.#saving = this.#saving.then(() => this.#save());
    return this.#saving;
  }

  async #record(draft: EventDraft, blobs: readonly Blob[], synced: Synced): Promise<Event> {
    for (const first of this.#opening.splice(0)) this.#take(first, [], 'later');
    if (countsEarlier(draft)) this.#bringBack();
    const event = this.#take(draft, blobs, synced);
    await this.flush();
    if (draft.kind === 'compaction') await this.#leaveOut();
    return event;
  }

  /** Leaves out of memory what a compaction covers. */
  async #leaveOut(): Promise<void> {
    const { history } = this.#options.store;
    if (!history || this.#unsaved.length > 0 || !this.#isSynced) return;
    const recent = await history.recent(this.id).catch(() => null);
    if (recent === null || recent.events.at(-1)?.seq !== this.lastSeq()) return;
    this.#hold(recent.events, recent.leftOutTo);
  }

  /** Takes all events into memory again. */
  #bringBack(): void {
    if (this.#leftOutTo > 0) this.#hold(this.events(), 0);
  }

  #hold(events: readonly Event[], leftOutTo: number): void {
    this.#events = [...events];
    this.#leftOutTo = leftOutTo;
    this.#whole = null;
    this.#repeats = createRepeats(this.#events);
    this.#projection = createProjection();
    for (const event of this.#events) this.#projection.add(event);
  }

  #take(given: EventDraft, blobs: readonly Blob[], synced: Synced): Event {
    const { secrets, now } = this.#options;
    const { kind, content, data } = secrets?.event(given) ?? given;
    const seq = this.lastSeq() + 1;
    const event: Event = wellFormedDeep({ seq, kind, content, data, createdAt: now() });
    this.#add(event);
    this.#unsaved.push({ event, blobs, synced });
    this.#untold.push(event);
    return event;
  }

  #add(event: Event): void {
    this.#events.push(event);
    if (event.kind === 'user') this.#whole = null;
    this.#whole?.push(event);
    this.#projection.add(event);
    if (this.#files) noteFiles(this.#files, event);
    if (this.#callIds && event.kind === 'tool_call') this.#callIds.add(callId(event) ?? '');
    if (event.seq > this.#leftOutTo) this.#totals = addToTotals(this.#totals, event);
  }

  /** Saves in the order of the events. A store that fails keeps them waiting. */
  async #save(): Promise<void> {
    if (this.#unsaved.length === 0) return;
    const { store, sessionId, begin } = this.#options;
    try {
      if (!this.#begun) await begin?.();
      this.#begun = true;
      for (let next = this.#unsaved[0]; next !== undefined; next = this.#unsaved[0]) {
        await store.append(sessionId, next.event, next.blobs, next.synced);
        this.#unsaved.shift();
      }
      if (this.#isSynced) this.#saved();
    } catch (error) {
      this.#failed(error);
    }
  }

  async #sync(): Promise<void> {
    await this.#save();
    try {
      await this.#options.store.sync(this.#options.sessionId);
      this.#isSynced = true;
    } catch (error) {
      this.#isSynced = false;
      this.#failed(error);
    }
  }

  #saved(): void {
    const { emit } = this.#options;
    this.#problem = null;
    this.#tries = 0;
    this.#cancelRetry?.();
    this.#cancelRetry = null;
    if (!this.#warned) return;
    this.#warned = false;
    emit({ type: 'notice', level: 'warn', code: 'store_saved', message: 'All events of the session are saved again.' });
  }

  #failed(error: unknown): void {
    const { schedule } = this.#options;
    this.#problem = error instanceof Error ? error : new Error(String(error));
    const isBusy = 'code' in this.#problem && this.#problem.code === 'busy';
    if (!isBusy || !schedule || this.#tries >= patientTries) this.#warn(this.#problem.message);
    if (!schedule || this.#cancelRetry || this.#isOver) return;
    this.#cancelRetry = schedule(
      () => {
        this.#cancelRetry = null;
        this.#tries += 1;
        void this.flush();
      },
      isBusy ? retryMs.busy : retryMs.other,
    );
  }

  #warn(reason: string): void {
    if (this.#warned) return;
    this.#warned = true;
    this.#options.emit({
      type: 'notice',
      level: 'warn',
      code: 'store_failed',
      message: `The session cannot be saved: ${reason}. It continues in memory; each new event retries the unsaved ones.`,
    });
  }

  /** Notifies listeners of the events up to `seq`, and of the number of secrets that were masked in them. */
  #tell(seq: number): void {
    const { emit, secrets } = this.#options;
    const later = this.#untold.findIndex((event) => event.seq > seq);
    for (const event of this.#untold.splice(0, later < 0 ? this.#untold.length : later)) emit({ type: 'event', event });
    const seen = secrets?.takeSeen();
    if (!seen) return;
    const named = seen.placeholders.slice(0, maxNamed).join(' ') + (seen.placeholders.length > maxNamed ? ' …' : '');
    emit({
      type: 'notice',
      level: 'info',
      code: 'secret_masked',
      message: `secret seen, masked ×${seen.count}: ${named} (disable with secrets.unmasked or secrets.mask)`,
    });
  }
}

/** The kinds of events that name files. */
const fileKinds = ['tool_result', 'undo', 'redo', 'restore'];

/** Returns true for an event after which earlier events may count that did not count before it. */
function countsEarlier({ kind, data }: EventDraft): boolean {
  return kind === 'rewind' || kind === 'compaction_undone' || (kind === 'goal' && data.state === 'resumed');
}

function callId(raw: Event): string | null {
  const event = knownEvent(raw);
  return event?.kind === 'tool_call' ? event.data.id : null;
}
