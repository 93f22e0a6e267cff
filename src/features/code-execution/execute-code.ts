import { randomUUID } from 'node:crypto';
import { accessSync, constants, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { release, tmpdir } from 'node:os';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { statsAt } from '../../kernel/disk/path-stats.js';
import { loadOnce } from '../../kernel/core/runtime.js';
import type { ToolContext, ToolOutcome } from '../../kernel/core/tool.js';
import { readBoundedText } from '../../kernel/disk/bounded-file.js';
import { processOutcome, type ProcessWords } from '../../kernel/tools/bash.js';
import { type DefinedTool, defineTool, failed, type FromSchema, outOfBounds } from '../../kernel/tools/define-tool.js';
import { atExit } from '../../kernel/tools/process/at-exit.js';
import { createOutputCollector, createProgressStream } from '../../kernel/tools/process/output-collector.js';
import { createProcessRunner, type ProcessRunner } from '../../kernel/tools/process/runner.js';
import { confinedMemoryBytes } from '../../kernel/tools/process/watchdog.js';
import { findProgram, openSandbox } from '../../kernel/tools/sandbox/open-sandbox.js';

export interface CodeOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  /** Notifies the user why the tool is not offered. */
  readonly notify: (message: string) => void;
  /** A file that remembers that the sandbox works here, so that it is tried once and not at every start. */
  readonly tried: string;
  /** The path of bubblewrap, or null for none; searched for unless given. */
  readonly bubblewrap?: string | null;
  /** The most memory of all processes of a call: 2 GiB unless given. */
  readonly maxMemoryBytes?: number;
}

const defaultTimeoutS = 30;
const maxTimeoutS = 300;
const maxCodeBytes = 64 * 1024;
const maxTotalBytes = 64 * 1024 ** 2;
/** Of each process: the kernel counts what it may write to, not what it reserves. */
const limits = { maxProcesses: 64, maxDataBytes: 1024 ** 3 };
/** Of all processes together. */
const usualMemoryBytes = 2 * 1024 ** 3;
const memoryWatchMs = 250;

const schema = {
  type: 'object',
  properties: {
    code: { type: 'string' },
    language: { enum: ['python', 'node'] },
    timeout_seconds: { type: 'integer' },
  },
  required: ['code'],
  additionalProperties: false,
} as const;

type CodeArgs = FromSchema<typeof schema>;
type Language = NonNullable<CodeArgs['language']>;

const interpreters = {
  python: { arguments: ['-u', '-B', '-X', 'utf8'], file: '/run/program.py' },
  node: { arguments: ['--max-old-space-size=768'], file: '/run/program.js' },
} as const;

/** Keeps the program in memory beside the empty directory in which it starts. */
const startScript = 'cat <&3 >"$0" && exec 3<&- && mkdir /run/code && cd /run/code && exec "$@"';

const words: ProcessWords = {
  starter: 'The sandbox',
  process: 'The code',
  lessOutput: 'Print less.',
};

/** `execute_code`: Python or JavaScript in a sandbox of its own, whatever sandbox the session has: an empty directory
 * in memory, no network, nothing left behind. Gives no tool where there is no sandbox. Where it is known to work here,
 * it is opened with the first call. */
export async function codeTools(options: CodeOptions): Promise<readonly DefinedTool[]> {
  const path = options.env.PATH ?? '';
  const bubblewrap = options.bubblewrap === undefined ? findProgram(path, null) : options.bubblewrap;
  const machine = machineOf(bubblewrap, options);
  const known = triedVersion(options.tried, machine);
  const sandbox = loadOnce(() => openCodeSandbox(options, bubblewrap, known));
  if (known === null) {
    const opened = await sandbox.get();
    if (!opened.ok) {
      options.notify(`execute_code is not offered: ${opened.problem}. ${opened.fix}`);
      return [];
    }
    remember(options.tried, `${opened.version}\n${machine}`);
  }
  const programs = { python: programOnPath('python3', path), node: process.execPath };
  const { env, maxMemoryBytes = usualMemoryBytes } = options;
  return [codeTool({ sandbox: () => sandbox.get(), programs, env, maxMemoryBytes })];
}

/** Opens the sandbox in a directory of its own, which goes with this process. */
async function openCodeSandbox(
  { home, env }: CodeOptions,
  program: string | null,
  known: string | null,
): Promise<CodeSandbox> {
  const place = realpathSync(mkdtempSync(join(tmpdir(), 'agent-code-')));
  atExit(() => {
    rmSync(place, { recursive: true, force: true });
  });
  const opened = await openSandbox({
    sandbox: 'read-only',
    workspace: place,
    home,
    env,
    isSecret: () => false,
    limits,
    program,
    ...(known === null ? {} : { triedVersion: known }),
  });
  if (!opened.ok) return opened;
  const marker = { name: '_AGENT_CODE', value: randomUUID() };
  const processes = createProcessRunner({
    confine: (command, sandbox) => {
      mkdirSync(place, { recursive: true }); // whatever tidies up temporary folders
      return opened.confine(command, sandbox);
    },
    marker,
  });
  atExit(() => {
    processes.killNow();
  });
  return { ok: true, version: opened.version, processes, marker: `${marker.name}=${marker.value}` };
}

type CodeSandbox =
  | { readonly ok: true; readonly version: string; readonly processes: ProcessRunner; readonly marker: string }
  | { readonly ok: false; readonly problem: string; readonly fix: string };

/** Returns the facts that decide if a sandbox works: the program, the kernel since its start, the user, and the folders
 * of tools. */
