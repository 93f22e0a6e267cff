import { type ErrorEnvelope, isError } from '../core/envelope.js';
import type { Event, EventDraft, MessageSource, ToolCallData } from '../core/event.js';
import { type Form, type FormAnswer, isFormAnswer } from '../core/form.js';
import type { ModelAnswer } from '../core/hooks.js';
import { isFromElsewhere } from '../core/message-queue.js';
import type { PermissionAnswer, Question, Rule } from '../core/policy.js';
import { interruptedBefore, interruptedRunning, type ModelRef } from '../core/projection.js';
import type { Fault, Price, Provider } from '../core/provider.js';
import type {
  AgentEvent,
  Expand,
  ExpansionCall,
  QueuedMessage,
  SentBy,
  SessionPort,
  TurnEnd,
} from '../core/session-port.js';
import { placeOf, type SessionLog, type SessionRow } from '../core/store.js';
import { firstLine } from '../core/text.js';
import type { UsageTotals } from '../core/usage-totals.js';
import type { Compacted, CompactionGain, CompactionPlan } from './compaction.js';
import { loadCompaction } from './load-compaction.js';
import { loadTurnScope } from './load-turn-scope.js';
import type { OmissionPlan } from './omit-results.js';
import type { ApprovalDeps, FallbackRef, ReadyModel, ToolDeps, TurnDeps, TurnSettingsUse } from './dependencies.js';
import type { Dispatched } from './dispatch.js';
import { askAboutPrompt, askHooks, tellBegun, tellFailed, tellWaiting } from './apply-hooks.js';
import { messageData } from './attached-files.js';
import { recordDelivered, recordMessage, recordSent, runOwnCall } from './message.js';
import { requestAnswer, requestSideAnswer, requestTitle, requestVerdict } from './request.js';
import type { SideQuestionEnd } from './side-question.js';
import { lastLimit, leaving, type PendingLimit, type WaitForLimit } from './limit-wait.js';
import { continueTurn, recordWaiting, runTurn } from './turn.js';
import { createRecorder, type Recorder, type RecorderOptions } from './recorder.js';
import type { TurnScope } from './turn-scope.js';
import { missingPart } from '../core/missing-part.js';
import { isRecord } from '../core/json.js';

/** The store of a session, and its first events. */
interface RecordOptions {
  readonly store: SessionLog;
  readonly row: SessionRow;
  /** Events of a session that is resumed; empty for a new one. */
  readonly restored: readonly Event[];
  /** Says which events are left out of them. Absent: none. */
  readonly left?: RecorderOptions['left'];
  /** The first events of a new session (`system`, `tools`); recorded with its first user message. */
  readonly opening: readonly EventDraft[];
  /** Called before the first event is saved; tried again where it rejects. */
  readonly begin?: () => Promise<void>;
  /** Sentences on what has changed around a resumed session; sent to the model before its next message. */
  readonly notes?: readonly string[];
}

export interface SessionParts extends Pick<
  TurnDeps,
  'tools' | 'models' | 'limits' | 'host' | 'secrets' | 'attachments'
> {
  readonly record: RecordOptions;
  readonly model: ReadyModel;
  /** Opens the provider of another model. */
  readonly connect: (ref: ModelRef) => Promise<Provider>;
  /** False: nobody can be asked. */
  readonly interactive: boolean;
  /** Expands messages that begin with a slash. Absent: messages remain as they are. */
  readonly expand?: Expand;
  /** Expands the sub-agents that a message names. Absent: none can be named in a message that waits or comes from
   * elsewhere. */
  readonly mentions?: Expand;
  /** Waits for the end of usage limits. Absent: they end the turn. */
  readonly waitForLimit?: WaitForLimit;
  /** SHA-256 (hex) of calls that the user has allowed beforehand. */
  readonly grants?: readonly string[];
  /** The approver that replaces the front end of this session, with the approvals that it already has. */
  readonly approval?: ApprovalDeps;
}

