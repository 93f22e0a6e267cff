import type { Event, EventDraft } from '../core/event.js';
import type { Answer, Approver, Question } from '../core/policy.js';
import {
  type Conversation,
  interruptedBefore,
  interruptedRunning,
  type ModelRef,
  project,
} from '../core/projection.js';
import type { Fault, Provider } from '../core/provider.js';
import type { SecretGuard } from '../core/secrets/guard.js';
import type { AgentEvent, QueuedMessage, SessionPort, TurnEnd } from '../core/session.js';
import { type Blob, placeOf, type SessionRow, type Store } from '../core/store.js';
import { firstLine } from '../core/text.js';
import type { Budget } from './budget.js';
import { compact, type Compacted, type CompactionPlan, planFor } from './compaction.js';
import { noteFiles } from './file-history.js';
import { runTurn } from './loop.js';
import { createRecorder, type Recorder } from './recorder.js';
import type { TurnDeps } from './turn.js';

export interface SessionOptions extends Pick<
  TurnDeps,
  'registry' | 'policy' | 'limits' | 'sha256' | 'now' | 'log' | 'keeping' | 'contextWindow'
> {
  readonly store: Store;
  readonly row: SessionRow;
  /** Events of a session that is resumed; empty for a new one. */
  readonly restored: readonly Event[];
  /** The first events of a new session (`system`, `tools`); saved with its first user message. */
  readonly opening: readonly EventDraft[];
  readonly model: { readonly provider: Provider; readonly ref: ModelRef };
  /** Opens the provider of another model. */
  readonly connect: (ref: ModelRef) => Promise<Provider>;
  /** What is to be done before the first event is saved; tried again where it rejects. */
  readonly begin?: () => Promise<void>;
  /** What has changed around a resumed session; told to the model before its next message. */
  readonly notes?: readonly string[];
  /** False: nobody can be asked. */
  readonly interactive: boolean;
  /** What takes secrets out of all that is recorded, sent and shown. Absent: nothing does. */
  readonly secrets?: SecretGuard;
  /** What requests to a model may cost; a fault where its price is not known, null where there is no limit. */
  readonly budget?: (ref: ModelRef) => Budget | Fault | null;
}

/** A session as its front end holds it, and what its owner does with it besides. */
export interface Session extends SessionPort {
  /** Answers calls that the program's end left open, in the log. Call once, before the first turn of a resumed
   * session. */
  repair(): Promise<number>;
  append(draft: EventDraft): Promise<Event>;
  /** Puts a summary in the place of the conversation so far; `focus` is what the user wants kept in particular, or ''.
   * Runs like a turn; rejects while one runs. */
  compact(focus: string): Promise<Compacted>;
  /** What `compact` would cover; null where there is too little. */
  compactionPlan(): CompactionPlan | null;
  /** What the next request is made of. */
  conversation(): Conversation;
  /** Contents that an event of this session refers to, or null. */
  blob(sha256: string): Promise<Uint8Array | null>;
  /** Resolves when no turn runs. */
  settled(): Promise<void>;
  unsaved(): number;
  flush(): Promise<void>;
}

export function createSession(options: SessionOptions): Session {
  return new LiveSession(options);
}

