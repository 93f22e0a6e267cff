import { existsSync, statSync } from 'node:fs';
import { delimiter } from 'node:path';
import { fileURLToPath } from 'node:url';
import { statsAt } from '../disk/path-stats.js';
import type { Json } from '../core/json.js';
import type { ArgumentProblem, Rehearsal, ToolContext, ToolOutcome } from '../core/tool.js';
import { createAutoRunWatch } from './changes/auto-run-files.js';
import { type DefinedTool, defineTool, failed, type FromSchema, succeeded } from './define-tool.js';
import { absolutePath, fileFailure, FileRefusal, pathProblem, shownPath } from './files/open-file.js';
import { type CollectedOutput, createOutputCollector, createProgressStream } from './process/output-collector.js';
import type { OpenProcess } from './process/lasting-process.js';
import type { NotStarted } from './process/start-child.js';
import { terminalCommand, type TerminalSize } from './process/terminal-command.js';
import type { ProcessRequest, ProcessResult, ProcessRunner } from './process/runner.js';
import type { Rehearsals } from './rehearsal/open-rehearsals.js';

export interface BashOptions {
  readonly processes: ProcessRunner;
  /** The shell's file name: `bash`, or `sh` where there is no bash. */
  readonly shell: string;
  /** Seconds for a call that names no limit. */
  readonly timeoutS: number;
  /** The most seconds that a call may ask for. */
  readonly maxTimeoutS: number;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Names of variables that are kept from every child process. */
  readonly protectedEnv: readonly string[];
  /** Returns folders that commands look for programs in, after those of PATH. */
  readonly addedPath?: () => readonly string[];
  /** Runs commands that may continue after their call. Absent: no command does. */
  readonly background?: Background;
  /** Defaults to `stop`. Without a background, every command is stopped. */
  readonly onTimeout?: OnTimeout;
  /** Runs commands on a copy-on-write view of the files. Absent: none is. */
  readonly rehearsals?: () => Promise<Rehearsals>;
}

/** `background`: the command continues as a background task, and its call returns. */
export type OnTimeout = 'background' | 'stop';

/** Runs commands in the background. */
export interface Background {
  /** Runs a command until it has ended or continues in the background. Never rejects. */
  run(command: BackgroundCommand, ctx: ToolContext): Promise<ToolOutcome>;
}

export interface BackgroundCommand {
  readonly line: string;
  /** True if it runs in the background from the beginning. */
  readonly isBackground: boolean;
  /** The limit of a call that waits for it. */
  readonly timeoutMs: number;
  readonly onTimeout: OnTimeout;
  /** Lines of its output that match are reported to the model while it runs in the background. */
  readonly wakeOn?: RegExp;
  /** The limit of what it prints while a call waits for it. */
  readonly maxTotalBytes: number;
  start(
    how: Pick<ProcessRequest, 'signal' | 'timeoutMs' | 'maxTotalBytes' | 'onOutput' | 'onLeft'>,
  ): Promise<ProcessResult>;
  /** Starts it on a pseudo-terminal; a sentence where there is none here. Absent: it runs without a terminal. */
  readonly openTerminal?: (size: TerminalSize) => Promise<OpenProcess | NotStarted | string>;
  /** Says how a command ended that a call waited for. `jobs`: so many run that it could not continue. */
  outcome(result: ProcessResult, collected: CollectedOutput, jobs: number): ToolOutcome;
}

const maxTotalBytes = 256 * 1024 * 1024;
/** The kernel takes at most 128 KiB for one argument; longer commands go in through a descriptor. */
const maxArgumentBytes = 120 * 1024;

function schemaOf({ timeoutS, maxTimeoutS, background }: BashOptions) {
  return {
    type: 'object',
    properties: {
      command: { type: 'string' },
      timeout_seconds: {
        type: 'integer',
        minimum: 1,
        maximum: maxTimeoutS,
        description: `default ${timeoutS}`,
      },
      workdir: { type: 'string' },
      ...(background
        ? ({
            background: { type: 'boolean' },
            terminal: { type: 'boolean' },
            wake_on: { type: 'string', description: 'regex: its lines wake you' },
          } as const)
        : {}),
    },
    required: ['command'],
    additionalProperties: false,
  } as const;
}

