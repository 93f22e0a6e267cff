import { addAll } from '../../core/lists.js';
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, constants, fstatSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { type ConnectOpts, Socket, type SocketConstructorOpts } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { atExit } from './at-exit.js';
import type { HelperShell } from './watchdog.js';

/** A program to start, without a shell. */
export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Absolute paths that it has to read. A sandbox shows them read-only even if it would hide them. Policy has judged
   * them. */
  readonly shows?: readonly string[];
}

/** A command as it is started, in a sandbox or without one. */
export interface ConfinedCommand extends Command {
  /** Bytes for descriptor 4: the system call filter of a sandbox. */
  readonly filter?: Uint8Array;
  /** Reports the first process of its PID namespace on descriptor 5, as JSON: bubblewrap's `--info-fd 5`. */
  readonly reportsNamespace?: boolean;
}

export interface ChildRequest {
  readonly command: ConfinedCommand;
  /** Bytes for descriptor 3. */
  readonly input: Uint8Array | undefined;
  /** One pipe for both streams or one for each. Without them the child gets sockets. */
  readonly pipes: readonly OutputPipe[] | undefined;
  readonly onOutput: (chunk: Buffer, stream: 'stdout' | 'stderr') => void;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** `error` is the code of the system (`ENOENT`) or a sentence. */
export interface NotStarted {
  readonly started: false;
  readonly error: string;
}

export interface StartedChild {
  readonly started: true;
  readonly pid: number;
  readonly exited: Promise<Exit>;
  readonly outputs: readonly PipeReader[];
  /** Resolves with the first process of its PID namespace, which is the last to end there; null without a namespace. */
  readonly namespaceLeader: Promise<number | null>;
}

/** A child with an open standard input. Its output waits until it is read. */
export interface OpenChild {
  readonly started: true;
  readonly pid: number;
  readonly exited: Promise<Exit>;
  readonly input: Writable;
  readonly output: Readable;
  readonly errors: Readable;
}

/** A process that was asked for. Without a `pid` it could not be started, and its streams may be missing too. */
interface Launched {
  readonly child: ChildProcess;
  /** Resolves with the error of the system, if there is one. It is listened for from the start: an error without a
   * listener would end our own process. */
  readonly failed: Promise<Error>;
}

const streams = ['stdout', 'stderr'] as const;

/** Starts a process as the leader of a group and session of its own, with empty standard input. */
export async function startChild(request: ChildRequest): Promise<StartedChild | NotStarted> {
  const { command, input, pipes } = request;
  const piped = pipes?.map((pipe, index) => pipe.read(request.onOutput, streams[index] ?? 'stdout'));
  const [out, error = out] = pipes ?? [];
  let launched: Launched;
  try {
    launched = launch(command, ['ignore', out?.writeEnd ?? 'pipe', error?.writeEnd ?? 'pipe'], input);
  } finally {
    for (const pipe of pipes ?? []) closeSync(pipe.writeEnd);
  }
  const { child } = launched;
  if (child.pid === undefined) return notStarted(launched);
  const exited = exitOf(child);
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
  return { started: true, pid: child.pid, exited, outputs, namespaceLeader: namespaceLeaderOf(child) };
}

/** Starts a process as the leader of a group and session of its own, whose standard input stays open. */
export async function openChild(command: ConfinedCommand): Promise<OpenChild | NotStarted> {
  const launched = launch(command, ['pipe', 'pipe', 'pipe']);
  const { child } = launched;
  const { pid, stdin: input, stdout: output, stderr: errors } = child;
  if (pid === undefined || !input || !output || !errors) return notStarted(launched);
  const exited = exitOf(child);
  void namespaceLeaderOf(child);
  input.on('error', () => undefined); // the child has ended, as `exited` tells
  output.pause();
  errors.pause();
  return { started: true, pid, exited, input, output, errors };
}

/** Starts a shell in a group of its own, so that signals of the terminal do not reach it. */
export function startHelper(args: readonly string[]): HelperShell {
  const env = { PATH: process.env.PATH ?? '' };
  return launch({ file: 'sh', args, cwd: '/', env }, ['pipe', 'pipe', 'ignore']).child;
}

/** Runs a program on our own terminal, in our own group, to its end. */
export function startOnTerminal(file: string, args: readonly string[], cwd: string): Promise<number | null> {
  return new Promise<number | null>((resolve, reject) => {
    spawn(file, args, { cwd, stdio: 'inherit' }).on('error', reject).on('exit', resolve);
  }).catch(() => null);
}

/** Descriptors 0 to 2: a number is a descriptor of our own. */
type Descriptors = readonly [input: 'ignore' | 'pipe', output: 'pipe' | number, errors: 'pipe' | 'ignore' | number];

/** Descriptor 3 gets `input`, descriptor 4 the filter of the command, descriptor 5 is read where the command reports its
 * namespace; they are closed where there is none. */
function launch(command: ConfinedCommand, descriptors: Descriptors, input?: Uint8Array): Launched {
  const { file, args, cwd, env, filter, reportsNamespace } = command;
  const piped = (bytes: Uint8Array | undefined): 'pipe' | 'ignore' => (bytes ? 'pipe' : 'ignore');
  const report = reportsNamespace === true ? (['pipe'] as const) : [];
  const more = filter || reportsNamespace ? [piped(input), piped(filter), ...report] : input ? (['pipe'] as const) : [];
  const child = spawn(file, args, { cwd, env, detached: true, stdio: [...descriptors, ...more] });
  const failed = new Promise<Error>((resolve) => {
    child.on('error', resolve);
  });
  if (child.pid !== undefined) {
    if (input) sendBytes(child, 3, input);
    if (filter) sendBytes(child, 4, filter);
  }
  return { child, failed };
}

/** Writes all that a descriptor of a child gets. The child may end, or close it, before it has read everything. */
function sendBytes(child: ChildProcess, descriptor: 3 | 4, bytes: Uint8Array): void {
  const stream: unknown = child.stdio[descriptor];
  if (stream instanceof Socket) stream.on('error', () => undefined).end(bytes);
}

function exitOf(child: ChildProcess): Promise<Exit> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => {
      resolve({ code, signal });
    });
  });
}

