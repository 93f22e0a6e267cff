import { createAgentSession, type Assembly, openRun, type Run } from '../../app/create-session.js';
import { createTurnLines } from '../headless/headless.js';
import { readSettings, withSystemPrompt } from '../../app/settings.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import type { JsonObject } from '../../kernel/core/json.js';
import type { PermissionAnswer, Question } from '../../kernel/core/policy.js';
import { type LoadedOnce, loadOnce } from '../../kernel/core/runtime.js';
import { type Registry, type Risk } from '../../kernel/core/tool.js';
import { inTestMode, inToolset } from '../../kernel/tools/builtin.js';
import { type CompileSchema, createRegistry, loadSchemaCompiler } from '../../kernel/tools/registry.js';
import { type CustomTool, toTool } from '../../kernel/tools/authored-tool.js';

export interface AgentOptions {
  /** The working directory. Default: that of the process. */
  readonly cwd?: string;
  /** `[provider/]model`; without it the one of the user's settings. */
  readonly model?: string;
  /** The place of sessions: memory, or a SQLite file. Default `memory`. */
  readonly store?: 'memory' | (string & {});
  /** Tools of your own. */
  readonly tools?: readonly CustomTool[];
  /** Tools and sets of the program to offer beside them (`['fs', 'bash']`); none by default. */
  readonly builtins?: readonly string[];
  /** Answers the questions of policy. Without it every call that needs a yes is denied. */
  readonly approve?: (question: ApprovalQuestion) => ApprovalAnswer | Promise<ApprovalAnswer>;
  /** Tools that write, run programs or use the network answer canned output. */
  readonly test?: boolean;
  /** Settings by key, over those of the user: `{ profile: 'embedded', 'http.max_retries': 0 }`. */
  readonly settings?: Readonly<Record<string, unknown>>;
}

export interface ApprovalQuestion {
  readonly callId: string;
  readonly tool: string;
  /** JSON, as the model wrote it. */
  readonly arguments: string;
  readonly risk: Risk;
  /** Sentences, most important first. */
  readonly reasons: readonly string[];
}

/** `session`: also this exact call for the rest of the session. */
export type ApprovalAnswer = 'once' | 'session' | { readonly deny: string };

export interface Agent {
  /** Adds a tool at once. Throws while a session is open, for a name that is taken and for a schema that cannot be
   * used. */
  registerTool(tool: CustomTool): void;
  /** Throws while a session is open; false where there is no such tool. */
  unregisterTool(name: string): boolean;
  /** The names of all tools. */
  listTools(): readonly string[];
  createSession(options?: SessionOptions): AgentSession;
  /** Ends what runs, closes all sessions, and saves what is not saved. */
  close(): Promise<ClosedReport>;
}

export interface ClosedReport {
  /** Events that could not be saved; stderr has the reason. */
  readonly unsaved: number;
}

export interface SessionOptions {
  /** An id, a unique prefix of one, or a title. */
  readonly resume?: string;
  /** With `resume`: continue in a copy. */
  readonly fork?: boolean;
  /** After the program's own prompt. */
  readonly systemPrompt?: string;
  /** False: the model is given no tools. */
  readonly allow_tools?: boolean;
  /** The most calls of the whole session. */
  readonly max_tool_calls?: number;
}

export interface RunOptions {
  readonly signal?: AbortSignal;
  /** False: the model answers this request without tools. */
  readonly allow_tools?: boolean;
  /** The most calls of this request. */
  readonly max_tool_calls?: number;
}

/** A conversation. It is open from its first request until it is closed. */
export interface AgentSession {
  /** Runs one request and yields what happens. A reader that stops early ends the turn. */
  run(prompt: string, options?: RunOptions): AsyncIterableIterator<StreamEvent>;
  /** Runs one request and returns its result. */
  prompt(prompt: string, options?: RunOptions): Promise<ResultEvent>;
  close(): Promise<ClosedReport>;
}

export interface Usage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cache_read_tokens: number;
  readonly cache_write_tokens: number;
  /** Null where it is not known. */
  readonly cost_usd: number | null;
}

