import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { addUsage, noUsage } from '../../kernel/core/usage-totals.js';
import { exit } from '../../kernel/console/command.js';
import { isRecord, parseJson } from '../../kernel/core/json.js';
import { type Store, ulid } from '../../kernel/core/store.js';
import { firstLine } from '../../kernel/core/text.js';
import { readBoundedText } from '../../kernel/disk/bounded-file.js';
import { isAlive } from '../../kernel/store/lease.js';
import type { ProcessRunner } from '../../kernel/tools/process/runner.js';
import { signalGroup } from '../../kernel/tools/process/watchdog.js';
import type { BegunRun, PlannedRun, RunResult, EvalStatus } from './eval-runs.js';
import { noteBeginning, PlaceError, placeIn, type PreparedPlace, preparePlace } from './prepare-place.js';
import type { EvalTask } from './task-file.js';

/** The program, as a run uses it. */
export interface EvalHost {
  readonly env: NodeJS.ProcessEnv;
  /** The directory of the user, where models that are files are looked for. */
  readonly cwd: string;
  /** Starts the program itself. */
  readonly processes: ProcessRunner;
  readonly sandbox: string;
  /** Runs a command of the task in the directory, with the sandbox. */
  readonly command: (command: string, at: PreparedPlace, timeoutMs: number) => Promise<CommandEnd>;
  readonly withStore: <T>(use: (store: Store) => Promise<T>) => Promise<T>;
  readonly signal: AbortSignal;
}

export interface CommandEnd {
  readonly exitCode: number | null;
  /** The end of what it printed. */
  readonly output: string;
  readonly ended: 'exit' | 'timeout' | 'cancelled';
}

/** The outcome of a run, and the change that it made. */
export interface EndedRun {
  readonly result: RunResult;
  readonly diff: string;
  /** The place that it worked in, which is of no use any more; null where there was none. */
  readonly folder: string | null;
}

interface Verdict {
  readonly status: EvalStatus;
  readonly reason: string | null;
}

const maxOutputBytes = 64 * 1024 * 1024;
const maxReason = 300;

/** A run to make. `newFolder` makes a folder for a new place. `begun`: the place that an earlier process has made. */
export interface GivenRun {
  readonly task: EvalTask;
  readonly planned: PlannedRun;
  readonly begun: BegunRun | null;
  readonly newFolder: () => string;
}

/** Runs a task, or continues a run that a kill has cut. `note` is called once the place is ready, before the model is
 * asked. Returns null where `host.signal` has stopped it: it can be continued. */
export async function runTask(
  host: EvalHost,
  given: GivenRun,
  note: (begun: BegunRun) => void,
): Promise<EndedRun | null> {
  const { task, planned } = given;
  const stopped = (): boolean => host.signal.aborted;
  try {
    const { begun: now, asked } = await askedInPlace(host, given, note);
    if (stopped() || asked === null) return null;
    const { place, sessionId } = now;
    const verdict = asked.status === null ? await judge(host, task, place) : { ...asked, status: asked.status };
    if (stopped()) return null;
    const figures = await figuresOf(host, sessionId);
    return { result: { ...planned, ...verdict, ...figures }, diff: await place.change(), folder: now.folder };
  } catch (error) {
    if (stopped()) return null;
    if (!(error instanceof PlaceError)) throw error;
    return {
      result: { ...planned, status: 'error', reason: error.message, ...noFigures, session_id: null },
      diff: '',
      folder: null,
    };
  }
}

const noFigures = { cost_usd: 0, input_tokens: 0, output_tokens: 0, turns: 0, wall_ms: 0 } as const;

interface Begun {
  readonly place: PreparedPlace;
  readonly folder: string;
  readonly sessionId: string;
}

/** Asks the model in the place that an earlier process has made. Where a kill has cut the work there, it begins again: a
 * model that was cut off is not measured. */
async function askedInPlace(
  host: EvalHost,
  given: GivenRun,
  note: (begun: BegunRun) => void,
): Promise<{ readonly begun: Begun; readonly asked: Asked | null }> {
  const { task, planned } = given;
  const begun = await begin(host, given, note);
  const asked = host.signal.aborted ? null : await askAll(host, task, planned, begun);
  if (asked !== null || given.begun === null || host.signal.aborted) return { begun, asked };
  return await askedInPlace(host, { ...given, begun: null }, note);
}

