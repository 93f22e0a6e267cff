import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { Sandbox } from '../../core/tool.js';
import type { Command, Exit, NotStarted, OpenChild } from './start-child.js';
import { goneWithin, killAll, type StartedGroups } from './started-groups.js';

/** A running process with an open standard input, and everything it has started. Its three streams are sockets: bash
 * takes that for a remote shell and reads ~/.bashrc unless it is given --norc. */
export interface OpenProcess extends Omit<OpenChild, 'pid'> {
  /** How many processes of it are left, also those that left its group. */
  size(): number;
  /** Ends it with everything below it: closes its input, sends TERM 500 ms later and KILL 1.5 s after that. */
  end(): Promise<void>;
}

/** How a process that stays is started: `ProcessRunner.open`. */
export type OpenCommand = (request: Command & { readonly sandbox: Sandbox }) => Promise<OpenProcess | NotStarted>;

/** A program that stays: it is started at its first use, is written to as often as one likes, and is started again
 * after it has ended. */
export interface LastingProcess {
  /** Starts it unless it runs. Fails where the system refuses it or where it has ended too often by itself. */
  start(): Promise<{ readonly started: true } | NotStarted>;
  /** Resolves when the process can take more: true once the bytes are on their way, false where it does not run. */
  write(bytes: string | Uint8Array): Promise<boolean>;
  isRunning(): boolean;
  /** What it said last on standard error, at most 64 KiB. */
  lastWords(): string;
  /** Ends it with everything below it. A later `start` starts it anew. */
  stop(): Promise<void>;
}

export interface LastingProcessOptions {
  readonly command: Command & { readonly sandbox: Sandbox };
  /** Takes standard output in pieces, cut anywhere. No more is read before the promise settles. */
  onOutput(chunk: Buffer): void | Promise<void>;
  /** It has ended without being asked to; everything below it is ended as well. */
  onEnd?(exit: Exit): void;
  /** How often it may end by itself within `restartWindowMs` and be started again. */
  readonly maxRestarts: number;
  readonly restartWindowMs: number;
  /** Milliseconds from a clock that never goes back. */
  readonly now: () => number;
}

const inputGraceMs = 500;
const termGraceMs = 1500;
const drainMs = 200;
const maxErrorBytes = 65_536;

/** `processes`: what was started with it, and nothing else. */
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

/** Resolves when the stream is closed. What breaks it off is said by the exit of the process. */
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
