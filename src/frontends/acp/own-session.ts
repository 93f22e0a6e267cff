import {
  type AgentContext,
  type PromptResponse,
  RequestError,
  type RequestPermissionRequest,
  type SessionConfigOption,
  type SessionUpdate,
} from '@agentclientprotocol/sdk';
import { recordEffort } from '../../app/context-files.js';
import type { Assembly, Run } from '../../app/create-session.js';
import { endedTurn } from '../../app/live/ended-turn.js';
import type { EndedTurn } from '../../app/live/messages.js';
import { resolveModel } from '../../app/model-resolution.js';
import { type Event, knownEvent } from '../../kernel/core/event.js';
import type { Form } from '../../kernel/core/form.js';
import { isFromElsewhere, takeTyped } from '../../kernel/core/message-queue.js';
import type { PermissionAnswer, Question } from '../../kernel/core/policy.js';
import type { ModelRef } from '../../kernel/core/projection.js';
import type { AgentEvent, QueuedMessage, SentBy, SessionPort } from '../../kernel/core/session-port.js';
import { builtInPresets, resolveProvider } from '../../kernel/providers/catalog.js';
import { contextWindowOf, findModel, knownModels } from '../../kernel/providers/models.js';
import { rulesText } from '../../ui/question-lines.js';
import { followQuestions } from '../repl/open-questions.js';
import { putToEditor } from './editor-forms.js';
import {
  type AwaitedEnd,
  AwaitedTurns,
  type EditorConnection,
  type EditorSession,
  type EditorState,
  modelOption,
  modeState,
  outboxOf,
  type Prompt,
  promptResponse,
  requestPermission,
  stopOf,
  toMode,
} from './editor-session.js';
import { askedCall, offeredAnswers, type Outbox, thought, Updates } from './editor-updates.js';
import { promptText, unreadable } from './prompt-blocks.js';

const fromEditor: SentBy = { source: 'editor', note: false, typed: true };

/** A session of an editor that runs in this process. Other processes reach it as they reach every session. */
export class OwnSession implements EditorSession {
  readonly id: string;
  readonly #client: AgentContext;
  readonly #showsForms: boolean;
  readonly #run: Run;
  readonly #chat: Assembly;
  readonly #updates: Updates;
  readonly #outbox: Outbox;
  readonly #stop: () => void;
  readonly #turns = new AwaitedTurns();
  /** The prompts and forms that the editor shows. */
  readonly #asks = new Map<string, AbortController>();
  /** The messages of other processes that came here, and the ends of their turns. */
  readonly #delivered = new Map<string, Promise<AwaitedEnd>>();
  #greeted = false;
  #isCancelled = false;
  #isClosed = false;
  #lastTurn: Promise<unknown> = Promise.resolve();