type BashArgs = FromSchema<ReturnType<typeof schemaOf>>;

export function bashTool(options: BashOptions): DefinedTool {
  const watch = createAutoRunWatch();
  const environments = new Map<boolean, Record<string, string>>();
  // Made once: Node reads its own environment slowly, name by name.
  const env = (readsOnly: boolean): Record<string, string> => {
    const made = environments.get(readsOnly) ?? shellEnvironment(options.env, options.protectedEnv, readsOnly);
    environments.set(readsOnly, made);
    return made;
  };
  return defineTool({
    name: 'bash',
    otherNames: ['execute_command'],
    effect: 'execute',
    placeholders: 'shell',
    guidance: {
      line: 'Use bash for builds, tests and git; do not start editors or pagers.',
    },
    description: 'Run a shell command. No terminal, stdin is empty; cd and variables do not carry over.',
    schema: schemaOf(options),
    check(args) {
      const { command, workdir } = args;
      if (command.trim() === '') return { argument: 'command', problem: 'blank', expected: 'a shell command' };
      if (command.includes('\0'))
        return { argument: 'command', problem: 'contains a NUL character', expected: 'a command without it' };
      if (args.terminal === true && args.background !== true)
        return { argument: 'terminal', problem: 'without background', expected: 'background: true beside it' };
      if (args.terminal === true && Buffer.byteLength(command) > maxArgumentBytes)
        return {
          argument: 'command',
          problem: 'too long for a terminal',
          expected: `${maxArgumentBytes} bytes at most`,
        };
      return pathProblem('workdir', workdir) ?? wakeProblem(args);
    },
    prepare: () => {
      options.processes.prepare();
    },
    rehearse: (args, ctx) => rehearseCommand(args, ctx, options),
    async run(args, ctx) {
      const newAutoRunFiles = ctx.sandbox === 'read-only' || ctx.readsOnly === true ? () => [] : watch(ctx.cwd);
      const outcome = await runCommand(args, ctx, options, ofSession(env(ctx.readsOnly === true), ctx, options));
      return warned(outcome, newAutoRunFiles());
    },
  });
}

/** Returns what is wrong with `wake_on`. A slow expression is stopped when it runs, in a thread of its own. */
function wakeProblem({ wake_on: pattern, background, terminal }: BashArgs): ArgumentProblem | null {
  if (typeof pattern !== 'string') return null;
  const argument = 'wake_on';
  if (background !== true || terminal === true)
    return { argument, problem: 'without background', expected: 'background: true, no terminal' };
  try {
    wakeExpression(pattern);
    return null;
  } catch (error) {
    return { argument, problem: String(error), expected: 'a regular expression of JavaScript' };
  }
}

/** Throws for what is no expression. `(?i)` at its beginning ignores case. */
function wakeExpression(pattern: string): RegExp {
  const plain = pattern.replace(/^\(\?i\)/, '');
  return new RegExp(plain, plain === pattern ? '' : 'i');
}

/** Returns the environment of a command of one session. */
function ofSession(
  env: Readonly<Record<string, string>>,
  { session }: Pick<ToolContext, 'session'>,
  { addedPath }: Pick<BashOptions, 'addedPath'>,
): Readonly<Record<string, string>> {
  const known = (env['PATH'] ?? '').split(delimiter);
  const added = (addedPath?.() ?? []).filter((folder) => !known.includes(folder));
  return {
    ...env,
    ...(session.id === '' ? {} : { AGENT_SESSION_ID: session.id }),
    ...(added.length === 0 ? {} : { PATH: [...known, ...added].filter((folder) => folder !== '').join(delimiter) }),
  };
}

const maxRehearsedS = 120;

