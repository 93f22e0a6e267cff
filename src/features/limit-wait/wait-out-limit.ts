import { leaving, type LimitedSession, type ReachedLimit } from '../../kernel/agent/limit-wait.js';
import { limitSpan, limitTime } from '../../kernel/console/limit-times.js';
import type { LimitData } from '../../kernel/core/event.js';
import type { LimitRules } from './limit-parts.js';

interface WaitParts {
  readonly rules: LimitRules;
  /** The session is that of a REPL whose screen is shown. */
  readonly isRepl: boolean;
  /** The user has asked for this wait. */
  readonly isWanted: boolean;
  /** Has the session continue in the background at a time (Unix milliseconds), where it outlives this process. */
  readonly keep: (until: number) => Promise<void>;
  readonly signal: AbortSignal;
}

/** A server that says when a limit ends may let the next request in a moment later. */
const graceMs = 1000;
/** The shortest wait after one that ended too early; it doubles from time to time, up to the longest. */
const againMs = 30_000;
const longestAgainMs = 600_000;
/** The most waits without an answer between them: then the provider does not say the truth. */
const mostWaits = 5;
/** The time between two looks at the clock. A computer that sleeps does not count the time of a timer. */
const lookMs = 1000;

/** Waits for the end of a usage limit where that is wanted, and records what happens. See `WaitForLimit`. */
export async function waitOutLimit(limit: ReachedLimit, session: LimitedSession, parts: WaitParts): Promise<boolean> {
  const wait = new LimitWait(limit, session, parts);
  return await wait.run();
}

class LimitWait {
  readonly #limit: ReachedLimit;
  readonly #session: LimitedSession;
  readonly #parts: WaitParts;
  /** When the request is sent again, in Unix milliseconds, and when the limit is over for those who read it. */
  readonly #until: number;
  readonly #shown: number;

  constructor(limit: ReachedLimit, session: LimitedSession, parts: WaitParts) {
    this.#limit = limit;
    this.#session = session;
    this.#parts = parts;
    const soonest = limit.again === 0 ? 0 : Math.min(againMs * 2 ** (limit.again - 1), longestAgainMs);
    this.#shown = Math.max(limit.retryAt, this.#now() + soonest);
    this.#until = this.#shown + graceMs;
  }

  async run(): Promise<boolean> {
    const { restored, again } = this.#limit;
    if (restored === 'continued') return true;
    if (restored === null) await this.#record('reached', this.#text('reached', `until ${this.#time()}`));
    if (again >= mostWaits) return await this.#givenUp();
    if (restored !== 'set' && !(await this.#isWanted())) return false;
    if (restored !== 'set')
      await this.#record('set', this.#text('reached', `waiting until ${this.#time()} (${this.#span()})`));
    return await this.#wait();
  }

  async #isWanted(): Promise<boolean> {
    const { rules, isRepl, isWanted, signal } = this.#parts;
    // The first wait was wanted, and it is not over as long as the model does not answer.
    if (isWanted || this.#limit.again > 0) return true;
    if (rules.wait === 'always') return isRepl || this.#isShort();
    if (rules.wait === 'never' || !isRepl || this.#session.putForm === undefined) return false;
    const answer = await this.#session.putForm(this.#form(), signal);
    if (answer.answer === 'filled' && answer.values['wait'] === 'wait') return true;
    if (!signal.aborted) await this.#record('ended', 'Not waiting for the usage limit. /wait waits for it.', 'user');
    return false;
  }

  /** Without a user there is a longest wait. */
  #isShort(): boolean {
    const { longestMs } = this.#parts.rules;
    const isShort = this.#limit.retryAt - this.#now() <= longestMs;
    if (!isShort)
      this.#session.emit({
        type: 'notice',
        level: 'warn',
        code: 'limit_wait',
        message:
          `Not waiting for the usage limit: it ends ${this.#time()} (${this.#span()}), and the longest wait is ` +
          `${limitSpan(longestMs)} (--wait-for-limit=DURATION).`,
      });
    return isShort;
  }

  #form(): Parameters<NonNullable<LimitedSession['putForm']>>[0] {
    const { provider, message } = this.#limit;
    return {
      from: 'agent',
      title: `Usage limit of ${provider} until ${this.#time()}`,
      message,
      isUntimed: true,
      fields: [
        {
          name: 'wait',
          question: '',
          kind: 'choice',
          required: true,
          options: [
            {
              value: 'wait',
              key: 'w',
              label:
                this.#limit.retryAt > this.#now()
                  ? `Wait until ${this.#time()} and continue`
                  : 'Continue where it stopped',
              about: 'Messages that you send meanwhile are sent with it. /model continues with another model at once.',
            },
            { value: 'stop', label: 'Stop here', about: '/wait waits later.' },
          ],
        },
      ],
    };
  }

  async #wait(): Promise<boolean> {
    const { emit } = this.#session;
    emit({ type: 'limit_waiting', until: this.#shown, provider: this.#limit.provider });
    const outcome = await this.#outcome();
    const continued = outcome === 'over' || outcome === 'model';
    if (outcome === 'left') await this.#parts.keep(this.#until);
    else if (outcome === 'stopped') await this.#record('ended', 'The wait for the usage limit was ended.', 'user');
    else if (outcome === 'over') await this.#record('continued', 'The usage limit is over: continuing.');
    else {
      const { provider, model } = this.#session.ref();
      await this.#record('continued', `Continuing with ${provider}/${model}.`, 'model');
    }
    emit({ type: 'limit_ended', continued });
    return continued;
  }

  /** Looks at the clock until the limit is over, the wait is ended or another model is chosen. */
  #outcome(): Promise<'over' | 'model' | 'stopped' | 'left'> {
    const { signal } = this.#parts;
    const { host, ref } = this.#session;
    const { provider, model } = ref();
    return new Promise((resolve) => {
      let cancel = (): void => undefined;
      const stop = (): void => {
        cancel();
        resolve(signal.reason === leaving ? 'left' : 'stopped');
      };
      const look = (): void => {
        const now = ref();
        const leftMs = this.#until - this.#now();
        const isOther = now.provider !== provider || now.model !== model;
        if (leftMs > 0 && !isOther) {
          cancel = host.schedule(look, Math.min(leftMs, lookMs));
          return;
        }
        signal.removeEventListener('abort', stop);
        resolve(isOther ? 'model' : 'over');
      };
      if (signal.aborted) {
        stop();
        return;
      }
      signal.addEventListener('abort', stop, { once: true });
      look();
    });
  }

  async #givenUp(): Promise<false> {
    await this.#record('ended', `No answer came after ${mostWaits} waits: the usage limit continues.`, 'again');
    return false;
  }

  async #record(state: LimitData['state'], content: string, cause?: LimitData['cause']): Promise<void> {
    const { provider, model, message, retryAt } = this.#limit;
    const retry_at = new Date(retryAt).toISOString();
    const data = { state, provider, model, retry_at, message, ...(cause === undefined ? {} : { cause }) };
    await this.#session.append({ kind: 'limit', content, data });
  }

  #text(what: string, then: string): string {
    return `Usage limit of ${this.#limit.provider} ${what}: ${then}.`;
  }
  #time(): string {
    return limitTime(this.#shown, this.#now());
  }
  #span(): string {
    return `in ${limitSpan(this.#shown - this.#now())}`;
  }
  #now(): number {
    return this.#session.host.now();
  }
}
