import { parseJson } from '../../core/json.js';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import { join } from 'node:path';
import { isRecord } from '../../core/json.js';
import type { Question } from '../../core/policy.js';
import { loadOnce, type Log } from '../../core/runtime.js';
import type { AgentEvent, SessionPort } from '../../core/session-port.js';
import type { Settings } from '../settings.js';

/** A question as another screen shows it. */
export interface ToldQuestion {
  readonly id: string;
  readonly tool: string;
  readonly risk: string;
  /** All that the call would do, a row each. */
  readonly rows: readonly string[];
  readonly reasons: readonly string[];
  readonly targets: readonly string[];
  /** What "yes, in this session" would allow; null where that is this exact call. */
  readonly rules: string | null;
}

/** What a session tells those who follow it, a JSON line each. `state` comes first. */
export type Told =
  | { readonly type: 'state'; readonly busy: boolean; readonly questions: readonly ToldQuestion[] }
  | { readonly type: 'event'; readonly seq: number }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'void' }
  | { readonly type: 'output'; readonly callId: string; readonly text: string }
  | { readonly type: 'question'; readonly question: ToldQuestion }
  | { readonly type: 'answered'; readonly id: string }
  | { readonly type: 'busy'; readonly busy: boolean };

/** So often at most a session looks for new followers while something happens, and so often while nothing does. */
const betweenLooksMs = 250;
const betweenIdleLooksMs = 1000;
/** A follower that does not read loses what is told meanwhile; the record has it. */
const mostUnreadBytes = 4 * 1024 * 1024;

/** The folder of the sockets on which followers listen, `<session>.<pid>.sock` each. Only its owner can enter it. */
export function followersFolder({ data }: { readonly data: string }): string {
  return join(data, 'live');
}

type FollowSettings = Pick<Settings, 'config' | 'ephemeral' | 'log'>;

/** Tells other processes of the same user what happens in a session, and takes their answers to its questions. Nothing
 * is done but a look for their sockets. Returns how to end it. */
export function openFollowers(session: SessionPort, { config, ephemeral, log }: FollowSettings): () => void {
  if (ephemeral) return () => undefined;
  const folder = followersFolder(config.files);
  const sockets = new Map<string, Socket>();
  const questions = new Map<string, Question>();
  let lookedAt = -Infinity;
  const look = (): void => {
    lookedAt = performance.now();
    if (!existsSync(folder)) return;
    for (const name of readdirSync(folder))
      if (name.startsWith(`${session.id}.`) && name.endsWith('.sock') && !sockets.has(name)) follow(name);
  };
  const follow = (name: string): void => {
    const path = join(folder, name);
    const socket = createConnection(path);
    sockets.set(name, socket);
    socket.unref();
    socket.on('connect', () => {
      void toldQuestions([...questions.values()]).then((open) => {
        tell(socket, { type: 'state', busy: session.busy(), questions: open });
      });
    });
    socket.on('error', (error) => {
      // Nobody listens there any more.
      if ('code' in error && error.code === 'ECONNREFUSED') rmSync(path, { force: true });
    });
    socket.on('close', () => sockets.delete(name));
    onLines(socket, (line) => {
      heed(session, questions, line, log);
    });
  };
  const tellAll = (told: Told): void => {
    for (const socket of sockets.values()) tell(socket, told);
  };
  // Somebody may come while nothing happens, or while a question waits.
  const timer = setInterval(look, betweenIdleLooksMs).unref();
  const stop = session.subscribe((event) => {
    if (event.type === 'approval_requested') questions.set(event.question.callId, event.question);
    if (event.type === 'approval_resolved') questions.delete(event.callId);
    if (performance.now() - lookedAt >= betweenLooksMs) look();
    if (sockets.size === 0) return;
    const told = toldOf(event);
    if (told) tellAll(told);
    if (event.type === 'approval_requested')
      void toldQuestions([event.question]).then((asked) => {
        for (const question of asked) tellAll({ type: 'question', question });
      });
  });
  return () => {
    stop();
    clearInterval(timer);
    for (const socket of sockets.values()) socket.destroy();
  };
}

/** No line of either side is longer. */
const longestLine = 8 * 1024 * 1024;

/** Calls back with each line of a socket, and ends it where one is too long. Lines end at LF alone. */
export function onLines(socket: Socket, take: (line: string) => void): void {
  const decoder = new TextDecoder();
  let rest = '';
  socket.on('data', (chunk) => {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) take(line);
    if (rest.length > longestLine) socket.destroy();
  });
}

function tell(socket: Socket, told: Told): void {
  if (!socket.connecting && socket.writableLength < mostUnreadBytes) socket.write(`${JSON.stringify(told)}\n`);
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

function toldOf(event: AgentEvent): Told | null {
  switch (event.type) {
    case 'event':
      return { type: 'event', seq: event.event.seq };
    case 'text_delta':
      return { type: 'text', text: event.text };
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

const shown = loadOnce(() => import('../../ui/item-lines.js'));

async function toldQuestions(questions: readonly Question[]): Promise<readonly ToldQuestion[]> {
  if (questions.length === 0) return [];
  const { questionRows, rulesText } = await shown.get();
  return questions.map((question) => {
    const { callId: id, call, verdict } = question;
    const { risk, reasons, targets = [], rules = [] } = verdict;
    return {
      id,
      tool: call.tool.name,
      risk,
      rows: questionRows(question),
      reasons,
      targets,
      rules: rules.length > 0 ? rulesText(rules) : null,
    };
  });
}
