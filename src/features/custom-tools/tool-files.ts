import { parseJson } from '../../kernel/core/json.js';
import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { dirname, isAbsolute, join, normalize } from 'node:path';
import { isRecord, type JsonSchema } from '../../kernel/core/json.js';
import { nearestName } from '../../kernel/core/text.js';
import type { Effect, ToolLimits } from '../../kernel/core/tool.js';
import { readBounded } from '../../kernel/disk/bounded-file.js';
import { importedFiles } from '../../kernel/disk/imported-files.js';
import { problemIn, type Returns } from '../../kernel/tools/authored-tool.js';
import { descriptorName, isFile } from './tool-places.js';

/** A tool that is a program of its own, as its `tool.json` describes it. */
interface Descriptor {
  readonly name: string;
  readonly description: string;
  readonly input_schema: JsonSchema;
  readonly returns: Returns;
  /** The program and its arguments. Those that began with `./` are absolute. */
  readonly command: readonly [program: string, ...args: string[]];
  readonly effect: Effect;
  readonly limits: ToolLimits;
}

/** A file of tools, as it is on the disk now. `path` has its links resolved; `sha256` (hex) is over the descriptor and
 * every file that its command names, or over the module and the files that it imports by relative paths. */
export type ToolFile =
  | { readonly kind: 'program'; readonly path: string; readonly sha256: string; readonly descriptor: Descriptor }
  | { readonly kind: 'module'; readonly path: string; readonly sha256: string }
  /** `problem` is a sentence. */
  | { readonly kind: 'broken'; readonly path: string; readonly problem: string };

const maxDescriptorBytes = 64 * 1024;
const maxProgramBytes = 64 * 1024 * 1024;

/** Reads a tool file; `path` may also be the folder of a `tool.json`. Runs nothing. */
export function readToolFile(path: string): ToolFile {
  const given = isFile(path) ? path : join(path, descriptorName);
  try {
    const file = realpathSync(given);
    return file.endsWith('.mjs')
      ? { kind: 'module', path: file, sha256: hashOf(moduleParts(file)) }
      : readProgram(file);
  } catch (error) {
    const problem = error instanceof Refusal ? error.message : 'there is no such file';
    return { kind: 'broken', path: given, problem: `${problem.replace(/[.?]$/, '')}.` };
  }
}

/** The problem of a file, as a clause. */
class Refusal extends Error {}

const maxImports = 500;

function moduleParts(path: string): readonly Buffer[] {
  const files = importedFiles(path, maxImports);
  if (files.length > maxImports) throw new Refusal(`it imports more than ${maxImports} files`);
  return files.map((file) => contents(file, maxProgramBytes));
}

function readProgram(path: string): ToolFile {
  const text = contents(path, maxDescriptorBytes);
  const descriptor = readDescriptor(text.toString('utf8'), dirname(path));
  const named = descriptor.command.filter((item, index) => isAbsolute(item) && isOwn(item, index, dirname(path)));
  const sha256 = hashOf([text, ...named.map((item) => contents(item, maxProgramBytes))]);
  return { kind: 'program', path, sha256, descriptor };
}

/** Programs of the system are not hashed: only an administrator can change them, and updates do. */
function isOwn(item: string, index: number, folder: string): boolean {
  return item.startsWith(`${folder}/`) || (index === 0 && !/^\/(?:usr|bin|sbin|opt)\//.test(item));
}

function contents(path: string, maxBytes: number): Buffer {
  const found = readBounded(path, { maxBytes, longer: 'refuse', links: 'follow' });
  if (found.kind === 'read') return found.bytes;
  throw new Refusal(found.kind === 'missing' ? `there is no file ${path}` : `${path}: ${found.reason}`);
}

/** The length of each part is hashed, too, so that no byte can move from one to the next. */
function hashOf(parts: readonly Buffer[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${part.length}\n`).update(part);
  return hash.digest('hex');
}

const keys = ['name', 'description', 'input_schema', 'returns', 'command', 'effect', 'limits'];

function readDescriptor(text: string, folder: string): Descriptor {
  const value = parseDescriptor(text);
  if (!isRecord(value)) throw new Refusal('it is not a JSON object');
  const stray = Object.keys(value).find((key) => !keys.includes(key) && key !== '$schema');
  if (stray !== undefined) {
    const meant = nearestName(stray, keys);
    throw new Refusal(`there is no key \`${stray}\`${meant === null ? '' : `; did you mean \`${meant}\``}`);
  }
  const { input_schema = {}, returns = 'string', effect = 'execute', limits = {} } = value;
  const problem = isRecord(input_schema)
    ? problemIn({ returns, effect, limits })
    : '`input_schema` needs a JSON Schema';
  if (problem !== null) throw new Refusal(problem);
  return {
    // Checked just now, and read from JSON.
    ...({ input_schema, returns, effect, limits } as Pick<
      Descriptor,
      'input_schema' | 'returns' | 'effect' | 'limits'
    >),
    name: nameOf(value.name),
    description: descriptionOf(value.description),
    command: commandOf(value.command, folder),
  };
}

function nameOf(name: unknown): string {
  if (typeof name === 'string' && /^[A-Za-z0-9_-]{1,64}$/.test(name)) return name;
  throw new Refusal('`name` needs letters, digits, _ and -, at most 64');
}

function descriptionOf(description: unknown): string {
  if (typeof description === 'string' && description.trim() !== '' && description.length <= 4000) return description;
  throw new Refusal('`description` needs a text of at most 4,000 characters: the model chooses by it');
}

function parseDescriptor(text: string): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    throw new Refusal(`it is not JSON (${error instanceof Error ? error.message : 'unreadable'})`);
  }
}

function commandOf(command: unknown, folder: string): Descriptor['command'] {
  const words: readonly unknown[] = Array.isArray(command) ? command : [];
  const [program, ...args] = words.flatMap((word) => (typeof word === 'string' ? [resolveInFolder(word, folder)] : []));
  if (program === undefined || program === '' || words.length !== args.length + 1)
    throw new Refusal('`command` needs the program and its arguments, for example ["./run.py"]');
  if (program.includes('/') && !isAbsolute(program))
    throw new Refusal(`\`command\`: write ./${program} for a program beside tool.json`);
  return [program, ...args];
}

function resolveInFolder(word: string, folder: string): string {
  if (!word.startsWith('./')) return word;
  const path = normalize(join(folder, word));
  if (!path.startsWith(`${folder}/`)) throw new Refusal(`\`command\`: ${word} is outside the tool's folder`);
  return path;
}