async function rehearseCommand(args: BashArgs, ctx: ToolContext, options: BashOptions): Promise<Rehearsal | string> {
  const seconds = args.timeout_seconds ?? options.timeoutS;
  if (!options.rehearsals) return 'commands cannot be previewed here';
  if (args.background === true) return 'commands in the background are not rehearsed';
  if (seconds > maxRehearsedS) return `commands with more than ${maxRehearsedS} s are not rehearsed`;
  const cwd = args.workdir === undefined ? ctx.cwd : absolutePath(ctx.cwd, args.workdir);
  if (statsAt(cwd)?.isDirectory() !== true) return `${cwd} is not a directory`;
  const timeoutMs = Math.min(seconds * 1000, ctx.limits.timeoutMs ?? Number.POSITIVE_INFINITY);
  return await (
    await options.rehearsals()
  ).run({
    command: {
      ...shellCommand(args.command, options.shell),
      cwd,
      env: ofSession(shellEnvironment(options.env, options.protectedEnv), ctx, options),
    },
    signal: ctx.signal,
    timeoutMs,
    maxTotalBytes,
    maxOutputBytes: ctx.limits.maxOutputBytes,
    outcome: (result, collected) => processOutcome(result, collected, { timeoutMs, maxTotalBytes }, words),
  });
}

async function runCommand(
  args: BashArgs,
  ctx: ToolContext,
  options: BashOptions,
  env: Readonly<Record<string, string>>,
): Promise<ToolOutcome> {
  const workdir = args.workdir === undefined ? ctx.cwd : absolutePath(ctx.cwd, args.workdir);
  const failure = directoryFailure(workdir, args.workdir ?? workdir);
  if (failure) return failure;
  const limit = limitOf(args, ctx, options);
  const { background } = options;
  const command = { ...shellCommand(args.command, options.shell), cwd: workdir, env, sandbox: ctx.sandbox };
  const outcome: BackgroundCommand['outcome'] = (result, collected, jobs) =>
    processOutcome(result, collected, { ...limit, maxTotalBytes, jobs }, words);
  if (background)
    return await background.run(
      {
        line: args.command,
        isBackground: args.background === true,
        ...(typeof args.wake_on === 'string' && { wakeOn: wakeExpression(args.wake_on) }),
        ...limit,
        maxTotalBytes,
        start: (how) => options.processes.run({ ...command, ...how, joined: true }),
        ...(args.terminal === true && {
          openTerminal: async (size: TerminalSize) => {
            const onTerminal = terminalCommand(command, size);
            if (typeof onTerminal === 'string') return onTerminal;
            return await options.processes.open({ ...onTerminal, sandbox: ctx.sandbox });
          },
        }),
        outcome,
      },
      ctx,
    );
  const collector = createOutputCollector(ctx.limits.maxOutputBytes);
  const progress = createProgressStream(
    collector,
    (chunk) => {
      ctx.progress(chunk);
    },
    ctx.outputMask,
  );
  const result = await options.processes.run({
    ...command,
    signal: ctx.signal,
    timeoutMs: limit.timeoutMs,
    maxTotalBytes,
    joined: true,
    onOutput(chunk) {
      collector.add(chunk);
      progress.moved();
    },
  });
  progress.end();
  return outcome(result, collector.collected(), 0);
}

/** Returns the outcome of a call whose directory cannot be used; null for one that can. */
function directoryFailure(workdir: string, shown: string): ToolOutcome | null {
  try {
    if (statSync(workdir).isDirectory()) return null;
    throw new FileRefusal('execution_failed', `${shown} is not a directory.`);
  } catch (error) {
    return fileFailure(error, shown, workdir);
  }
}