class LiveSession implements Session {
  readonly id: string;
  readonly cwd: string;
  readonly #options: SessionOptions;
  readonly #recorder: Recorder;
  readonly #listeners = new Set<(event: AgentEvent) => void>();
  readonly #questions = new Map<string, (answer: Answer) => void>();
  readonly #grants = new Set<string>();
  /** What a new session starts with, until its first event is appended. */
  readonly #opening: EventDraft[];
  readonly #notes: string[];
  readonly #knownFiles = new Map<string, string | null>();
  #model: { readonly provider: Provider; readonly ref: ModelRef };
  #queue: readonly QueuedMessage[] = [];
  #turn: AbortController | null = null;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.id = options.row.id;
    this.cwd = options.row.cwd;
    this.#model = options.model;
    const { store, now, restored } = options;
    this.#recorder = createRecorder({
      store,
      sessionId: this.id,
      now,
      restored,
      emit: (event) => {
        this.#emit(event);
      },
      ...(options.secrets ? { secrets: options.secrets } : {}),
      begin: async () => {
        await options.begin?.();
        if (restored.length === 0)
          await store.createSession({ ...options.row, ...placeOf(this.ref()), updatedAt: now() });
      },
    });
    for (const event of restored) noteFiles(this.#knownFiles, event);
    this.#opening = restored.length > 0 ? [] : [...options.opening];
    this.#notes = [...(options.notes ?? [])];
  }

  ref(): ModelRef {
    return this.#model.ref;
  }
  busy(): boolean {
    return this.#turn !== null;
  }
  events(): readonly Event[] {
    return this.#recorder.events();
  }
  unsaved(): number {
    return this.#recorder.unsaved();
  }
  flush(): Promise<void> {
    return this.#recorder.flush();
  }

  conversation(): Conversation {
    if (this.#opening.length === 0) return this.#recorder.projection.conversation();
    return project(this.#opening.map((draft, index) => ({ ...draft, seq: index + 1, createdAt: this.#options.now() })));
  }

  async append(draft: EventDraft, blobs?: readonly Blob[]): Promise<Event> {
    // Not one after the other: an append that comes meanwhile would find no opening left and be the first event.
    const opening = this.#opening.splice(0).map((first) => this.#recorder.note(first));
    const [event] = await Promise.all([this.#recorder.append(draft, blobs), ...opening]);
    noteFiles(this.#knownFiles, event);
    return event;
  }

  blob(sha256: string): Promise<Uint8Array | null> {
    return this.#recorder.blob(sha256);
  }

  subscribe(listener: (event: AgentEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  async submit(text: string): Promise<TurnEnd> {
    if (this.#turn) throw new Error('a turn is running: queue the message instead');
    const turn = new AbortController();
    this.#turn = turn;
    this.#emit({ type: 'turn_started' });
    const end = await this.#safely(() => this.#wholeTurn(text, turn.signal));
    this.#turn = null;
    this.#emit({ type: 'turn_ended', end });
    return end;
  }

  async #wholeTurn(text: string, signal: AbortSignal): Promise<TurnEnd> {
    for (const note of this.#notes.splice(0)) await this.append({ kind: 'user', content: note, data: { note: true } });
    await this.append({ kind: 'user', content: text, data: null });
    const end = await this.#safely(() => runTurn(this.#deps(), signal));
    await this.repair();
    await this.#recorder.settle();
    if (end.fault)
      await this.append({
        kind: 'error',
        content: end.fault.message,
        data: { code: end.fault.code, message: end.fault.message },
      });
    return end;
  }

  /** A fault of our own ends the turn and never the session. */
  async #safely(work: () => Promise<TurnEnd>): Promise<TurnEnd> {
    try {
      return await work();
    } catch (error) {
      this.#options.log({
        at: 'turn',
        message: 'the loop threw',
        error: error instanceof Error ? (error.stack ?? error.message) : String(error),
      });
      return {
        status: 'failed',
        text: '',
        turns: 0,
        toolCalls: 0,
        denied: 0,
        fault: { code: 'internal', message: 'The turn failed inside the program; the log file has the details.' },
      };
    }
  }

  settled(): Promise<void> {
    if (!this.#turn) return Promise.resolve();
    return new Promise((resolve) => {
      const stop = this.subscribe((event) => {
        if (event.type !== 'turn_ended') return;
        stop();
        resolve();
      });
    });
  }

  async compact(focus: string): Promise<Compacted> {
    if (this.#turn) throw new Error('a turn is running: interrupt it first');
    const turn = new AbortController();
    this.#turn = turn;
    this.#emit({ type: 'turn_started' });
    try {
      return await compact(this.#deps(), { trigger: 'manual', focus }, turn.signal);
    } finally {
      await this.#recorder.settle();
      this.#turn = null;
      const status = turn.signal.aborted ? 'interrupted' : 'completed';
      this.#emit({ type: 'turn_ended', end: { status, text: '', turns: 0, toolCalls: 0, denied: 0 } });
    }
  }

  compactionPlan(): CompactionPlan | null {
    return planFor(this.#deps(), { trigger: 'manual' });
  }

  interrupt(): void {
    this.#turn?.abort();
  }

  enqueue(message: QueuedMessage): void {
    this.#setQueue([...this.#queue, { ...message, text: this.#options.secrets?.text(message.text) ?? message.text }]);
  }

  takeQueue(): readonly QueuedMessage[] {
    const queue = this.#queue;
    if (queue.length > 0) this.#setQueue([]);
    return queue;
  }

  answer(callId: string, answer: Answer): void {
    this.#questions.get(callId)?.(answer);
  }

  async switchModel(ref: ModelRef): Promise<void> {
    this.#model = { provider: await this.#options.connect(ref), ref };
    if (this.events().length === 0) return;
    const { provider, model, api, baseUrl } = ref;
    await this.append({
      kind: 'model',
      content: `${provider}/${model}`,
      data: { provider, model, api, ...(baseUrl === undefined ? {} : { base_url: baseUrl }) },
    });
    await this.#options.store.update(this.id, { api: '', baseUrl: '', ...placeOf(ref) }).catch((error: unknown) => {
      this.#options.log({ at: 'store', message: 'the model of the session row was not updated', error: String(error) });
    });
  }

  async repair(): Promise<number> {
    const open = this.#recorder.projection.openCalls();
    for (const { call, started } of open) {
      const envelope = started ? interruptedRunning : interruptedBefore;
      await this.append({
        kind: 'tool_result',
        content: firstLine(envelope.error, 120),
        data: {
          tool_call_id: call.id,
          name: call.function.name,
          output: JSON.stringify(envelope),
          success: false,
          duration_ms: 0,
          synthetic: true,
        },
      });
    }
    return open.length;
  }

  #deps(): TurnDeps {
    const { registry, policy, limits, sha256, now, log, keeping, contextWindow, budget, secrets } = this.#options;
    return {
      registry,
      policy,
      limits,
      sha256,
      now,
      log,
      cwd: this.cwd,
      ...(keeping ? { keeping } : {}),
      ...(contextWindow ? { contextWindow } : {}),
      ...(secrets ? { secrets } : {}),
      append: (draft, blobs) => this.append(draft, blobs),
      note: (draft) => this.#recorder.note(draft),
      settle: () => this.#recorder.settle(),
      emit: (event) => {
        this.#emit(event);
      },
      projection: this.#recorder.projection,
      events: () => this.events(),
      model: () => this.#model,
      approver: this.#approver(),
      canAsk: this.#options.interactive,
      grants: this.#grants,
      knownFiles: this.#knownFiles,
      takeSteering: () => this.#takeSteering(),
      budget: () => budget?.(this.ref()) ?? null,
    };
  }

  #approver(): Approver {
    if (!this.#options.interactive) return { ask: () => Promise.resolve({ answer: 'unavailable' }) };
    return { ask: (question, signal) => this.#ask(question, signal) };
  }

  async #ask(question: Question, signal: AbortSignal): Promise<Answer> {
    if (signal.aborted) return { answer: 'deny' };
    const answer = await new Promise<Answer>((resolve) => {
      this.#questions.set(question.callId, resolve);
      signal.addEventListener(
        'abort',
        () => {
          resolve({ answer: 'deny' });
        },
        { once: true },
      );
      this.#emit({ type: 'approval_requested', question });
    });
    this.#questions.delete(question.callId);
    this.#emit({ type: 'approval_resolved', callId: question.callId, answer: answer.answer });
    return answer;
  }

  #takeSteering(): readonly string[] {
    const now = this.#queue.filter((message) => message.when === 'steer');
    if (now.length > 0) this.#setQueue(this.#queue.filter((message) => message.when !== 'steer'));
    return now.map((message) => message.text);
  }

  #setQueue(queue: readonly QueuedMessage[]): void {
    this.#queue = queue;
    this.#emit({ type: 'queue_changed', queue });
  }

  #emit(event: AgentEvent): void {
    for (const listener of this.#listeners) {
      try {
        listener(event);
      } catch (error) {
        this.#options.log({
          at: 'listener',
          message: 'a listener threw',
          error: error instanceof Error ? (error.stack ?? error.message) : String(error),
        });
      }
    }
  }
}
