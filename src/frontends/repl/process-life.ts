/** Says when the process of a REPL ends. As long as it has a terminal of its own, it ends with that. Once it was
 * detached, it ends when a user leaves its last terminal while nothing runs, or by a signal or a message. */
export class ProcessLife {
  /** It continues without a terminal of its own. */
  detached: boolean;
  /** It continues in a new process, because this one cannot let its terminal go. */
  handsOver = false;
  readonly ended: Promise<void>;
  readonly #isAtWork: () => boolean;
  #isClosing = false;
  /** A client leaves without ending anything. */
  #isLetGo = false;
  #finish: () => void = () => undefined;

  constructor(detached: boolean, isAtWork: () => boolean) {
    this.detached = detached;
    this.#isAtWork = isAtWork;
    this.ended = new Promise((resolve) => {
      this.#finish = resolve;
    });
  }

  /** Returns true if the process continues when its last screen leaves. */
  stays(): boolean {
    return !this.#isClosing && this.detached && (this.#isLetGo || this.#isAtWork());
  }

  /** A screen leaves in `leave`, and the process continues. */
  lettingGo(leave: () => void): void {
    this.#isLetGo = true;
    leave();
    this.#isLetGo = false;
  }

  /** From now on the process ends, whatever runs. */
  close(): void {
    this.#isClosing = true;
  }
  isClosing(): boolean {
    return this.#isClosing;
  }

  finish(): void {
    this.#finish();
  }
}