/** A session with everything its owner needs besides the port of its front end. */
export interface Session extends SessionPort {
  readonly record: Recorder;
  /** Returns the model of the session, also in a turn that has another one. */
  ownRef(): ModelRef;
  /** The rules that the user made for the rest of this session; calls of a removed rule need approval again. */
  readonly sessionRules: Map<string, Rule>;
  append(draft: EventDraft): Promise<Event>;
  /** Adds a note for the model to the next request that has a message or results; starts no turn. */
  tell(note: string): void;
  /** Says something to the user that is no event. */
  notify(notice: Omit<Extract<AgentEvent, { type: 'notice' }>, 'type'>): void;
  /** Contents that an event of this session refers to, or null. */
  blob(sha256: string): Promise<Uint8Array | null>;
  /** Answers calls that the program's end left open, in the log. Call once, before the first turn of a resumed
   * session. */
  repair(): Promise<number>;
  /** Puts a summary in the place of the conversation so far; `focus` is what the user wants kept in particular, or ''.
   * Runs like a turn; rejects while one runs. */
  compact(focus: string): Promise<Compacted>;
  /** The plan of `compact`; null where there is nothing to compact. */
  compactionPlan(): Promise<CompactionPlan | null>;
  /** Estimates what `compact` would win, from what is in memory. */
  compactionGain(): Promise<CompactionGain | null>;
  /** Runs `work` of the user's like a turn: nothing else runs meanwhile, and `interrupt` aborts it. Rejects while a
   * turn runs. */
  workAlone<T>(work: (own: OwnWork) => Promise<T>): Promise<T>;
  /** Leaves the output of old tool results out of requests, without a request for a summary. Runs like a turn. */
  omitResults(): Promise<Compacted>;
  /** The price of the model in use; null where it is not known. */
  price(): Price | null;
  /** The plan of `omitResults`; null where there are none. */
  omissionPlan(): Promise<OmissionPlan | null>;
  /** Asks the model for a title of the conversation, beside whatever runs; '' where none came. May not reject. */
  suggestTitle(signal: AbortSignal): Promise<string>;
  /** Asks the model a question about the conversation, beside whatever runs, and records it with the answer. No request
   * of the conversation has it. `onText` gets the whole answer so far. */
  askBeside(question: string, onText: (text: string) => void, signal: AbortSignal): Promise<SideQuestionEnd>;
  /** Continues the turn that a usage limit has stopped, in this process or an earlier one, where it stopped, also after
   * its wait was ended. Returns null if there is none. Rejects while a turn runs. */
  continueTurn(): Promise<TurnEnd | null>;
  /** Returns what a turn would work with, for work of the user beside the turns. */
  deps(): TurnDeps;
  /** Resolves when no turn runs. */
  settled(): Promise<void>;
  /** Notifies hooks of the end of the session, if they were notified of its start. */
  ended(): Promise<void>;
}

/** The means of work that runs in place of a turn. */
export interface OwnWork {
  readonly signal: AbortSignal;
  /** Runs a call that the user asked for: where the approval mode would ask, they have answered; what is denied stays
   * denied. */
  run(call: ExpansionCall): Promise<{ readonly id: string; readonly done: Dispatched }>;
  /** Asks the model a question about the conversation, which it answers without tools. Only the usage is recorded. */
  ask(question: string): Promise<{ readonly text: string; readonly fault: Fault | null }>;
}

/** A message that begins a turn. `before`: what other processes sent before it. */
interface Sent {
  readonly text: string;
  readonly sentBy: SentBy | undefined;
  readonly before: readonly QueuedMessage[];
}

/** Hooks on the end of a session have no longer, all together. */
const longestEndMs = 1500;

export function createSession(options: SessionParts): Session {
  return new LiveSession(options);
}

class LiveSession implements Session {
  readonly id: string;
  readonly cwd: string;
  readonly record: Recorder;
  readonly sessionRules: Map<string, Rule>;
  readonly #options: SessionParts;
  readonly #listeners = new Set<(event: AgentEvent) => void>();
  readonly #questions = new Map<string, (answer: PermissionAnswer) => void>();
  readonly #forms = new Map<string, (answer: FormAnswer) => void>();
  readonly #approval: ApprovalDeps;
  readonly #notes: string[];
  readonly #unknownWindows = new Set<string>();
  #model: ReadyModel;
  /** The model of plan mode, while it is used. */
  #plan: ReadyModel | null = null;
  /** The model of plan mode did not answer in this turn. */
  #planFailed = false;
  #queue: readonly QueuedMessage[] = [];
  #turn: AbortController | null = null;
  #begun = false;
  /** The model that comes back after the turn, while another one has stepped in. */
  #own: ModelRef | null = null;
  #formsSoFar = 0;
  /** The settings of turns that have their own; null until a turn has some. */
  #scope: TurnScope | null = null;
  readonly #tools: ToolDeps;