/** The objects that `--output-format stream-json` prints, one a line. */
export type StreamEvent =
  | {
      readonly type: 'session';
      readonly session_id: string;
      readonly provider: string;
      readonly model: string;
      readonly cwd: string;
      readonly tools: readonly string[];
      readonly version: string;
    }
  | { readonly type: 'text_delta'; readonly text: string }
  | { readonly type: 'assistant'; readonly content: string }
  | {
      readonly type: 'tool_call';
      readonly id: string;
      readonly name: string;
      readonly arguments: string;
      readonly content: string;
    }
  | {
      readonly type: 'tool_result';
      readonly tool_call_id: string;
      readonly name: string;
      /** The envelope, as JSON. */
      readonly output: string;
      readonly success: boolean;
      readonly duration_ms: number;
      readonly content: string;
    }
  /** `agent_session_id`: an agent used it, in a session of its own. */
  | ({ readonly type: 'usage'; readonly agent_session_id?: string } & Usage)
  | GoalEvent
  | LimitEvent
  | { readonly type: 'notice' | 'error'; readonly code: string; readonly message: string }
  | SubagentEvent
  | ResultEvent;

/** An event of the goal of the session. */
interface GoalEvent {
  readonly type: 'goal';
  readonly state: 'set' | 'checked' | 'met' | 'paused' | 'resumed' | 'ended';
  readonly condition: string;
  /** The command whose exit code 0 meets it. */
  readonly check: string | null;
  readonly turns: number;
  readonly content: string;
}

/** A usage limit of the provider was reached, is waited for, or is over. */
interface LimitEvent {
  readonly type: 'limit';
  readonly state: 'reached' | 'set' | 'continued' | 'ended';
  readonly provider: string;
  readonly model: string;
  /** ISO 8601, UTC. */
  readonly retry_at: string;
  readonly content: string;
  readonly cause?: 'user' | 'model' | 'again';
}

/** A step of a sub-agent in the background or in a worktree. */
interface SubagentEvent {
  readonly type: 'agent';
  readonly state: 'started' | 'ended' | 'merged' | 'discarded';
  readonly agent_session_id: string;
  /** Its name. */
  readonly agent: string;
  readonly background: boolean;
  readonly content: string;
  readonly outcome?: 'completed' | 'limit_reached' | 'failed' | 'stopped' | 'interrupted';
  /** The path of its worktree. */
  readonly worktree?: string;
}

/** Always the last one. */
export interface ResultEvent {
  readonly type: 'result';
  readonly status: 'completed' | 'limit_reached' | 'failed' | 'interrupted';
  readonly text: string;
  readonly session_id: string;
  /** Responses that asked for tools. */
  readonly turns: number;
  readonly tool_calls: number;
  readonly usage: Usage;
  readonly duration_ms: number;
  /** The calls that were not allowed, also those of sub-agents. */
  readonly denials: readonly DeniedCall[];
  /** Events that are in memory only so far. */
  readonly unsaved?: number;
  /** `retry_at`: when the usage limit of the provider ends that was reached (ISO 8601, UTC). */
  readonly error?: { readonly code: string; readonly message: string; readonly retry_at?: string };
}

export interface DeniedCall {
  readonly tool_call_id: string;
  readonly name: string;
  /** The call on one line. */
  readonly content: string;
  readonly reason: string;
  /** The session of the sub-agent that made the call. */
  readonly agent_session_id?: string;
}

export async function openAgent(options: AgentOptions): Promise<Agent> {
  const { builtins = [], store = 'memory', test, tools = [] } = options;
  const settings = await settingsOf(options);
  const given: Parameters<typeof openRun>[1] = {
    ephemeral: store === 'memory',
    tools: builtins.length === 0 ? false : builtins.join(','),
    outputFormat: 'stream-json',
    set: [],
    ...(test === undefined ? {} : { test }),
  };
  const run = await openRun(settings, given, { canAsk: false, updating: () => undefined });
  const agent = new OpenAgent(run, options, await loadSchemaCompiler());
  try {
    for (const tool of tools) agent.registerTool(tool);
  } catch (error) {
    await agent.close();
    throw error;
  }
  return agent;
}