/** Reads the report of a namespace. Source: bwrap(1), `--info-fd`. */
function namespaceLeaderOf(child: ChildProcess): Promise<number | null> {
  const report = (child.stdio as readonly unknown[])[5];
  if (!(report instanceof Socket)) return Promise.resolve(null);
  report.unref();
  return new Promise((resolve) => {
    let text = '';
    report.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      const number = /"child-pid":\s*(\d+)\D/.exec(text)?.[1];
      if (number !== undefined) resolve(Number(number));
    });
    report.on('error', () => undefined);
    report.once('close', () => {
      resolve(null);
    });
  });
}

async function notStarted({ failed }: Launched): Promise<NotStarted> {
  const error = await failed;
  return { started: false, error: 'code' in error && typeof error.code === 'string' ? error.code : error.message };
}

/** Reads a socket that Node has made for a child. */
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

/** The pipe for the output of one command. */
export interface OutputPipe {
  /** The end of the child. The caller closes it once the child has it. */
  readonly writeEnd: number;
  /** Calls back with each piece and with `stream`. All pieces share one buffer, so each is valid during the call only.
   */
  read<Stream>(onData: (chunk: Buffer, stream: Stream) => void, stream: Stream): PipeReader;
}

export interface PipeReader {
  /** Resolves when no process is left that could write. */
  readonly closed: Promise<void>;
  /** Goes on reading, but does not keep our own process alive. */
  unref(): void;
}

/** Real pipes. A script can open them by name (`> /dev/stderr`), and they are read into one buffer. Node itself makes
 * sockets, which allow neither. A pipe is used again once all its writers are gone. */
export interface OutputPipes {
  /** Makes sure that `count` pipes can be taken now. Returns false if there are none here. */
  prepare(count: number): Promise<boolean>;
  /** Takes `count` pipes; null where another command has taken them meanwhile. The caller reads each of them, even if
   * the child could not be started: a pipe is free again when it is closed. */
  take(count: number): readonly OutputPipe[] | null;
}

/** A named pipe. Its name is gone once it is open here, and `path` leads to it through our own descriptor. */
interface NamedPipe {
  readonly path: string;
  readonly buffer: Buffer;
}

/** The capacity of a pipe. */
const bufferBytes = 65_536;
const names = ['0', '1'] as const;

/** `makeNamed` makes the named pipes `0` and `1` in a folder and returns whether it succeeded. */
export function createOutputPipes(makeNamed: (folder: string) => Promise<boolean>): OutputPipes {
  const free: NamedPipe[] = [];
  let none = process.platform !== 'linux';
  /** One after the other: whoever makes them answers one question at a time. */
  let making = Promise.resolve();
  const makeUpTo = async (count: number): Promise<void> => {
    while (!none && free.length < count) {
      const made = await makePipes(makeNamed);
      if (made) addAll(free, made);
      else none = true;
    }
  };
  return {
    async prepare(count) {
      making = making.then(() => makeUpTo(count));
      await making;
      return !none;
    },
    take: (count) => {
      if (free.length < count) return null;
      return free.splice(0, count).map((pipe) =>
        opened(pipe, () => {
          free.push(pipe);
        }),
      );
    },
  };
}

async function makePipes(makeNamed: (folder: string) => Promise<boolean>): Promise<readonly NamedPipe[] | null> {
  let folder: string | undefined;
  const remove = (): void => {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  };
  const cancel = atExit(remove);
  try {
    folder = mkdtempSync(join(tmpdir(), 'agent-pipes-'));
    if (!(await makeNamed(folder))) return null;
    return names.map((name) => named(join(folder ?? '', name)));
  } catch {
    return null; // no room, no right, no /proc
  } finally {
    cancel();
    remove();
  }
}

function named(path: string): NamedPipe {
  const kept = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  if (!fstatSync(kept).isFIFO()) throw new Error(`${path} is no pipe`);
  return { path: `/proc/self/fd/${kept}`, buffer: Buffer.allocUnsafeSlow(bufferBytes) };
}

function opened({ path, buffer }: NamedPipe, release: () => void): OutputPipe {
  const readEnd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  let writeEnd: number;
  try {
    writeEnd = openSync(path, constants.O_WRONLY);
  } catch (error) {
    closeSync(readEnd);
    throw error;
  }
  return {
    writeEnd,
    read(onData, stream) {
      const callback = (length: number): boolean => {
        // A direct call would be inlined here and again in Node's caller, which costs a twelfth of our CPU time in a
        // flood of output.
        Reflect.apply(onData, undefined, [buffer.subarray(0, length), stream]);
        return true;
      };
      const options: SocketConstructorOpts & Pick<ConnectOpts, 'onread'> = {
        fd: readEnd,
        readable: true,
        writable: false,
        onread: { buffer, callback },
      };
      const socket = new Socket(options);
      socket.on('error', () => undefined);
      socket.once('end', () => {
        socket.destroy();
      });
      const closed = new Promise<void>((resolve) => {
        socket.once('close', () => {
          release();
          resolve();
        });
      });
      return {
        closed,
        unref: () => {
          socket.unref();
        },
      };
    },
  };
}
