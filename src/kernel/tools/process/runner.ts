import { constants } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { type LoadedOnce, loadOnce, longestTimerMs } from '../../core/runtime.js';
import type { Sandbox } from '../../core/tool.js';
import { type OpenCommand, type OpenProcess, openProcess } from './lasting-process.js';
import { loadStartChild } from './load-start-child.js';
import type {
  ChildCommand,
  ConfinedCommand,
  Exit,
  NotStarted,
  openChild,
  OutputPipes,
  startChild,
  StartedChild,
  TerminalCommand,
} from './start-child.js';
import {
  createStartedGroups,
  goneWithin,
  groupSize,
  isNamespaceGone,
  killAll,
  signalConfined,
  signalGroup,
  strayCount,
  type StartedGroups,
  type Watchdog,
} from './watchdog.js';

export interface ProcessRequest extends ChildCommand {
  readonly sandbox: Sandbox;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** The process is ended if it prints more bytes. */
  readonly maxTotalBytes: number;
  /** Sends standard error through the pipe of standard output, so that both come in the order in which they were
   * written. */
  readonly joined?: boolean;
  /** Bytes for descriptor 3. */
  readonly input?: Uint8Array;
  /** Confines this command in another way than the others; `sandbox` is not `off`. */
  readonly confine?: Confine;
  /** Called with the first process of its namespaces, before a command begins that waits for that. */
  onNamespace?(leader: number): void;
  /** The chunk may be reused after the call. */
  onOutput(chunk: Buffer, stream: 'stdout' | 'stderr'): void;
  /** Takes charge of the processes of its group that still run when it has ended. Their output continues to reach
   * `onOutput`; without this it is dropped. */
  onLeft?(left: LeftProcesses): void;
}

/** The remaining processes of a group whose leader has ended. */
export interface LeftProcesses {
  /** Returns how many are alive. */
  size(): number;
  /** Resolves once their output is read to its end. A process that has left the group may hold it open, so that takes
   * 200 ms at most. */
  drained(): Promise<void>;
  /** Ends them: TERM, then KILL after 2 s. */
  end(): Promise<void>;
}

export type ProcessResult =
  | {
      readonly ended: 'exit' | 'timeout' | 'cancelled' | 'output_limit';
      readonly exitCode: number;
      readonly signal: NodeJS.Signals | null;
      readonly background: number;
      /** Processes that it had started were still there when the wait for their end was over. */
      readonly lingers?: true;
    }
  /** It could not be started. `error` is the code of the system (`ENOENT`) or a sentence. */
  | { readonly ended: 'not_started'; readonly error: string };

/** Wraps a command so that it runs in a sandbox. Throws if the sandbox cannot be made. */
export type Confine = (command: ChildCommand, sandbox: Exclude<Sandbox, 'off'>) => ConfinedCommand;

/** Starts all processes of the program. */
export interface ProcessRunner {
  /** Returns whether commands can run in `sandbox`. */
  canConfine(sandbox: Sandbox): boolean;
  /** Begins to load what the first process needs. */
  prepare(): void;
  /** Runs a process to its end. Its children in the background continue and are counted. Never rejects. */
  run(request: ProcessRequest): Promise<ProcessResult>;
  /** Starts a process whose standard input stays open. The caller ends it. */
  readonly open: OpenCommand;
  /** Ends every process that it has started and that still runs, all at once: TERM, then KILL after 2 s. A process that
   * stays first gets the end of its input. */
  killBackground(): Promise<void>;
  /** Kills them at once and synchronously, for the end of our own process. */
  killNow(): void;
}

/** A variable in the environment of a process. */
interface Variable {
  readonly name: string;
  readonly value: string;
}

export interface ProcessRunnerOptions {
  /** May change while the program runs. */
  readonly confine?: Confine | undefined;
  /** An environment variable of every process that is started. Processes that leave their group are found by it. */
  readonly marker: Variable;
  /** The longest wait of a result for the last process of a sandbox to end. */
  readonly namespaceEndMs?: number;
  /** Gives commands real pipes, and ends them also when our own process is killed. */
  readonly watched?: boolean;
}

type EndReason = 'exit' | 'timeout' | 'cancelled' | 'output_limit';
/** The modules that are loaded with the first command. */
interface LoadedModules {
  readonly startChild: typeof startChild;
  readonly openChild: typeof openChild;
  readonly watchdog: Watchdog | null;
  readonly pipes: OutputPipes | null;
}