/** Finds the place of a run, or makes it. */
async function begin(
  host: EvalHost,
  { task, begun: before, newFolder }: GivenRun,
  note: (begun: BegunRun) => void,
): Promise<Begun> {
  if (before !== null && existsSync(join(before.folder, 'work')))
    return { place: placeIn(before.folder, host.env, task), sessionId: before.session_id, folder: before.folder };
  const folder = newFolder();
  const place = await preparePlace(folder, host.env, task);
  if (task.setup !== null) {
    const end = await host.command(task.setup, place, task.timeoutSeconds * 1000);
    if (end.exitCode !== 0) throw new PlaceError(`setup ${endText(end)}`);
  }
  await noteBeginning(folder, host.env);
  const sessionId = ulid(Date.now(), randomBytes(16));
  note({ session_id: sessionId, folder });
  return { place, sessionId, folder };
}

type Asked = { readonly status: EvalStatus | null; readonly reason: string | null };
const answered: Asked = { status: null, reason: null };

/** Puts the prompts in order, each to a process of its own. What an earlier process of ours has put is not put again.
 * Null: it was stopped, or cut by a kill. */
async function askAll(host: EvalHost, task: EvalTask, planned: PlannedRun, begun: Begun): Promise<Asked | null> {
  const deadline = performance.now() + task.timeoutSeconds * 1000;
  for (const [index, prompt] of task.prompts.entries()) {
    const session = index === 0 ? ['--session-id', begun.sessionId] : ['-r', begun.sessionId];
    const end = await programOnce(host, {
      files: join(begun.folder, `turn-${index + 1}`),
      words: [...wordsFor(host, task, planned, begun), ...session, '--', prompt],
      timeoutMs: deadline - performance.now(),
    });
    const asked = end === null ? null : askedOf(end);
    if (asked === null || asked.status !== null) return asked;
  }
  return answered;
}