  /** `shown`: the messages of other processes that the editor has shown already. */
  constructor(editor: EditorConnection, run: Run, chat: Assembly, shown: ReadonlySet<string> = new Set()) {
    const { session } = chat;
    this.id = session.id;
    this.#client = editor.client;
    this.#showsForms = editor.showsForms;
    this.#run = run;
    this.#chat = chat;
    this.#outbox = outboxOf(editor, this.id);
    this.#updates = new Updates({
      cwd: session.cwd,
      registry: run.toolbox.registry,
      blob: (sha256) => session.blob(sha256),
      window: () => windowOf(run, session.ref()),
      isShown: (ref) => ref === undefined || shown.has(ref),
      now: () => performance.now(),
    });
    const onQuestion = followQuestions({
      config: run.settings.config,
      hasScreens: () => true,
      tell: () => undefined,
    });
    this.#stop = session.subscribe((event) => {
      onQuestion(event, session);
      this.#see(event);
    });
  }

  state(): EditorState {
    const { policy } = this.#run;
    return { modes: modeState(policy.planning() ? 'plan' : policy.mode()), configOptions: this.#options() };
  }

  async replay(): Promise<void> {
    this.#outbox.add(this.#updates.past(this.#chat.session.events()));
    await this.#outbox.taken();
  }

  /** Shows what was added to the log after event `seq`. */
  catchUp(seq: number): void {
    const events = this.#chat.session.events();
    this.#updates.skip(events.filter((event) => event.seq <= seq));
    this.#outbox.add(
      events.filter((event) => event.seq > seq).flatMap((event) => this.#updates.see({ type: 'event', event })),
    );
    const { modes, configOptions } = this.state();
    this.#outbox.add([
      { sessionUpdate: 'current_mode_update', currentModeId: modes.currentModeId },
      { sessionUpdate: 'config_option_update', configOptions },
    ]);
  }

  begin(): void {
    this.#chat.owner.serve({
      deliver: (message) => {
        this.#deliver(message);
      },
      ownTerminals: () => 1,
      stop: () => {
        this.#outbox.add([thought('agent stop has ended the session here. Your next message opens it again.')]);
        void this.close();
      },
    });
  }

  isOver(): boolean {
    return this.#isClosed;
  }

  lastSeq(): number {
    return this.#chat.session.recent().at(-1)?.seq ?? 0;
  }

  /** Runs a prompt. One that comes while a turn runs is answered at once and reaches that turn after its next results;
   * one that comes after a cancel runs once the turn has ended. One that another process has kept for the session runs
   * once, and this waits for its turn. */
  async prompt({ ref, blocks }: Prompt): Promise<PromptResponse> {
    const { session } = this.#chat;
    const delivered = this.#delivered.get(ref);
    if (delivered) return await this.#responseAfter(delivered);
    const text = await promptText(blocks, async (file) => {
      const taken = await this.#run.pictures.takeBytes({ name: file.name, bytes: Buffer.from(file.data, 'base64') });
      if (!taken.ok) throw unreadable(`${file.name} (${taken.problem})`);
      return taken.chip;
    });
    if (session.busy() && !this.#isCancelled) {
      session.enqueue({ text, when: 'steer', source: 'editor' });
      return { stopReason: 'end_turn' };
    }
    return this.#response(await this.#next(() => this.#runTurn(text, fromEditor)));
  }

  cancel(): void {
    this.#isCancelled = this.#chat.session.busy();
    this.#chat.session.interrupt();
  }

  setMode(id: string): void {
    const mode = toMode(id);
    const { policy } = this.#run;
    policy.plan(mode === 'plan');
    if (mode !== 'plan') policy.switchTo(mode);
  }

  async setOption(id: string, value: string | boolean): Promise<SessionConfigOption[]> {
    const { session } = this.#chat;
    const resolved =
      id === 'model' && typeof value === 'string' ? await resolveModel(this.#run.settings, value, session.ref()) : null;
    if (resolved === null)
      throw RequestError.invalidParams({ configId: id }, `there is no option \`${id}\` with the value \`${value}\``);
    if (!resolved.ok)
      throw RequestError.invalidParams({ value }, `${resolved.problem.message}: ${resolved.problem.hint}`);
    await session.switchModel(resolved.ref);
    if (resolved.effort !== undefined)
      await recordEffort(session, this.#run.settings, this.#run.toolbox.registry, resolved.effort);
    return this.#options();
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#turns.leave();
    this.#chat.session.interrupt();
    for (const asking of this.#asks.values()) asking.abort();
    await this.#chat.close();
    this.#stop();
    await this.#run.close();
  }

  #see(event: AgentEvent): void {
    this.#outbox.add(this.#updates.see(event));
    switch (event.type) {
      case 'event':
        this.#turns.take(event.event);
        return;
      case 'turn_ended':
        this.#turns.end(this.lastSeq(), endedTurn(event.end));
        return;
      case 'approval_requested':
        void this.#ask(event.question);
        return;
      case 'form_opened':
        void this.#putForm(event.id, event.form);
        return;
      case 'approval_resolved':
        this.#asks.get(event.callId)?.abort();
        return;
      case 'form_closed':
        this.#asks.get(event.id)?.abort();
        return;
      default:
        return;
    }
  }

  /** Runs a message of another process, or has the turn that runs take it. */
  #deliver(message: QueuedMessage): void {
    if (message.id !== undefined) this.#delivered.set(message.id, this.#turns.until(message.id));
    this.#chat.session.enqueue(message);
    if (!this.#chat.session.busy()) this.#runQueueNext();
  }

  #runQueueNext(): void {
    this.#next(() => this.#runQueue()).catch((error: unknown) => {
      this.#run.settings.log({ at: 'acp', message: 'a message of another process failed', error: String(error) });
    });
  }

  /** Runs the first message of other processes that waits. Its turn takes the others. */
  async #runQueue(): Promise<void> {
    const { session } = this.#chat;
    if (session.busy() || this.#isClosed) return;
    const queue = session.takeQueue();
    const first = queue.find(isFromElsewhere);
    for (const other of queue) if (other !== first) session.enqueue(other);
    if (first?.id === undefined) return;
    await this.#runTurn(first.text, { source: first.source ?? null, note: false, id: first.id });
  }

  /** Does one thing after the other. */
  #next<T>(work: () => Promise<T>): Promise<T> {
    const next = this.#lastTurn.then(work);
    this.#lastTurn = next.catch(() => undefined);
    return next;
  }

  async #responseAfter(delivered: Promise<AwaitedEnd>): Promise<PromptResponse> {
    const end = await delivered;
    await this.#outbox.taken();
    return typeof end === 'string' ? { stopReason: 'cancelled' } : this.#response(end.ended);
  }

  #response(end: EndedTurn): PromptResponse {
    const last = this.#chat.session.recent().findLast(({ kind }) => kind === 'assistant');
    return promptResponse(end, last ? stopOf(last) : null);
  }

  /** Runs a turn, and what the editor sent too late for it. */
  async #runTurn(text: string, from: SentBy): Promise<EndedTurn> {
    const { session } = this.#chat;
    this.#isCancelled = false;
    await this.#greet();
    let end = await session.submit(text, from);
    for (let late = joinedQueue(session); late !== ''; late = joinedQueue(session)) {
      if (end.status === 'interrupted')
        this.#outbox.add([thought(`Not sent, because the turn was cancelled: ${late}`)]);
      else end = await session.submit(late, fromEditor);
    }
    this.#runQueueNext();
    await this.#outbox.taken();
    return endedTurn(end);
  }

  async #greet(): Promise<void> {
    if (this.#greeted) return;
    this.#greeted = true;
    const said = [...this.#run.notices(), ...this.#chat.notices].filter(({ level }) => level !== 'info');
    this.#outbox.add([...said.map(({ message }) => thought(message)), await this.#commands()]);
  }

  #options(): SessionConfigOption[] {
    const { provider, model } = this.#chat.session.ref();
    return [modelOption(`${provider}/${model}`, reachableModels(this.#run))];
  }

  /** The commands and skills of the user that a prompt may begin with. */
  async #commands(): Promise<SessionUpdate> {
    const own = (await this.#run.parts.menus()).flatMap((menu) => menu.commands());
    return {
      sessionUpdate: 'available_commands_update',
      availableCommands: own.map(({ name, description, argumentHint }) => ({
        name,
        description,
        ...(argumentHint === null ? {} : { input: { hint: argumentHint } }),
      })),
    };
  }

  /** Has the editor ask something, until it is answered here or elsewhere. */
  async #asking<T>(
    id: string,
    ask: (signal: AbortSignal) => Promise<T>,
    onAnswer: (answer: T | null) => void,
  ): Promise<void> {
    const asking = new AbortController();
    this.#asks.set(id, asking);
    await this.#outbox.taken();
    try {
      onAnswer(await ask(asking.signal));
    } catch (error) {
      if (asking.signal.aborted) return;
      onAnswer(null);
      this.#run.settings.log({ at: 'acp', message: 'the editor did not answer a question', error: String(error) });
    } finally {
      this.#asks.delete(id);
    }
  }

  async #putForm(id: string, form: Form): Promise<void> {
    const { session } = this.#chat;
    const place = {
      client: this.#client,
      sessionId: this.id,
      toolCallId: askingCall(session.recent()) ?? id,
      showsForms: this.#showsForms,
    };
    await this.#asking(
      id,
      (signal) => putToEditor({ ...place, signal }, form),
      (answer) => {
        session.answer(id, { ...(answer ?? { answer: 'declined' }), source: 'editor' });
      },
    );
  }

  async #ask(question: Question): Promise<void> {
    const { session } = this.#chat;
    const { callId } = question;
    const { rules = [] } = question.verdict;
    const request: RequestPermissionRequest = {
      sessionId: this.id,
      toolCall: {
        toolCallId: callId,
        status: 'pending',
        rawInput: question.call.args,
        ...askedCall(question, session.cwd),
      },
      options: offeredAnswers(rules.length > 0 ? rulesText(rules) : null),
    };
    await this.#asking(
      callId,
      async (signal) => (await requestPermission(this.#client, request, signal)) ?? 'deny',
      (chosen) => {
        session.answer(callId, { ...permissionAnswer(chosen), source: 'editor' });
      },
    );
  }
}

