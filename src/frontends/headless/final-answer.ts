import { parseJson } from '../../kernel/core/json.js';
import { accessSync, constants, lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { isatty } from 'node:tty';
import { CliError, exit } from '../../kernel/console/command.js';
import { isRecord, type Json, type JsonSchema } from '../../kernel/core/json.js';
import type { SessionPort, TurnEnd } from '../../kernel/core/session-port.js';
import { readBounded } from '../../kernel/disk/bounded-file.js';
import { sanitize } from '../../kernel/core/sanitize.js';
import { writeWhole } from '../../kernel/tools/files/atomic-write.js';
import { isKernelPath } from '../../kernel/tools/files/open-file.js';
import { loadAjv } from '../../kernel/tools/load-ajv.js';
import { refusingEndless } from '../../kernel/tools/registry.js';
import type { Answered, Ask } from './headless.js';
import { printData, printError } from '../../kernel/console/print.js';

/** The schema of a final answer. `problems` returns sentences on what is wrong with a value; none if it fits. */
export interface AnswerSchema {
  readonly schema: JsonSchema;
  readonly problems: (value: unknown) => readonly string[];
}

const maxSchemaBytes = 1_048_576;
/** The most problems that are reported; a list of a thousand may have each of them a thousand times. */
const mostProblems = 20;

/** Reads `--json-schema`: a file, or the schema itself. Throws a `CliError` (2) for what is not a schema. */
export async function readAnswerSchema(given: string, cwd: string): Promise<AnswerSchema> {
  const schema = parseSchema(given.trimStart().startsWith('{') ? given : readSchemaText(resolve(cwd, given)));
  const Ajv = await loadAjv();
  const ajv = new Ajv({ strict: false, allErrors: true, logger: false, validateFormats: false });
  // Which draft a schema names makes no difference to the keywords that all of them have.
  const { $schema: _draft, ...own } = schema;
  try {
    const validate = refusingEndless(() => {
      const check = ajv.compile(own);
      // Most schemas without an end show it on any value, before a model is paid for an answer.
      check({});
      return check;
    });
    return {
      schema,
      problems: (value) => {
        if (refusingEndless(() => validate(value))) return [];
        const errors = validate.errors ?? [];
        return errors.slice(0, mostProblems).map(({ instancePath, message = 'is refused', params }) => {
          const detail = Object.values(params).filter((part) => typeof part === 'string' || Array.isArray(part));
          const named = detail.length > 0 ? ` (${detail.flat().join(', ')})` : '';
          return `${instancePath || 'the answer'} ${message}${named}`;
        });
      },
    };
  } catch (error) {
    throw unusable(error instanceof Error ? error.message : String(error));
  }
}

function readSchemaText(path: string): string {
  const found = readBounded(path, { maxBytes: maxSchemaBytes, longer: 'refuse', links: 'follow' });
  if (found.kind === 'read') return found.bytes.toString('utf8');
  throw unusable(`${path}: ${found.kind === 'missing' ? 'there is no such file' : found.reason}`);
}

function parseSchema(text: string): JsonSchema {
  try {
    const value = parseJson(text) as Json;
    if (isRecord(value)) return value;
  } catch (error) {
    throw unusable(error instanceof Error ? error.message : String(error));
  }
  throw unusable('it is not a JSON object');
}

function unusable(problem: string): CliError {
  return new CliError(
    exit.usage,
    `--json-schema: ${problem}`,
    'Give a file with a JSON Schema, or the schema itself: --json-schema \'{"type":"object"}\'.',
  );
}

/** The most times that an answer is sent back with its problems. */
const mostReturns = 2;

/** The session, and a method that adds a note before its next message. */
interface Told extends SessionPort {
  tell(note: string): void;
}

/** Returns how a prompt is asked so that its final answer fits the schema. An answer that does not is sent back at most
 * twice with what is wrong with it; then the turn has failed. */
export function askForJson(session: Told, { schema, problems }: AnswerSchema): Ask {
  return async (prompt) => {
    session.tell(
      '[Note: a program reads your final answer. It must be one JSON value that is ' +
        `valid against this JSON Schema, with no other text and no code fence: ${JSON.stringify(schema)}]`,
    );
    let sum = await session.submit(prompt);
    for (let returned = 0; ; returned += 1) {
      if (sum.status !== 'completed') return sum;
      const found = jsonIn(sum.text);
      const wrong = found === undefined ? ['it is not one JSON value'] : problems(found);
      if (found !== undefined && wrong.length === 0) return { ...sum, structured: found };
      if (returned === mostReturns) return failed(sum, wrong);
      sum = added(
        sum,
        await session.submit(
          `[Your answer is not valid: ${wrong.join('; ')}. Answer again with only the whole JSON value.]`,
        ),
      );
    }
  };
}

function failed(sum: TurnEnd, wrong: readonly string[]): Answered {
  const message =
    `the answer does not match the JSON Schema, even after ${mostReturns} corrections: ` + wrong.join('; ');
  return { ...sum, status: 'failed', fault: { code: 'schema', message } };
}

function added(sum: TurnEnd, end: TurnEnd): TurnEnd {
  return {
    ...end,
    turns: sum.turns + end.turns,
    toolCalls: sum.toolCalls + end.toolCalls,
    denials: [...sum.denials, ...end.denials],
  };
}

/** Parses the whole text as JSON, or the content of its only code fence. */
function jsonIn(text: string): Json | undefined {
  const fenced = /^[^`]*```(?:json)?[ \t]*\r?\n([\s\S]*?)\n[ \t]*```[^`]*$/.exec(text);
  for (const part of [text, fenced?.[1]]) {
    try {
      if (part !== undefined) return parseJson(part) as Json;
    } catch {
      /* the next one may be */
    }
  }
  return undefined;
}

/** Writes final answers to a file. */
export interface AnswerFile {
  /** A turn without any text leaves the file as it was. Rejects with a `CliError` where it cannot be written. */
  write(end: Answered): Promise<void>;
}

/** Opens `-o`. Links are followed. A file is replaced as a whole, so that nobody reads half an answer, and keeps its
 * mode; a device or a pipe is written through. Rejects with a `CliError` (2) for a place that cannot be written: no
 * request is paid for then. */
export async function openAnswerFile(given: string, cwd: string): Promise<AnswerFile> {
  const path = resolve(cwd, given);
  let put: Put;
  try {
    put = await opened(path);
  } catch (error) {
    throw unwritable(exit.usage, path, problemOf(error));
  }
  return {
    write: async ({ text, structured }) => {
      const answer = structured === undefined ? text.trim() : JSON.stringify(structured);
      if (answer === '') return;
      try {
        await put(`${answer}\n`);
      } catch (error) {
        throw unwritable(exit.failed, path, problemOf(error));
      }
    },
  };
}

type Put = (text: string) => void | Promise<void>;

/** Returns how a text is put to where `path` leads. */
async function opened(path: string): Promise<Put> {
  const place = placeOf(path);
  const own = ownStream(place);
  if (own) return own;
  const stats = statSync(place, { throwIfNoEntry: false });
  if (stats?.isDirectory()) throw new Error('it is a directory');
  const isKernels = isKernelPath(place);
  if (!stats && isKernels) throw new Error('there is no such file');
  return stats && (isKernels || !stats.isFile())
    ? await openedThrough(place, stats.isFIFO())
    : replacing(place, stats !== undefined, path);
}

/** Returns what prints to a standard stream of the program itself; null for any other place. */
function ownStream(place: string): Put | null {
  const folder = dirname(place);
  if (folder !== '/dev/fd' && folder !== `/proc/${process.pid}/fd`) return null;
  return { 1: printData, 2: printError }[basename(place)] ?? null;
}

/** Returns a function that replaces a file as a whole. It does not follow a link that appears there later: a command of
 * the model may have made it. */
function replacing(place: string, isThere: boolean, requested: string): Put {
  const folder = dirname(place);
  if (!statSync(folder).isDirectory()) throw new Error('its folder is a file');
  accessSync(folder, constants.W_OK | constants.X_OK);
  if (isThere) accessSync(place, constants.W_OK);
  return async (text) => {
    const now = lstatSync(place, { throwIfNoEntry: false }) ?? null;
    if (now?.isFile() === false) throw new Error('it is no longer a regular file');
    await writeWhole({ path: place, bytes: null, sha256: null, stats: now }, Buffer.from(text), requested);
  };
}

/** Follows links to the last name, which need not exist. Links to open descriptors are not followed: what they name may
 * have no path. */
function placeOf(path: string): string {
  let at = path;
  for (let links = 0; links < mostLinks; links += 1) {
    const folder = realpathSync(dirname(at));
    at = join(folder, basename(at));
    if (descriptorFolder.test(folder) || !lstatSync(at, { throwIfNoEntry: false })?.isSymbolicLink()) return at;
    at = resolve(folder, readlinkSync(at));
  }
  throw new Error('its links form a loop');
}

const mostLinks = 40;
const descriptorFolder = /^\/(?:dev|proc\/.+)\/fd$/;

/** Opens a device or a pipe for as long as the run lasts: a reader of a pipe that sees it closed goes away. */
async function openedThrough(place: string, isPipe: boolean): Promise<Put> {
  const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_NOCTTY;
  // A pipe that nobody reads would be waited for without end; with a reader the second descriptor opens at once.
  const first = isPipe ? await open(place, flags | constants.O_NONBLOCK) : null;
  const handle = await open(place, flags);
  await first?.close();
  return async (text) => {
    try {
      await handle.writeFile(isatty(handle.fd) ? sanitize(text) : text);
    } finally {
      await handle.close();
    }
  };
}

const problems: Readonly<Record<string, string>> = {
  ENOENT: 'its folder does not exist',
  ENXIO: 'no program reads from it',
  EACCES: 'the system does not allow it',
  EPERM: 'the system does not allow it',
  EROFS: 'the file system is read-only',
};

function problemOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return ('code' in error ? problems[String(error.code)] : undefined) ?? error.message;
}

function unwritable(exitCode: number, path: string, problem: string): CliError {
  return new CliError(exitCode, `--output: ${path}: ${problem}`, 'Give a file in a folder that you can write to.');
}
