import {
  type AgentContext,
  type PromptResponse,
  RequestError,
  type RequestPermissionRequest,
  type SessionConfigOption,
  type SessionUpdate as EditorUpdate,
  type ToolCallStatus,
} from '@agentclientprotocol/sdk';
import { setTimeout as wait } from 'node:timers/promises';
import type { EndedTurn, FollowerApproval, FollowerForm } from '../../app/live/messages.js';
import { openRecord } from '../../app/open-record.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { type Event, knownEvent, type Stop, type ToolCallData } from '../../kernel/core/event.js';
import type { Form, FormAnswer } from '../../kernel/core/form.js';
import type { SessionRow, Store } from '../../kernel/core/store.js';
import { openAttachedFiles } from '../viewers/api/attached-uploads.js';
import { type Following, followSession, type SessionUpdate } from '../viewers/follow-session.js';
import {
  AwaitedTurns,
  type EditorConnection,
  type EditorSession,
  type EditorState,
  modelOption,
  type ModeId,
  modeState,
  type Place,
  outboxOf,
  type Prompt,
  promptResponse,
  requestPermission,
  stopOf,
  readMode,
  toMode,
} from './editor-session.js';
import { canShow, putToEditor } from './editor-forms.js';
import { askedElsewhere, offeredAnswers, type Outbox, thought, Updates } from './editor-updates.js';
import { promptText, unreadable } from './prompt-blocks.js';

/** A process that has begun to run a session can be reached within this time. */
const longestJoinMs = 5_000;
const betweenMs = 50;

const lostText =
  'The process that ran this session has ended in the middle of the turn. What it did is saved: your next message ' +
  'continues the session here.';

/** A session of an editor that another process runs: a terminal, `agent --bg`, another editor. Prompts are messages to
 * that process, and the editor shows what happens there. */
export class JoinedSession implements EditorSession {
  readonly id: string;
  readonly #client: AgentContext;
  readonly #showsForms: boolean;
  readonly #store: Store;
  readonly #settings: Settings;
  readonly #updates: Updates;
  readonly #outbox: Outbox;
  readonly #turns = new AwaitedTurns();
  /** The prompts of this editor, by their references, as they are sent. */
  readonly #sent = new Map<string, string>();
  readonly #asks = new Map<string, { readonly shown: string; readonly asking: AbortController }>();
  /** The calls without a result. */
  readonly #calls = new Map<string, ToolCallData>();
  /** The ids of the calls that run. */
  readonly #started = new Set<string>();
  /** The calls whose arguments a hook has replaced. */
  readonly #replaced = new Set<string>();
  /** The events that are not shown yet; null once the editor shows what happens. */
  #past: Event[] | null = [];
  #following: Following | null = null;
  #row: SessionRow | null = null;
  #isLive: boolean | null = null;
  /** The answer in flight, and the part of it that the editor has. */
  #text = '';
  #shownText = '';
  #seq = 0;
  #lastStop: Stop | null = null;
  #mode: ModeId = 'dangerous';
  #model = '';

  readonly #hasServers: boolean;

