import { maxJsonDepth } from '../../kernel/core/json.js';
import { largestOf } from '../../kernel/core/lists.js';
import { isAbsolute } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  agent,
  type AgentApp,
  type AgentContext,
  type AnyMessage,
  type ContentBlock,
  type InitializeResponse,
  type McpServer,
  methods,
  ndJsonStream,
  type PromptResponse,
  RequestError,
  type RequestPermissionRequest,
  type SessionConfigOption,
  type SessionModeState,
  type SessionUpdate,
} from '@agentclientprotocol/sdk';
import { CliError, exit } from '../../kernel/console/command.js';
import { type Event, knownEvent, type Stop } from '../../kernel/core/event.js';
import type { Form } from '../../kernel/core/form.js';
import { isDeeperThan } from '../../kernel/core/json.js';
import type { ApprovalMode, Question } from '../../kernel/core/policy.js';
import type { ModelRef } from '../../kernel/core/projection.js';
import { takeTyped } from '../../kernel/core/message-queue.js';
import type { SentBy, SessionPort, TurnEnd } from '../../kernel/core/session-port.js';
import { builtInPresets, resolveProvider } from '../../kernel/providers/catalog.js';
import { findModel, knownModels } from '../../kernel/providers/models.js';
import { endingSignals, onEndingSignal } from '../../ui/ending.js';
import type { RootOptions } from '../../kernel/console/options.js';
import { onLostStream, outputForPrograms, printError } from '../../kernel/console/print.js';
import { createAgentSession, type Assembly, openRun, type Run } from '../../app/create-session.js';
import type { SessionChoice } from '../../kernel/console/run-settings.js';
import { recordEffort } from '../../app/context-files.js';
import { resolveModel } from '../../app/model-resolution.js';
import { readSettings } from '../../app/settings.js';
import { version } from '../../kernel/console/version.js';
import { putToEditor } from './editor-forms.js';
import { maxLineBytes, splitLines } from '../headless/input-lines.js';
import { answersTo, askedCall, Outbox, thought, Updates } from './editor-updates.js';

/** Serves an editor over standard input and output until it closes them. Standard output carries the protocol and
 * nothing else. Returns the exit code. Source: Agent Client Protocol, version 1, read 2026-11-22. */
export async function serveEditors(options: RootOptions): Promise<number> {
  const open = new Map<string, EditorSession>();
  const { readable, writable } = ndJsonStream(outputForPrograms(), bytesOf(process.stdin));
  const messages = readable.pipeThrough(new TransformStream({ transform: passShallow }));
  const connection = createApp(options, open).connect({ readable: messages, writable });
  const code = await new Promise<number>((resolve) => {
    const gone = (): void => {
      resolve(exit.done);
    };
    void connection.closed.then(gone);
    onLostStream(gone);
    onEndingSignal((signal) => {
      resolve(endingSignals[signal]);
    });
  });
  await Promise.all([...open.values()].map((session) => session.close()));
  connection.close();
  return code;
}

/** Passes a message on. One that is nested so deeply that reading it would overflow the stack loses its contents, so
 * that its request is refused and the connection stays. */
function passShallow(message: AnyMessage, to: TransformStreamDefaultController<AnyMessage>): void {
  if (!isDeeperThan(message, maxJsonDepth)) {
    to.enqueue(message);
    return;
  }
  const { id, method } = { id: null, method: '', ...message };
  const isPlain = typeof id === 'string' || typeof id === 'number';
  if (method !== '') to.enqueue({ jsonrpc: '2.0', method, params: {}, ...(isPlain ? { id } : {}) });
  else if (isPlain) to.enqueue({ jsonrpc: '2.0', id, error: { code: -32_600, message: 'it is nested too deeply' } });
}

/** Returns the lines of `input`. One that is too long becomes a bracket that nothing closes, which the protocol refuses
 * with an answer. */
function bytesOf(input: NodeJS.ReadStream): ReadableStream<Uint8Array> {
  const lines = splitLines(input);
  return new ReadableStream({
    pull: async (controller) => {
      const { done, value } = await lines.next();
      if (done) {
        controller.close();
        return;
      }
      if (value === null) printError(`agent: A line is longer than ${maxLineBytes} bytes and was skipped.\n`);
      controller.enqueue(Buffer.from(`${value ?? '{'}\n`));
    },
  });
}

