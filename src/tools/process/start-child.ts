import { closeSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import { execa, type Options, type ResultPromise } from 'execa';
import type { OutputPipe, PipeReader } from './output-pipes.js';
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
  let child: Child;
  try {
    child = launch(command, ['ignore', openFile(out) ?? 'pipe', openFile(error) ?? 'pipe'], input);
  } finally {
    for (const pipe of pipes ?? []) closeSync(pipe.writeEnd);
  }
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
  return child.pid === undefined ? notStarted(child) : { started: true, pid: child.pid, exited, outputs };
}

/** Starts a process as the leader of a group and session of its own, whose standard input stays open. */
export async function openChild(command: ConfinedCommand): Promise<OpenChild | NotStarted> {
  const child = launch(command, ['pipe', 'pipe', 'pipe']);
  const exited = exitOf(child);
  const { pid, stdin: input, stdout: output, stderr: errors } = child;
  if (pid === undefined || !input || !output || !errors) return notStarted(child);
  input.on('error', () => undefined); // the child has ended, as `exited` tells
  output.pause();
  errors.pause();
  return { started: true, pid, exited, input, output, errors };
}

/** Starts a shell in a group of its own, so that signals of the terminal do not reach it. */
export function startHelper(args: readonly string[]): HelperShell {
  const env = { PATH: process.env.PATH ?? '' };
  return launch({ file: 'sh', args, cwd: '/', env }, ['pipe', 'pipe', 'ignore']);
}

/** Runs a program on our own terminal, in our own group, to its end. */
export async function startOnTerminal(file: string, args: readonly string[], cwd: string): Promise<number | null> {
  const { exitCode } = await execa(file, args, { cwd, stdio: 'inherit', reject: false });
  return exitCode ?? null;
}

/** Descriptors 0 to 2. */
type Descriptors = readonly [input: 'ignore' | 'pipe', output: 'pipe' | OpenFile, errors: 'pipe' | 'ignore' | OpenFile];
type OpenFile = 3;

/** The types of execa accept numbers up to 9 only. */
function openFile(pipe: OutputPipe | undefined): OpenFile | undefined {
  return pipe?.writeEnd as OpenFile | undefined;
}

/** Descriptor 3 gets `input`, descriptor 4 the filter of the command. */
function launch(command: ConfinedCommand, descriptors: Descriptors, input?: Uint8Array): Child {
  const { file, args, cwd, env, filter } = command;
  const options: Options = {
    cwd,
    env,
    extendEnv: false,
    detached: true,
    cleanup: false,
    buffer: false,
    reject: false,
    stdio: [...descriptors, input ?? 'ignore', filter ?? 'ignore'],
  };
  return execa(file, args, options);
}

function exitOf(child: Child): Promise<Exit> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => {
      resolve({ code, signal });
    });
  });
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
