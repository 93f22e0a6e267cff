import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readJsonObject } from '../../kernel/config/json-object.js';
import { ensurePrivateDirectory } from '../../kernel/config/settings-file.js';
import { CliError, exit } from '../../kernel/console/command.js';
import { readBoundedText } from '../../kernel/disk/bounded-file.js';
import { ulid } from '../../kernel/core/store.js';
import { isRunning, ownIdentity, type ProcessIdentity } from '../../kernel/store/lease.js';
import type { EvalTask } from './task-file.js';

/** One run of one task by one model. */
export interface PlannedRun {
  readonly task: string;
  readonly model: string;
  /** From 1. */
  readonly repeat: number;
}

/** `passed`, `failed`: the check said so. `limit`: time, cost or turns ended it. `error`: it could not be made, or the
 * provider failed. */
export type EvalStatus = 'passed' | 'failed' | 'limit' | 'error';

/** The outcome of one run, in the words of the contract. */
export interface RunResult extends PlannedRun {
  readonly status: EvalStatus;
  /** A sentence; null where it passed. */
  readonly reason: string | null;
  /** Null where a price is not known. */
  readonly cost_usd: number | null;
  readonly input_tokens: number;
  readonly output_tokens: number;
  /** Responses of the model. */
  readonly turns: number;
  readonly wall_ms: number;
  readonly session_id: string | null;
}

/** A run whose place is ready, and the session that it works in. */
export interface BegunRun {
  readonly session_id: string;
  /** Absolute. */
  readonly folder: string;
}

/** A task as an evaluation keeps it; its file has the rest. Texts are masked. */
type KeptTask = Pick<EvalTask, 'name' | 'file' | 'sha256' | 'prompts' | 'check'>;

/** An evaluation as it was asked for. */
export interface EvalPlan {
  readonly run_id: string;
  /** Unix ms. */
  readonly created_at: number;
  readonly sandbox: string;
  readonly jobs: number;
  /** The places of its runs are made here. Absolute. */
  readonly folder: string;
  readonly tasks: readonly KeptTask[];
  readonly runs: readonly PlannedRun[];
}

/** An evaluation on the disk: a folder with its plan, and a file for each run. */
export interface EvalFolder {
  readonly plan: EvalPlan;
  readonly begun: (index: number) => BegunRun | null;
  readonly noteBegun: (index: number, begun: BegunRun) => void;
  readonly result: (index: number) => RunResult | null;
  /** The change that the run made, as a diff; '' where there is none. */
  readonly diff: (index: number) => string;
  readonly noteResult: (index: number, result: RunResult, diff: string) => void;
  /** Returns the results so far, in the order of the plan. */
  readonly results: () => readonly RunResult[];
  /** Takes the evaluation for this process. Throws a `CliError` while another process works on it. */
  readonly take: () => void;
  readonly release: () => void;
}

const maxDiffBytes = 16 * 1024 * 1024;

type Files = Readonly<{ data: string }>;

function folderOf({ data }: Files): string {
  return join(data, 'eval');
}

export function newRunId(): string {
  return ulid(Date.now(), randomBytes(16)).toLowerCase();
}

export function createEvaluation(files: Files, plan: EvalPlan): EvalFolder {
  const folder = join(folderOf(files), plan.run_id);
  ensurePrivateDirectory(folder);
  write(join(folder, 'plan.json'), plan);
  return open(folder, plan);
}

/** Returns the ids of all evaluations, the newest first. */
export function evaluationIds(files: Files): readonly string[] {
  const folder = folderOf(files);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => existsSync(join(folder, name, 'plan.json')))
    .sort()
    .toReversed();
}

/** Opens an evaluation by its id or the beginning of it. Throws a `CliError` (2) where there is none, or more than one. */
export function openEvaluation(files: Files, id: string): EvalFolder {
  const known = evaluationIds(files);
  const matching = known.filter((one) => one.startsWith(id.toLowerCase()));
  const [found] = matching;
  if (found === undefined || matching.length > 1 || id === '')
    throw new CliError(
      exit.usage,
      matching.length > 1 ? `${matching.length} evaluations begin with ${id}` : `there is no evaluation ${id}`,
      known.length === 0 ? 'Begin one with agent eval run.' : `agent eval list shows them. The newest is ${known[0]}.`,
    );
  const folder = join(folderOf(files), found);
  const read = readJsonObject(join(folder, 'plan.json'));
  if (read.kind !== 'object')
    throw new CliError(
      exit.failed,
      `${join(folder, 'plan.json')} cannot be read`,
      `Remove it: agent eval rm ${found}.`,
    );
  return open(folder, own(join(folder, 'plan.json')) as EvalPlan);
}

export function removeEvaluation(files: Files, { plan }: EvalFolder): void {
  for (const folder of [plan.folder, join(folderOf(files), plan.run_id)])
    rmSync(folder, { recursive: true, force: true });
}

function open(folder: string, plan: EvalPlan): EvalFolder {
  const file = (index: number, kind: string): string => join(folder, `${index}.${kind}`);
  const result: EvalFolder['result'] = (index) => own(file(index, 'result.json')) as RunResult | null;
  const owner = join(folder, 'owner.json');
  return {
    plan,
    begun: (index) => own(file(index, 'begun.json')) as BegunRun | null,
    noteBegun: (index, begun) => {
      write(file(index, 'begun.json'), begun);
    },
    result,
    diff: (index) =>
      readBoundedText(file(index, 'diff'), { maxBytes: maxDiffBytes, longer: 'start', links: 'refuse' }) ?? '',
    noteResult: (index, ended, diff) => {
      if (diff !== '') writeFileSync(file(index, 'diff'), diff, { mode: 0o600 });
      write(file(index, 'result.json'), ended);
    },
    results: () => plan.runs.flatMap((_, index) => result(index) ?? []),
    take: () => {
      const other = own(owner) as ProcessIdentity | null;
      const me = ownIdentity();
      if (other !== null && isRunning(other, me) !== 'no')
        throw new CliError(
          exit.session,
          `process ${other.pid} works on evaluation ${plan.run_id}`,
          'Wait for its end, or stop it, then try again.',
        );
      write(owner, me);
    },
    release: () => {
      rmSync(owner, { force: true });
    },
  };
}

/** Reads a file of ours; null where it is not there. */
function own(path: string): unknown {
  const read = readJsonObject(path);
  return read.kind === 'object' ? read.value : null;
}

/** Writes a file as a whole, so that a kill leaves no half of it. */
function write(path: string, value: object): void {
  const part = `${path}.${process.pid}.part`;
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(part, JSON.stringify(value), { mode: 0o600 });
  renameSync(part, path);
}