  private constructor(
    editor: EditorConnection,
    id: string,
    settings: Settings,
    store: Store,
    { mcpServers = [] }: Place,
  ) {
    this.id = id;
    this.#hasServers = mcpServers.length > 0;
    this.#client = editor.client;
    this.#showsForms = editor.showsForms;
    this.#settings = settings;
    this.#store = store;
    this.#outbox = outboxOf(editor, id);
    this.#updates = new Updates({
      cwd: settings.cwd,
      registry: { get: () => undefined },
      blob: (sha256) => store.blob(sha256),
      window: () => null,
      isShown: (ref) => ref !== undefined && this.#sent.has(ref),
      now: () => performance.now(),
    });
  }

  /** Joins the process that runs the session. Null: none does that can be reached. */
  static async open(
    editor: EditorConnection,
    settings: Settings,
    id: string,
    place: Place,
  ): Promise<JoinedSession | null> {
    const { store } = await openRecord(settings, () => undefined);
    const session = new JoinedSession(editor, id, settings, store, place);
    const row = await store.session(id);
    session.#row = row;
    if (row?.model) session.#model = `${row.provider ?? '?'}/${row.model}`;
    session.#following = await followSession(
      store,
      settings.config.files,
      id,
      (seen) => {
        session.#see(seen);
      },
      { client: 'editor' },
    );
    if (await session.isRunning()) return session;
    await session.close();
    return null;
  }

  /** Resolves to true once a process runs the session, and to false if none does in time. */
  async isRunning(): Promise<boolean> {
    for (const begun = performance.now(); performance.now() - begun < longestJoinMs;) {
      if (this.#isLive === true) return true;
      await wait(betweenMs);
    }
    return this.#isLive === true;
  }

  state(): EditorState {
    return { modes: modeState(this.#mode), configOptions: this.#model === '' ? [] : [modelOption(this.#model, [])] };
  }

  async replay(): Promise<void> {
    const past = this.#past ?? (await this.#store.load(this.id)).filter(({ seq }) => seq <= this.#seq);
    this.#outbox.add(this.#updates.past(past));
    if (this.#past) this.#past = [];
    this.#outbox.add(this.#callUpdates(this.#started, 'in_progress'));
    await this.#outbox.taken();
  }

  begin(): void {
    if (this.#past === null) return;
    this.#updates.skip(this.#past);
    this.#past = null;
    const title = this.#row?.title ?? null;
    if (title !== null) this.#outbox.add([{ sessionUpdate: 'session_info_update', title }]);
    const servers = this.#hasServers ? ' The MCP servers of this editor are not used there.' : '';
    this.#outbox.add([thought(`Another process runs this session. It gets what you send, as text.${servers}`)]);
    this.#showText();
  }

  isOver(): boolean {
    return this.#isLive === false;
  }

  lastSeq(): number {
    return this.#seq;
  }

  /** The references of the prompts that the editor has sent. */
  sent(): ReadonlySet<string> {
    return new Set(this.#sent.keys());
  }

  async prompt({ ref, blocks }: Prompt): Promise<PromptResponse | 'over'> {
    const awaited = this.#turns.until(ref);
    const text = this.#sent.get(ref) ?? (await this.#textOf(blocks));
    // A cancel may have come meanwhile.
    if (this.#turns.isAwaited(ref)) await this.#send(ref, text);
    const end = await awaited;
    await this.#outbox.taken();
    if (end === 'over') return end;
    if (end === 'withdrawn') return { stopReason: 'cancelled' };
    if (end === 'lost') throw RequestError.internalError({ message: lostText }, lostText);
    return promptResponse(end.ended, this.#lastStop);
  }

  async #send(ref: string, text: string): Promise<void> {
    this.#sent.set(ref, text);
    const done = await this.#request({ type: 'message', ref, text, source: 'editor', when: 'steer' });
    if (done?.problem !== undefined) {
      this.#turns.withdraw(ref);
      throw RequestError.internalError({ message: done.problem }, done.problem);
    }
    if (done?.kept) this.#outbox.add([thought('The process that runs this session takes no messages now. It waits.')]);
    if (this.isOver()) this.#turns.leave();
  }

  /** Takes back what waits, and interrupts the turn. */
  cancel(): void {
    const unsent = this.#turns.unrecorded().filter((ref) => !this.#sent.has(ref));
    for (const ref of unsent) this.#turns.withdraw(ref);
    const waiting = this.#turns.unrecorded();
    const taken = waiting.map(async (ref) => {
      const done = await this.#request({ type: 'withdraw', id: ref });
      if (done === null) await this.#store.dropMessage(this.id, ref);
    });
    const interrupted = this.#request({ type: 'interrupt' });
    void Promise.allSettled([...taken, interrupted]).then(() => {
      const unrecorded = new Set(this.#turns.unrecorded());
      for (const ref of waiting) if (unrecorded.has(ref)) this.#turns.withdraw(ref);
    });
  }

  setMode(id: string): void {
    toMode(id);
    throw this.#setElsewhere({ modeId: id }, 'mode');
  }

  setOption(id: string): Promise<SessionConfigOption[]> {
    return Promise.reject(this.#setElsewhere({ configId: id }, id));
  }

  async close(): Promise<void> {
    for (const { asking } of this.#asks.values()) asking.abort();
    this.#turns.leave();
    await this.#following?.close();
    await this.#store.close();
  }

  #setElsewhere(data: object, name: string): RequestError {
    return RequestError.invalidParams(
      data,
      `the ${name} of this session is set in the process that runs it; agent attach ${this.id} opens it in a terminal`,
    );
  }

  async #request(message: Parameters<Following['request']>[0]): ReturnType<Following['request']> {
    return (await this.#following?.request(message)) ?? null;
  }

  async #textOf(blocks: Prompt['blocks']): Promise<string> {
    const files: { name: string; base64: string }[] = [];
    const text = await promptText(blocks, ({ name, data }) => {
      files.push({ name: this.#settings.guard.text(name), base64: data });
      return Promise.resolve('');
    });
    try {
      return openAttachedFiles(this.#settings.config.files, Date.now).withFiles(text, files);
    } catch (error) {
      throw unreadable(error instanceof Error ? error.message : String(error));
    }
  }

  #see(seen: SessionUpdate): void {
    switch (seen.type) {
      case 'events':
        for (const event of seen.events) this.#take(event);
        return;
      case 'text':
        this.#text = seen.text;
        this.#showText();
        return;
      case 'void':
        this.#text = '';
        this.#outbox.add([thought('The connection was lost in this answer, which is requested again.')]);
        return;
      case 'output':
        this.#show({ type: 'tool_output', callId: seen.callId, chunk: seen.text });
        return;
      case 'question':
        void this.#ask(seen.question);
        return;
      case 'answered':
        this.#answered(seen.id);
        return;
      case 'form':
        void this.#putForm(seen.form);
        return;
      case 'form_closed':
        this.#answered(seen.id);
        return;
      case 'held':
        this.#turns.end(0, {
          status: 'failed',
          held: seen.id,
          fault: { code: 'hook', message: seen.problem, hint: '' },
        });
        return;
      case 'live':
        this.#live(seen);
        return;
      default:
        seen satisfies never;
    }
  }

  #live({ live, busy, ended }: Extract<SessionUpdate, { readonly type: 'live' }>): void {
    const wasLive = this.#isLive;
    this.#isLive = live;
    if (ended) this.#turns.end(ended.seq, ended);
    // The end of a turn may be lost where this process read too slowly.
    else if (live && !busy) this.#turns.end(this.#seq, completed);
    if (!live && wasLive === true) this.#left();
    if (live && wasLive === false && this.#past === null)
      this.#outbox.add([thought('Another process continues this session.')]);
  }

  #left(): void {
    for (const { asking } of this.#asks.values()) asking.abort();
    this.#asks.clear();
    this.#outbox.add([
      ...this.#callUpdates(this.#calls.keys(), 'failed'),
      thought('The process that ran this session has ended. Your next message continues the session here.'),
    ]);
    this.#turns.leave();
  }

  #callUpdates(ids: Iterable<string>, status: ToolCallStatus): readonly EditorUpdate[] {
    return [...ids].map((toolCallId) => ({ sessionUpdate: 'tool_call_update', toolCallId, status }));
  }

  #take(event: Event): void {
    this.#seq = event.seq;
    this.#turns.take(event);
    this.#lastStop = stopOf(event) ?? this.#lastStop;
    this.#note(event);
    if (event.kind === 'assistant' || event.kind === 'tool_call') this.#text = '';
    if (this.#past) this.#past.push(event);
    else this.#show({ type: 'event', event });
    if (this.#text === '') this.#shownText = '';
  }

  #note(raw: Event): void {
    const event = knownEvent(raw);
    switch (event?.kind) {
      case 'tool_call':
        this.#calls.set(event.data.id, event.data);
        return;
      case 'tool_started':
        this.#started.add(event.data.tool_call_id);
        return;
      case 'tool_result':
        this.#calls.delete(event.data.tool_call_id);
        this.#started.delete(event.data.tool_call_id);
        this.#answered(event.data.tool_call_id);
        return;
      case 'approval':
        this.#answered(event.data.tool_call_id);
        return;
      case 'hook':
        if (event.data.updated_input !== undefined && event.data.tool_call_id !== undefined)
          this.#replaced.add(event.data.tool_call_id);
        return;
      case 'model':
        this.#model = event.content;
        if (this.#past === null)
          this.#outbox.add([{ sessionUpdate: 'config_option_update', configOptions: this.state().configOptions }]);
        return;
      case 'mode':
        this.#mode = event.data.plan ? 'plan' : (readMode(event.data.approval) ?? this.#mode);
        if (this.#past === null)
          this.#outbox.add([{ sessionUpdate: 'current_mode_update', currentModeId: this.#mode }]);
        return;
      default:
        return;
    }
  }

  #show(event: Parameters<Updates['see']>[0]): void {
    if (this.#past === null) this.#outbox.add(this.#updates.see(event));
  }

  /** Shows the part of the answer in flight that the editor lacks. */
  #showText(): void {
    if (this.#past !== null) return;
    const isMore = this.#text.startsWith(this.#shownText);
    const text = isMore ? this.#text.slice(this.#shownText.length) : this.#text;
    this.#shownText = this.#text;
    if (text !== '') this.#show({ type: 'text_delta', text });
  }

  #answered(id: string): void {
    this.#asks.get(id)?.asking.abort();
    this.#asks.delete(id);
  }

  async #ask(question: FollowerApproval): Promise<void> {
    const { id, shown, rules } = question;
    if (this.#asks.get(id)?.shown === shown) return;
    this.#answered(id);
    const asking = new AbortController();
    this.#asks.set(id, { shown, asking });
    await this.#outbox.taken();
    const call = this.#replaced.has(id) ? null : (this.#calls.get(id) ?? null);
    const request: RequestPermissionRequest = {
      sessionId: this.id,
      toolCall: { toolCallId: id, status: 'pending', ...askedElsewhere(question, call, this.#settings.cwd) },
      options: offeredAnswers(rules),
    };
    try {
      const chosen = await requestPermission(this.#client, request, asking.signal);
      if (chosen !== null && !asking.signal.aborted) await this.#answer(question, chosen);
    } catch (error) {
      if (!asking.signal.aborted)
        this.#settings.log({ at: 'acp', message: 'the editor did not answer a question', error: String(error) });
    }
  }

  async #putForm(form: FollowerForm): Promise<void> {
    const { id, shown } = form;
    if (this.#asks.get(id)?.shown === shown) return;
    this.#answered(id);
    if (!canShow({ showsForms: this.#showsForms }, shownForm(form, ''))) {
      this.#outbox.add([thought(`${form.from} asks something that this editor cannot show. Answer it elsewhere.`)]);
      return;
    }
    const asking = new AbortController();
    const { signal } = asking;
    this.#asks.set(id, { shown, asking });
    await this.#outbox.taken();
    const [toolCallId = id] = this.#started;
    const place = { client: this.#client, sessionId: this.id, toolCallId, showsForms: this.#showsForms, signal };
    try {
      for (let problem: string | null = ''; problem !== null && !signal.aborted;)
        problem = await this.#fill(form, await putToEditor(place, shownForm(form, problem)));
    } catch (error) {
      if (!signal.aborted)
        this.#settings.log({ at: 'acp', message: 'the editor did not show the form', error: String(error) });
    }
  }

  /** Sends the answer to a form. Returns why its values do not fit, so that the user can correct them; null if there is
   * nothing more to ask. */
  async #fill({ id, shown }: FollowerForm, answer: FormAnswer): Promise<string | null> {
    // The user may have closed it here to answer elsewhere.
    if (answer.answer !== 'filled' && answer.answer !== 'declined') return null;
    const values = answer.answer === 'filled' ? { values: answer.values } : {};
    const done = await this.#request({ type: 'fill', id, shown, source: 'editor', answer: answer.answer, ...values });
    if (done?.code === 'invalid') return done.problem ?? null;
    const problem = done ? done.problem : 'No process runs the session now. Nothing was answered.';
    if (problem !== undefined) this.#outbox.add([thought(problem)]);
    return null;
  }

  /** Sends the answer to what the editor has shown. It counts only if the call is still that one. */
  async #answer({ id, shown }: FollowerApproval, chosen: string): Promise<void> {
    const answer = chosen === 'once' ? 'once' : chosen === 'deny' ? 'deny' : 'session';
    const done = await this.#request({ type: 'answer', id, shown, answer, source: 'editor' });
    const problem = done ? done.problem : 'No process runs the session now. Nothing was answered.';
    if (problem !== undefined) this.#outbox.add([thought(problem)]);
  }
}

/** Returns the form to show in the editor, with what was wrong with the last answer. */
function shownForm({ from, title, message, fields }: FollowerForm, problem: string): Form {
  return {
    from,
    message: [problem, title ?? '', message].filter((text) => text !== '').join('\n'),
    fields: fields.map(({ name, question, label, kind, options, several, free, required, preset }) => ({
      name,
      question,
      kind,
      required,
      ...(label === null ? {} : { label }),
      ...(preset === null ? {} : { preset }),
      ...(several ? { several } : {}),
      ...(free ? { free } : {}),
      options: options.map((option) => ({
        value: option.value,
        label: option.label,
        ...(option.about === null ? {} : { about: option.about }),
      })),
    })),
  };
}

const completed: EndedTurn = { status: 'completed' };
