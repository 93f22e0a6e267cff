import type { Socket } from 'node:net';
import { toLine } from './lines.js';
import type { Hello, OwnerMessage } from './messages.js';
import type { OwnerConnection } from './owner-host.js';

type Listener = Parameters<OwnerConnection['onMessage']>[0];

/** A connection of the owner to a client. Nothing that a client does or leaves undone throws here. */
export class ClientConnection implements OwnerConnection {
  /** It has the state: the next piece continues from there. */
  isReady = false;
  /** The host of the session has it, and closes it. */
  isHandedOver = false;
  readonly #socket: Socket;
  #hello: Hello | null = null;
  #listeners: readonly Listener[] = [];
  #last: Promise<void> = Promise.resolve();

  constructor(socket: Socket) {
    this.#socket = socket;
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

  /** Does one thing after the other. `onFailure` gets what one of them throws. */
  inOrder(work: () => Promise<void>, onFailure: (error: unknown) => void): void {
    this.#last = this.#last.then(work).catch(onFailure);
  }

  send(message: OwnerMessage): void {
    this.write(toLine(message));
  }

  write(lines: string): void {
    if (this.#socket.writable) this.#socket.write(lines);
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