type OpenSessions = Map<string, EditorSession>;

const introduction: InitializeResponse = {
  protocolVersion: 1,
  agentInfo: { name: 'agent', title: 'agent', version },
  agentCapabilities: {
    loadSession: true,
    mcpCapabilities: { http: true },
    promptCapabilities: { image: true, embeddedContext: true },
    sessionCapabilities: { list: {}, resume: {}, close: {} },
  },
  authMethods: [],
};

/** The other end of the connection. */
interface Editor {
  readonly client: AgentContext;
  readonly showsForms: boolean;
}

function createApp(options: RootOptions, open: OpenSessions): AgentApp {
  let showsForms = false;
  const opened = async (client: AgentContext, place: Place, choice: SessionChoice): Promise<EditorSession> => {
    const session = await refusing(() => openEditorSession(options, { client, showsForms }, place, choice));
    open.set(session.id, session);
    return session;
  };
  const found = (id: string): EditorSession => {
    const session = open.get(id);
    if (!session) throw RequestError.sessionNotFound(id);
    return session;
  };
  const again = async (client: AgentContext, place: Place, id: string): Promise<EditorSession> =>
    open.get(id) ?? (await opened(client, place, { continueNewest: false, resume: id, fork: false }));
  return agent({ name: 'agent' })
    .onRequest(methods.agent.initialize, ({ params }) => {
      showsForms = Boolean(params.clientCapabilities?.elicitation?.form);
      return introduction;
    })
    .onRequest(methods.agent.session.new, async ({ client, params }) => {
      const session = await opened(client, params, { continueNewest: false, resume: null, fork: false });
      return { sessionId: session.id, ...session.state() };
    })
    .onRequest(methods.agent.session.load, async ({ client, params }) => {
      const session = await again(client, params, params.sessionId);
      await session.replay();
      return session.state();
    })
    .onRequest(methods.agent.session.resume, async ({ client, params }) =>
      (await again(client, params, params.sessionId)).state(),
    )
    .onRequest(methods.agent.session.prompt, ({ params }) => found(params.sessionId).prompt(params.prompt))
    .onNotification(methods.agent.session.cancel, ({ params }) => {
      open.get(params.sessionId)?.cancel();
    })
    .onRequest(methods.agent.session.setMode, ({ params }) => {
      found(params.sessionId).setMode(params.modeId);
      return {};
    })
    .onRequest(methods.agent.session.setConfigOption, async ({ params }) => ({
      configOptions: await refusing(() => found(params.sessionId).setOption(params.configId, params.value)),
    }))
    .onRequest(methods.agent.session.list, async ({ params }) => await listSessionPage(options, params))
    .onRequest(methods.agent.session.close, async ({ params }) => {
      await open.get(params.sessionId)?.close();
      open.delete(params.sessionId);
      return {};
    });
}

/** The directory and the servers of a session that an editor opens. */
interface Place {
  readonly cwd: string;
  readonly mcpServers?: readonly McpServer[];
}

/** Makes an error of the protocol of one that the user can act on. */
async function refusing<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    const message = `${error.message}. ${error.hint}`.trim();
    throw error.exitCode === exit.failed
      ? RequestError.internalError({ message }, message)
      : RequestError.invalidParams({ message }, message);
  }
}

const pageSize = 50;

/** Returns a page of the recorded sessions, newest first. The cursor is the number of sessions already listed. */
async function listSessionPage(
  options: RootOptions,
  { cwd, cursor }: { readonly cwd?: string | null; readonly cursor?: string | null },
) {
  const from = Number(cursor ?? 0);
  if (!Number.isInteger(from) || from < 0)
    throw RequestError.invalidParams({ cursor }, `\`${cursor ?? ''}\` is not a cursor of this agent`);
  const run = await refusing(async () => openRun(await readSettings({ ...options, ...(cwd ? { cwd } : {}) }), options));
  try {
    const rows = await run.store.list(from + pageSize + 1, cwd ?? undefined);
    const more = rows.length > from + pageSize ? { nextCursor: String(from + pageSize) } : {};
    return {
      sessions: rows.slice(from, from + pageSize).map((row) => ({
        sessionId: row.id,
        cwd: row.cwd,
        title: row.title ?? row.prompt,
        updatedAt: new Date(row.updatedAt).toISOString(),
      })),
      ...more,
    };
  } finally {
    await run.close();
  }
}

