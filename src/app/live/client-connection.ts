import type { Socket } from 'node:net';
import type { Schedule } from '../../kernel/core/runtime.js';
import { toLine } from './lines.js';
import type { Hello, OwnerMessage } from './messages.js';
import type { OwnerConnection } from './owner-host.js';

/** A client with more unread bytes than this must read within `longestSilenceMs`, or its connection is closed. */
const mostUnreadBytes = 64 * 1024;
const longestSilenceMs = 30_000;
/** A client never has more unread bytes: what a follower may leave unread, and one line of the longest kind. */
const mostHeldBytes = 12 * 1024 * 1024;

/** The messages of a client that wait to be handled before the owner stops to read more. */
const mostWaiting = 100;

type Listener = Parameters<OwnerConnection['onMessage']>[0];

/** A connection of the owner to a client. Nothing that a client does or leaves undone throws here. */
export class ClientConnection implements OwnerConnection {
  /** It has the state: the next piece continues from there. */
  isReady = false;
  /** The host of the session has it, and closes it. */
  isHandedOver = false;
  readonly #socket: Socket;
  readonly #schedule: Schedule;
  #isWatched = false;
  #waiting = 0;
  #hello: Hello | null = null;
  #listeners: readonly Listener[] = [];
  #last: Promise<void> = Promise.resolve();

  constructor(socket: Socket, schedule: Schedule) {
    this.#socket = socket;
    this.#schedule = schedule;
    socket.on('error', () => undefined);
  }

  get hello(): Hello {
    if (this.#hello === null) throw new Error('the client has not said what it is');
    return this.#hello;
  }

  kind(): Hello['client'] | null {
    return this.#hello?.client ?? null;
  }

  greet(hello: Hello): void {
    this.#hello = hello;
  }

  /** Does one thing after the other, and reads no more while many wait. `onFailure` gets what one of them throws. */
  inOrder(work: () => Promise<void>, onFailure: (error: unknown) => void): void {
    this.#waiting += 1;
    if (this.#waiting > mostWaiting) this.#socket.pause();
    this.#last = this.#last
      .then(work)
      .catch(onFailure)
      .then(() => {
        this.#waiting -= 1;
        if (this.#waiting === 0) this.#socket.resume();
      });
  }

  send(message: OwnerMessage): void {
    this.write(toLine(message));
  }

  write(lines: string): void {
    if (!this.#socket.writable) return;
    this.#socket.write(lines);
    if (this.unread() > mostHeldBytes) this.cut();
    else if (this.unread() > mostUnreadBytes && !this.#isWatched) this.#watch();
  }

  /** Closes the connection if the client reads nothing for a while. */
  #watch(): void {
    const before = this.#readBytes();
    this.#isWatched = true;
    const cancel = this.#schedule(() => {
      this.#socket.off('close', cancel);
      this.#isWatched = false;
      if (this.unread() <= mostUnreadBytes) return;
      if (this.#readBytes() === before) this.cut();
      else this.#watch();
    }, longestSilenceMs);
    this.#socket.once('close', cancel);
  }

  #readBytes(): number {
    return this.#socket.bytesWritten - this.#socket.writableLength;
  }

  unread(): number {
    return this.#socket.writableLength;
  }

  isGone(): boolean {
    return this.#socket.destroyed;
  }

  hand(message: Parameters<Listener>[0]): void {
    for (const listener of this.#listeners) listener(message);
  }

  onMessage(listener: Listener): void {
    this.#listeners = [...this.#listeners, listener];
  }

  onDrain(listener: () => void): void {
    this.#socket.on('drain', listener);
  }

  onceDrained(listener: () => void): void {
    this.#socket.once('drain', listener);
  }

  onClose(listener: () => void): void {
    if (this.isGone()) listener();
    else this.#socket.once('close', listener);
  }

  end(): void {
    this.#socket.destroySoon();
  }

  cut(): void {
    this.#socket.destroy();
  }
}
