import { knownEvent } from '../../kernel/core/event.js';
import type { AgentEvent, KeptMessage } from '../../kernel/core/session-port.js';
import type { OwnedSession, OwnerHost, OwnerParts } from './owner-host.js';

/** The outcome of a message: it reached the session, it waits on the disk for the next opening, or neither. */
export type Delivery = 'delivered' | 'kept' | 'refused';

/** A session that has no row yet gets it with its first event, within this time. */
const longestFirstEventMs = 10_000;

/** Delivers the messages of other processes to a session, each exactly once: a message is on the disk before it is
 * delivered, and leaves the disk once an event has it. A message that a hook held back has no event, so it is delivered
 * again at the next opening. */
export class MessageDelivery {
  readonly #session: OwnedSession;
  readonly #parts: OwnerParts;
  readonly #host: () => OwnerHost;
  /** The messages that reached the session in this process. */
  readonly #taken = new Set<string>();
  readonly #recorded = new Set<string>();
  #last: Promise<unknown> = Promise.resolve();

  constructor(session: OwnedSession, parts: OwnerParts, host: () => OwnerHost) {
    this.#session = session;
    this.#parts = parts;
    this.#host = host;
    for (const event of session.recent()) this.#note(event);
  }

  /** Notes the message of an event. */
  take(event: AgentEvent): void {
    if (event.type !== 'event') return;
    const id = this.#note(event.event);
    if (id !== null) void this.#drop(id);
  }

  /** Delivers what is kept for this session, oldest first. */
  async deliverKept(): Promise<void> {
    for (const message of await this.#parts.store.keptMessages(this.#session.id)) {
      if (this.#recorded.has(message.id)) await this.#drop(message.id);
      else this.#hand(message, false);
    }
  }

  /** Gives the messages that wait in the queue to a front end that came later. */
  handOver(): void {
    const { deliver } = this.#host();
    if (!deliver) return;
    const queue = this.#session.takeQueue();
    for (const message of queue) if (message.id === undefined) this.#session.enqueue(message);
    for (const message of queue) if (message.id !== undefined) deliver(message);
  }

  /** `isFirst`: interrupts the turn that runs, so that the message is next. */
  deliver(message: KeptMessage, isFirst: boolean): Promise<Delivery> {
    const delivery = this.#last.then(() => this.#deliver(message, isFirst));
    this.#last = delivery.catch(() => undefined);
    return delivery;
  }

  /** Takes a message back that no event has yet. Resolves to false if an event has it, or if it never came. */
  withdraw(id: string): Promise<boolean> {
    const withdrawal = this.#last.then(() => this.#withdraw(id));
    this.#last = withdrawal.catch(() => undefined);
    return withdrawal;
  }

  async #withdraw(id: string): Promise<boolean> {
    const queue = this.#session.takeQueue();
    for (const message of queue) if (message.id !== id) this.#session.enqueue(message);
    const isQueued = queue.some((message) => message.id === id);
    if (!isQueued && (this.#taken.has(id) || this.#recorded.has(id))) return false;
    const isKept = (await this.#parts.store.keptMessages(this.#session.id)).some((message) => message.id === id);
    if (!isQueued && !isKept) return false;
    this.#taken.delete(id);
    await this.#parts.store.dropMessage(this.#session.id, id);
    return true;
  }

  async #deliver(message: KeptMessage, isFirst: boolean): Promise<Delivery> {
    const { id } = message;
    if (this.#taken.has(id) || this.#recorded.has(id)) return 'delivered';
    const isStored = await this.#parts.store.keepMessage(this.#session.id, message);
    if (!this.#host().deliver && !this.#session.busy()) return isStored ? 'kept' : 'refused';
    const recorded = isStored ? null : this.#recording(id);
    this.#hand(message, isFirst);
    return recorded === null || (await recorded) ? 'delivered' : 'refused';
  }

  #hand(message: KeptMessage, isFirst: boolean): void {
    if (this.#taken.has(message.id)) return;
    this.#taken.add(message.id);
    const { deliver } = this.#host();
    const interrupts = isFirst && this.#session.busy();
    const later = interrupts ? this.#session.takeQueue() : [];
    if (deliver) deliver(message);
    else this.#session.enqueue({ ...message, when: 'steer' });
    for (const other of later) this.#session.enqueue(other);
    if (interrupts) this.#session.interrupt();
  }

  /** Resolves to true once an event has the message, and to false if none has it in time. */
  #recording(id: string): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (isRecorded: boolean): void => {
        clearTimeout(timer);
        stop();
        resolve(isRecorded);
      };
      const timer = setTimeout(() => {
        end(false);
      }, longestFirstEventMs).unref();
      const stop = this.#session.subscribe((event) => {
        if (event.type === 'event' && messageId(event.event) === id) end(true);
      });
    });
  }

  #note(event: Parameters<typeof messageId>[0]): string | null {
    const id = messageId(event);
    if (id !== null) this.#recorded.add(id);
    return id;
  }

  async #drop(id: string): Promise<void> {
    const { store, settings } = this.#parts;
    await store.dropMessage(this.#session.id, id).catch((error: unknown) => {
      settings.log({ at: 'live', message: 'a delivered message stays on the disk', error: String(error) });
    });
  }
}

function messageId(event: Parameters<typeof knownEvent>[0]): string | null {
  if (event.kind !== 'user') return null;
  const known = knownEvent(event);
  return (known?.kind === 'user' ? known.data?.message_id : undefined) ?? null;
}