async function openEditorSession(
  options: RootOptions,
  editor: Editor,
  { cwd, mcpServers = [] }: Place,
  choice: SessionChoice,
): Promise<EditorSession> {
  if (!isAbsolute(cwd)) throw RequestError.invalidParams({ cwd }, `cwd is not an absolute path: ${cwd}`);
  const given = { ...options, cwd };
  const settings = await readSettings(given);
  const givenServers = serverEntries(mcpServers);
  const withServers = mcpServers.length === 0 ? settings : { ...settings, givenServers };
  const run = await openRun(withServers, given, { canAsk: true });
  try {
    return new EditorSession(editor, run, await createAgentSession(run, choice, true));
  } catch (error) {
    await run.close();
    throw error;
  }
}

const maxNameChars = 24;

/** Servers as `mcp.json` has them. Editors name theirs as they like: of names that become the same one here, the later
 * ones end in a number. */
function serverEntries(servers: readonly McpServer[]): Readonly<Record<string, Readonly<Record<string, unknown>>>> {
  const entries = new Map<string, Readonly<Record<string, unknown>>>();
  for (const server of servers) {
    const plain = server.name.replaceAll(/[^A-Za-z0-9-]+/g, '_').slice(0, maxNameChars) || '_';
    let name = plain;
    for (let number = 2; entries.has(name); number++) {
      const end = `-${number}`;
      name = `${plain.slice(0, maxNameChars - end.length)}${end}`;
    }
    entries.set(name, serverEntry(server));
  }
  return Object.fromEntries(entries);
}

function serverEntry(server: McpServer): Readonly<Record<string, unknown>> {
  const pairs = (list: readonly { readonly name: string; readonly value: string }[]): Record<string, string> =>
    Object.fromEntries(list.map((each) => [each.name, each.value]));
  if ('command' in server) return { command: server.command, args: server.args, env: pairs(server.env) };
  return { type: server.type, url: server.url, headers: pairs(server.headers) };
}

const modeNames: Readonly<Record<ApprovalMode | 'plan', string>> = {
  dangerous: 'Ask before dangerous calls',
  mutating: 'Ask before calls that write or run',
  always: 'Ask before every call',
  never: 'Ask only about secret files and protected paths',
  plan: 'Plan: read-only',
};

function isMode(id: string): id is keyof typeof modeNames {
  return Object.hasOwn(modeNames, id);
}

const fromEditor: SentBy = { source: 'editor', note: false, typed: true };

/** One session of an editor, with the run that it lives in. */
class EditorSession {
  readonly id: string;
  readonly #client: AgentContext;
  readonly #showsForms: boolean;
  readonly #run: Run;
  readonly #chat: Assembly;
  readonly #updates: Updates;
  readonly #outbox: Outbox;
  readonly #stop: () => void;
  #greeted = false;
  #isCancelled = false;
  #lastTurn: Promise<unknown> = Promise.resolve();

