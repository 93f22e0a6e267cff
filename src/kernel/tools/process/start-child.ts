import { addAll } from '../../core/lists.js';
import { closeSync, constants, fstatSync, mkdtempSync, openSync, readSync, rmSync } from 'node:fs';
import { type ConnectOpts, Socket, type SocketConstructorOpts } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { execa, type Options, type ResultPromise } from 'execa';
import { atExit } from './at-exit.js';
import { createWatchdog } from './create-watchdog.js';
import type { HelperShell, Watchdog } from './watchdog.js';

/** A program to start, without a shell. */
export interface ChildCommand {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Absolute paths that it has to read. A sandbox shows them read-only even if it would hide them. Policy has judged
   * them. */
  readonly shows?: readonly string[];
}

/** A command as it is started, in a sandbox or without one. */
export interface ConfinedCommand extends ChildCommand {
  /** Bytes for descriptor 4: the system call filter of a sandbox. */
  readonly filter?: Uint8Array;
  /** Reports the first process of its PID namespace on descriptor 5, as JSON: bubblewrap's `--info-fd 5`. */
  readonly reportsNamespace?: boolean;
  /** Begins once descriptor 6 can be read: bubblewrap's `--block-fd 6`. Such a command reports its namespace as well. */
  readonly waits?: boolean;
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
  /** Lets a command begin that waits. */
  begin(): void;
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

type Child = ResultPromise;

const streams = ['stdout', 'stderr'] as const;

/** Starts a process as the leader of a group and session of its own, with empty standard input. */
export async function startChild(request: ChildRequest): Promise<StartedChild | NotStarted> {
  const { command, input, pipes } = request;
  const piped = pipes?.map((pipe, index) => pipe.read(request.onOutput, streams[index] ?? 'stdout'));
  const [out, error = out] = pipes ?? [];
  let child: Child | null;
  try {
    child = launch(command, ['ignore', openFile(out) ?? 'pipe', openFile(error) ?? 'pipe'], input);
  } finally {
    for (const pipe of pipes ?? []) closeSync(pipe.writeEnd);
  }
  if (child === null) return noDescriptors;
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
  const namespaceLeader = namespaceLeaderOf(child);
  return child.pid === undefined
    ? notStarted(child)
    : { started: true, pid: child.pid, exited, outputs, namespaceLeader, begin: gateOf(child) };
}

/** Starts a process as the leader of a group and session of its own, whose standard input stays open. */
export async function openChild(command: ConfinedCommand): Promise<OpenChild | NotStarted> {
  const child = launch(command, ['pipe', 'pipe', 'pipe']);
  if (child === null) return noDescriptors;
  const exited = exitOf(child);
  void namespaceLeaderOf(child);
  const { pid, stdin: input, stdout: output, stderr: errors } = child;
  if (pid === undefined || !input || !output || !errors) return notStarted(child);
  input.on('error', () => undefined); // the child has ended, as `exited` tells
  output.pause();
  errors.pause();
  return { started: true, pid, exited, input, output, errors };
}

/** Starts a shell in a group of its own, so that signals of the terminal do not reach it. Returns null if too many files
 * are open. */
export function startHelper(args: readonly string[]): HelperShell | null {
  const env = { PATH: process.env.PATH ?? '' };
  return launch({ file: 'sh', args, cwd: '/', env }, ['pipe', 'pipe', 'ignore']);
}

/** Makes a watchdog for all processes that carry the marker (`name=value`). */
export function watchFor(marker: string): Watchdog {
  return createWatchdog(startHelper, marker);
}

/** Starts a process without input and output that outlives our own. Returns its id, or null where it was not started. */
export function startLasting(command: ChildCommand): number | null {
  if (!hasDescriptors()) return null;
  const { file, args, cwd, env } = command;
  const child = execa(file, args, {
    cwd,
    env,
    extendEnv: false,
    detached: true,
    cleanup: false,
    reject: false,
    stdio: 'ignore',
  });
  child.unref();
  return child.pid ?? null;
}

/** Runs a program on our own terminal, in our own group, to its end. */
export async function startOnTerminal(file: string, args: readonly string[], cwd: string): Promise<number | null> {
  const { exitCode } = await execa(file, args, { cwd, stdio: 'inherit', reject: false });
  return exitCode ?? null;
}

/** A program that gets the terminal. */
export interface TerminalCommand extends ChildCommand {
  readonly signal: AbortSignal;
  /** Returns true if the user has pressed Ctrl-C before the program was started. */
  readonly isCancelled: () => boolean;
  /** Called with what it prints, which reaches the terminal as well. Without it the program has the whole terminal. */
  readonly onOutput?: (chunk: Buffer) => void;
}

/** Time for a program to end after a signal, before SIGKILL. */
const forceKillMs = 2_000;

/** Marks the processes of one command in their environment. */
const terminalMark = 'AGENT_TERMINAL_COMMAND';

/** Reads the id of the command, waits for the end of its input, then hangs up (SIGHUP) all that carries the mark and is
 * in the group of our process. Without /proc, that is the command and what it has started. A daemon that the command
 * has started is in another group. */
const hangUpScript = `
if read -r own 2>/dev/null </proc/$PPID/stat; then
  set -- "$1" \${own##*) }
  set -- "$1" "$4"
else
  set -- "$1" $(ps -o pgid= -p $PPID)
fi
while read -r word; do child=$word; done
if [ -r /proc/self/environ ]; then
  for file in $(grep -lsF -- "$1" /proc/[0-9]*/environ); do
    id=\${file#/proc/} id=\${id%/environ}
    read -r stat 2>/dev/null </proc/$id/stat || continue
    set -- "$1" "$2" \${stat##*) }
    [ "$5" != "$2" ] || kill -s HUP $id 2>/dev/null
  done
else
  for id in $(ps -axwwE -o pid= -o ppid= -o pgid= -o stat= -o command= | awk -v mark=" $1 " -v own="$2" -v child="$child" '
    $3 != own || $4 ~ /^Z/ { next }
    { parent[$1] = $2; if ($1 == child || index($0 " ", mark)) found[$1] = 1 }
    END {
      do {
        more = 0
        for (id in parent) if (!(id in found) && (parent[id] in found)) { found[id] = 1; more = 1 }
      } while (more)
      for (id in found) print id
    }'); do
    kill -s HUP $id 2>/dev/null
  done
fi
`;

/** Runs a program in our own group on the terminal, and waits for its end. Its processes are hung up when `signal` is
 * aborted, and when our own process is killed: nobody else would end them, and they would continue to draw. */
export async function startWithTerminal({ file, args, cwd, env, signal, onOutput }: TerminalCommand): Promise<Exit> {
  const mark = `${process.pid}-${Date.now()}`;
  const guard = startHelper(['-c', hangUpScript, 'sh', `${terminalMark}=${mark}`]);
  const child = execa(file, args, {
    cwd,
    env: { ...env, [terminalMark]: mark },
    extendEnv: false,
    stdin: 'inherit',
    stdout: onOutput ? ['inherit', 'pipe'] : 'inherit',
    stderr: onOutput ? ['inherit', 'pipe'] : 'inherit',
    buffer: false,
    reject: false,
    cleanup: false,
    cancelSignal: signal,
    killSignal: 'SIGHUP',
    forceKillAfterDelay: forceKillMs,
  });
  const hangUp = (): void => {
    guard?.stdin?.end();
  };
  nameCommand(guard, child.pid);
  signal.addEventListener('abort', hangUp, { once: true });
  if (onOutput) for (const stream of [child.stdout, child.stderr]) stream?.on('data', onOutput);
  const { exitCode, signal: ended } = await child;
  signal.removeEventListener('abort', hangUp);
  if (!signal.aborted) guard?.kill('SIGKILL');
  return { code: exitCode ?? null, signal: ended ?? null };
}

/** Sends the guard the id of the process that it would hang up. */
function nameCommand(guard: HelperShell | null, pid: number | undefined): void {
  guard?.stdin?.on('error', () => undefined);
  if (pid !== undefined) guard?.stdin?.write(`${pid}\n`);
}

/** The first message of a second process of this program, or its end before that. */
export type StartedAgain =
  | { readonly message: unknown }
  | { readonly exitCode: number | null; readonly errors: string };

const mostErrorBytes = 64 * 1024;

/** Starts this program again, with other arguments, in a session of its own and without a terminal. Waits for its first
 * message; it continues when our own process has ended. */
export async function startAgain(
  file: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<StartedAgain> {
  const child = execa(file, args, {
    env,
    detached: true,
    cleanup: false,
    buffer: false,
    reject: false,
    ipc: true,
    serialization: 'json',
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => {
    errors = (errors + chunk.toString('utf8')).slice(-mostErrorBytes);
  });
  const message = new Promise<StartedAgain>((resolve) => {
    child.once('message', (said: unknown) => {
      resolve({ message: said });
    });
  });
  const ended = child.then(({ exitCode, originalMessage }): StartedAgain => {
    return { exitCode: exitCode ?? null, errors: errors === '' ? (originalMessage ?? '') : errors };
  });
  const started = await Promise.race([message, ended]);
  child.stderr.destroy();
  if (child.connected) child.disconnect();
  child.unref();
  return started;
}

const onStandardInput = { stdin: 'inherit', stderr: 'ignore', reject: false } as const;

/** Returns the modes of the terminal, for `restoreTerminal`; null if there is no terminal or no stty(1). */
export async function readTerminalModes(): Promise<string | null> {
  const { exitCode, stdout } = await execa('stty', ['-g'], onStandardInput);
  return exitCode === 0 ? stdout : null;
}

/** Drops the keys that no program has read, and then sets the modes of the terminal. A key that was typed without echo
 * may be part of a password: it must not come into the input. */
export async function restoreTerminal(modes: string): Promise<void> {
  // Without lines, and without waiting for keys.
  await execa('stty', ['-icanon', '-echo', 'min', '0', 'time', '0'], onStandardInput);
  dropUnreadKeys();
  await execa('stty', [modes], onStandardInput);
}

function dropUnreadKeys(): void {
  const buffer = Buffer.alloc(4_096);
  try {
    while (readSync(0, buffer) > 0) buffer.fill(0);
  } catch {
    /* Nothing is left to read (EAGAIN), or the terminal is gone. */
  }
}

/** Descriptors 0 to 2. */
type Descriptors = readonly [input: 'ignore' | 'pipe', output: 'pipe' | OpenFile, errors: 'pipe' | 'ignore' | OpenFile];
type OpenFile = 3;

/** Runs a helper program of the system without input and output, and returns its exit code; undefined where it was not
 * started or did not end in time. */
export async function runQuietly(
  file: string,
  args: readonly string[],
  timeoutMs: number,
): Promise<number | undefined> {
  const env = { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C' };
  const { exitCode } = await execa(file, args, {
    env,
    extendEnv: false,
    stdio: 'ignore',
    timeout: timeoutMs,
    reject: false,
  });
  return exitCode;
}

/** The types of execa accept numbers up to 9 only. */
function openFile(pipe: OutputPipe | undefined): OpenFile | undefined {
  return pipe?.writeEnd as OpenFile | undefined;
}

/** Descriptor 3 gets `input`, descriptor 4 the filter of the command, descriptor 5 is read where the command reports its
 * namespace, and a command that waits reads descriptor 6; they are closed where there is none. */
function launch(command: ConfinedCommand, descriptors: Descriptors, input?: Uint8Array): Child | null {
  if (!hasDescriptors()) return null;
  const { file, args, cwd, env, filter, reportsNamespace, waits } = command;
  const report = [reportsNamespace, waits].flatMap((wanted) => (wanted === true ? (['pipe'] as const) : []));
  const more: readonly ('ignore' | 'pipe' | Uint8Array)[] =
    filter || reportsNamespace ? [input ?? 'ignore', filter ?? 'ignore', ...report] : input ? [input] : [];
  const options: Options = {
    cwd,
    env,
    extendEnv: false,
    detached: true,
    cleanup: false,
    buffer: false,
    reject: false,
    stdio: [...descriptors, ...more],
  };
  return execa(file, args, options);
}

const noDescriptors: NotStarted = { started: false, error: 'EMFILE' };

/** A child takes two descriptors for each pipe, and some to start. */
const descriptorsOfChild = 16;

/** Returns whether a child could be started. execa does not listen for the error of one that finds no free descriptor,
 * and that error would end our own process. */
function hasDescriptors(): boolean {
  const held: number[] = [];
  try {
    while (held.length < descriptorsOfChild) held.push(openSync('/dev/null', constants.O_RDONLY));
    return true;
  } catch {
    return false;
  } finally {
    for (const descriptor of held) closeSync(descriptor);
  }
}

function exitOf(child: Child): Promise<Exit> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => {
      resolve({ code, signal });
    });
  });
}

/** Reads the report of a namespace. Source: bwrap(1), `--info-fd`. */
function namespaceLeaderOf(child: Child): Promise<number | null> {
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

/** Returns what lets a command begin that waits. Source: bwrap(1), `--block-fd`. */
function gateOf(child: Child): () => void {
  const gate = (child.stdio as readonly unknown[])[6];
  if (!(gate instanceof Socket)) return () => undefined;
  gate.unref();
  gate.on('error', () => undefined); // it has ended
  return () => {
    gate.end('\n');
  };
}

async function notStarted(child: Child): Promise<NotStarted> {
  const { code, originalMessage } = await child;
  return { started: false, error: code ?? originalMessage ?? 'it could not be started' };
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
  /** Continues to read, but does not keep our own process alive. */
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
    return names.map((name) => openNamedPipe(join(folder ?? '', name)));
  } catch {
    return null; // no room, no right, no /proc
  } finally {
    cancel();
    remove();
  }
}

function openNamedPipe(path: string): NamedPipe {
  const kept = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  if (!fstatSync(kept).isFIFO()) throw new Error(`${path} is not a pipe`);
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
