import { isDeepStrictEqual } from 'node:util';
import { CliError, exit } from '../../kernel/console/command.js';
import { type JsonObject, isRecord, type Json } from '../../kernel/core/json.js';
import type { PermissionAnswer, Question } from '../../kernel/core/policy.js';
import { type LoadedOnce, loadOnce } from '../../kernel/core/runtime.js';
import { takeTyped } from '../../kernel/core/message-queue.js';
import type { AgentEvent, SessionPort } from '../../kernel/core/session-port.js';
import { escapedJson } from '../../kernel/core/text.js';
import { type EndingSignal, onEndingSignal, turnExitCode } from '../../ui/ending.js';
import { type Answered, type Ask, createErrorPrinter, describeFault, type TurnLines } from './headless.js';
import { openOutput, type Output, printError } from '../../kernel/console/print.js';
import type { TakenImage } from '../../kernel/console/pictures.js';
import type { Notice } from '../../kernel/console/run-settings.js';
import { type ControlRequest, type InputLine, readInputLine, type InputMessage, splitLines } from './input-lines.js';

/** The session of the other program, once it has begun. */
export interface StreamConversation {
  readonly session: SessionPort;
  readonly ask: Ask;
  /** Saves all events. Returns the number of those that could not be saved. */
  readonly save: () => Promise<number>;
  /** The lines of one turn. */
  lines(): TurnLines;
  /** Printed before the first turn. */
  readonly notices: readonly Notice[];
}

/** The settings that the other program may change. Each method returns what is wrong, or null. */
export interface Controls {
  setModel(name: string | null): Promise<string | null>;
  setMode(mode: string): string | null;
  /** Returns the answer to `initialize`. */
  facts(): JsonObject;
}

export interface StreamInputOptions {
  readonly input: AsyncIterable<Uint8Array | string>;
  /** Begins the session. `systemPrompt`: what the other program adds to the prompt. */
  readonly begin: (systemPrompt: string | null) => Promise<StreamConversation>;
  readonly controls: Controls;
  /** Attaches an image. A message that contains its chip includes it. */
  readonly attach: (bytes: Uint8Array) => Promise<TakenImage>;
  /** The other program answers questions about calls. */
  readonly asks: boolean;
  /** Returns the name and arguments of a call in the dialect of the other program. */
  readonly named: (question: Question) => { readonly name: string; readonly input: Readonly<Record<string, unknown>> };
  /** True: the first line is repeated before every turn. */
  readonly announcesTurns: boolean;
  readonly verbose: boolean;
}

/** Holds a conversation with another program: each of its lines is a turn, and each turn ends with a `result`. Returns
 * the exit code of the last turn once the input has ended. Source: extensions 8. */
export async function runStreamInput(options: StreamInputOptions): Promise<number> {
  return await new StreamInput(options).run();
}

interface Pending {
  readonly callId: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly suggestions: readonly JsonObject[];
}

class StreamInput {
  readonly #options: StreamInputOptions;
  readonly #out: Output;
  readonly #toErrors: (event: AgentEvent) => void;
  readonly #questions = new Map<string, Pending>();
  #queue: string[] = [];
  /** Problems with the input from before the first turn. */
  #early: string[] = [];
  /** Neither a message nor a control line has come. */
  #isEmpty = true;
  readonly #conversation: LoadedOnce<StreamConversation>;
  #session: SessionPort | null = null;
  #lines: TurnLines | null = null;
  #working: Promise<unknown> = Promise.resolve();
  #systemPrompt: string | null = null;
  #exitCode: number = exit.done;
  #signal: EndingSignal | null = null;
  #isOver = false;
  #readerGone = false;
  #failure: { readonly error: unknown } | null = null;
  #asked = 0;
  #stop: () => void = () => undefined;