const killAfterMs = 2000;
const drainMs = 200;
/** The kernel has killed these processes already; a busy machine takes some time to remove hundreds of them. */
const usualNamespaceEndMs = 10_000;

export function createProcessRunner(options: ProcessRunnerOptions): ProcessRunner {
  return new Runner(options);
}

class Runner implements ProcessRunner {
  readonly #options: ProcessRunnerOptions;
  readonly #groups: StartedGroups;
  /** The part of the groups that commands have started. Each process that stays is a part of its own. */
  readonly #commands: StartedGroups;
  readonly #opened = new Set<OpenProcess>();
  readonly #loaded: LoadedOnce<LoadedModules>;
  readonly #prepared = loadOnce(async () => {
    const { pipes } = await this.#modules();
    await pipes?.prepare(1);
  });
  #watchdog: Watchdog | null = null;
  #openedCount = 0;
  #callCount = 0;

  constructor(options: ProcessRunnerOptions) {
    const marker = entryOf(options.marker);
    this.#options = options;
    this.#groups = createStartedGroups(marker);
    this.#commands = createStartedGroups(entryOf(this.#part(0)));
    this.#loaded = loadOnce(() => loadModules(options.watched === true ? marker : null));
  }

  canConfine(sandbox: Sandbox): boolean {
    return sandbox === 'off' || this.#options.confine !== undefined;
  }

  prepare(): void {
    this.#prepared.get().catch(() => {
      /* The process that needs it says so. */
    });
  }

  async run(request: ProcessRequest): Promise<ProcessResult> {
    const output = outputOf(request);
    const call = this.#call(++this.#callCount);
    let child: StartedChild | NotStarted | null;
    try {
      child = await this.#started(request, output, call);
    } catch (error) {
      return { ended: 'not_started', error: messageOf(error) };
    }
    if (child === null) return { ended: 'cancelled', exitCode: 130, signal: null, background: 0 };
    if (!child.started) return { ended: 'not_started', error: child.error };
    this.#add(child.pid);
    this.#commands.add(child.pid);
    void child.namespaceLeader.then((pid) => {
      if (pid !== null) request.onNamespace?.(pid);
      child.begin();
    });
    const ended = await supervised(child, request, output, familyOf(child.pid, call, request.sandbox));
    const isCounted = ended.ended === 'exit' && !isNamespaced(request.sandbox);
    const strays = isCounted ? strayCount(entryOf(call), child.pid) : 0;
    const result = { ...ended, background: ended.background + strays };
    const isGone = await namespaceGone(child, this.#options.namespaceEndMs ?? usualNamespaceEndMs);
    this.#leaderEnded(child.pid);
    this.#commands.leaderEnded(child.pid);
    return isGone ? result : { ...result, lingers: true };
  }

  readonly open: OpenCommand = async (request) => {
    const part = this.#part(++this.#openedCount);
    try {
      const { openChild } = await this.#modules();
      const child = await openChild(this.#confined(request, request.sandbox, [part]));
      if (!child.started) return child;
      this.#add(child.pid);
      void child.exited.then(() => {
        this.#leaderEnded(child.pid);
      });
      const opened = openProcess(child, createStartedGroups(entryOf(part)));
      this.#opened.add(opened);
      return opened;
    } catch (error) {
      return { started: false, error: messageOf(error) };
    }
  };

  async killBackground(): Promise<void> {
    if (this.#groups.size() > 0) {
      const opened = [...this.#opened].filter((process) => process.size() > 0).map((process) => process.end());
      this.#commands.signal('SIGTERM');
      if (!(await goneWithin(this.#commands, killAfterMs))) await killAll(this.#commands);
      await Promise.all(opened);
      await killAll(this.#groups);
    }
    for (const groups of [this.#groups, this.#commands]) groups.clear();
    this.#opened.clear();
    // What is still being prepared would start a watchdog that nobody ends.
    await this.#prepared.started()?.catch(() => null);
    await this.#watchdog?.stop();
  }

  killNow(): void {
    this.#groups.signal('SIGKILL');
    void this.#watchdog?.stop();
  }

  async #modules(): Promise<LoadedModules> {
    const modules = await this.#loaded.get();
    this.#watchdog = modules.watchdog;
    this.#watchdog?.start();
    return modules;
  }

  async #started(request: ProcessRequest, output: Output, call: Variable): Promise<StartedChild | NotStarted | null> {
    const { pipes, startChild: start } = await this.#modules();
    const { input, sandbox, signal } = request;
    const count = request.joined === true ? 1 : 2;
    const marks = [this.#part(0), call];
    while ((await pipes?.prepare(count)) === true) {
      if (signal.aborted) return null;
      const command = this.#confined(request, sandbox, marks, request.confine);
      const taken = pipes?.take(count);
      if (taken) return start({ command, input, pipes: taken, onOutput: output.add });
    }
    if (signal.aborted) return null;
    const joined = count > 1 ? request : joinedByShell(request);
    const command = this.#confined(joined, sandbox, marks, request.confine);
    return start({ command, input, pipes: undefined, onOutput: output.add });
  }

  /** Returns the variable of one part of what it starts: 0 for all commands. */
  #part(number: number): Variable {
    const { name, value } = this.#options.marker;
    return { name: `${name}_PART`, value: `${value}.${number}` };
  }

  /** Returns the variable of one command, by which all that it starts is found. */
  #call(number: number): Variable {
    const { name, value } = this.#options.marker;
    return { name: `${name}_CALL`, value: `${value}.${number}` };
  }

  /** The marks pass through a sandbox. */
  #confined(
    command: ChildCommand,
    sandbox: Sandbox,
    marks: readonly Variable[],
    confine: Confine | undefined = this.#options.confine,
  ): ConfinedCommand {
    const { marker } = this.#options;
    if (sandbox !== 'off' && !confine) throw new Error(`no ${sandbox} sandbox is available here`);
    const held = sandbox === 'off' || !confine ? command : confine(command, sandbox);
    const variables = Object.fromEntries([marker, ...marks].map(({ name, value }) => [name, value]));
    return { ...held, env: { ...held.env, ...variables } };
  }

  #add(groupId: number): void {
    this.#groups.add(groupId);
    this.#watchdog?.tell(this.#groups);
  }

  #leaderEnded(groupId: number): void {
    this.#groups.leaderEnded(groupId);
    this.#watchdog?.tell(this.#groups);
  }
}

/** `watchedBy` is the marker by which a watchdog finds our processes; null for no watchdog. */
async function loadModules(watchedBy: string | null): Promise<LoadedModules> {
  const { createOutputPipes, openChild, startChild, watchFor } = await loadStartChild();
  if (watchedBy === null) return { startChild, openChild, watchdog: null, pipes: null };
  const watchdog = watchFor(watchedBy);
  return { startChild, openChild, watchdog, pipes: createOutputPipes((folder) => watchdog.makePipes(folder)) };
}

/** Runs a program of the user's choice on the terminal itself (an editor) and waits for its end. Returns its exit code,
 * or null if a signal ended it or it could not be started. The caller has released the terminal before. */
export async function runInteractive(file: string, args: readonly string[], cwd: string): Promise<number | null> {
  const { startOnTerminal } = await loadStartChild();
  return startOnTerminal(file, args, cwd);
}

/** Runs a command of the user on the terminal, in our own process group, and waits for its end. The caller has released
 * the terminal before. The modes of the terminal are afterwards what they were: a program that was killed may have left
 * it without echo. Keys that no program has read are dropped. */
export async function runOnTerminal(command: TerminalCommand): Promise<Exit> {
  const { startWithTerminal, readTerminalModes, restoreTerminal } = await loadStartChild();
  const modes = await readTerminalModes();
  try {
    return command.isCancelled() ? { code: null, signal: 'SIGINT' } : await startWithTerminal(command);
  } finally {
    if (modes !== null) await restoreTerminal(modes);
  }
}

function entryOf({ name, value }: Variable): string {
  return `${name}=${value}`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Joins standard error to standard output by a shell, for children whose streams are sockets. */
function joinedByShell(command: ChildCommand): ChildCommand {
  return { ...command, file: 'sh', args: ['-c', 'exec "$@" 2>&1', 'sh', command.file, ...command.args] };
}

/** Takes what a process prints until it has ended. `onLimit` is called when it prints too much. */
interface Output {
  readonly add: (chunk: Buffer, stream: 'stdout' | 'stderr') => void;
  onLimit: () => void;
  isOpen: boolean;
}

function outputOf(request: ProcessRequest): Output {
  let totalBytes = 0;
  const output: Output = {
    isOpen: true,
    onLimit: () => undefined,
    add(chunk, stream) {
      if (!output.isOpen) return; // later output of background processes is read, so that they go on, and dropped
      totalBytes += chunk.length;
      if (totalBytes > request.maxTotalBytes) output.onLimit();
      else request.onOutput(chunk, stream);
    },
  };
  return output;
}

/** Returns true for a sandbox with a PID namespace, which ends all that is in it. That of macOS has none. */
function isNamespaced(sandbox: Sandbox): boolean {
  return sandbox !== 'off' && process.platform === 'linux';
}

/** Returns what a command has started, with what has left its group; null for a namespace. */
function familyOf(leader: number, call: Variable, sandbox: Sandbox): StartedGroups | null {
  if (isNamespaced(sandbox)) return null;
  const family = createStartedGroups(entryOf(call));
  family.add(leader);
  return family;
}

async function supervised(
  child: StartedChild,
  request: ProcessRequest,
  output: Output,
  family: StartedGroups | null,
): Promise<Extract<ProcessResult, { background: number }>> {
  const { pid } = child;
  let reason: EndReason = 'exit';
  let kill: NodeJS.Timeout | undefined;
  const end = (why: EndReason): void => {
    if (reason !== 'exit') return;
    reason = why;
    if (family) family.signal('SIGTERM');
    else signalConfined(pid, 'SIGTERM');
    kill = setTimeout(() => {
      if (family) family.signal('SIGKILL');
      else signalGroup(pid, 'SIGKILL');
    }, killAfterMs);
  };
  output.onLimit = () => {
    end('output_limit');
  };
  const closed = Promise.all(child.outputs.map((reader) => reader.closed));
  const timer = setTimeout(
    () => {
      end('timeout');
    },
    Math.min(request.timeoutMs, longestTimerMs),
  );
  const onAbort = (): void => {
    end('cancelled');
  };
  request.signal.addEventListener('abort', onAbort, { once: true });
  if (request.signal.aborted) onAbort();

  const exit = await child.exited;
  clearTimeout(timer);
  if (reason === 'exit') await settledWithin(closed, drainMs);
  request.signal.removeEventListener('abort', onAbort);
  let isGone = true;
  if (reason !== 'exit') {
    isGone = await goneWithin(family ?? { size: () => groupSize(pid) }, killAfterMs + drainMs);
    await settledWithin(closed, drainMs);
  }
  clearTimeout(kill);
  const background = reason === 'exit' ? groupSize(pid) : 0;
  output.isOpen = background > 0 && request.onLeft !== undefined;
  // Background processes may hold the pipes; they do not keep our own process alive.
  for (const reader of child.outputs) reader.unref();
  if (background > 0) request.onLeft?.(leftOf(pid, closed));
  const death = deathOf(exit, request.sandbox);
  return { ended: reason, ...death, background, ...(isGone ? {} : { lingers: true }) };
}

/** Waits until the PID namespace of a child has ended: bubblewrap itself ends before the processes that it kills.
 * Returns false if it has not ended in time. */
async function namespaceGone({ namespaceLeader }: StartedChild, withinMs: number): Promise<boolean> {
  const deadline = performance.now() + withinMs;
  const leader = await namespaceLeader;
  if (leader === null) return true;
  while (!isNamespaceGone(leader)) {
    if (performance.now() >= deadline) return false;
    await delay(1);
  }
  return true;
}

function leftOf(groupId: number, closed: Promise<unknown>): LeftProcesses {
  const size = (): number => groupSize(groupId);
  return {
    size,
    drained: () => settledWithin(closed, drainMs),
    end: async () => {
      if (size() > 0) signalGroup(groupId, 'SIGTERM');
      if (!(await goneWithin({ size }, killAfterMs))) signalGroup(groupId, 'SIGKILL');
      await goneWithin({ size }, drainMs);
    },
  };
}

/** Reads the exit of a process. Bubblewrap exits with 128 and the number of the signal that ended the command inside.
 */
function deathOf(exit: Exit, sandbox: Sandbox): { readonly exitCode: number; readonly signal: NodeJS.Signals | null } {
  if (exit.code === null) return { exitCode: 128 + constants.signals[exit.signal ?? 'SIGKILL'], signal: exit.signal };
  const death = !isNamespaced(sandbox)
    ? undefined
    : Object.entries(constants.signals).find(([, number]) => exit.code === 128 + number);
  return { exitCode: exit.code, signal: death ? (death[0] as NodeJS.Signals) : null };
}

async function settledWithin(work: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([
    work,
    new Promise((resolve) => {
      timer = setTimeout(resolve, ms);
    }),
  ]);
  clearTimeout(timer);
}
