import { type ChildProcess, spawn, type StdioOptions } from 'node:child_process';
import { closeSync } from 'node:fs';
import type { Socket } from 'node:net';
import { type Readable, Writable } from 'node:stream';
import type { OutputPipe, PipeReader } from './output-pipes.js';
import type { HelperShell } from './watchdog.js';

/** A program to start, without a shell. */
export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Absolute paths that it has to read; a sandbox shows them read-only where it would hide them. Never a model's word
   * alone: policy has judged them. */
  readonly shows?: readonly string[];
  /** Bytes to be read from descriptor 4: a sandbox's system call filter. */
  readonly filter?: Uint8Array;
}

export interface ChildRequest {
  readonly command: Command;
  /** Bytes to be read from descriptor 3. */
  readonly input: Uint8Array | undefined;
  /** One for both streams or one for each; sockets where there are none. */
  readonly pipes: readonly OutputPipe[] | undefined;
  readonly onOutput: (chunk: Buffer, stream: 'stdout' | 'stderr') => void;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export type StartedChild =
  | {
      readonly started: true;
      readonly pid: number;
      readonly exited: Promise<Exit>;
      readonly outputs: readonly PipeReader[];
    }
  /** The system's code (`ENOENT`) or a sentence. */
  | { readonly started: false; readonly error: string };

const streams = ['stdout', 'stderr'] as const;

/** Starts a process as the leader of a group and session of its own, with empty standard input. */
export async function startChild(request: ChildRequest): Promise<StartedChild> {
  const { command, input, pipes } = request;
  const piped = pipes?.map((pipe, index) => pipe.read(request.onOutput, streams[index] ?? 'stdout'));
  let child: ChildProcess;
  try {
    child = spawn(command.file, command.args, {
      cwd: command.cwd,
      env: command.env,
      detached: true,
      stdio: descriptors(request),
    });
  } finally {
    for (const pipe of pipes ?? []) closeSync(pipe.writeEnd);
  }
  const failure = new Promise<Error>((resolve) => {
    child.once('error', resolve);
  });
  const exited = new Promise<Exit>((resolve) => {
    child.once('exit', (code, signal) => {
      resolve({ code, signal });
    });
  });
  const outputs =
    piped ??
    streams.flatMap((name) =>
      child[name]
        ? [
            readSocket(child[name], (chunk) => {
              request.onOutput(chunk, name);
            }),
          ]
        : [],
    );
  if (child.pid === undefined) {
    const cause = await failure;
    return { started: false, error: 'code' in cause ? String(cause.code) : cause.message };
  }
  feed(child.stdio[3], input);
  feed(child.stdio[4], command.filter);
  return { started: true, pid: child.pid, exited, outputs };
}

function descriptors({ command, input, pipes }: ChildRequest): StdioOptions {
  const [out, error = out] = pipes ?? [];
  const more = command.filter ? ([input ? 'pipe' : 'ignore', 'pipe'] as const) : input ? (['pipe'] as const) : [];
  return ['ignore', out?.writeEnd ?? 'pipe', error?.writeEnd ?? 'pipe', ...more];
}

/** What Node gives a child by itself. */
function readSocket(stream: Readable, onData: (chunk: Buffer) => void): PipeReader {
  stream.on('data', onData);
  return {
    closed: new Promise((resolve) => {
      stream.once('close', resolve);
    }),
    unref: () => {
      (stream as Socket).unref();
    },
  };
}

/** A child that has ended before it read everything is no fault of ours. */
function feed(stream: unknown, bytes: Uint8Array | undefined): void {
  if (bytes && stream instanceof Writable) stream.on('error', () => undefined).end(bytes);
}

/** A shell of our own, out of reach of what a terminal sends to us. */
export function startHelper(args: readonly string[]): HelperShell {
  return spawn('sh', args, {
    cwd: '/',
    env: { PATH: process.env.PATH },
    detached: true,
    stdio: ['pipe', 'pipe', 'ignore'],
  });
}

/** Runs a program of the user's choice on the terminal itself (an editor) and waits for its end. Gives its exit code;
 * null where a signal ended it or it could not be started. The caller has given the terminal back before. */
export async function runInteractive(file: string, args: readonly string[], cwd: string): Promise<number | null> {
  const { execa } = await import('execa');
  const { exitCode } = await execa(file, args, { cwd, stdio: 'inherit', reject: false });
  return exitCode ?? null;
}