function machineOf(program: string | null, { env, home }: CodeOptions): string {
  const stats = program === null ? undefined : statsAt(program);
  const boot = readBoundedText('/proc/sys/kernel/random/boot_id', { maxBytes: 100, longer: 'refuse', links: 'follow' });
  return JSON.stringify([
    program,
    stats?.mtimeMs,
    stats?.ino,
    release(),
    boot?.trim(),
    process.getuid?.(),
    home,
    env.PATH,
  ]);
}

/** Returns the version of bubblewrap that worked on this very machine, or null. */
function triedVersion(file: string, machine: string): string | null {
  const text = readBoundedText(file, { maxBytes: 65_536, longer: 'refuse', links: 'refuse' });
  const [version = '', ...rest] = text?.split('\n') ?? [];
  return rest.join('\n') === machine && /^\d+(?:\.\d+)*$/.test(version) ? version : null;
}

function remember(file: string, text: string): void {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(file, text, { mode: 0o600 });
  } catch {
    // It is tried again at the next start.
  }
}

/** The dependencies of a call. */
interface Workshop {
  readonly sandbox: () => Promise<CodeSandbox>;
  readonly programs: Readonly<Record<Language, string | null>>;
  readonly env: CodeOptions['env'];
  readonly maxMemoryBytes: number;
}

function codeTool(workshop: Workshop): DefinedTool {
  const { programs } = workshop;
  const usual: Language = programs.python === null ? 'node' : 'python';
  return defineTool({
    name: 'execute_code',
    effect: 'execute',
    limits: { timeout_ms: maxTimeoutS * 1000, max_output_bytes: 102_400 },
    description: 'Execute Python code in a sandbox without network. Returns what it prints.',
    schema,
    check(args) {
      const { code, language } = args;
      if (code.trim() === '') return { argument: 'code', problem: 'blank', expected: 'a program' };
      if (Buffer.byteLength(code) > maxCodeBytes)
        return { argument: 'code', problem: `${Buffer.byteLength(code)} bytes`, expected: `at most ${maxCodeBytes}` };
      if (language !== undefined && programs[language] === null)
        return { argument: 'language', problem: `${language} is not installed`, expected: usual };
      return outOfBounds(args, { timeout_seconds: [1, maxTimeoutS] });
    },
    judge: ({ language = usual }) => ({
      risk: 'mutating',
      reasons: [`execute_code runs ${language} code in a sandbox`],
      singular: true,
    }),
    run: (args, ctx) => execute(args, ctx, args.language ?? usual, workshop),
  });
}

async function execute(args: CodeArgs, ctx: ToolContext, language: Language, workshop: Workshop): Promise<ToolOutcome> {
  const sandbox = await workshop.sandbox();
  if (!sandbox.ok) return failed('execution_failed', `The code was not run: ${sandbox.problem}. ${sandbox.fix}`);
  const timeoutMs = Math.min(
    (args.timeout_seconds ?? defaultTimeoutS) * 1000,
    ctx.limits.timeoutMs ?? Number.POSITIVE_INFINITY,
  );
  const collector = createOutputCollector(ctx.limits.maxOutputBytes);
  const progress = createProgressStream(
    collector,
    (chunk) => {
      ctx.progress(chunk);
    },
    ctx.outputMask,
  );
  const { arguments: given, file } = interpreters[language];
  const program = workshop.programs[language] ?? language;
  const memory = watchMemory(sandbox.marker, workshop.maxMemoryBytes, ctx.signal);
  const result = await sandbox.processes.run({
    file: '/bin/sh',
    args: ['-c', startScript, file, program, ...given, file],
    shows: [program],
    cwd: '/tmp',
    env: environment(workshop.env),
    input: Buffer.from(args.code),
    sandbox: 'read-only',
    signal: memory.signal,
    timeoutMs,
    maxTotalBytes,
    joined: true,
    onOutput(chunk) {
      collector.add(chunk);
      progress.moved();
    },
  });
  progress.end();
  if (memory.end() && result.ended === 'cancelled')
    return failed(
      'execution_failed',
      `The code was stopped: its processes used more than ${workshop.maxMemoryBytes / 1024 ** 2} MB of memory together. ` +
        'Work in smaller parts.',
    );
  return processOutcome(result, collector.collected(), { timeoutMs, maxTotalBytes }, words);
}

/** Ends the code where all its processes together take too much memory: the kernel limits each of them alone. `end`
 * stops watching and returns whether that happened. */
function watchMemory(
  marker: string,
  maxBytes: number,
  cancelled: AbortSignal,
): { readonly signal: AbortSignal; end(): boolean } {
  const stop = new AbortController();
  let isTooMuch = false;
  const cancel = (): void => {
    stop.abort();
  };
  cancelled.addEventListener('abort', cancel, { once: true });
  if (cancelled.aborted) cancel();
  const timer = setInterval(() => {
    isTooMuch ||= confinedMemoryBytes(marker) > maxBytes;
    if (isTooMuch) cancel();
  }, memoryWatchMs);
  return {
    signal: stop.signal,
    end: () => {
      clearInterval(timer);
      cancelled.removeEventListener('abort', cancel);
      return isTooMuch && !cancelled.aborted;
    },
  };
}

/** Returns the variables that a program needs. It gets no others. */
function environment(own: CodeOptions['env']): Readonly<Record<string, string>> {
  const kept = ['PATH', 'LANG', 'TZ'].flatMap((name) => {
    const value = own[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return { ...Object.fromEntries(kept), TERM: 'dumb', NO_COLOR: '1' };
}

function programOnPath(name: string, path: string): string | null {
  const folders = ['/usr/bin', '/bin', '/usr/local/bin', ...path.split(delimiter).filter((each) => isAbsolute(each))];
  return folders.map((folder) => join(folder, name)).find(isProgram) ?? null;
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
