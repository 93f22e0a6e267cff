import { type Envelope, errorEnvelope, parseEnvelope } from '../../kernel/core/envelope.js';
import { knownEvent } from '../../kernel/core/event.js';
import type { PermissionAnswer, Question } from '../../kernel/core/policy.js';
import type { ModelChunk, Provider } from '../../kernel/core/provider.js';
import { type LoadedOnce, loadOnce } from '../../kernel/core/runtime.js';
import type { AgentEvent, SessionPort } from '../../kernel/core/session-port.js';
import type { SessionChoice } from '../../kernel/console/run-settings.js';
import { createAgentSession, type Assembly, type Run } from '../../app/create-session.js';

/** A request of another program. `by` names that program, for the record. */
interface OutsideRequest {
  readonly name: string;
  /** A JSON text. */
  readonly arguments: string;
  readonly by: string;
}

/** The next step of a call: its result, or a question that has to be answered first. */
type OutsideStep =
  | { readonly kind: 'ended'; readonly envelope: Envelope }
  | { readonly kind: 'asked'; readonly question: Question };

/** A call of another program, from its arrival to its result. */
export interface OutsideCall {
  /** Resolves with the question that is open, or the result. */
  next(): Promise<OutsideStep>;
  /** Answers the open question. */
  answer(answer: PermissionAnswer): void;
  cancel(): void;
}

/** Calls of another program in a separate session, one after the other, each a turn without a model. Policy, hooks,
 * limits and the record treat them like other calls. */
export interface OutsideCalls {
  /** `heard`: given what the call prints as it goes. */
  begin(request: OutsideRequest, heard: (chunk: string) => void): OutsideCall;
  /** Returns how many events could not be saved. */
  close(): Promise<number>;
}

/** The session begins with the first call. */
export function createOutsideCalls(run: Run): OutsideCalls {
  const relay = createRelay();
  const choice: SessionChoice = {
    continueNewest: false,
    resume: null,
    fork: false,
    mission: { grants: [], door: 'mcp', answers: () => relay.provider },
  };
  const chat = loadOnce(() => createAgentSession(withoutLoopDetection(run), choice, true));
  let last: Promise<unknown> = Promise.resolve();
  let sofar = 0;
  return {
    begin: (request, heard) => {
      sofar += 1;
      const call = new QueuedCall(request, `outside_${sofar}`, heard);
      last = last.then(() => call.run(chat, relay));
      return call;
    },
    close: async () => {
      return (await (await chat.started()?.catch(() => null))?.close()) ?? 0;
    },
  };
}

/** The same call may give the same result any number of times: nobody goes round in circles but the other program. */
function withoutLoopDetection(run: Run): Run {
  const { config } = run.settings;
  const settings = { ...run.settings, config: { ...config, limits: { ...config.limits, loopLimit: 0 } } };
  return { ...run, settings };
}

interface Relay {
  readonly provider: Provider;
  /** The call that the next answer makes. */
  put(call: { readonly id: string; readonly name: string; readonly arguments: string }): void;
}

const free: ModelChunk = { type: 'usage', usage: { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 }, costUsd: 0 };

/** Replaces a model: it makes the call that it was given, and ends the turn with a word. */
function createRelay(): Relay {
  let waiting: Parameters<Relay['put']>[0] | null = null;
  return {
    put: (call) => {
      waiting = call;
    },
    provider: {
      // oxlint-disable-next-line require-await -- the port is a stream
      async *stream() {
        const call = waiting;
        waiting = null;
        if (call) yield { type: 'tool_call', call };
        else yield { type: 'text', text: 'Done.' };
        yield free;
        yield { type: 'end', stop: call ? 'tool' : 'stop' };
      },
    },
  };
}

class QueuedCall implements OutsideCall {
  readonly #request: OutsideRequest;
  readonly #id: string;
  readonly #heard: (chunk: string) => void;
  #session: SessionPort | null = null;
  #question: Question | null = null;
  #ended: OutsideStep | null = null;
  #isCancelled = false;
  #wake: () => void = () => undefined;

  constructor(request: OutsideRequest, id: string, heard: (chunk: string) => void) {
    this.#request = request;
    this.#id = id;
    this.#heard = heard;
  }

  async next(): Promise<OutsideStep> {
    for (;;) {
      if (this.#ended) return this.#ended;
      if (this.#question) return { kind: 'asked', question: this.#question };
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  answer(answer: PermissionAnswer): void {
    const question = this.#question;
    this.#question = null;
    if (question) this.#session?.answer(question.callId, answer);
  }

  cancel(): void {
    this.#isCancelled = true;
    this.#session?.interrupt();
  }

  /** Never rejects. */
  async run(chat: LoadedOnce<Assembly>, relay: Relay): Promise<void> {
    const envelope = await this.#result(chat, relay).catch((error: unknown) =>
      errorEnvelope('internal', error instanceof Error ? error.message : String(error)),
    );
    this.#question = null;
    this.#ended = { kind: 'ended', envelope };
    this.#wake();
  }

  async #result(chat: LoadedOnce<Assembly>, relay: Relay): Promise<Envelope> {
    const { session } = await chat.get();
    if (this.#isCancelled) return errorEnvelope('cancelled', 'Not run: the call was cancelled before it started.');
    const { name, by } = this.#request;
    const before = session.record.lastSeq();
    relay.put({ id: this.#id, name, arguments: this.#request.arguments });
    this.#session = session;
    const stop = session.subscribe((event) => {
      this.#see(event);
    });
    const end = await session.submit(`[${by} calls ${name} over MCP]`, { source: 'api', note: false });
    stop();
    this.#session = null;
    const result = session.recent().flatMap((event) => (event.seq > before ? (knownEvent(event) ?? []) : []));
    const found = result.findLast(({ kind }) => kind === 'tool_result');
    if (found?.kind === 'tool_result') return parseEnvelope(found.data.output);
    return errorEnvelope(
      end.status === 'interrupted' ? 'cancelled' : 'execution_failed',
      end.fault?.message ?? 'The call was not run.',
    );
  }

  #see(event: AgentEvent): void {
    if (event.type === 'tool_output') this.#heard(event.chunk);
    if (event.type === 'form_opened') this.#session?.answer(event.id, { answer: 'cancelled' });
    if (event.type === 'approval_resolved') this.#question = null;
    if (event.type !== 'approval_requested') return;
    this.#question = event.question;
    this.#wake();
  }
}
