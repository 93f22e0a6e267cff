import type { Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { knownEvent, typedText } from '../../kernel/core/event.js';
import type { Form } from '../../kernel/core/form.js';
import { isRecord } from '../../kernel/core/json.js';
import type { Question } from '../../kernel/core/policy.js';
import type { Schedule } from '../../kernel/core/runtime.js';
import type { AgentEvent } from '../../kernel/core/session-port.js';
import { firstLine, tailBytes } from '../../kernel/core/text.js';
import { ClientCommands, isCommand, type Owned } from './client-commands.js';
import { clientTexts } from './client-texts.js';
import { onLines, parseMessage, toLine } from './lines.js';
import type { Hello, OwnerFacts, OwnerMessage, OwnerState } from './messages.js';
import { ClientConnection } from './client-connection.js';
import { endedTurn } from './ended-turn.js';
import type { OwnedSession, OwnerHost, OwnerParts } from './owner-host.js';
import { endsText, type OwnedState } from './session-state.js';

/** Followers get all that happens within this time in one piece. */
const frameMs = 100;
/** A follower that does not read more than this loses what happens meanwhile; it gets the state once it reads again. */
const mostUnreadBytes = 4 * 1024 * 1024;
/** The end of the output of a call that one piece contains. */
const mostOutputBytes = 16 * 1024;
/** A client says what it is within this time. */
const longestHelloMs = 10_000;
/** No session has more clients at once. */
const mostClients = 64;
/** The row of a session is read from the store within this time. */
const longestRowMs = 300;

/** A follower gets all that happens, other clients get the state and the answers to what they send. */
const kinds: Readonly<Record<Hello['client'], 'follower' | 'other'>> = {
  watch: 'follower',
  web: 'follower',
  api: 'follower',
  editor: 'follower',
  send: 'other',
  ps: 'other',
  terminal: 'other',
};

function isFollower(client: ClientConnection): boolean {
  const kind = client.kind();
  return kind !== null && kinds[kind] === 'follower';
}

/** The clients of a session. */
export class OwnerServer {
  readonly #session: OwnedSession;
  readonly #state: OwnedState;
  readonly #parts: OwnerParts;
  readonly #host: () => OwnerHost;
  readonly #clients = new Set<ClientConnection>();
  readonly #commands: ClientCommands;
  #pending: OwnerMessage[] = [];
  #timer: NodeJS.Timeout | null = null;
  #sentAt = -Infinity;

  constructor(owned: Owned) {
    this.#session = owned.session;
    this.#state = owned.state;
    this.#parts = owned.parts;
    this.#host = owned.host;
    this.#commands = new ClientCommands(owned);
  }

  clients(): number {
    return [...this.#clients].filter((client) => client.kind() === 'terminal' || isFollower(client)).length;
  }

  take(event: AgentEvent): void {
    if (event.type === 'approval_requested') void this.#ask(event.question);
    if (event.type === 'form_opened') void this.#put(event.id, event.form);
    const told = this.#followers().length === 0 ? null : this.#messageOf(event);
    if (told === null) return;
    addMessage(this.#pending, told, event);
    this.#soon();
  }

  close(): void {
    this.#send();
    for (const client of this.#clients) if (!client.isHandedOver) client.end();
  }

  /** Serves a client that has come. */
  connect(socket: Socket): void {
    if (this.#clients.size >= mostClients) {
      socket.destroy();
      return;
    }
    const client = new ClientConnection(socket, this.#parts.schedule ?? unreferenced);
    this.#clients.add(client);
    const late = setTimeout(() => {
      if (client.kind() === null) client.cut();
    }, longestHelloMs).unref();
    client.onClose(() => {
      clearTimeout(late);
      this.#clients.delete(client);
    });
    onLines(socket, (line) => {
      client.inOrder(
        () => this.#take(client, line),
        (error) => {
          this.#parts.settings.log({ at: 'live', message: 'a message of a client failed', error: String(error) });
        },
      );
    });
  }

  async #take(client: ClientConnection, line: string): Promise<void> {
    const message = parseMessage(line);
    if (message === null) return;
    if (client.kind() === null) return await this.#greet(client, message);
    const { type, ref } = message;
    if (!isCommand(type)) {
      client.hand(message);
      return;
    }
    if (typeof ref !== 'string' || ref === '' || ref.length > 200) return;
    const from = client.kind();
    this.#parts.settings.log({ at: 'live', message: 'a client sent a message', detail: true, type, from });
    client.send({ type: 'done', ref, ...(await this.#commands.heed(type, { ...message, ref })) });
  }

  async #greet(client: ClientConnection, message: Readonly<Record<string, unknown>>): Promise<void> {
    const hello = toHello(message);
    if (hello === null) {
      client.end();
      return;
    }
    client.greet(hello);
    await this.#sendState(client);
    if (hello.client !== 'terminal' || client.isGone()) return;
    const { onTerminal } = this.#host();
    if (!onTerminal) {
      const text = 'This session runs without a screen. Follow it with agent watch.';
      client.send({ type: 'end', exitCode: 1, detached: true, text });
      client.end();
      return;
    }
    client.isHandedOver = true;
    onTerminal(client);
  }

  #messageOf(event: AgentEvent): OwnerMessage | null {
    switch (event.type) {
      case 'event':
        return { type: 'event', seq: event.event.seq };
      case 'text_delta':
        return { type: 'text', text: event.text, after: this.#state.text().after };
      case 'retry_scheduled':
        return { type: 'void' };
      case 'tool_output':
        return { type: 'output', callId: event.callId, text: event.chunk };
      case 'approval_resolved':
        return { type: 'answered', id: event.callId };
      case 'form_closed':
        return { type: 'form_closed', id: event.id };
      case 'turn_started':
        return { type: 'busy', busy: true, seq: this.#lastSeq() };
      case 'turn_ended':
        return { type: 'busy', busy: false, seq: this.#lastSeq(), end: endedTurn(event.end) };
      case 'notice':
        return event.heldMessage === undefined ? null : { type: 'held', id: event.heldMessage, problem: event.message };
      default:
        return null;
    }
  }

  #lastSeq(): number {
    return this.#session.recent().at(-1)?.seq ?? 0;
  }

  async #ask(question: Question): Promise<void> {
    const { approvalOf } = await clientTexts.get();
    if (this.#followers().length === 0 || this.#state.questions.get(question.callId) !== question) return;
    this.#pending.push({ type: 'question', question: approvalOf(question) });
    this.#soon();
  }

  async #put(id: string, form: Form): Promise<void> {
    const { followerForm } = await clientTexts.get();
    if (this.#followers().length === 0 || this.#state.forms.get(id) !== form) return;
    this.#pending.push({ type: 'form', form: followerForm(id, form) });
    this.#soon();
  }

  async #sendState(client: ClientConnection): Promise<void> {
    const { approvalOf, followerForm } = await clientTexts.get();
    const facts = await this.#facts();
    this.#send();
    if (client.isGone()) return;
    const state: OwnerState = {
      type: 'state',
      busy: this.#session.busy(),
      questions: [...this.#state.questions.values()].map(approvalOf),
      forms: [...this.#state.forms].map(([id, form]) => followerForm(id, form)),
      ...this.#state.text(),
      facts,
    };
    client.send(state);
    client.isReady = true;
  }

  async #facts(): Promise<OwnerFacts> {
    const { store, row } = this.#parts;
    const reading = store.session(row.id).catch(() => null);
    const stored = await Promise.race([reading, wait(longestRowMs, null, { ref: false })]);
    const { provider, model } = this.#session.ref();
    const { state, sinceMs } = this.#state.state();
    return {
      session_id: this.#session.id,
      title: (stored ?? row).title ?? firstPrompt(this.#session),
      state,
      pid: process.pid,
      model: `${provider}/${model}`,
      cost_usd: this.#session.totals().spentUsd,
      since: new Date(sinceMs).toISOString(),
      cwd: this.#session.cwd,
      clients: this.clients() + (this.#host().ownTerminals?.() ?? 0),
    };
  }

  #followers(): readonly ClientConnection[] {
    return [...this.#clients].filter((client) => client.isReady && isFollower(client));
  }

  #soon(): void {
    const delayMs = Math.max(0, this.#sentAt + frameMs - performance.now());
    this.#timer ??= setTimeout(() => {
      this.#send();
    }, delayMs).unref();
  }

  #send(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#pending.length === 0) return;
    this.#sentAt = performance.now();
    const lines = this.#pending.map(toLine).join('');
    this.#pending = [];
    for (const client of this.#followers()) {
      if (client.unread() < mostUnreadBytes) client.write(lines);
      else {
        client.isReady = false;
        client.onceDrained(() => void this.#sendState(client).catch(() => undefined));
      }
    }
  }
}

const unreferenced: Schedule = (callback, delayMs) => {
  const timer = setTimeout(callback, delayMs).unref();
  return () => {
    clearTimeout(timer);
  };
};

/** Returns the hello if a client of a known kind says it. Of its terminal only numbers and texts are kept. */
function toHello({ type, client, pid, version, terminal }: Readonly<Record<string, unknown>>): Hello | null {
  if (type !== 'hello' || typeof client !== 'string' || !Object.hasOwn(kinds, client)) return null;
  return {
    type,
    client: client as Hello['client'],
    pid: typeof pid === 'number' ? pid : 0,
    version: typeof version === 'string' ? version : '',
    ...(isRecord(terminal) ? { terminal: toTerminal(terminal) } : {}),
  };
}

function toTerminal({ columns, rows, env }: Readonly<Record<string, unknown>>): NonNullable<Hello['terminal']> {
  const texts = isRecord(env) ? Object.entries(env).filter(([, value]) => typeof value === 'string') : [];
  return {
    columns: toCount(columns, 80),
    rows: toCount(rows, 24),
    env: Object.fromEntries(texts) as Record<string, string>,
  };
}

function toCount(value: unknown, otherwise: number): number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value < 10_000 ? value : otherwise;
}

function firstPrompt(session: OwnedSession): string | null {
  for (const raw of session.recent()) {
    const event = raw.kind === 'user' ? knownEvent(raw) : null;
    const typed = event?.kind === 'user' ? typedText(event) : null;
    if (typed !== null && typed.trim() !== '') return firstLine(typed.trim(), 80);
  }
  return null;
}

/** Adds a message to those of a piece, as few and as short as they can be. */
function addMessage(pending: OwnerMessage[], added: OwnerMessage, event: AgentEvent): void {
  if (event.type === 'event' && endsText(event.event))
    for (let at = pending.length - 1; at >= 0; at--) if (pending[at]?.type === 'text') pending.splice(at, 1);
  const last = pending.at(-1);
  const joined = last && joinMessages(last, added);
  if (joined) pending.splice(-1, 1, joined);
  else pending.push(added);
}

/** Returns one message that says what both say, or null. */
function joinMessages(last: OwnerMessage, added: OwnerMessage): OwnerMessage | null {
  if (added.type === 'event' && last.type === 'event') return added;
  if (added.type === 'text' && last.type === 'text') return { ...added, text: last.text + added.text };
  if (added.type === 'output' && last.type === 'output' && last.callId === added.callId)
    return { ...added, text: tailBytes(last.text + added.text, mostOutputBytes) };
  return null;
}
