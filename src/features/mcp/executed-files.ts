import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';
import { isRecord } from '../../kernel/core/json.js';
import { readBounded } from '../../kernel/disk/bounded-file.js';
import { importedFiles } from '../../kernel/disk/imported-files.js';
import { statsAt } from '../../kernel/disk/path-stats.js';

/** Names of files that interpreters run, and of programs. Data files change all the time, and run nothing. */
const code = /\.(?:[cm]?[jt]sx?|py|rb|pl|php|lua|sh|bash|zsh|ps1|bat|cmd|exe|jar|go|rs|rhai|wasm)$/i;
/** Larger than any program that is committed to a repository. */
const maxFileBytes = 256 * 1024 * 1024;
const maxFiles = 50;

/** Programs whose first operand is a program, whatever its name is. */
const interpreter =
  /^(?:node|nodejs|deno|bun|tsx|ts-node|python[\d.]*|pypy\d?|ruby|perl|php|lua|sh|bash|zsh|dash|pwsh)$/;

/** Files of a project that say what a program runs. Sources: the manuals of these programs. */
const recipes: ReadonlyMap<string, readonly string[]> = new Map([
  ['npm', ['package.json']],
  ['npx', ['package.json']],
  ['pnpm', ['package.json']],
  ['yarn', ['package.json']],
  ['bun', ['package.json']],
  ['deno', ['deno.json', 'deno.jsonc']],
  ['make', ['GNUmakefile', 'makefile', 'Makefile']],
  ['just', ['justfile', '.justfile']],
  ['docker', ['compose.yaml', 'compose.yml', 'docker-compose.yaml', 'docker-compose.yml', 'Dockerfile']],
  ['uv', ['pyproject.toml']],
  ['poetry', ['pyproject.toml']],
  ['cargo', ['Cargo.toml', 'src/main.rs']],
  ['bundle', ['Gemfile']],
]);

/** Returns the files of a project that an entry of its `.mcp.json` has run or loaded: by its command, its arguments, its
 * variables and its helper for headers. Relative to `folder`, sorted. */
export function executedFiles(entry: unknown, folder: string): readonly string[] {
  const words = isRecord(entry) ? textsOf(entry).flatMap(wordsOf) : [];
  const start = isRecord(entry) && typeof entry['cwd'] === 'string' ? resolve(folder, entry['cwd']) : folder;
  const paths = words.map((word) => (isAbsolute(word) ? word : join(start, word)));
  const named = [...paths.filter(isRun), ...paths.flatMap(codeIn), ...(isRecord(entry) ? programOf(entry, start) : [])];
  const started = named.filter((path) => path.startsWith(`${folder}/`));
  const inside = started.flatMap(withHelpers).filter((path) => path.startsWith(`${folder}/`));
  return [...new Set(inside.map((path) => path.slice(folder.length + 1)))].toSorted().slice(0, maxFiles);
}

function isRun(path: string): boolean {
  const stat = statsAt(path);
  return stat?.isFile() === true && (code.test(path) || (stat.mode & 0o111) !== 0);
}

/** Returns a program with what it loads: the files that a module of JavaScript imports, and the code beside a script of
 * Python, which takes modules from its folder. */
function withHelpers(path: string): readonly string[] {
  if (/\.[cm]?[jt]sx?$/i.test(path)) return [path, ...importedFiles(path, maxFiles)];
  return path.endsWith('.py') ? [path, ...codeIn(dirname(path))] : [path];
}

/** Returns the code in a folder that is run as a whole: `node .`, `python server/`, `go run ./cmd/x`. */
function codeIn(path: string): readonly string[] {
  if (statsAt(path)?.isDirectory() !== true) return [];
  try {
    const names = readdirSync(path).filter((name) => code.test(name) || name === 'package.json');
    return names.map((name) => join(path, name)).slice(0, maxFiles);
  } catch {
    return [];
  }
}

