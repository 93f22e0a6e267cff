import { constants } from 'node:os';
import type { ResultPromise } from 'execa';
import type { Sandbox } from '../core/tool.js';
import { groupSize, processesMarked, signalGroup } from './process-group.js';
import { signalConfined } from './sandbox/sandbox-processes.js';

/** A program to start, without a shell. */
export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Absolute paths that it has to read; a sandbox shows them read-only where it would hide them. Never a model's word alone: policy has judged them. */
  readonly shows?: readonly string[];
  /** Bytes to be read from descriptor 4: a sandbox's system call filter. */
  readonly filter?: Uint8Array;
}

export interface ProcessRequest extends Command {
  readonly sandbox: Sandbox;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** Past this many bytes of output the process is ended. */
  readonly maxTotalBytes: number;
  /** Bytes to be read from descriptor 3. */
  readonly input?: Uint8Array;
  /** The chunk may be reused after the call. */
  onOutput(chunk: Buffer, stream: 'stdout' | 'stderr'): void;
}

export type ProcessResult =
  | { readonly ended: 'exit' | 'timeout' | 'cancelled' | 'output_limit'; readonly exitCode: number; readonly signal: NodeJS.Signals | null; readonly background: number }
  /** It could not be started; `error` is the system's code (`ENOENT`) or a sentence. */
  | { readonly ended: 'not_started'; readonly error: string };

/** Holds a command to a sandbox by wrapping it. Throws where the sandbox cannot be made. */
export type Confine = (command: Command, sandbox: Exclude<Sandbox, 'off'>) => Command;

/** The one place that starts processes. */
export interface ProcessRunner {
  /** Whether a command can be held to `sandbox`. */
  canConfine(sandbox: Sandbox): boolean;
  /** Runs to the end of the process itself; what it left behind in the background goes on and is counted. Never throws. */
  run(request: ProcessRequest): Promise<ProcessResult>;
  /** Ends everything that was ever started and still runs: TERM, then KILL after 2 s. */
  killBackground(): Promise<void>;
  /** The same at once and synchronously, for the end of our own process. */
  killNow(): void;
}

export interface ProcessRunnerOptions {
  readonly confine?: Confine;
  /** Marks every process started, so that those which leave their group are found again: `name=value`. */
  readonly marker: { readonly name: string; readonly value: string };
}

type Child = ResultPromise<{ buffer: false; reject: false }>;
type EndReason = 'exit' | 'timeout' | 'cancelled' | 'output_limit';

const killAfterMs = 2000;
const drainMs = 200;
const pollMs = 10;

/** Each process is the leader of its own group and session, without a terminal and with empty standard input. */
export function createProcessRunner(options: ProcessRunnerOptions): ProcessRunner {
  const groups = new Set<number>();
  let started = false;
  const marker = `${options.marker.name}=${options.marker.value}`;
  const confined = (request: ProcessRequest): Command => {
    const marked = (command: Command): Command => ({ ...command, env: { ...command.env, [options.marker.name]: options.marker.value } });
    if (request.sandbox === 'off') return marked(request);
    if (!options.confine) throw new Error(`no ${request.sandbox} sandbox is available here`);
    return marked(options.confine(request, request.sandbox));
  };
  const killAll = (signal: NodeJS.Signals): void => {
    for (const group of groups) signalGroup(group, signal);
    for (const id of started ? processesMarked(marker) : []) if (id !== process.pid) signalProcess(id, signal);
  };
  const anyAlive = (): boolean => [...groups].some((group) => groupSize(group) > 0) || (started && processesMarked(marker).some((id) => id !== process.pid));

  return {
    canConfine: (sandbox) => sandbox === 'off' || options.confine !== undefined,
    async run(request) {
      let child: Child;
      try {
        const command = confined(request);
        const { execa } = await import('execa');
        if (request.signal.aborted) return { ended: 'cancelled', exitCode: 130, signal: null, background: 0 };
        started = true;
        child = execa(command.file, command.args, {
          cwd: command.cwd, env: command.env, extendEnv: false, detached: true, cleanup: false, buffer: false, reject: false, stripFinalNewline: false,
          stdio: ['ignore', 'pipe', 'pipe', ...descriptors(request.input, command.filter)],
        }) as Child;
      } catch (error) {
        return { ended: 'not_started', error: error instanceof Error ? error.message : String(error) };
      }
      const { pid } = child;
      if (pid === undefined) {
        const result = await child;
        return { ended: 'not_started', error: result.code ?? result.shortMessage ?? 'unknown error' };
      }
      groups.add(pid);
      const result = await supervised(child, pid, request);
      if (result.background === 0) groups.delete(pid);
      return result;
    },
    async killBackground() {
      killAll('SIGTERM');
      for (let waitedMs = 0; waitedMs < killAfterMs && anyAlive(); waitedMs += pollMs * 5) await delay(pollMs * 5);
      killAll('SIGKILL');
      groups.clear();
    },
    killNow() { killAll('SIGKILL'); },
  };
}