/** Returns the call whose tool runs. */
function askingCall(events: readonly Event[]): string | null {
  const started = events.findLast(({ kind }) => kind === 'tool_started');
  const known = started ? knownEvent(started) : null;
  return known?.kind === 'tool_started' ? known.data.tool_call_id : null;
}

/** `chosen` null: the editor could not ask. */
function permissionAnswer(chosen: string | null): PermissionAnswer {
  if (chosen === 'once' || chosen === 'session') return { answer: chosen };
  if (chosen === 'rules') return { answer: 'rules', lasts: 'session' };
  return { answer: 'deny', ...(chosen === null ? { message: 'the editor could not ask' } : {}) };
}

/** Takes what came too late for a turn, as one message; '' if nothing did. */
function joinedQueue(session: SessionPort): string {
  return takeTyped(session)
    .map(({ text }) => text)
    .join('\n\n');
}

function windowOf({ settings }: Run, { provider, model }: ModelRef): number | null {
  return contextWindowOf(settings, provider, model);
}

/** The known models that can be used as things are. */
function reachableModels({ settings: { env, config } }: Run): readonly string[] {
  const { custom, models } = config.provider;
  return Object.keys({ ...knownModels, ...models }).filter((name) => {
    const slash = name.indexOf('/');
    if (findModel(name.slice(0, slash), name.slice(slash + 1), models)?.retired) return false;
    return resolveProvider({ model: name, env, presets: builtInPresets, userProviders: custom }).ok;
  });
}