  constructor(options: SessionParts) {
    const { store, row, restored, left, opening, begin, notes = [] } = options.record;
    const { host, secrets, interactive } = options;
    this.#options = options;
    this.#tools = this.#scopedTools(options.tools);
    this.id = row.id;
    this.cwd = row.cwd;
    this.#model = options.model;
    this.#notes = [...notes];
    this.sessionRules = options.approval?.rules ?? new Map<string, Rule>();
    this.#approval = options.approval ?? {
      ask: (question, signal) =>
        interactive ? this.#ask(question, signal) : Promise.resolve({ answer: 'unavailable' }),
      ...(interactive ? { putForm: (form, signal) => this.#putForm(form, signal) } : {}),
      canAsk: interactive,
      grants: new Set(options.grants),
      rules: this.sessionRules,
      asked: new Map(),
    };
    this.record = createRecorder({
      store,
      sessionId: this.id,
      now: host.now,
      schedule: host.schedule,
      restored,
      ...(left ? { left } : {}),
      opening,
      emit: (event) => {
        this.#emit(event);
      },
      ...(secrets ? { secrets } : {}),
      begin: async () => {
        await begin?.();
        if (restored.length === 0)
          await store.createSession({ ...row, ...placeOf(this.ownRef()), updatedAt: host.now() });
      },
    });
  }

  ref(): ModelRef {
    return (this.#scope?.model(this.#model) ?? this.#model).ref;
  }
  ownRef(): ModelRef {
    return this.#model.ref;
  }
  busy(): boolean {
    return this.#turn !== null;
  }
  events(): readonly Event[] {
    return this.record.events();
  }
  recent(): readonly Event[] {
    return this.record.recent();
  }
  totals(): UsageTotals {
    return this.record.totals();
  }
  append(draft: EventDraft): Promise<Event> {
    return this.record.append(draft);
  }
  blob(sha256: string): Promise<Uint8Array | null> {
    return this.record.blob(sha256);
  }

  subscribe(listener: (event: AgentEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  async submit(text: string, sentBy?: SentBy): Promise<TurnEnd> {
    this.#refuseSecondTurn();
    const before = this.#takeFromElsewhere();
    return await this.#alone((signal) => this.#wholeTurn({ text, sentBy, before }, signal));
  }

  async continueTurn(): Promise<TurnEnd | null> {
    const pending = lastLimit(this.recent());
    return pending === null ? null : await this.#alone((signal) => this.#restOfTurn(pending, signal));
  }

  async #alone(work: (signal: AbortSignal) => Promise<TurnEnd>): Promise<TurnEnd> {
    this.#refuseSecondTurn();
    const turn = new AbortController();
    this.#turn = turn;
    this.#planFailed = false;
    this.#emit({ type: 'turn_started' });
    const end = await this.#safely(() => work(turn.signal));
    this.#turn = null;
    this.#emit({ type: 'turn_ended', end });
    return end;
  }

  #refuseSecondTurn(): void {
    if (this.#turn) throw new Error('a turn is running: queue the message instead');
  }

  async #restOfTurn(pending: PendingLimit, signal: AbortSignal): Promise<TurnEnd> {
    const end = await this.#safely(async () => {
      const isFirst = !this.#begun;
      this.#begun = true;
      await tellBegun(this.deps(), isFirst, signal);
      await this.#resumeSettings('continued');
      return await continueTurn(this.deps(), pending, signal);
    });
    return await this.#ended(end, signal);
  }

