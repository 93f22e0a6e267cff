import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { Sandbox } from '../../core/tool.js';
import type { ChildCommand, Exit, NotStarted, OpenChild } from './start-child.js';
import { goneWithin, killAll, type StartedGroups } from './watchdog.js';

/** A running process with an open standard input, and everything it has started. Its three streams are sockets. Bash
 * takes that for a remote shell and reads ~/.bashrc unless it gets --norc. */
export interface OpenProcess extends Omit<OpenChild, 'pid'> {
  /** Returns how many processes of it are alive, including those that left its group. */
  size(): number;
  /** Ends it and everything it has started: closes its input, sends TERM after 500 ms and KILL 1.5 s later. */
  end(): Promise<void>;
}

/** Starts a process that stays: `ProcessRunner.open`. */
export type OpenCommand = (request: ChildCommand & { readonly sandbox: Sandbox }) => Promise<OpenProcess | NotStarted>;

/** A program that stays: it starts on demand, keeps its input open, and can be started again after it has ended. */
export interface LastingProcess {
  /** Starts it unless it runs. Fails if the system refuses, or if it has ended too often by itself. */
  start(): Promise<{ readonly started: true } | NotStarted>;
  /** Resolves when the process can take more: true if the bytes were written, false if it does not run. */
  write(bytes: string | Uint8Array): Promise<boolean>;
  isRunning(): boolean;
  /** Returns the end of its standard error, at most 64 KiB. */
  lastWords(): string;
  /** Ends it and everything it has started. `start` can start it again. */
  stop(): Promise<void>;
}

export interface LastingProcessOptions {
  readonly command: ChildCommand & { readonly sandbox: Sandbox };
  /** Takes standard output in pieces that are cut anywhere. Nothing more is read until the promise settles. */
  onOutput(chunk: Buffer): void | Promise<void>;
  /** Takes standard error as it comes. */
  onErrors?(chunk: Buffer): void;
  /** It has ended by itself. Everything it has started is ended as well. */
  onEnd?(exit: Exit): void;
  /** The most times that it is started again within `restartWindowMs` after it has ended by itself. */
  readonly maxRestarts: number;
  readonly restartWindowMs: number;
  /** Milliseconds from a clock that never goes back. */
  readonly now: () => number;
}

const inputGraceMs = 500;
const termGraceMs = 1500;
const drainMs = 200;
const maxErrorBytes = 65_536;

/** `processes` is for what this child starts, and nothing else. */
export function openProcess(child: OpenChild, processes: StartedGroups): OpenProcess {
  const { input, output, errors, exited } = child;
  processes.add(child.pid);
  void exited.then(() => {
    processes.leaderEnded(child.pid);
  });
  const end = async (): Promise<void> => {
    input.end();
    if (!(await goneWithin(processes, inputGraceMs))) {
      processes.signal('SIGTERM');
      if (!(await goneWithin(processes, termGraceMs))) await killAll(processes);
    }
    await Promise.race([exited, delay(drainMs)]);
    for (const stream of [input, output, errors]) stream.destroy();
  };
  return { started: true, input, output, errors, exited, size: () => processes.size(), end };
}

export function createLastingProcess(open: OpenCommand, options: LastingProcessOptions): LastingProcess {
  return new Lasting(open, options);
}

class Lasting implements LastingProcess {
  readonly #open: OpenCommand;
  readonly #options: LastingProcessOptions;
  #running: OpenProcess | null = null;
  /** Starts and stops happen one after the other. */
  #last: Promise<unknown> = Promise.resolve();
  #errors = Buffer.alloc(0);
  /** When it ended by itself. */
  #ends: readonly number[] = [];

  constructor(open: OpenCommand, options: LastingProcessOptions) {
    this.#open = open;
    this.#options = options;
  }

  start(): Promise<{ readonly started: true } | NotStarted> {
    return this.#inTurn(() => this.#start());
  }

  stop(): Promise<void> {
    return this.#inTurn(async () => {
      const ended = this.#running;
      this.#running = null;
      await ended?.end();
    });
  }

  write(bytes: string | Uint8Array): Promise<boolean> {
    const input = this.#running?.input;
    if (!input?.writable) return Promise.resolve(false);
    return new Promise((resolve) => {
      input.write(bytes, (error) => {
        resolve(!error);
      });
    });
  }

  isRunning(): boolean {
    return this.#running !== null;
  }

  lastWords(): string {
    return this.#errors.toString('utf8');
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work, work);
    this.#last = done;
    return done;
  }

  async #start(): Promise<{ readonly started: true } | NotStarted> {
    if (this.#running) return { started: true };
    const { command, maxRestarts, restartWindowMs, now } = this.#options;
    this.#ends = this.#ends.filter((at) => now() - at < restartWindowMs);
    if (this.#ends.length > maxRestarts) {
      const minutes = Math.ceil(restartWindowMs / 60_000);
      return {
        started: false,
        error: `${command.file} has ended ${this.#ends.length} times in ${minutes} min and is not started again`,
      };
    }
    const opened = await this.#open(command);
    if (!opened.started) return opened;
    this.#errors = Buffer.alloc(0);
    this.#running = opened;
    const read = Promise.all([
      readEach(opened.output, (chunk) => this.#options.onOutput(chunk)),
      readEach(opened.errors, (chunk) => {
        this.#errors = Buffer.concat([this.#errors, chunk]).subarray(-maxErrorBytes);
        this.#options.onErrors?.(chunk);
      }),
    ]);
    void opened.exited.then((exit) => this.#ended(opened, exit, read));
    return { started: true };
  }

  async #ended(process: OpenProcess, exit: Exit, read: Promise<unknown>): Promise<void> {
    if (this.#running !== process) return;
    await Promise.race([read, delay(drainMs)]);
    if (this.#running !== process) return;
    this.#running = null;
    this.#ends = [...this.#ends, this.#options.now()];
    void this.#inTurn(() => process.end());
    this.#options.onEnd?.(exit);
  }
}

/** Resolves when the stream is closed. Errors of the stream are ignored: the exit of the process reports them as
 * well. */
function readEach(stream: Readable, take: (chunk: Buffer) => void | Promise<void>): Promise<void> {
  stream.on('error', () => undefined);
  stream.on('data', (chunk: Buffer) => {
    const taken = take(chunk);
    if (!taken) return;
    stream.pause();
    void taken.then(() => stream.resume());
  });
  stream.resume();
  return new Promise((resolve) => {
    stream.once('close', resolve);
  });
}