  constructor(options: StreamInputOptions) {
    this.#options = options;
    this.#conversation = loadOnce(() => this.#begin());
    this.#toErrors = createErrorPrinter(options.verbose, 'stream-json');
    this.#out = openOutput(() => {
      this.#readerGone = true;
      this.#end();
    });
  }

  async run(): Promise<number> {
    onEndingSignal((signal) => {
      this.#signal ??= signal;
      this.#end();
    });
    const stopped = new Promise<null>((resolve) => {
      this.#stop = () => {
        resolve(null);
      };
    });
    const lines = splitLines(this.#options.input);
    for (;;) {
      const next = await Promise.race([lines.next(), stopped]);
      if (next === null || next.done === true) break;
      await this.#take(readInputLine(next.value));
    }
    this.#isOver = true;
    for (const [id, { callId }] of this.#questions) this.#resolve(id, callId, { answer: 'unavailable' });
    await this.#working;
    // Without a session, standard output has no first line that these could follow.
    for (const message of this.#early) printError(`agent: ${message}\n`);
    await this.#out.drained();
    if (this.#failure) throw this.#failure.error;
    if (this.#signal) return turnExitCode(nothing, this.#signal);
    if (this.#readerGone) return exit.done;
    if (this.#isEmpty)
      throw new CliError(
        exit.usage,
        'standard input had no message',
        'Send {"type":"user","message":{"role":"user","content":"…"}} as a line.',
      );
    return this.#exitCode;
  }

  #end(): void {
    this.#queue = [];
    this.#session?.interrupt();
    this.#stop();
  }

  #print(line: JsonObject): void {
    this.#out.write(`${escapedJson(JSON.stringify(line))}\n`);
  }

  async #take(line: InputLine): Promise<void> {
    switch (line.type) {
      case 'message': {
        const text = await this.#told(line);
        if (text === '') return;
        this.#isEmpty = false;
        if (line.now && this.#session?.busy() === true) this.#session.enqueue({ text, when: 'steer' });
        else this.#queue.push(text);
        this.#work();
        return;
      }
      case 'request':
        this.#isEmpty = false;
        await this.#control(line.id, line.request);
        return;
      case 'response':
        this.#isEmpty = false;
        this.#answered(line.id, line.response);
        return;
      case 'unreadable':
        this.#problem(line.problem);
        return;
      case 'nothing':
        return;
      default:
        line satisfies never;
    }
  }

  /** Returns the text of a message with the chips of its images. */
  async #told({ text, files, leftOut }: InputMessage): Promise<string> {
    if (leftOut.length > 0) this.#problem(`removed from a message: ${leftOut.join(', ')}`);
    const parts = [text];
    for (const file of files) {
      const taken = await this.#options.attach(file);
      if (taken.ok) parts.push(taken.chip);
      else this.#problem(taken.problem);
    }
    return parts.filter((part) => part !== '').join('\n');
  }

  /** The `session` line is the first, so what comes before it waits for it. */
  #problem(message: string): void {
    if (this.#lines === null) this.#early.push(message);
    else this.#print(inputError(message));
  }

  /** Works off the queue, one turn after the other; a slow reader holds up the next one. */
  #work(): void {
    this.#working = this.#working.then(() => this.#turns());
  }

  async #turns(): Promise<void> {
    try {
      const conversation = await this.#conversation.get();
      for (let text = this.#queue.shift(); text !== undefined; text = this.#queue.shift()) {
        const isFirst = this.#lines === null;
        this.#lines = conversation.lines();
        if (isFirst || this.#options.announcesTurns) this.#print(this.#lines.first());
        for (const message of this.#early.splice(0)) this.#print(inputError(message));
        if (isFirst) for (const notice of conversation.notices) this.#see({ type: 'notice', ...notice });
        const end = await conversation.ask(text);
        const unsaved = await conversation.save();
        this.#print(this.#lines.last({ ...end, unsaved }));
        if (end.fault) printError(describeFault(end.fault));
        this.#exitCode = turnExitCode(end, null, unsaved);
        // What came too late for the turn is a turn of its own.
        this.#queue = [...takeTyped(conversation.session).map((message) => message.text), ...this.#queue];
        await this.#out.drained();
      }
    } catch (error) {
      this.#queue = [];
      this.#failure = { error };
      this.#stop();
    }
  }

  async #begin(): Promise<StreamConversation> {
    const conversation = await this.#options.begin(this.#systemPrompt);
    this.#session = conversation.session;
    conversation.session.subscribe((event) => {
      this.#see(event);
    });
    return conversation;
  }

  #see(event: AgentEvent): void {
    this.#toErrors(event);
    this.#lines?.see(event).forEach((line) => {
      this.#print(line);
    });
    if (event.type === 'form_opened') this.#session?.answer(event.id, { answer: 'cancelled' });
    if (event.type === 'approval_requested') this.#ask(event.question);
    if (event.type === 'approval_resolved') this.#withdraw(event.callId);
  }

  #ask(question: Question): void {
    const { callId, verdict } = question;
    if (!this.#options.asks || this.#isOver) {
      this.#session?.answer(callId, { answer: 'unavailable' });
      return;
    }
    this.#asked += 1;
    const id = `ask_${this.#asked}`;
    const { name, input } = this.#options.named(question);
    const suggestions = suggestionsOf(question, name);
    this.#questions.set(id, { callId, input, suggestions });
    this.#print({
      type: 'control_request',
      request_id: id,
      request: {
        subtype: 'can_use_tool',
        tool_name: name,
        input: input as Json,
        tool_use_id: callId,
        decision_reason: verdict.reasons.join('; '),
        ...(suggestions.length > 0 ? { permission_suggestions: suggestions } : {}),
      },
    });
  }

  #answered(id: string, response: Readonly<Record<string, unknown>> | null): void {
    const pending = this.#questions.get(id);
    if (!pending) return;
    this.#resolve(id, pending.callId, answerOf(pending, response));
    if (response?.['interrupt'] === true) this.#session?.interrupt();
  }

  #resolve(id: string, callId: string, answer: PermissionAnswer): void {
    this.#questions.delete(id);
    this.#session?.answer(callId, answer);
  }

  /** Takes a question back that is over without an answer. */
  #withdraw(callId: string): void {
    for (const [id, pending] of this.#questions) {
      if (pending.callId !== callId) continue;
      this.#questions.delete(id);
      this.#print({ type: 'control_cancel_request', request_id: id });
    }
  }

  async #control(id: string, request: ControlRequest): Promise<void> {
    const problem = await this.#carriedOut(request).catch((error: unknown) =>
      error instanceof Error ? error.message : String(error),
    );
    const response = request.subtype === 'initialize' ? this.#options.controls.facts() : {};
    this.#print({
      type: 'control_response',
      response:
        problem === null
          ? { subtype: 'success', request_id: id, response }
          : { subtype: 'error', request_id: id, error: problem },
    });
  }

  /** Returns what is wrong, or null. */
  async #carriedOut(request: ControlRequest): Promise<string | null> {
    switch (request.subtype) {
      case 'initialize':
        return this.#initialized(request);
      case 'interrupt':
        this.#session?.interrupt();
        return null;
      case 'set_model': {
        const { model } = request;
        if (model === '' || (typeof model !== 'string' && model !== undefined && model !== null))
          return `set_model: the model is ${JSON.stringify(model).slice(0, 80)}, not a name`;
        await this.#conversation.get();
        return await this.#options.controls.setModel(typeof model === 'string' && model !== 'default' ? model : null);
      }
      case 'set_permission_mode':
        return typeof request['mode'] === 'string'
          ? this.#options.controls.setMode(request['mode'])
          : `set_permission_mode: the mode is ${JSON.stringify(request['mode'])?.slice(0, 80) ?? 'missing'}, not a name`;
      default:
        return `${request.subtype} is not supported; use initialize, interrupt, set_model or set_permission_mode`;
    }
  }

  /** Refuses parts that are meant to guard something and that would otherwise be ignored silently. */
  #initialized({ hooks, sdkMcpServers, ...request }: ControlRequest): string | null {
    if (isRecord(hooks) && Object.keys(hooks).length > 0)
      return 'hooks of the calling program are not supported; put them into hooks.json (agent hooks)';
    if (Array.isArray(sdkMcpServers) && sdkMcpServers.length > 0)
      return 'MCP servers of the calling program are not supported; add them to mcp.json (agent mcp add)';
    const parts = [request['systemPrompt'], request['appendSystemPrompt']].flat();
    const text = parts.filter((part) => typeof part === 'string' && part !== '').join('\n\n');
    if (text === '') return null;
    if (this.#conversation.started()) return 'the session has started; its system prompt cannot change';
    this.#systemPrompt = text;
    return null;
  }
}

