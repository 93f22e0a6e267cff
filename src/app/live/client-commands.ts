import type { AnswerSource } from '../../kernel/core/event.js';
import type { PermissionAnswer, Question } from '../../kernel/core/policy.js';
import type { KeptMessage } from '../../kernel/core/session-port.js';
import { clientTexts } from './client-texts.js';
import type { ClientMessage, Done } from './messages.js';
import type { OwnedSession, OwnerHost, OwnerParts } from './owner-host.js';
import type { MessageDelivery } from './message-delivery.js';
import type { OwnedState } from './session-state.js';

/** A session, and what the process that runs it has for clients. */
export interface Owned {
  readonly session: OwnedSession;
  readonly state: OwnedState;
  readonly parts: OwnerParts;
  readonly host: () => OwnerHost;
  readonly delivery: MessageDelivery;
}

/** The longest message. */
const mostMessageBytes = 1024 * 1024;
/** The outcomes that are remembered. */
const mostOutcomes = 1000;

const commands = ['message', 'withdraw', 'interrupt', 'answer', 'fill', 'stop'] as const;

export type Answer = Omit<Done, 'type' | 'ref'>;
export type Command = Extract<ClientMessage, { readonly ref: string; readonly type: (typeof commands)[number] }>;
/** A message as it came, with a reference. */
type Fields = Readonly<Record<string, unknown>> & { readonly ref: string };

export function isCommand(type: string): type is Command['type'] {
  return commands.some((command) => command === type);
}

/** Clients do not type: what they send is never taken for what the user typed at a terminal. */
function isSource(source: unknown): source is 'send' | 'web' | 'api' | 'editor' {
  return source === 'send' || source === 'web' || source === 'api' || source === 'editor';
}

function failed(problem: string): Answer {
  return { problem, code: 'failed' };
}

function toAnswerSource(source: unknown): AnswerSource {
  return source === 'web' || source === 'api' || source === 'editor' ? source : 'watch';
}

function toPermission(
  { verdict }: Question,
  answer: 'once' | 'session' | 'deny',
  { message, source: given }: Fields,
): PermissionAnswer {
  const source = toAnswerSource(given);
  if (answer === 'once') return { answer, source };
  if (answer === 'session')
    return verdict.rules?.length ? { answer: 'rules', lasts: 'session', source } : { answer, source };
  return { answer, source, ...(typeof message === 'string' && message !== '' ? { message } : {}) };
}

/** Does what clients ask for. */
export class ClientCommands {
  readonly #session: OwnedSession;
  readonly #state: OwnedState;
  readonly #parts: OwnerParts;
  readonly #host: () => OwnerHost;
  readonly #delivery: MessageDelivery;
  /** The outcomes of messages by their references, so that one that is sent again is not delivered again. */
  readonly #done = new Map<string, Promise<Answer>>();

  constructor({ session, state, parts, host, delivery }: Owned) {
    this.#session = session;
    this.#state = state;
    this.#parts = parts;
    this.#host = host;
    this.#delivery = delivery;
  }

  heed(type: Command['type'], message: Fields): Promise<Answer> | Answer {
    switch (type) {
      case 'message':
        return this.#message(message);
      case 'withdraw':
        return this.#withdraw(message);
      case 'interrupt':
        this.#session.interrupt();
        return {};
      case 'answer':
        return this.#answer(message);
      case 'fill':
        return this.#fill(message);
      case 'stop':
        return this.#stop();
      default:
        return type satisfies never;
    }
  }