/** A limit that the user has set for the tool ends the command in any case. */
function limitOf(
  { timeout_seconds: seconds }: BashArgs,
  { limits }: Pick<ToolContext, 'limits'>,
  { timeoutS, onTimeout = 'stop' }: BashOptions,
): Pick<BackgroundCommand, 'timeoutMs' | 'onTimeout'> {
  const askedMs = (seconds ?? timeoutS) * 1000;
  const hardMs = limits.timeoutMs ?? Number.POSITIVE_INFINITY;
  return askedMs < hardMs ? { timeoutMs: askedMs, onTimeout } : { timeoutMs: hardMs, onTimeout: 'stop' };
}

const maxNamed = 20;

/** Adds the files that the command made or changed and that other programs obey without being asked. */
function warned(outcome: ToolOutcome, files: readonly string[]): ToolOutcome {
  if (files.length === 0) return outcome;
  const named = files.slice(0, maxNamed).map(shownPath);
  const more = files.length > maxNamed ? [`and ${files.length - maxNamed} more`] : [];
  return {
    ...outcome,
    envelope: { ...outcome.envelope, auto_run_files: [...named, ...more] },
    summary: `${outcome.summary}; changed files that other programs run automatically: ${[...named, ...more].join(', ')}`,
  };
}

function shellCommand(
  command: string,
  shell: string,
): Pick<ProcessRequest, 'file' | 'args' | 'shows'> & { readonly input?: Uint8Array } {
  const shows = [noPassword];
  if (Buffer.byteLength(command) <= maxArgumentBytes) return { file: shell, args: ['-c', command], shows };
  return { file: shell, args: ['-c', 'eval "$(cat <&3)" 3<&-'], input: Buffer.from(command), shows };
}

/** The words for a tool's process in its messages. */
export interface ProcessWords {
  readonly starter: string;
  readonly process: string;
  /** Advice for a command that printed too much. */
  readonly lessOutput: string;
}

const words: ProcessWords = {
  starter: 'The shell',
  process: 'The command',
  lessOutput:
    'Send its output to a file (> out.txt) and read that with file_read or grep, or print less (head, tail, grep).',
};

/** Says how a process ended: its exit code with its output, or why there is none. */
export function processOutcome(
  result: ProcessResult,
  collected: CollectedOutput,
  limits: { readonly timeoutMs: number; readonly maxTotalBytes: number; readonly jobs?: number },
  words: ProcessWords,
): ToolOutcome {
  if (result.ended === 'not_started')
    return failed('execution_failed', `${words.starter} could not be started: ${result.error}.`);
  const { parts, truncated, totalBytes } = collected;
  const size: { [key: string]: Json } = {
    ...(truncated ? { truncated: true, total_bytes: totalBytes } : {}),
    ...(result.lingers ? { still_ending: true } : {}),
  };
  // macOS does not show the environment of its own programs, by which a daemon would be found.
  const detached = process.platform === 'linux' ? '' : ' (not with a daemon that had detached itself)';
  const allEnded = result.lingers
    ? 'stopped; some of its child processes were still ending'
    : `stopped with its child processes${detached}`;
  switch (result.ended) {
    case 'exit': {
      const signal: { [key: string]: Json } = result.signal === null ? {} : { signal: result.signal };
      const background: { [key: string]: Json } = result.background === 0 ? {} : { background: result.background };
      return succeeded(summary(result), {
        output: parts.join(''),
        exit_code: result.exitCode,
        ...signal,
        ...background,
        ...size,
      });
    }
    case 'timeout':
      return failed(
        'timeout',
        `${words.process} was still running after ${limits.timeoutMs / 1000} s and was ${allEnded}; ` +
          'give it a longer timeout_seconds or less to do.' +
          (limits.jobs ? ` It could not continue: ${limits.jobs} jobs are running.` : ''),
        { output: parts.join(''), ...size },
      );
    case 'cancelled':
      return failed('cancelled', `${words.process} was cancelled and ${allEnded}.`, {
        output: parts.join(''),
        ...size,
      });
    case 'output_limit':
      return failed(
        'execution_failed',
        `${words.process} printed more than ${limits.maxTotalBytes / 1024 ** 2} MiB and was stopped; its effects until then remain. ${words.lessOutput}`,
        { output: parts.join(''), ...size },
      );
    default:
      return result satisfies never;
  }
}