  constructor({ client, showsForms }: Editor, run: Run, chat: Assembly) {
    const { session } = chat;
    this.id = session.id;
    this.#client = client;
    this.#showsForms = showsForms;
    this.#run = run;
    this.#chat = chat;
    this.#outbox = new Outbox((update) => client.notify(methods.client.session.update, { sessionId: this.id, update }));
    this.#updates = new Updates({
      cwd: session.cwd,
      registry: run.toolbox.registry,
      blob: (sha256) => session.blob(sha256),
      window: () => windowOf(run, session.ref()),
      now: () => performance.now(),
    });
    this.#stop = session.subscribe((event) => {
      this.#outbox.add(this.#updates.see(event));
      if (event.type === 'approval_requested') void this.#ask(event.question);
      if (event.type === 'form_opened') void this.#putForm(event.id, event.form);
    });
  }

  state(): { modes: SessionModeState; configOptions: SessionConfigOption[] } {
    const { policy } = this.#run;
    return {
      modes: {
        currentModeId: policy.planning() ? 'plan' : policy.mode(),
        availableModes: Object.entries(modeNames).map(([id, name]) => ({ id, name })),
      },
      configOptions: this.#options(),
    };
  }

  async replay(): Promise<void> {
    this.#outbox.add(this.#updates.past(this.#chat.session.events()));
    await this.#outbox.taken();
  }

  /** Runs a prompt. One that comes while a turn runs is answered at once and reaches that turn after its next results;
   * one that comes after a cancel runs once the turn has ended. */
  async prompt(blocks: readonly ContentBlock[]): Promise<PromptResponse> {
    const { session } = this.#chat;
    const text = await this.#promptText(blocks);
    if (session.busy() && !this.#isCancelled) {
      session.enqueue({ text, when: 'steer', source: 'editor' });
      return { stopReason: 'end_turn' };
    }
    const turn = this.#lastTurn.then(() => this.#runTurn(text));
    this.#lastTurn = turn.catch(() => undefined);
    return await turn;
  }

  async #runTurn(text: string): Promise<PromptResponse> {
    const { session, notices } = this.#chat;
    this.#isCancelled = false;
    if (!this.#greeted) {
      this.#greeted = true;
      const said = [...this.#run.notices(), ...notices].filter(({ level }) => level !== 'info');
      this.#outbox.add([...said.map(({ message }) => thought(message)), await this.#commands()]);
    }
    let end = await session.submit(text, fromEditor);
    for (let late = joinedQueue(session); late !== ''; late = joinedQueue(session)) {
      if (end.status === 'interrupted')
        this.#outbox.add([thought(`Not sent, because the turn was cancelled: ${late}`)]);
      else end = await session.submit(late, fromEditor);
    }
    await this.#outbox.taken();
    return { stopReason: reasonOf(end, session.events()) };
  }

  /** Returns the text of a prompt, with chips for its images. */
  async #promptText(blocks: readonly ContentBlock[]): Promise<string> {
    const parts: string[] = [];
    for (const block of blocks) {
      const file = bytesIn(block);
      const taken =
        file && (await this.#run.pictures.takeBytes({ name: file.name, bytes: Buffer.from(file.data, 'base64') }));
      if (taken && !taken.ok) throw unreadable(`${file?.name ?? 'an image'} (${taken.problem})`);
      parts.push(taken ? taken.chip : (blockText(block) ?? ''));
    }
    return parts.filter((text) => text !== '').join('\n');
  }

  cancel(): void {
    this.#isCancelled = this.#chat.session.busy();
    this.#chat.session.interrupt();
  }

  setMode(id: string): void {
    if (!isMode(id))
      throw RequestError.invalidParams(
        { modeId: id },
        `\`${id}\` is not a mode. Known: ${Object.keys(modeNames).join(', ')}`,
      );
    const { policy } = this.#run;
    policy.plan(id === 'plan');
    if (id !== 'plan') policy.switchTo(id);
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
    this.#chat.session.interrupt();
    this.#stop();
    await this.#chat.close();
    await this.#run.close();
  }

  #options(): SessionConfigOption[] {
    const { provider, model } = this.#chat.session.ref();
    const current = `${provider}/${model}`;
    const names = new Set([current, ...reachableModels(this.#run)]);
    return [
      {
        type: 'select',
        id: 'model',
        name: 'Model',
        category: 'model',
        currentValue: current,
        options: [...names].map((name) => ({ value: name, name })),
      },
    ];
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

  async #putForm(id: string, form: Form): Promise<void> {
    const { session } = this.#chat;
    const started = session.events().findLast(({ kind }) => kind === 'tool_started');
    const asking = started ? knownEvent(started) : null;
    const toolCallId = asking?.kind === 'tool_started' ? asking.data.tool_call_id : id;
    await this.#outbox.taken();
    const place = { client: this.#client, sessionId: this.id, toolCallId, showsForms: this.#showsForms };
    try {
      session.answer(id, await putToEditor(place, form));
    } catch (error) {
      session.answer(id, { answer: 'declined' });
      this.#run.settings.log({ at: 'acp', message: 'the editor did not show the form', error: String(error) });
    }
  }

  async #ask(question: Question): Promise<void> {
    const { session } = this.#chat;
    const { callId } = question;
    await this.#outbox.taken();
    try {
      const request: RequestPermissionRequest = {
        sessionId: this.id,
        toolCall: {
          toolCallId: callId,
          status: 'pending',
          rawInput: question.call.args,
          ...askedCall(question, session.cwd),
        },
        options: answersTo(question),
      };
      const { outcome } = await this.#client.request(methods.client.session.requestPermission, request);
      const chosen = outcome.outcome === 'selected' ? outcome.optionId : 'deny';
      if (chosen === 'once' || chosen === 'session') session.answer(callId, { answer: chosen });
      else session.answer(callId, chosen === 'rules' ? { answer: 'rules', lasts: 'session' } : { answer: 'deny' });
    } catch (error) {
      session.answer(callId, { answer: 'deny', message: 'the editor could not ask' });
      this.#run.settings.log({ at: 'acp', message: 'the editor did not answer a question', error: String(error) });
    }
  }
}

/** Takes what came too late for a turn, as one message; '' if nothing did. */
function joinedQueue(session: SessionPort): string {
  return takeTyped(session)
    .map(({ text }) => text)
    .join('\n\n');
}

/** Returns why a turn has ended, in words of the protocol. Throws its error for a turn that has failed. */
function reasonOf({ status, fault }: TurnEnd, events: readonly Event[]): PromptResponse['stopReason'] {
  if (status === 'interrupted') return 'cancelled';
  if (status === 'limit_reached') return 'max_turn_requests';
  const stop = lastStop(events);
  if (status === 'completed') return stop === 'length' ? 'max_tokens' : 'end_turn';
  if (stop === 'refusal' || stop === 'content_filter') return 'refusal';
  const { code = 'internal', message = 'The turn failed.', hint = '' } = fault ?? {};
  throw RequestError.internalError({ code, message, hint }, `${message} ${hint}`.trim());
}

function lastStop(events: readonly Event[]): Stop | null {
  const last = events.findLast(({ kind }) => kind === 'assistant');
  const answer = last ? knownEvent(last) : null;
  return answer?.kind === 'assistant' ? answer.data.stop : null;
}

function windowOf({ settings }: Run, { provider, model }: ModelRef): number | null {
  return findModel(provider, model, settings.config.provider.models)?.contextWindow ?? null;
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

/** Returns the text of one block of a prompt. Content that the editor has inserted from a file or a page is put into a
 * fence that the content cannot close. Null: the bytes of the block are to be attached. */
function blockText(block: ContentBlock): string | null {
  switch (block.type) {
    case 'text':
      return block.text;
    case 'resource_link':
      return `@${pathOf(block.uri)}`;
    case 'resource': {
      const { resource } = block;
      if (!('text' in resource)) return null;
      const longest = largestOf(
        [...resource.text.matchAll(/`+/g)].map(([ticks]) => ticks.length),
        2,
      );
      const fence = '`'.repeat(longest + 1);
      return `${pathOf(resource.uri)}:\n${fence}\n${resource.text}\n${fence}`;
    }
    case 'image':
      return null;
    default:
      throw unreadable(`a block of type ${block.type}`);
  }
}

/** Returns the bytes of an image or a document, in base64. */
function bytesIn(block: ContentBlock): { readonly name: string; readonly data: string } | null {
  if (block.type === 'image') return { name: 'picture', data: block.data };
  if (block.type !== 'resource' || !('blob' in block.resource)) return null;
  return { name: pathOf(block.resource.uri).split('/').at(-1) ?? 'file', data: block.resource.blob };
}

function unreadable(what: string): RequestError {
  return RequestError.invalidParams({}, `${what} is not supported; send text, links, embedded text or images`);
}

function pathOf(uri: string): string {
  try {
    return uri.startsWith('file:') ? fileURLToPath(uri) : uri;
  } catch {
    return uri;
  }
}
