import { randomBytes } from 'node:crypto';
import { renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { CliError, exit } from '../../commands/command.js';
import { isRecord, type Json, type JsonSchema } from '../../core/json.js';
import type { SessionPort, TurnEnd } from '../../core/session-port.js';
import { readBounded } from '../../disk/bounded-file.js';
import type { Answered, Ask } from '../headless.js';

/** What a final answer has to be. `problems`: sentences on what is wrong with a value; none: it fits. */
export interface AnswerSchema {
  readonly schema: JsonSchema;
  readonly problems: (value: unknown) => readonly string[];
}

const maxSchemaBytes = 1_048_576;
/** So many problems are told; a list of a thousand may have each of them a thousand times. */
const mostProblems = 20;

/** Reads `--json-schema`: a file, or the schema itself. Throws a `CliError` (2) for what is no schema. */
export async function readAnswerSchema(given: string, cwd: string): Promise<AnswerSchema> {
  const schema = parsed(given.trimStart().startsWith('{') ? given : textOf(resolve(cwd, given)));
  const { default: library } = await import('ajv/dist/2020.js');
  const ajv = new library.Ajv2020({ strict: false, allErrors: true, logger: false, validateFormats: false });
  // Which draft a schema names makes no difference to the keywords that all of them have.
  const { $schema: _draft, ...own } = schema;
  try {
    const validate = ajv.compile(own);
    return {
      schema,
      problems: (value) => {
        if (validate(value)) return [];
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

function textOf(path: string): string {
  const found = readBounded(path, { maxBytes: maxSchemaBytes, longer: 'refuse', links: 'follow' });
  if (found.kind === 'read') return found.bytes.toString('utf8');
  throw unusable(`${path}: ${found.kind === 'missing' ? 'there is no such file' : found.reason}`);
}

function parsed(text: string): JsonSchema {
  try {
    const value = JSON.parse(text) as Json;
    if (isRecord(value)) return value;
  } catch (error) {
    throw unusable(error instanceof Error ? error.message : String(error));
  }
  throw unusable('it is no JSON object');
}

function unusable(problem: string): CliError {
  return new CliError(
    exit.usage,
    `--json-schema: ${problem}`,
    'Give a file with a JSON Schema, or the schema itself: --json-schema \'{"type":"object"}\'.',
  );
}

/** So often the answer is sent back with what is wrong with it. */
const mostReturns = 2;

/** The session, and how it is told something before its next message. */
interface Told extends SessionPort {
  tell(note: string): void;
}

/** Returns how a prompt is asked so that its final answer fits the schema. An answer that does not is sent back at most
 * twice with what is wrong with it; then the turn has failed. */
export function askForJson(session: Told, { schema, problems }: AnswerSchema): Ask {
  return async (prompt) => {
    session.tell(
      '[Note: a program reads your final answer. It has to be one JSON value that is valid against this JSON Schema, ' +
        `and nothing else, no words and no code fence around it: ${JSON.stringify(schema)}]`,
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
          `[Your answer is not valid: ${wrong.join('; ')}. ` +
            'Answer once more with the whole JSON value and nothing else.]',
        ),
      );
    }
  };
}

function failed(sum: TurnEnd, wrong: readonly string[]): Answered {
  const message =
    `the answer does not fit the JSON schema, also after it was sent back ${mostReturns} times: ` + wrong.join('; ');
  return { ...sum, status: 'failed', fault: { code: 'schema', message } };
}

function added(sum: TurnEnd, end: TurnEnd): TurnEnd {
  return {
    ...end,
    turns: sum.turns + end.turns,
    toolCalls: sum.toolCalls + end.toolCalls,
    denied: sum.denied + end.denied,
  };
}

/** Reads the whole text as JSON, or what stands in its only code fence. */
function jsonIn(text: string): Json | undefined {
  const fenced = /^[^`]*```(?:json)?\s*\n([\s\S]*?)\n\s*```[^`]*$/.exec(text);
  for (const part of [text, fenced?.[1]]) {
    try {
      if (part !== undefined) return JSON.parse(part) as Json;
    } catch {
      /* the next one may be */
    }
  }
  return undefined;
}

/** Writes final answers to a file. */
export interface AnswerFile {
  /** A turn without any text leaves the file as it was. Throws a `CliError` where it cannot be written. */
  write(end: Answered): void;
}

/** Opens `-o`. The file is replaced as a whole, so that nobody reads half an answer. Throws a `CliError` (2) for a
 * place that no file can be put in: no request is paid for then. */
export function openAnswerFile(given: string, cwd: string): AnswerFile {
  const path = resolve(cwd, given);
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw unwritable(exit.usage, path, 'it is a directory');
  if (statSync(dirname(path), { throwIfNoEntry: false })?.isDirectory() !== true)
    throw unwritable(exit.usage, path, 'its folder does not exist');
  return {
    write: ({ text, structured }) => {
      const answer = structured === undefined ? text.trim() : JSON.stringify(structured);
      if (answer !== '') replace(path, `${answer}\n`);
    },
  };
}

function replace(path: string, text: string): void {
  const draft = join(dirname(path), `.agent-${randomBytes(6).toString('hex')}.tmp`);
  try {
    writeFileSync(draft, text, { flag: 'wx' });
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw unwritable(exit.failed, path, error instanceof Error ? error.message : String(error));
  }
}

function unwritable(exitCode: number, path: string, problem: string): CliError {
  return new CliError(exitCode, `--output: ${path}: ${problem}`, 'Name a file in a folder that you can write to.');
}