function inputError(message: string): JsonObject {
  return { type: 'error', code: 'bad_input', message };
}

const nothing: Answered = { status: 'interrupted', text: '', turns: 0, toolCalls: 0, denials: [] };

/** The rules that policy offers, as the other program may give them back. */
function suggestionsOf({ verdict: { rules = [] } }: Question, name: string): readonly JsonObject[] {
  if (rules.length === 0) return [];
  const listed = rules.map(({ argv, path, exact }) => {
    const content = argv ? `${argv.join(' ')}${exact ? '' : ' *'}` : path;
    return { toolName: name, ...(content === undefined ? {} : { ruleContent: content }) };
  });
  return [{ type: 'addRules', rules: listed, behavior: 'allow', destination: 'session' }];
}

/** A yes is one to the call as it was asked about: with another input it is a no that says which. */
function answerOf(
  { input, suggestions }: Pending,
  response: Readonly<Record<string, unknown>> | null,
): Extract<PermissionAnswer, { readonly answer: 'once' | 'rules' | 'deny' }> {
  const { behavior, message, updatedInput, updatedPermissions } = response ?? {};
  if (behavior !== 'allow')
    return { answer: 'deny', ...(typeof message === 'string' && message !== '' ? { message } : {}) };
  const changed = isRecord(updatedInput) && Object.keys(updatedInput).length > 0 ? updatedInput : input;
  if (!isDeepStrictEqual(changed, input))
    return {
      answer: 'deny',
      message: `not run; make the call again with this input: ${JSON.stringify(changed)}`,
    };
  const isRuled = suggestions.length > 0 && isDeepStrictEqual(updatedPermissions, suggestions);
  return isRuled ? { answer: 'rules', lasts: 'session' } : { answer: 'once' };
}