  async #wholeTurn({ text, sentBy, before }: Sent, signal: AbortSignal): Promise<TurnEnd> {
    const { policy, news, fileNotes } = this.#options.tools;
    const told = [
      ...(fileNotes?.(this.recent()) ?? []),
      ...(policy.news?.(this.recent()) ?? []),
      ...((await news?.(this.recent())) ?? []),
    ];
    await this.#recordNotes(told);
    await recordWaiting(this.deps(), before, signal);
    const end = await this.#safely(async () => {
      await this.#resumeSettings('message');
      const isFirst = !this.#begun;
      this.#begun = true;
      const fault = await askAboutPrompt(this.deps(), text, isFirst, signal);
      if (fault) {
        const held = sentBy?.id === undefined ? {} : { heldMessage: sentBy.id };
        return { status: 'failed', text: '', turns: 0, toolCalls: 0, denials: [], fault, ...held };
      }
      const refused =
        sentBy && sentBy.typed !== true
          ? await recordSent(this.deps(), text, sentBy, signal)
          : await recordMessage(this.deps(), { text, expand: this.#options.expand, ...this.#sender(sentBy) }, signal);
      const mode = policy.record?.(this.recent()) ?? null;
      if (mode) await this.record.note(mode);
      return refused ?? (await runTurn(this.deps(), signal));
    });
    return await this.#ended(end, signal);
  }

  /** Records how a turn ended, and leaves the model that has stepped in. */
  async #ended(end: TurnEnd, signal: AbortSignal): Promise<TurnEnd> {
    await this.repair();
    await this.#recordNotes();
    await this.record.settle();
    if (end.fault) {
      const { code, message } = end.fault;
      await this.record.append({ kind: 'error', content: message, data: { code, message } });
      await tellFailed(this.deps(), end.fault, signal);
    }
    await this.#scope?.end(lastLimit(this.recent()) === null ? 'ended' : 'kept');
    if (this.#own) await this.#comeBack(this.#own);
    return end;
  }

  /** The tools and the policy of a turn differ from those of the session while it has settings of its own. */
  #scopedTools(tools: ToolDeps): ToolDeps {
    const registry = (): ToolDeps['registry'] => this.#scope?.registry() ?? tools.registry;
    const policy = (): ToolDeps['policy'] => this.#scope?.policy() ?? tools.policy;
    return {
      ...tools,
      get registry() {
        return registry();
      },
      get policy() {
        return policy();
      },
      confine: (given) => this.#scope?.confine(given) ?? given,
    };
  }

  async #openScope(): Promise<TurnScope> {
    const { tools, models } = this.#options;
    const { TurnScope: Scope } = await loadTurnScope();
    this.#scope ??= new Scope({
      record: this.record,
      tools,
      models,
      emit: (event) => {
        this.#emit(event);
      },
      tell: (note) => {
        this.tell(note);
      },
      ownRef: () => this.#own ?? this.ownRef(),
      ...(this.#options.expand ? { expand: this.#options.expand } : {}),
    });
    return this.#scope;
  }

  async #resumeSettings(why: 'message' | 'continued'): Promise<void> {
    const last = this.recent().findLast(({ kind }) => kind === 'turn_settings');
    if (!isRecord(last?.data) || last.data.state !== 'set') return;
    await (await this.#openScope()).resume(why, lastLimit(this.recent()) !== null);
  }

  readonly #turnSettings: TurnSettingsUse = {
    begin: async (...given) => await (await this.#openScope()).begin(...given),
    add: async (...given) => await (await this.#openScope()).add(...given),
  };

  /** Returns the source of a message that a user wrote. The messages to an agent come from the model. */
  #sender(sentBy: SentBy | undefined): { readonly source?: MessageSource } {
    if (sentBy) return sentBy.source === null ? {} : { source: sentBy.source };
    return this.#options.models.ofAgent ? {} : { source: 'terminal' };
  }

  /** Records the notes for the model. Notes before a message reach the disk with it, and notes during an answer with
   * its end. */
  async #recordNotes(more: readonly string[] = []): Promise<void> {
    for (const note of [...this.#notes.splice(0), ...more])
      await this.record.note({ kind: 'user', content: note, data: { note: true } });
  }

  /** Continues with another model until the turn has ended. Returns the reason why it cannot, or null. */
  async #stepIn(other: FallbackRef): Promise<string | null> {
    const own = this.#own ?? this.ownRef();
    if (this.#scope?.returnsTo(other)) {
      if (this.#own) await this.#comeBack(own);
      return null;
    }
    if (this.#plan !== null) {
      this.#plan = null;
      this.#planFailed = true;
      if (other === own) return null;
    }
    const { effort, ...ref } = other;
    try {
      await this.#useModel(ref);
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
    this.#own = own;
    this.#scope?.leaveModel();
    if (effort !== undefined) this.#model = { ...this.#model, effort };
    return null;
  }

  #hasTurnModel(): boolean {
    return Boolean(this.#scope?.ownModel());
  }

  /** The model of a turn goes before that of plan mode: the user has chosen the command. */
  #mayUsePlan(): boolean {
    return !this.#planFailed && !this.#hasTurnModel() && this.#options.models.planning?.() === true;
  }

  async #followPlanMode(): Promise<boolean> {
    const { models } = this.#options;
    const found = this.#mayUsePlan() ? ((await models.forRole?.('plan', this.#own ?? this.ownRef())) ?? null) : null;
    if (found !== null && found.ref !== this.#plan?.ref) {
      const message = `Plan mode uses ${found.ref.provider}/${found.ref.model} (models.roles.plan).`;
      this.notify({ level: 'info', code: 'model_role', message });
    }
    this.#plan = found;
    return found !== null;
  }

  async #comeBack(own: ModelRef): Promise<void> {
    try {
      await this.#useModel(own);
    } catch (error) {
      this.#options.host.log({ at: 'model', message: 'the model sent no answer', error: String(error) });
    }
  }

  /** An error in the program ends the turn and never the session. */
  async #safely(work: () => Promise<TurnEnd>): Promise<TurnEnd> {
    try {
      return await work();
    } catch (error) {
      this.#options.host.log({
        at: 'turn',
        message: 'the turn failed',
        error: error instanceof Error ? (error.stack ?? error.message) : String(error),
      });
      return {
        status: 'failed',
        text: '',
        turns: 0,
        toolCalls: 0,
        denials: [],
        fault: {
          code: 'internal',
          message: 'The turn failed inside the program; see the log file for details.',
          ...missingPart(error),
        },
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

  async ended(): Promise<void> {
    await this.#options.tools.agents?.end();
    if (!this.#begun) return;
    this.#begun = false;
    if (this.#options.tools.hooks?.agent) return;
    const signal = AbortSignal.timeout(longestEndMs);
    await askHooks(this.deps(), { event: 'SessionEnd', reason: 'other' }, signal);
    await this.#options.tools.hooks?.finish?.(signal);
  }

  async compact(focus: string): Promise<Compacted> {
    return await this.#inPlaceOfTurn(async (signal) =>
      (await loadCompaction()).compact(this.deps(), { trigger: 'manual', focus }, signal),
    );
  }

  async omitResults(): Promise<Compacted> {
    return await this.#inPlaceOfTurn(async (signal) => (await loadCompaction()).omitResults(this.deps(), signal));
  }

  workAlone<T>(work: (own: OwnWork) => Promise<T>): Promise<T> {
    return this.#inPlaceOfTurn((signal) => {
      const d = this.deps();
      const approval: ApprovalDeps = { ...d.approval, ask: () => Promise.resolve({ answer: 'once' }) };
      return work({
        signal,
        run: (call) => runOwnCall({ ...d, approval }, call, signal),
        ask: (question) => requestVerdict(d, question, signal),
      });
    });
  }

  async #inPlaceOfTurn<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (this.#turn) throw new Error('a turn is running: interrupt it first');
    const turn = new AbortController();
    this.#turn = turn;
    this.#emit({ type: 'turn_started' });
    try {
      return await work(turn.signal);
    } finally {
      await this.#recordNotes();
      await this.record.settle();
      this.#turn = null;
      const status = turn.signal.aborted ? 'interrupted' : 'completed';
      this.#emit({ type: 'turn_ended', end: { status, text: '', turns: 0, toolCalls: 0, denials: [] } });
    }
  }

  async suggestTitle(signal: AbortSignal): Promise<string> {
    const log = (reason: string): void => {
      this.#options.host.log({ at: 'title', message: 'no title came', reason });
    };
    try {
      const { text, fault } = await requestTitle(this.deps(), signal);
      if (fault) log(fault.message);
      return text;
    } catch (error) {
      log(String(error));
      return '';
    }
  }

  async askBeside(asked: string, onText: (text: string) => void, signal: AbortSignal): Promise<SideQuestionEnd> {
    const question = this.#options.secrets?.text(asked) ?? asked;
    const { text: answer, usage, fault } = await requestSideAnswer(this.deps(), question, onText, signal);
    const isWhole = !signal.aborted && fault === null;
    const isKept = answer !== '' || isWhole;
    const data = { question, answer, usage, ...(isWhole ? {} : { interrupted: true as const }) };
    const event = isKept ? await this.record.append({ kind: 'side_question', content: question, data }) : null;
    if (event === null) await this.record.settle();
    if (signal.aborted) return { status: 'interrupted', event };
    if (fault !== null || event === null)
      return { status: 'failed', fault: fault ?? { code: 'internal', message: 'The answer was not recorded.' } };
    return { status: 'answered', event };
  }

  async compactionPlan(): Promise<CompactionPlan | null> {
    return (await loadCompaction()).planFor(this.deps(), { trigger: 'manual' });
  }

  async compactionGain(): Promise<CompactionGain | null> {
    return (await loadCompaction()).gainFor(this.deps());
  }

  price(): Price | null {
    return this.#options.models.price?.(this.ref()) ?? null;
  }

  async omissionPlan(): Promise<OmissionPlan | null> {
    return (await loadCompaction()).omissionFor(this.deps());
  }

  interrupt(why?: 'leaving'): void {
    this.#turn?.abort(why === 'leaving' ? leaving : undefined);
  }

  enqueue(message: QueuedMessage): void {
    this.#setQueue([...this.#queue, { ...message, text: this.#options.secrets?.text(message.text) ?? message.text }]);
  }

  takeQueue(): readonly QueuedMessage[] {
    const queue = this.#queue;
    if (queue.length > 0) this.#setQueue([]);
    return queue;
  }

  answer(id: string, answer: PermissionAnswer | FormAnswer): void {
    if (isFormAnswer(answer)) this.#forms.get(id)?.(answer);
    else this.#questions.get(id)?.(answer);
  }

  notify: Session['notify'] = (notice) => {
    this.#emit({ type: 'notice', ...notice });
  };

  tell(note: string): void {
    this.#notes.push(note);
  }

  async switchModel(ref: ModelRef): Promise<void> {
    await this.#useModel(ref);
    this.#scope?.leaveModel();
  }

  async #useModel(ref: ModelRef): Promise<void> {
    this.#model = { provider: await this.#options.connect(ref), ref };
    this.#own = null;
    if (this.record.lastSeq() === 0) return;
    const { provider, model, api, baseUrl } = ref;
    await this.record.append({
      kind: 'model',
      content: `${provider}/${model}`,
      data: { provider, model, api, ...(baseUrl === undefined ? {} : { base_url: baseUrl }) },
    });
    await this.#options.record.store
      .update(this.id, { api: '', baseUrl: '', ...placeOf(ref) })
      .catch((error: unknown) => {
        this.#options.host.log({
          at: 'store',
          message: 'the model of the session row was not updated',
          error: String(error),
        });
      });
  }

  async repair(): Promise<number> {
    const open = this.record.projection.openCalls();
    for (const { call, started } of open) {
      await this.record.append(interruptedResult(call, started ? interruptedRunning : interruptedBefore));
    }
    return open.length;
  }

  deps(): TurnDeps {
    const { models, limits, host, secrets, attachments, waitForLimit, mentions } = this.#options;
    return {
      tools: this.#tools,
      models,
      limits,
      host,
      ...(waitForLimit ? { waitForLimit } : {}),
      ...(mentions ? { mentions } : {}),
      recordWaiting: ({ text, source = 'queue', id }, signal) =>
        recordDelivered(this.deps(), { text, ...messageData(source, id) }, signal),
      ...(secrets ? { secrets } : {}),
      ...(attachments ? { attachments } : {}),
      cwd: this.cwd,
      record: this.record,
      emit: (event) => {
        this.#emit(event);
      },
      tell: (note) => {
        this.tell(note);
      },
      askModel: (question, aborted) => requestAnswer(this.deps(), question, aborted),
      askAgent: (question, aborted) => this.#askAgent(question, aborted),
      model: () => this.#plan ?? this.#scope?.model(this.#model) ?? this.#model,
      ownModel: () => this.#scope?.ownModel() ?? this.#own ?? this.ownRef(),
      hasTurnModel: () => this.#hasTurnModel(),
      turnSettings: this.#turnSettings,
      unknownWindows: this.#unknownWindows,
      followPlanMode: () => this.#followPlanMode(),
      role: () => (models.ofAgent ? 'subagent' : models.planning?.() === true ? 'plan' : 'main'),
      approval: this.#approval,
      takeSteering: () => this.#takeSteering(),
      takeLate: () => (this.#queue.some(isSteeringFromElsewhere) ? this.#takeSteering() : []),
      takeNotes: () => this.#notes.splice(0),
      useFallbackModel: (other) => this.#stepIn(other),
    };
  }

  async #askAgent(prompt: string, signal: AbortSignal): Promise<ModelAnswer> {
    const { agents } = this.#options.tools;
    if (!agents) return { text: '', problem: 'this session has no sub-agents' };
    const order = { agent: 'explore', prompt, description: 'answers a hook' };
    const call = { id: 'hook', signal, whileAsking: <Result>(work: () => Promise<Result>) => work() };
    const { envelope } = await agents.run(order, this.deps(), call);
    return isError(envelope) ? { text: '', problem: envelope.error } : { text: envelope.output, problem: null };
  }

  async #ask(question: Question, signal: AbortSignal): Promise<PermissionAnswer> {
    if (signal.aborted) return { answer: 'deny' };
    void tellWaiting(this.deps(), question, signal);
    const answer = await answered<PermissionAnswer>(
      this.#questions,
      question.callId,
      { answer: 'deny' },
      signal,
      () => {
        this.#emit({ type: 'approval_requested', question });
      },
    );
    this.#emit({ type: 'approval_resolved', callId: question.callId, answer: answer.answer });
    return answer;
  }

  async #putForm(form: Form, signal: AbortSignal): Promise<FormAnswer> {
    if (signal.aborted) return { answer: 'cancelled' };
    this.#formsSoFar += 1;
    const id = `form_${this.#formsSoFar}`;
    const answer = await answered<FormAnswer>(this.#forms, id, { answer: 'cancelled' }, signal, () => {
      this.#emit({ type: 'form_opened', id, form });
    });
    this.#emit({ type: 'form_closed', id });
    return answer;
  }

  #takeSteering(): readonly QueuedMessage[] {
    const now = this.#queue.filter((message) => message.when === 'steer');
    if (now.length > 0) this.#setQueue(this.#queue.filter((message) => message.when !== 'steer'));
    return now;
  }

  /** Takes what other processes sent before the turn began. */
  #takeFromElsewhere(): readonly QueuedMessage[] {
    const sent = this.#queue.filter(isFromElsewhere);
    if (sent.length > 0) this.#setQueue(this.#queue.filter((message) => !isFromElsewhere(message)));
    return sent;
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
        this.#options.host.log({
          at: 'listener',
          message: 'a listener threw',
          error: error instanceof Error ? (error.stack ?? error.message) : String(error),
        });
      }
    }
  }
}

function isSteeringFromElsewhere(message: QueuedMessage): boolean {
  return message.when === 'steer' && isFromElsewhere(message);
}

/** The result of a call that the program's end left open. */
export function interruptedResult(
  call: ToolCallData,
  envelope: ErrorEnvelope,
): Extract<EventDraft, { readonly kind: 'tool_result' }> {
  return {
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
  };
}

/** Opens a question under its id and waits for its answer, or for the end of the turn. */
async function answered<T>(
  open: Map<string, (answer: T) => void>,
  id: string,
  ifAborted: T,
  signal: AbortSignal,
  show: () => void,
): Promise<T> {
  const answer = await new Promise<T>((resolve) => {
    open.set(id, resolve);
    const onAbort = (): void => {
      resolve(ifAborted);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    show();
  });
  open.delete(id);
  return answer;
}
