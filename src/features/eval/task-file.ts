import { createHash } from 'node:crypto';
import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { readJsonObject } from '../../kernel/config/json-object.js';
import { isFolder } from '../../kernel/config/project.js';
import { CliError, exit } from '../../kernel/console/command.js';
import type { JsonObject, JsonSchema } from '../../kernel/core/json.js';
import { readBoundedText } from '../../kernel/disk/bounded-file.js';
import { loadAjv } from '../../kernel/tools/load-ajv.js';

/** A task: a place to begin in, what is asked there, and what decides whether it was done. */
export interface EvalTask {
  readonly name: string;
  /** Its `task.json`, absolute, and the SHA-256 (hex) of all that it says. */
  readonly file: string;
  readonly sha256: string;
  readonly prompts: readonly string[];
  readonly place: TaskPlace;
  /** The directory that the model works in, below the place; '' for the place itself. */
  readonly directory: string;
  readonly setup: string | null;
  readonly check: string | null;
  readonly jsonSchema: JsonSchema | null;
  readonly timeoutSeconds: number;
  readonly maxCostUsd: number | null;
  /** As for `--tools`; null for the usual ones. */
  readonly tools: string | null;
  /** Settings by key. */
  readonly modelSettings: Readonly<Record<string, unknown>>;
}

/** `patch`: what differs from the commit at the beginning; '' for nothing. */
export type TaskPlace =
  | { readonly kind: 'repo'; readonly repo: string; readonly base: string; readonly patch: string }
  /** Files to copy: absolute paths, by their path in the place. */
  | { readonly kind: 'folder'; readonly from: Readonly<Record<string, string>> }
  | { readonly kind: 'texts'; readonly texts: Readonly<Record<string, string>> };

const usualTimeoutSeconds = 1800;
const maxPatchBytes = 64 * 1024 * 1024;
/** One argument of a process has at most 128 KiB. Source: execve(2), MAX_ARG_STRLEN. */
const maxPromptChars = 100_000;

const text = { type: 'string', minLength: 1 } as const;
const prompt = { type: 'string', minLength: 1, maxLength: maxPromptChars } as const;
/** The form of `task.json`. */
const taskSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    name: { type: 'string', pattern: '^[\\w][\\w.,()+ -]{0,79}$' },
    prompt,
    prompts: { type: 'array', items: prompt, minItems: 1 },
    repo: text,
    base: text,
    files: {
      anyOf: [text, { type: 'array', items: text }, { type: 'object', additionalProperties: { type: 'string' } }],
    },
    directory: text,
    setup: text,
    check: text,
    json_schema: { anyOf: [{ type: 'object' }, text] },
    timeout_s: { type: 'number', exclusiveMinimum: 0, maximum: 86_400 },
    max_cost_usd: { type: 'number', exclusiveMinimum: 0 },
    tools: { anyOf: [text, { type: 'array', items: text }] },
    model_settings: { type: 'object' },
  },
} as const;

interface TaskFields {
  readonly name?: string;
  readonly prompt?: string;
  readonly prompts?: readonly string[];
  readonly repo?: string;
  readonly base?: string;
  readonly files?: string | readonly string[] | Readonly<Record<string, string>>;
  readonly directory?: string;
  readonly setup?: string;
  readonly check?: string;
  readonly json_schema?: JsonObject | string;
  readonly timeout_s?: number;
  readonly max_cost_usd?: number;
  readonly tools?: string | readonly string[];
  readonly model_settings?: Readonly<Record<string, unknown>>;
}

/** Reads the tasks that paths name: `task.json`, its folder, or a folder above such folders. Throws a `CliError` (2)
 * that names the file and the field for a task that cannot be used. */
export async function readTasks(paths: readonly string[], cwd: string): Promise<readonly EvalTask[]> {
  const files = [...new Set(paths.flatMap((path) => taskFiles(resolve(cwd, path), path)))];
  const tasks = await Promise.all(files.map(readTask));
  const seen = new Map<string, string>();
  for (const { name, file } of tasks) {
    const other = seen.get(name);
    if (other !== undefined)
      throw new CliError(
        exit.usage,
        `two tasks are called ${name}`,
        `Give one of them another name: ${other}, ${file}`,
      );
    seen.set(name, file);
  }
  return tasks;
}

function taskFiles(path: string, given: string): readonly string[] {
  if (!isFolder(path)) {
    if (existsSync(path)) return [realpathSync(path)];
    throw new CliError(
      exit.usage,
      `there is no task at ${given}`,
      'Name a task.json, its folder, or a folder of tasks.',
    );
  }
  const found = below(realpathSync(path), 4);
  if (found.length > 0) return found;
  throw new CliError(exit.usage, `there is no task.json in ${given}`, 'Make one with agent eval new --from SESSION.');
}

/** Returns the `task.json` of a folder, else those of the folders in it. */
function below(folder: string, depth: number): readonly string[] {
  const own = join(folder, 'task.json');
  if (existsSync(own)) return [own];
  if (depth === 0) return [];
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== 'node_modules' && !entry.name.startsWith('.'))
    .map(({ name }) => name)
    .sort()
    .flatMap((name) => below(join(folder, name), depth - 1));
}

