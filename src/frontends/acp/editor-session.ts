import {
  type AgentContext,
  type ContentBlock,
  type McpServer,
  methods,
  type PromptResponse,
  RequestError,
  type RequestPermissionRequest,
  type SessionConfigOption,
  type SessionModeState,
} from '@agentclientprotocol/sdk';
import type { EndedTurn } from '../../app/live/messages.js';
import { type Event, knownEvent, type Stop } from '../../kernel/core/event.js';
import type { ApprovalMode } from '../../kernel/core/policy.js';
import { Outbox } from './editor-updates.js';

/** The other end of the connection. */
export interface EditorConnection {
  readonly client: AgentContext;
  readonly showsForms: boolean;
}

/** The directory and the servers of a session that an editor opens. */
export interface Place {
  readonly cwd: string;
  readonly mcpServers?: readonly McpServer[];
}

/** A prompt of the editor. `ref` identifies it also in another process. */
export interface Prompt {
  readonly ref: string;
  readonly blocks: readonly ContentBlock[];
}

export interface EditorState {
  readonly modes: SessionModeState;
  readonly configOptions: SessionConfigOption[];
}

/** A session that an editor has open. It runs in this process, or in another one. */
export interface EditorSession {
  readonly id: string;
  state(): EditorState;
  /** Sends the conversation so far. */
  replay(): Promise<void>;
  /** Shows what happens from here on, once the editor has what was before. */
  begin(): void;
  /** Resolves to `over` if the session ended before it had the prompt: then the prompt is for the process that
   * continues the session. Throws a `RequestError` for a turn that has failed. */
  prompt(prompt: Prompt): Promise<PromptResponse | 'over'>;
  cancel(): void;
  setMode(id: string): void;
  setOption(id: string, value: string | boolean): Promise<SessionConfigOption[]>;
  /** Returns true if no process is known to run the session. */
  isOver(): boolean;
  /** The number of the last event that the editor has been shown. */
  lastSeq(): number;
  close(): Promise<void>;
}

const modeNames: Readonly<Record<ApprovalMode | 'plan', string>> = {
  dangerous: 'Ask before dangerous calls',
  mutating: 'Ask before calls that write or run',
  always: 'Ask before every call',
  never: 'Ask only about secret files and protected paths',
  plan: 'Plan: read-only',
};

export type ModeId = keyof typeof modeNames;

export function readMode(id: string): ModeId | null {
  return Object.keys(modeNames).find((name): name is ModeId => name === id) ?? null;
}

/** Reads the id of a mode. Throws a `RequestError` for any other text. */
export function toMode(id: string): ModeId {
  const mode = readMode(id);
  if (mode !== null) return mode;
  const known = Object.keys(modeNames).join(', ');
  throw RequestError.invalidParams({ modeId: id }, `\`${id}\` is not a mode. Known: ${known}`);
}

export function modeState(currentModeId: ModeId): SessionModeState {
  return { currentModeId, availableModes: Object.entries(modeNames).map(([id, name]) => ({ id, name })) };
}

/** Returns the choice of a model among these. */
export function modelOption(current: string, others: readonly string[]): SessionConfigOption {
  const names = [...new Set([current, ...others])];
  return {
    type: 'select',
    id: 'model',
    name: 'Model',
    category: 'model',
    currentValue: current,
    options: names.map((name) => ({ value: name, name })),
  };
}

export function outboxOf({ client }: EditorConnection, sessionId: string): Outbox {
  return new Outbox((update) => client.notify(methods.client.session.update, { sessionId, update }));
}

/** Returns why a turn has ended, in words of the protocol. `stop`: of the last answer. Throws its error for a turn that
 * has failed. */
export function promptResponse({ status, fault }: EndedTurn, stop: Stop | null): PromptResponse {
  if (status === 'interrupted') return { stopReason: 'cancelled' };
  if (status === 'limit_reached') return { stopReason: 'max_turn_requests' };
  if (status === 'completed') return { stopReason: stop === 'length' ? 'max_tokens' : 'end_turn' };
  if (stop === 'refusal' || stop === 'content_filter') return { stopReason: 'refusal' };
  const { code = 'internal', message = 'The turn failed.', hint = '' } = fault ?? {};
  throw RequestError.internalError({ code, message, hint }, `${message} ${hint}`.trim());
}

/** The options of a request that ends with this signal, in the editor as well. */
export function untilAborted(signal: AbortSignal) {
  return { cancellationSignal: signal, stopWaitingOnCancel: true } as const;
}

/** Returns the option that the user chose; null if the turn was cancelled instead. `signal` ends the request where it
 * was answered elsewhere. */
export async function requestPermission(
  client: Pick<AgentContext, 'request'>,
  request: RequestPermissionRequest,
  signal: AbortSignal,
): Promise<string | null> {
  const { outcome } = await client.request(methods.client.session.requestPermission, request, untilAborted(signal));
  return outcome.outcome === 'selected' ? outcome.optionId : null;
}

/** Returns why the answer of an event ended; null for other events. */
export function stopOf(event: Event): Stop | null {
  const known = event.kind === 'assistant' ? knownEvent(event) : null;
  return known?.kind === 'assistant' ? known.data.stop : null;
}

/** Returns the reference of a message that another process sent. */
function messageRef(event: Event): string | undefined {
  const known = event.kind === 'user' ? knownEvent(event) : null;
  return known?.kind === 'user' ? known.data?.message_id : undefined;
}

/** The end of the turn that had a message. `lost`: the process of that turn has ended. `over`: it has ended before the
 * session had the message. `withdrawn`: the message was taken back. */
export type AwaitedEnd = { readonly ended: EndedTurn } | 'lost' | 'over' | 'withdrawn';

interface Awaited {
  /** The number of its event; null: no event has it yet. */
  seq: number | null;
  readonly resolve: (end: AwaitedEnd) => void;
}

/** The messages whose turns have not ended. */
export class AwaitedTurns {
  readonly #awaited = new Map<string, Awaited>();

  /** Resolves once the turn has ended that has the message with this reference. */
  until(ref: string): Promise<AwaitedEnd> {
    return new Promise((resolve) => {
      this.#awaited.set(ref, { seq: null, resolve });
    });
  }

  take(event: Event): void {
    const ref = messageRef(event);
    const awaited = ref === undefined ? undefined : this.#awaited.get(ref);
    if (awaited) awaited.seq ??= event.seq;
  }

  /** A turn has ended whose last event has this number. */
  end(seq: number, ended: EndedTurn): void {
    for (const [ref, awaited] of this.#awaited)
      if (awaited.seq !== null && awaited.seq <= seq) this.#settle(ref, { ended });
    if (ended.held !== undefined) this.#settle(ended.held, { ended });
  }

  /** The process that runs the session is gone. */
  leave(): void {
    for (const [ref, { seq }] of this.#awaited) this.#settle(ref, seq === null ? 'over' : 'lost');
  }

  /** The message is not sent any more. */
  withdraw(ref: string): void {
    this.#settle(ref, 'withdrawn');
  }

  isAwaited(ref: string): boolean {
    return this.#awaited.has(ref);
  }

  /** Returns the references of the messages that no event has. */
  unrecorded(): readonly string[] {
    return [...this.#awaited].filter(([, { seq }]) => seq === null).map(([ref]) => ref);
  }

  #settle(ref: string, end: AwaitedEnd): void {
    this.#awaited.get(ref)?.resolve(end);
    this.#awaited.delete(ref);
  }
}
