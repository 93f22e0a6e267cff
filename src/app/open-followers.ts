import { parseJson } from '../kernel/core/json.js';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Event } from '../kernel/core/event.js';
import { isRecord } from '../kernel/core/json.js';
import type { Question } from '../kernel/core/policy.js';
import { loadOnce, type Log } from '../kernel/core/runtime.js';
import type { AgentEvent, SessionPort } from '../kernel/core/session-port.js';
import { tailBytes } from '../kernel/core/text.js';
import type { Settings } from '../kernel/console/run-settings.js';

/** A question as another screen shows it. */
export interface FollowerApproval {
  readonly id: string;
  readonly tool: string;
  readonly risk: string;
  /** The act, as the prompt names it: `Run this command?  Dangerous: deletes recursively`. Processes of earlier versions
   * leave it out. */
  readonly head?: string;
  /** All that the call would do, a row each. */
  readonly rows: readonly string[];
  readonly reasons: readonly string[];
  readonly targets: readonly string[];
  /** The calls that "yes, in this session" would allow; null if it allows only this exact call. */
  readonly rules: string | null;
}

/** The messages of a session to its followers, a JSON line each. `state` comes first, and again where a follower was too
 * slow. `text` is a part of the answer that is not recorded yet; `after` is the number of the last event before that
 * answer, so the event of the answer, whose number is greater, replaces the text. Processes of earlier versions leave
 * out `after` and the text of `state`. */
export type FollowerMessage =
  | {
      readonly type: 'state';
      readonly busy: boolean;
      readonly questions: readonly FollowerApproval[];
      readonly text?: string;
      readonly after?: number;
    }
  | { readonly type: 'event'; readonly seq: number }
  | { readonly type: 'text'; readonly text: string; readonly after?: number }
  | { readonly type: 'void' }
  | { readonly type: 'output'; readonly callId: string; readonly text: string }
  | { readonly type: 'question'; readonly question: FollowerApproval }
  | { readonly type: 'answered'; readonly id: string }
  | { readonly type: 'busy'; readonly busy: boolean };

/** Returns true if the event holds the text that streamed before it, or follows that text. */
export function endsText({ kind }: Pick<Event, 'kind'>): boolean {
  return kind === 'assistant' || kind === 'tool_call';
}

/** The time between two looks for new followers, at least while something happens and while nothing does. */
const betweenLooksMs = 250;
export const betweenIdleLooksMs = 1000;
/** Followers get all that happens within this time in one piece. */
const frameMs = 100;
/** A follower that does not read more than this loses what happens meanwhile; it gets the state once it reads again. */
const mostUnreadBytes = 4 * 1024 * 1024;
/** The end of the output of a call that one piece contains. */
const mostOutputBytes = 16 * 1024;

/** The folder of the sockets on which followers listen, `<session>.<pid>.sock` each. Only its owner can enter it. */
export function followersFolder({ data }: { readonly data: string }): string {
  return join(data, 'live');
}

/** Removes the sockets of followers that were killed: their process has ended, and they refuse a connection. */
export function removeDeadSockets(folder: string): void {
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    const pid = Number(/\.(\d+)\.sock$/.exec(name)?.[1]);
    if (!Number.isSafeInteger(pid) || isRunning(pid)) continue;
    const path = join(folder, name);
    const socket = createConnection(path, () => socket.destroy());
    socket.unref();
    socket.on('error', (error) => {
      if (isRefusal(error)) rmSync(path, { force: true });
    });
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH');
  }
}

function isRefusal(error: Error): boolean {
  return 'code' in error && error.code === 'ECONNREFUSED';
}

type FollowSettings = Pick<Settings, 'config' | 'ephemeral' | 'log'>;

/** Sends what happens in a session to other processes of the same user, and takes their answers to its questions.
 * Without followers it only looks for their sockets. Returns how to end it. */