function summary(result: Extract<ProcessResult, { background: number }>): string {
  const background = result.background === 0 ? '' : `, ${result.background} in the background`;
  return `exit ${result.exitCode}${result.signal === null ? '' : ` (${result.signal})`}${background}`;
}

/** Switches off pagers, prompts and editors: a command that would wait for a person ends by itself instead. */
const quiet: Readonly<Record<string, string>> = {
  TERM: 'dumb',
  PAGER: 'cat',
  MANPAGER: 'cat',
  GIT_PAGER: 'cat',
  SYSTEMD_PAGER: 'cat',
  GH_PAGER: 'cat',
  LESS: '-FRX',
  GIT_TERMINAL_PROMPT: '0',
  GIT_EDITOR: 'true',
  GIT_SEQUENCE_EDITOR: 'true',
  EDITOR: 'true',
  VISUAL: 'true',
  GCM_INTERACTIVE: 'never',
  DEBIAN_FRONTEND: 'noninteractive',
  PIP_NO_INPUT: '1',
};

/** A program that gives no password and says so. Some systems have no /bin/false. */
const noPassword =
  ['../..', '../../..']
    .map((up) => fileURLToPath(new URL(`${up}/bin/no-password.sh`, import.meta.url)))
    .find((file) => existsSync(file)) ?? 'false';

type Environment = Readonly<Record<string, string | undefined>>;

type Settings = readonly (readonly [string, string])[];

/** Settings that win over those of a repository: even `git status` would start its monitor. */
const gitAlways: Settings = [['core.fsmonitor', 'false']];
/** Settings for commands that only read. They switch off what a hostile repository could use: hooks, transports that
 * are programs, signatures checked unasked, and folders that are repositories themselves. Policy already refuses to
 * call a command read-only in a repository that names a program, so this is the second check. Git has no settings,
 * only options, against `diff.external`, filters and `textconv`. */
const gitReading: Settings = [
  ...gitAlways,
  ['core.hooksPath', '/dev/null'],
  ['protocol.ext.allow', 'never'],
  ['log.showSignature', 'false'],
  ['safe.bareRepository', 'explicit'],
];

/** Git writes nothing into its index, and a file of options for ripgrep counts for nothing. */
const reading: Readonly<Record<string, string>> = { GIT_OPTIONAL_LOCKS: '0', RIPGREP_CONFIG_PATH: '' };

/** Returns the environment of a child process: our own without the protected names (provider keys), and with everything
 * interactive switched off. `readsOnly` is for a command that was judged to change nothing. */
export function shellEnvironment(
  own: Environment,
  protectedNames: readonly string[],
  readsOnly = false,
): Record<string, string> {
  const hidden = new Set(protectedNames);
  const isKept = (entry: readonly [string, string | undefined]): entry is [string, string] =>
    entry[1] !== undefined && !hidden.has(entry[0]);
  const kept = Object.entries(own).filter(isKept);
  return {
    ...Object.fromEntries(kept),
    ...quiet,
    ...Object.fromEntries(['SSH_ASKPASS', 'SUDO_ASKPASS', 'GIT_ASKPASS'].map((name) => [name, noPassword])),
    ...(readsOnly ? reading : {}),
    ...gitOverrides(own, readsOnly ? gitReading : gitAlways),
  };
}

/** Adds settings after those that the environment carries already. Source: git-config(1), `GIT_CONFIG_COUNT`. */
function gitOverrides(own: Environment, settings: Settings): Readonly<Record<string, string>> {
  const count = /^\d{1,4}$/.test(own.GIT_CONFIG_COUNT ?? '') ? Number(own.GIT_CONFIG_COUNT) : 0;
  const entries = settings.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${count + index}`, key],
    [`GIT_CONFIG_VALUE_${count + index}`, value],
  ]);
  return { GIT_CONFIG_COUNT: String(count + settings.length), ...Object.fromEntries(entries) };
}