/** Returns the first operand of an interpreter, and the recipes that a runner obeys. */
function programOf({ command, args }: Readonly<Record<string, unknown>>, start: string): readonly string[] {
  const words = [command, ...(Array.isArray(args) ? args : [])].filter((word) => typeof word === 'string');
  const at = words.findIndex((word) => interpreter.test(basename(word)));
  const operand = at < 0 ? undefined : words.slice(at + 1).find((word) => !word.startsWith('-'));
  const obeyed = words.flatMap((word) => recipes.get(basename(word)) ?? []);
  return [...(operand === undefined ? [] : [operand]), ...obeyed]
    .map((name) => (isAbsolute(name) ? name : join(start, name)))
    .filter((path) => statsAt(path)?.isFile() === true);
}

/** Returns whether a file is too large to be hashed: a server that runs it is never trusted. */
export function isTooLarge(path: string): boolean {
  return (statsAt(path)?.size ?? 0) > maxFileBytes;
}

function textsOf(entry: Readonly<Record<string, unknown>>): readonly unknown[] {
  const { command, args, env, headersHelper: helper } = entry;
  return [command, helper, ...(Array.isArray(args) ? args : []), ...(isRecord(env) ? Object.values(env) : [])];
}

/** Returns the words of a text, and the parts after `=` in them: `--require=./pre.cjs`. */
function wordsOf(value: unknown): readonly string[] {
  if (typeof value !== 'string' || value.length > 4096) return [];
  const words = [value, ...value.split(/\s+/)];
  return words
    .flatMap((word) => [word, ...(word.includes('=') ? [word.slice(word.indexOf('=') + 1)] : [])])
    .filter(Boolean);
}

/** Returns the hash (hex) that the user trusts for a file of servers: of its bytes, and of every file of the project
 * that its servers run. Without such a file it is the hash of the bytes. */
export function trustHash(sha256: string, entries: Readonly<Record<string, unknown>>, folder: string): string {
  const files = [...new Set(Object.values(entries).flatMap((entry) => executedFiles(entry, folder)))].toSorted();
  if (files.length === 0) return sha256;
  const hash = createHash('sha256').update(sha256);
  for (const file of files) {
    const found = readBounded(join(folder, file), { maxBytes: maxFileBytes, longer: 'refuse', links: 'follow' });
    // A file that cannot be read whole is trusted by no answer.
    hash.update(`\n${file}\0`).update(found.kind === 'read' ? found.bytes : String(Math.random()));
  }
  return hash.digest('hex');
}

/** Variables by which programs load code that their command line does not name. Sources: the manuals of node, python,
 * perl, ruby, bash, java, ld.so, dyld and git. */
const loading =
  /^(?:NODE_OPTIONS|NODE_PATH|NODE_REPL_EXTERNAL_MODULE|LD_(?:PRELOAD|LIBRARY_PATH|AUDIT)|DYLD_.*|PYTHON(?:STARTUP|PATH|HOME|USERBASE|BREAKPOINT)|BASH_ENV|ENV|BASH_FUNC_.*|PERL5?(?:OPT|LIB|DB)|PERL5DB|RUBY(?:OPT|LIB)|(?:JAVA_TOOL|_JAVA|JDK_JAVA)_OPTIONS|CLASSPATH|GIT_.*|PATH|PROMPT_COMMAND|ELECTRON_RUN_AS_NODE|DENO_.*|BUN_OPTIONS|npm_config_.*|NPM_CONFIG_.*|PHPRC|PHP_INI_SCAN_DIR|LUA_INIT.*|GCONV_PATH|SHELL|EDITOR|VISUAL|PAGER)$/i;

/** Returns the first variable of an entry that a project may not set, or null. */
export function loadingVariable(entry: Readonly<Record<string, unknown>>): string | null {
  const { env } = entry;
  return isRecord(env) ? (Object.keys(env).find((name) => loading.test(name)) ?? null) : null;
}