async function readTask(file: string): Promise<EvalTask> {
  const read = readJsonObject(file);
  if (read.kind !== 'object')
    throw new CliError(
      exit.usage,
      `${file}: ${read.kind === 'missing' ? 'there is no such file' : read.reason}`,
      'docs/eval.md describes the file of a task.',
    );
  const Ajv = await loadAjv();
  const ajv = new Ajv({ strict: false, allErrors: true, logger: false });
  if (!ajv.validate(taskSchema, read.value)) {
    const problems = (ajv.errors ?? []).map(({ instancePath, message = 'is refused', params }) => {
      const field = instancePath.slice(1).replaceAll('/', '.') || 'the task';
      return typeof params['additionalProperty'] === 'string'
        ? `there is no field ${params['additionalProperty']}`
        : `${field} ${message}`;
    });
    throw wrong(file, [...new Set(problems)].join('; '));
  }
  return taskOf(file, read.value);
}

function wrong(file: string, problem: string): CliError {
  return new CliError(exit.usage, `${file}: ${problem}`, `Fields: ${Object.keys(taskSchema.properties).join(', ')}.`);
}

function taskOf(file: string, fields: TaskFields): EvalTask {
  refuseContradictions(file, fields);
  const { name = basename(dirname(file)), prompt: one = '', prompts = [one], tools = null } = fields;
  const { setup = null, check = null, directory = '' } = fields;
  const said = {
    name,
    prompts,
    place: placeOf(file, fields),
    directory,
    setup,
    check,
    jsonSchema: schemaOf(file, fields.json_schema),
    ...limitsOf(fields),
    tools: tools === null || typeof tools === 'string' ? tools : tools.join(','),
  };
  return { ...said, file, sha256: createHash('sha256').update(JSON.stringify(said)).digest('hex') };
}

function limitsOf({
  timeout_s,
  max_cost_usd,
  model_settings,
}: TaskFields): Pick<EvalTask, 'timeoutSeconds' | 'maxCostUsd' | 'modelSettings'> {
  return {
    timeoutSeconds: timeout_s ?? usualTimeoutSeconds,
    maxCostUsd: max_cost_usd ?? null,
    modelSettings: model_settings ?? {},
  };
}

function refuseContradictions(
  file: string,
  { prompt: one, prompts, check, json_schema, directory = '' }: TaskFields,
): void {
  if ((one === undefined) === (prompts === undefined)) throw wrong(file, 'give either prompt or prompts');
  if (check === undefined && json_schema === undefined)
    throw wrong(file, 'there is neither a check nor a json_schema, so nothing could fail');
  if (isOutside(directory)) throw wrong(file, `directory ${directory} leads out of the place`);
}

function schemaOf(file: string, given: JsonObject | string | undefined): JsonSchema | null {
  if (given === undefined) return null;
  if (typeof given !== 'string') return given;
  const path = resolve(dirname(file), given);
  const read = readJsonObject(path);
  if (read.kind === 'object') return read.value as JsonSchema;
  throw wrong(file, `json_schema: ${path}: ${read.kind === 'missing' ? 'there is no such file' : read.reason}`);
}

function placeOf(file: string, { repo, base, files }: TaskFields): TaskPlace {
  const folder = dirname(file);
  if (files !== undefined && (repo !== undefined || base !== undefined))
    throw wrong(file, 'it has files as well as repo or base; give one or the other');
  if (files !== undefined) return filesOf(file, files);
  if (repo === undefined || base === undefined) throw wrong(file, 'give repo and base (a commit), or files');
  const path = resolve(folder, repo);
  if (!isFolder(path)) throw wrong(file, `repo: there is no folder ${path}`);
  return { kind: 'repo', repo: path, base, patch: patchOf(join(folder, 'patch.diff')) };
}

function patchOf(path: string): string {
  if (!existsSync(path)) return '';
  const read = readBoundedText(path, { maxBytes: maxPatchBytes, longer: 'refuse', links: 'follow' });
  if (read === null) throw new CliError(exit.usage, `${path} cannot be read`, 'It is a file of at most 64 MiB.');
  return read;
}

/** Reads `files`: texts by path, a folder whose content is copied, or paths that are copied. */
function filesOf(file: string, files: NonNullable<TaskFields['files']>): TaskPlace {
  const folder = dirname(file);
  if (typeof files === 'string') {
    const path = resolve(folder, files);
    if (!isFolder(path)) throw wrong(file, `files: there is no folder ${path}`);
    return { kind: 'folder', from: { '.': path } };
  }
  const names = Array.isArray(files) ? (files as readonly string[]) : Object.keys(files);
  const outside = names.find((name) => isOutside(name));
  if (outside !== undefined) throw wrong(file, `files: ${outside} leads out of the place`);
  if (!Array.isArray(files)) return { kind: 'texts', texts: files as Readonly<Record<string, string>> };
  const missing = names.find((name) => !existsSync(resolve(folder, name)));
  if (missing !== undefined) throw wrong(file, `files: there is no ${resolve(folder, missing)}`);
  return { kind: 'folder', from: Object.fromEntries(names.map((name) => [name, resolve(folder, name)])) };
}

function isOutside(path: string): boolean {
  return path.startsWith('/') || path.split('/').includes('..');
}