  #message(message: Fields): Promise<Answer> {
    const { ref } = message;
    const before = this.#done.get(ref);
    if (before) return before;
    const answer = this.#deliver(message).catch((error: unknown) => {
      const why = error instanceof Error ? error.message : String(error);
      return failed(`The message could not be saved: ${why}`);
    });
    this.#done.set(ref, answer);
    // A client may send a refused message again.
    void answer.then(({ problem }) => {
      if (problem !== undefined) this.#done.delete(ref);
    });
    const [oldest] = this.#done.keys();
    if (this.#done.size > mostOutcomes && oldest !== undefined) this.#done.delete(oldest);
    return answer;
  }

  async #withdraw({ id }: Fields): Promise<Answer> {
    if (typeof id !== 'string') return { problem: 'It names no message.', code: 'unknown' };
    if (!(await this.#delivery.withdraw(id)))
      return { problem: 'The session has this message already.', code: 'unknown' };
    this.#done.delete(id);
    return {};
  }

  async #deliver(message: Fields): Promise<Answer> {
    const queued = this.#toQueued(message);
    if (typeof queued === 'string') return failed(queued);
    const delivery = await this.#delivery.deliver(queued, message.interrupt === true);
    if (delivery === 'delivered') return {};
    if (delivery === 'kept') return { kept: true };
    return failed('The message did not reach the session: no turn runs in it, and it has no event yet.');
  }

  /** Returns the message as it is queued, or why it is none. */
  #toQueued({ ref, text, source, when }: Fields): KeptMessage | string {
    if (typeof text !== 'string' || text.trim() === '') return 'The message is empty.';
    if (Buffer.byteLength(text) > mostMessageBytes) return 'The message is longer than 1 MiB.';
    if (!isSource(source)) return 'A client sends messages as send, web, api or editor.';
    const masked = this.#parts.settings.guard.text(text);
    return { id: ref, text: masked, source, when: when === 'after' ? 'after' : 'steer' };
  }

  async #answer(fields: Fields): Promise<Answer> {
    const { id, shown, answer } = fields;
    if (typeof id !== 'string') return { problem: 'The answer names no question.', code: 'unknown' };
    if (answer !== 'once' && answer !== 'session' && answer !== 'deny')
      return failed('An answer is once, session or deny.');
    const { approvalOf } = await clientTexts.get();
    const { questions, answered } = this.#state;
    const question = questions.get(id);
    if (!question)
      return answered.has(id)
        ? { problem: 'This prompt was answered already.', code: 'answered' }
        : { problem: 'There is no such prompt.', code: 'unknown' };
    if (answer !== 'deny' && shown !== approvalOf(question).shown)
      return { problem: 'The call changed after it was shown. Look at it again.', code: 'changed' };
    this.#state.close(id);
    this.#session.answer(id, toPermission(question, answer, fields));
    return {};
  }

  async #fill(fields: Fields): Promise<Answer> {
    const { id, shown, answer, values, source: given } = fields;
    if (typeof id !== 'string') return { problem: 'The answer names no form.', code: 'unknown' };
    if (answer !== 'filled' && answer !== 'declined') return failed('An answer to a form is filled or declined.');
    const { followerForm, readValues } = await clientTexts.get();
    const { forms, answered } = this.#state;
    const form = forms.get(id);
    if (!form)
      return answered.has(id)
        ? { problem: 'These questions were answered already.', code: 'answered' }
        : { problem: 'There are no such questions.', code: 'unknown' };
    const source = toAnswerSource(given);
    if (answer === 'declined') {
      this.#state.closeForm(id);
      this.#session.answer(id, { answer, source });
      return {};
    }
    if (shown !== followerForm(id, form).shown)
      return { problem: 'The questions changed after they were shown. Look at them again.', code: 'changed' };
    const read = readValues(form, values);
    if (!read.ok) return { problem: read.problem, code: 'invalid' };
    this.#state.closeForm(id);
    this.#session.answer(id, { answer, values: read.values, source });
    return {};
  }

  #stop(): Answer {
    const { stop } = this.#host();
    if (!stop && process.listenerCount('SIGTERM') === 0)
      return failed('The session runs inside another program. End it there.');
    // The answer leaves first.
    setImmediate(() => {
      if (stop) stop();
      else process.kill(process.pid, 'SIGTERM');
    });
    return {};
  }
}