function wordsFor(
  { cwd, sandbox }: EvalHost,
  task: EvalTask,
  { model, repeat }: PlannedRun,
  { place }: Begun,
): readonly string[] {
  return [
    ...['-p', '--output-format', 'json', '-C', place.work, '-m', modelFor(model, cwd), '--sandbox', sandbox],
    ...['-n', `eval: ${task.name} · ${model}${repeat > 1 ? ` · ${repeat}` : ''}`],
    ...(task.maxCostUsd === null ? [] : ['--max-cost', String(task.maxCostUsd)]),
    ...(task.tools === null ? [] : ['--tools', task.tools]),
    ...(task.jsonSchema !== null ? ['--json-schema', JSON.stringify(task.jsonSchema)] : []),
    ...Object.entries(task.modelSettings).flatMap(([key, value]) => [
      '--set',
      `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
    ]),
  ];
}

/** A script of the embedded provider is named from the user's directory, and the run works in another one. */
function modelFor(model: string, cwd: string): string {
  const [, path] = /^offline\/(.+)$/s.exec(model) ?? [];
  const file = path === undefined ? null : join(cwd, path);
  return file !== null && path?.startsWith('/') === false && existsSync(file) ? `offline/${file}` : model;
}

interface ProgramRun {
  /** The beginning of the paths of its files. */
  readonly files: string;
  readonly words: readonly string[];
  readonly timeoutMs: number;
}

interface ProgramEnd {
  readonly exitCode: number;
  readonly isOverTime: boolean;
  readonly output: string;
  readonly errors: string;
}

/** The exit code where an earlier process of ours has begun with this prompt. */
const begunAlready = 99;

/** Writes what a program prints, and how it ended, to files: it continues when our own process is killed. */
const toFiles = `files=$1; shift; mkdir "$files.started" 2>/dev/null || exit ${begunAlready}; echo $$ >"$files.pid"
"$@" >"$files.json" 2>"$files.err" </dev/null
echo $? >"$files.part"; mv "$files.part" "$files.exit"`;

/** Runs the program, or waits for the end of one that an earlier process of ours has started. Null: it was stopped, or
 * it was killed. */
async function programOnce(host: EvalHost, run: ProgramRun): Promise<ProgramEnd | null> {
  const { files, words, timeoutMs } = run;
  if (existsSync(`${files}.started`)) return await oldProgram(host, run);
  const [, script] = process.argv;
  const own = [process.execPath, ...process.execArgv, ...(script === undefined ? [] : [script])];
  const end = await host.processes.run({
    file: 'sh',
    args: ['-c', toFiles, 'sh', files, ...own, ...words],
    cwd: host.cwd,
    env: withoutUndefined(host.env),
    sandbox: 'off',
    signal: host.signal,
    timeoutMs: Math.max(1, timeoutMs),
    maxTotalBytes: maxOutputBytes,
    onOutput: () => undefined,
  });
  if (end.ended === 'not_started') throw new PlaceError(`the program could not be started: ${end.error}`);
  if (end.ended === 'cancelled') return null;
  if (end.ended === 'exit' && end.exitCode === begunAlready) return await oldProgram(host, run);
  return end.ended === 'timeout' ? { ...programEnd(files), isOverTime: true } : endedProgram(files);
}

const lookEveryMs = 200;

async function oldProgram({ signal }: EvalHost, { files, timeoutMs }: ProgramRun): Promise<ProgramEnd | null> {
  const pid = Number(readBoundedText(`${files}.pid`, { maxBytes: 100, longer: 'refuse', links: 'refuse' }) ?? '');
  const until = performance.now() + timeoutMs;
  while (!existsSync(`${files}.exit`) && pid > 0 && isAlive(pid) && !signal.aborted) {
    if (performance.now() >= until) {
      signalGroup(pid, 'SIGTERM');
      return { ...programEnd(files), isOverTime: true };
    }
    await delay(lookEveryMs);
  }
  return signal.aborted ? null : endedProgram(files);
}

/** Null: it was killed before it could say how it ended. */
function endedProgram(files: string): ProgramEnd | null {
  return existsSync(`${files}.exit`) ? programEnd(files) : null;
}

function programEnd(files: string): ProgramEnd {
  const read = (kind: string): string =>
    readBoundedText(`${files}.${kind}`, { maxBytes: maxOutputBytes, longer: 'refuse', links: 'refuse' }) ?? '';
  return {
    exitCode: Number(read('exit') || exit.failed),
    isOverTime: false,
    output: read('json'),
    errors: read('err'),
  };
}

export function withoutUndefined(env: NodeJS.ProcessEnv): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

/** Reads how a turn ended. Source: contracts 4, exit codes. */
function askedOf({ exitCode, isOverTime, output, errors }: ProgramEnd): Asked {
  if (isOverTime) return { status: 'limit', reason: 'the time of the task was over' };
  const error = errorIn(output);
  const said = firstLine(
    error?.message ?? (errors.replace(/^agent: /, '').trim() || 'it ended without a word'),
    maxReason,
  );
  switch (exitCode) {
    case exit.done:
    case exit.denied:
      return answered;
    case exit.limit:
      return { status: 'limit', reason: 'the limit of responses with tool calls was reached' };
    case exit.cost:
      return { status: 'limit', reason: said };
    default:
      return { status: error?.code === 'schema' ? 'failed' : 'error', reason: said };
  }
}

function errorIn(output: string): { readonly code: string; readonly message: string } | null {
  try {
    const value: unknown = parseJson(output.trim().split('\n').at(-1) ?? '');
    const error = isRecord(value) ? value['error'] : null;
    return isRecord(error) ? { code: String(error['code']), message: String(error['message']) } : null;
  } catch {
    return null;
  }
}

/** Asks the check whether the task is done. An answer that fits its JSON Schema needs none. */
async function judge(host: EvalHost, task: EvalTask, place: PreparedPlace): Promise<Verdict> {
  if (task.check === null) return { status: 'passed', reason: null };
  const end = await host.command(task.check, place, task.timeoutSeconds * 1000);
  return end.exitCode === 0
    ? { status: 'passed', reason: null }
    : { status: 'failed', reason: `check ${endText(end)}` };
}

function endText({ exitCode, output, ended }: CommandEnd): string {
  const last = output.trim().split('\n').at(-1) ?? '';
  const how =
    ended === 'timeout'
      ? 'did not end in time'
      : exitCode === null
        ? 'could not be started'
        : `ended with exit code ${exitCode}`;
  return firstLine(last === '' ? how : `${how}: ${last}`, maxReason);
}

/** Sums up a session from its record, so that what a killed process used counts too. */
async function figuresOf(
  host: EvalHost,
  sessionId: string,
): Promise<Omit<RunResult, keyof PlannedRun | keyof Verdict>> {
  const events = await host.withStore((store) => store.load(sessionId));
  const sum = events.reduce(addUsage, noUsage);
  const responses = new Set(
    events.flatMap(({ kind, data }) =>
      (kind === 'assistant' || kind === 'tool_call') && isRecord(data) ? [data['response_id']] : [],
    ),
  );
  const first = events.find(({ kind }) => kind === 'user');
  return {
    cost_usd: sum.cost_usd,
    input_tokens: sum.input_tokens + sum.cache_read_tokens + sum.cache_write_tokens,
    output_tokens: sum.output_tokens,
    turns: responses.size,
    session_id: events.length === 0 ? null : sessionId,
    wall_ms: (events.at(-1)?.createdAt ?? 0) - (first?.createdAt ?? events.at(-1)?.createdAt ?? 0),
  };
}