async function supervised(child: Child, pid: number, request: ProcessRequest): Promise<Extract<ProcessResult, { background: number }>> {
  let reason: EndReason = 'exit';
  let totalBytes = 0;
  let open = true;
  let kill: NodeJS.Timeout | undefined;
  const end = (why: EndReason): void => {
    if (reason !== 'exit') return;
    reason = why;
    askToEnd(pid, request.sandbox);
    kill = setTimeout(() => { signalGroup(pid, 'SIGKILL'); }, killAfterMs);
  };
  const onData = (stream: 'stdout' | 'stderr') => (chunk: Buffer): void => {
    if (!open) return; // what a background process prints later is read, so that it is not blocked, and dropped
    totalBytes += chunk.length;
    if (totalBytes > request.maxTotalBytes) end('output_limit');
    else request.onOutput(chunk, stream);
  };
  child.stdout?.on('data', onData('stdout'));
  child.stderr?.on('data', onData('stderr'));
  const closed = Promise.all([child.stdout, child.stderr].map((stream) => new Promise<void>((resolve) => { if (stream) stream.once('close', resolve); else resolve(); })));
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => { child.once('exit', (code, signal) => { resolve({ code, signal }); }); });
  const timer = setTimeout(() => { end('timeout'); }, request.timeoutMs);
  const onAbort = (): void => { end('cancelled'); };
  request.signal.addEventListener('abort', onAbort, { once: true });
  if (request.signal.aborted) onAbort();

  const exit = await exited;
  clearTimeout(timer);
  if (reason === 'exit') await settledWithin(closed, drainMs);
  request.signal.removeEventListener('abort', onAbort);
  if (reason !== 'exit') {
    for (let waitedMs = 0; waitedMs < killAfterMs + drainMs && groupSize(pid) > 0; waitedMs += pollMs) await delay(pollMs);
    await settledWithin(closed, drainMs);
  }
  clearTimeout(kill);
  open = false;
  letGo(child);
  const background = reason === 'exit' ? groupSize(pid) : 0;
  return { ended: reason, ...deathOf(exit, request.sandbox), background };
}

/** A sandbox's keeper exits with 128 and the number where what it kept died by a signal. */
function deathOf(exit: { readonly code: number | null; readonly signal: NodeJS.Signals | null }, sandbox: Sandbox): { readonly exitCode: number; readonly signal: NodeJS.Signals | null } {
  if (exit.code === null) return { exitCode: 128 + constants.signals[exit.signal ?? 'SIGKILL'], signal: exit.signal };
  const death = sandbox === 'off' ? undefined : Object.entries(constants.signals).find(([, number]) => exit.code === 128 + number);
  return { exitCode: exit.code, signal: death ? (death[0] as NodeJS.Signals) : null };
}

function askToEnd(pid: number, sandbox: Sandbox): void {
  if (sandbox === 'off') signalGroup(pid, 'SIGTERM');
  else signalConfined(pid, 'SIGTERM');
}

function descriptors(input: Uint8Array | undefined, filter: Uint8Array | undefined): readonly (Uint8Array | 'ignore')[] {
  if (filter) return [input ?? 'ignore', filter];
  return input ? [input] : [];
}

/** What still holds the pipes may go on, and does not keep our own process alive. */
function letGo(child: Child): void {
  for (const stream of [child.stdout, child.stderr]) {
    if (stream && 'unref' in stream && typeof stream.unref === 'function') stream.unref();
  }
  child.unref();
}

function signalProcess(id: number, signal: NodeJS.Signals): void {
  try {
    process.kill(id, signal);
  } catch { /* ended meanwhile */ }
}

async function settledWithin(work: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([work, new Promise((resolve) => { timer = setTimeout(resolve, ms); })]);
  clearTimeout(timer);
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => { setTimeout(resolve, ms); });
}