async function settingsOf({ cwd, model, store = 'memory', test, settings = {} }: AgentOptions): Promise<Settings> {
  const read = await readSettings({
    ephemeral: store === 'memory',
    set: Object.entries(settings).map(
      ([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
    ),
    ...(cwd === undefined ? {} : { cwd }),
    ...(model === undefined ? {} : { model }),
    ...(test === undefined ? {} : { test }),
  });
  if (store === 'memory') return read;
  return { ...read, config: { ...read.config, files: { ...read.config.files, database: store } } };
}

const customSet = { name: 'custom', on: false, about: 'Offer custom tools.' };

class OpenAgent implements Agent {
  readonly #run: Run;
  readonly #options: AgentOptions;
  readonly #compile: CompileSchema;
  readonly #open = new Set<OpenSession>();

  constructor(run: Run, options: AgentOptions, compile: CompileSchema) {
    this.#run = run;
    this.#options = options;
    this.#compile = compile;
  }

  registerTool(tool: CustomTool): void {
    this.#refuseInSession(`register ${tool.name}`);
    const { settings, toolbox } = this.#run;
    const made = toTool(tool, this.#compile);
    const own = inToolset(customSet, [made]);
    for (const ready of settings.testMode ? inTestMode(own) : own)
      toolbox.registry.register(ready, settings.config.tools.limits[ready.name]);
  }

  unregisterTool(name: string): boolean {
    this.#refuseInSession(`unregister ${name}`);
    return this.#run.toolbox.registry.unregister(name);
  }

  listTools(): readonly string[] {
    return this.#run.toolbox.registry.list().map((tool) => tool.name);
  }

  createSession(options: SessionOptions = {}): AgentSession {
    const session: OpenSession = new OpenSession(this.#run, options, {
      approve: this.#options.approve,
      opened: () => {
        this.#open.add(session);
      },
      closed: () => {
        this.#open.delete(session);
      },
    });
    return session;
  }

  async close(): Promise<ClosedReport> {
    const closed = await Promise.all([...this.#open].map((session) => session.close()));
    await this.#run.close();
    return { unsaved: closed.reduce((sum, { unsaved }) => sum + unsaved, 0) };
  }

  /** The tools are the start of every prompt of a session: one more would void the provider's cache of it. */
  #refuseInSession(what: string): void {
    if (this.#open.size > 0) throw new Error(`cannot ${what} while a session is open: close it first`);
  }
}

interface Host {
  readonly approve: AgentOptions['approve'];
  readonly opened: () => void;
  readonly closed: () => void;
}

class OpenSession implements AgentSession {
  readonly #host: Host;
  readonly #options: SessionOptions;
  readonly #toolNames: readonly string[];
  readonly #chat: LoadedOnce<Assembly>;
  /** Calls that the request which runs may make. */
  #turnCalls = Number.POSITIVE_INFINITY;
  #callsMade = 0;
  #isRunning = false;
  #isTold = false;
  readonly #notices: Run['notices'];

  constructor(run: Run, options: SessionOptions, host: Host) {
    const registry = options.allow_tools === false ? emptyRegistry() : run.toolbox.registry;
    this.#host = host;
    this.#options = options;
    this.#notices = run.notices;
    this.#toolNames = registry.list().map((tool) => tool.name);
    const choice = { continueNewest: false, resume: options.resume ?? null, fork: options.fork === true };
    const own: Run = {
      ...run,
      toolbox: { ...run.toolbox, registry },
      settings:
        options.systemPrompt === undefined ? run.settings : withSystemPrompt(run.settings, options.systemPrompt),
      turnCalls: () => this.#turnCalls,
    };
    this.#chat = loadOnce(() => createAgentSession(own, choice, host.approve !== undefined));
  }

  async *run(prompt: string, options: RunOptions = {}): AsyncIterableIterator<StreamEvent> {
    if (this.#isRunning) throw new Error('a request of this session is running: wait until it ends');
    this.#isRunning = true;
    try {
      const chat = await this.#opened();
      this.#turnCalls = this.#allowed(options);
      for await (const line of this.#lines(chat, prompt, options.signal)) {
        if (line.type === 'result') this.#callsMade += Number(line.tool_calls);
        // Contracts 4 gives the lines these types.
        yield line as StreamEvent;
      }
    } finally {
      this.#isRunning = false;
    }
  }

  async prompt(prompt: string, options: RunOptions = {}): Promise<ResultEvent> {
    for await (const event of this.run(prompt, options)) if (event.type === 'result') return event;
    throw new Error('the request ended without a result');
  }

  async close(): Promise<ClosedReport> {
    const chat = await this.#chat.started()?.catch(() => null);
    this.#host.closed();
    return { unsaved: (await chat?.close()) ?? 0 };
  }

  async #opened(): Promise<Assembly> {
    this.#host.opened();
    try {
      return await this.#chat.get();
    } catch (error) {
      this.#host.closed();
      throw error;
    }
  }

  #allowed({ allow_tools, max_tool_calls = Number.POSITIVE_INFINITY }: RunOptions): number {
    if (allow_tools === false) return 0;
    const left = (this.#options.max_tool_calls ?? Number.POSITIVE_INFINITY) - this.#callsMade;
    return Math.max(0, Math.min(left, max_tool_calls));
  }

  async *#lines({ session, notices }: Assembly, prompt: string, signal?: AbortSignal): AsyncIterable<JsonObject> {
    const queue = createLineQueue();
    const lines = createTurnLines({ session, toolNames: this.#toolNames, now: () => performance.now() });
    queue.push(lines.first());
    const stop = session.subscribe((event) => {
      lines.see(event).forEach(queue.push);
      if (event.type === 'form_opened') session.answer(event.id, { answer: 'cancelled' });
      if (event.type === 'approval_requested')
        void this.#answer(event.question).then((answer) => {
          session.answer(event.question.callId, answer);
        });
    });
    for (const notice of this.#isTold ? [] : [...this.#notices(), ...notices])
      lines.see({ type: 'notice', ...notice }).forEach(queue.push);
    this.#isTold = true;
    const interrupt = (): void => {
      session.interrupt();
    };
    const turn = session.submit(prompt, { source: 'api', note: false, typed: true }).then((end) => {
      queue.push(lines.last({ ...end, unsaved: session.record.unsaved().length }));
      queue.end();
    });
    // A signal of its own: many sessions may share the caller's, which warns of more than ten listeners.
    const stopped = signal && AbortSignal.any([signal]);
    stopped?.addEventListener('abort', interrupt, { once: true });
    if (stopped?.aborted) interrupt();
    try {
      yield* queue.lines();
    } finally {
      interrupt();
      await turn;
      stop();
      stopped?.removeEventListener('abort', interrupt);
    }
  }

  async #answer({ callId, call, argumentsText, verdict }: Question): Promise<PermissionAnswer> {
    const { risk, reasons } = verdict;
    const question = { callId, tool: call.tool.name, arguments: argumentsText, risk, reasons };
    try {
      const answer = (await this.#host.approve?.(question)) ?? { deny: '' };
      return typeof answer === 'string' ? { answer } : { answer: 'deny', message: answer.deny };
    } catch (error) {
      return {
        answer: 'deny',
        message: `the approver failed: ${error instanceof Error ? error.message : String(error)}`,
      };
    }
  }
}

function emptyRegistry(): Registry {
  return createRegistry({ maxOutputBytes: 1, now: () => 0 });
}

/** Lines on their way to a reader that may be slow. Texts that wait are joined, so that what waits is no longer than
 * the answer; no other line is merged or dropped. */
interface LineQueue {
  readonly push: (line: JsonObject) => void;
  /** No more lines will come. */
  end(): void;
  /** For one reader. */
  lines(): AsyncIterable<JsonObject>;
}

function createLineQueue(): LineQueue {
  const waiting: JsonObject[] = [];
  let isEnded = false;
  let wake = (): void => undefined;
  return {
    push: (line) => {
      const last = waiting.at(-1);
      const isText = line.type === 'text_delta' && last?.type === 'text_delta';
      if (isText && typeof line.text === 'string' && typeof last.text === 'string')
        waiting[waiting.length - 1] = { ...last, text: last.text + line.text };
      else waiting.push(line);
      wake();
    },
    end: () => {
      isEnded = true;
      wake();
    },
    async *lines() {
      for (;;) {
        const line = waiting.shift();
        if (line) yield line;
        else if (isEnded) return;
        else
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
      }
    },
  };
}