export function openFollowers(session: SessionPort, { config, ephemeral, log }: FollowSettings): () => void {
  if (ephemeral) return () => undefined;
  const followers = new Followers(session, followersFolder(config.files), log);
  // A follower may come while nothing happens, or while a question waits.
  const timer = setInterval(() => {
    followers.look();
  }, betweenIdleLooksMs).unref();
  const stop = session.subscribe((event) => {
    followers.take(event);
  });
  return () => {
    stop();
    clearInterval(timer);
    followers.close();
  };
}

class Followers {
  readonly #session: SessionPort;
  readonly #folder: string;
  readonly #log: Log;
  readonly #sockets = new Map<string, Socket>();
  /** Followers that have the state: the next piece continues from there. */
  readonly #ready = new Set<Socket>();
  readonly #questions = new Map<string, Question>();
  #lookedAt = -Infinity;
  /** The answer that is not recorded yet. */
  #text: string[] = [];
  #textAfter = 0;
  #pending: FollowerMessage[] = [];
  #timer: NodeJS.Timeout | null = null;
  #sentAt = -Infinity;

  constructor(session: SessionPort, folder: string, log: Log) {
    this.#session = session;
    this.#folder = folder;
    this.#log = log;
  }

  look(): void {
    if (this.#lookedAt === -Infinity) removeDeadSockets(this.#folder);
    this.#lookedAt = performance.now();
    if (!existsSync(this.#folder)) return;
    for (const name of readdirSync(this.#folder))
      if (name.startsWith(`${this.#session.id}.`) && name.endsWith('.sock') && !this.#sockets.has(name))
        this.#connect(name);
  }

  take(event: AgentEvent): void {
    if (event.type === 'approval_requested') this.#questions.set(event.question.callId, event.question);
    if (event.type === 'approval_resolved') this.#questions.delete(event.callId);
    if (performance.now() - this.#lookedAt >= betweenLooksMs) this.look();
    this.#noteText(event);
    if (event.type === 'approval_requested') void this.#ask(event.question);
    const told = this.#ready.size === 0 ? null : this.#toldOf(event);
    if (told === null) return;
    addTold(this.#pending, told, event);
    this.#soon();
  }

  close(): void {
    this.#send();
    for (const socket of this.#sockets.values()) socket.destroySoon();
  }

  #connect(name: string): void {
    const path = join(this.#folder, name);
    const socket = createConnection(path);
    this.#sockets.set(name, socket);
    socket.unref();
    socket.on('connect', () => void this.#sendState(socket));
    socket.on('error', (error) => {
      if (isRefusal(error)) rmSync(path, { force: true });
    });
    socket.on('close', () => {
      this.#sockets.delete(name);
      this.#ready.delete(socket);
    });
    onLines(socket, (line) => {
      heed(this.#session, this.#questions, line, this.#log);
    });
  }

  /** Keeps the answer in flight, for followers that come in the middle of it. */
  #noteText(event: AgentEvent): void {
    if (event.type === 'text_delta') {
      // Events that are recorded and not announced yet have their numbers, too.
      if (this.#text.length === 0) this.#textAfter = this.#session.events().at(-1)?.seq ?? 0;
      this.#text.push(event.text);
    } else if (event.type === 'retry_scheduled' || (event.type === 'event' && endsText(event.event))) this.#text = [];
  }

  #toldOf(event: AgentEvent): FollowerMessage | null {
    switch (event.type) {
      case 'event':
        return { type: 'event', seq: event.event.seq };
      case 'text_delta':
        return { type: 'text', text: event.text, after: this.#textAfter };
      case 'retry_scheduled':
        return { type: 'void' };
      case 'tool_output':
        return { type: 'output', callId: event.callId, text: event.chunk };
      case 'approval_resolved':
        return { type: 'answered', id: event.callId };
      case 'turn_started':
      case 'turn_ended':
        return { type: 'busy', busy: event.type === 'turn_started' };
      default:
        return null;
    }
  }

  async #ask(question: Question): Promise<void> {
    const { toldQuestion } = await describer.get();
    if (this.#ready.size === 0 || !this.#questions.has(question.callId)) return;
    this.#pending.push({ type: 'question', question: toldQuestion(question) });
    this.#soon();
  }

  async #sendState(socket: Socket): Promise<void> {
    const toldQuestion = this.#questions.size > 0 ? (await describer.get()).toldQuestion : null;
    // A question may have come meanwhile.
    if (toldQuestion === null && this.#questions.size > 0) return await this.#sendState(socket);
    this.#send();
    if (socket.destroyed) return;
    const state: FollowerMessage = {
      type: 'state',
      busy: this.#session.busy(),
      questions: toldQuestion === null ? [] : [...this.#questions.values()].map(toldQuestion),
      text: this.#text.join(''),
      after: this.#textAfter,
    };
    socket.write(`${JSON.stringify(state)}\n`);
    this.#ready.add(socket);
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
    const lines = this.#pending.map((told) => `${JSON.stringify(told)}\n`).join('');
    this.#pending = [];
    for (const socket of this.#ready) {
      if (socket.writableLength < mostUnreadBytes) socket.write(lines);
      else {
        this.#ready.delete(socket);
        socket.once('drain', () => void this.#sendState(socket));
      }
    }
  }
}

/** Adds a message to those of a piece, as few and as short as they can be. */
function addTold(pending: FollowerMessage[], told: FollowerMessage, event: AgentEvent): void {
  if (event.type === 'event' && endsText(event.event))
    for (let at = pending.length - 1; at >= 0; at--) if (pending[at]?.type === 'text') pending.splice(at, 1);
  const last = pending.at(-1);
  const joined = last && joinTold(last, told);
  if (joined) pending.splice(-1, 1, joined);
  else pending.push(told);
}

/** Returns one message that says what both say, or null. */
function joinTold(last: FollowerMessage, told: FollowerMessage): FollowerMessage | null {
  if (told.type === 'event' && last.type === 'event') return told;
  if (told.type === 'text' && last.type === 'text') return { ...told, text: last.text + told.text };
  if (told.type === 'output' && last.type === 'output' && last.callId === told.callId)
    return { ...told, text: tailBytes(last.text + told.text, mostOutputBytes) };
  return null;
}

/** No line of either side is longer. */
const longestLine = 8 * 1024 * 1024;

/** Calls back with each line of a socket, and ends it where one is too long. Lines end at LF alone. */
export function onLines(socket: Socket, take: (line: string) => void): void {
  const decoder = new TextDecoder();
  let rest = '';
  socket.on('data', (chunk) => {
    const [first = '', ...others] = decoder.decode(chunk, { stream: true }).split('\n');
    rest += first;
    for (const part of others) {
      take(rest);
      rest = part;
    }
    if (rest.length > longestLine) socket.destroy();
  });
}

/** Takes a follower's answer to an open question: `{"answer": "once" | "session" | "deny", "id": …}`. */
function heed(session: SessionPort, questions: ReadonlyMap<string, Question>, line: string, log: Log): void {
  let said: unknown;
  try {
    said = parseJson(line);
  } catch {
    said = null;
  }
  const { id, answer, message } = isRecord(said) ? said : {};
  const question = typeof id === 'string' ? questions.get(id) : undefined;
  if (!question) return;
  log({ at: 'followers', message: 'another screen answered', detail: true, answer: String(answer) });
  const { callId, verdict } = question;
  if (answer === 'once') session.answer(callId, { answer: 'once' });
  if (answer === 'session')
    session.answer(callId, verdict.rules?.length ? { answer: 'rules', lasts: 'session' } : { answer: 'session' });
  if (answer === 'deny')
    session.answer(callId, { answer: 'deny', ...(typeof message === 'string' && message !== '' ? { message } : {}) });
}

/** Loaded where there is a question. */
const describer = loadOnce(async () => {
  const { plainQuestion, rulesAbout } = await import('../ui/question-lines.js');
  const toldQuestion = (question: Question): FollowerApproval => {
    const { callId: id, call, verdict } = question;
    const { risk, rules = [] } = verdict;
    return {
      id,
      tool: call.tool.name,
      risk,
      ...plainQuestion(question),
      rules: rules.length > 0 ? rulesAbout(question) : null,
    };
  };
  return { toldQuestion };
});
