import { isTooDeep, maxJsonDepth, parseJson } from '../core/json.js';
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fchmodSync,
  fsyncSync,
  mkdirSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { isRecord } from '../core/json.js';
import { readBounded } from '../disk/bounded-file.js';
import { statsAt } from '../disk/path-stats.js';
import { type Issue, type KeyPath, keyText, misplacedSecret } from './settings-schema.js';
import { checkSettings } from './settings-check.js';

/** The absolute paths of the program's own files. Each is made when it is needed. Source: contracts 2, "Where files
 * live". */
export interface AgentPaths {
  readonly config: string;
  /** The trusted directories; beside `config`. */
  readonly trust: string;
  /** The sign-ins of the user to MCP servers. */
  readonly signIns: string;
  /** The keys of providers that the program keeps; beside `config`. */
  readonly keys: string;
  readonly database: string;
  readonly log: string;
  readonly history: string;
  /** Directory of `database`. */
  readonly data: string;
  /** Directory of files that can be made again at any time. */
  readonly cache: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** `$AGENT_HOME` for everything, else the XDG base directories (a relative one is ignored, as their specification
 * asks). */
export function agentPaths(env: Environment, home: string): AgentPaths {
  const own = env.AGENT_HOME;
  if (own) return paths(resolve(own), resolve(own), resolve(own), resolve(own));
  const base = (name: string, fallback: string): string => {
    const value = env[name];
    return join(value && isAbsolute(value) ? value : join(home, fallback), 'agent');
  };
  return paths(
    base('XDG_CONFIG_HOME', '.config'),
    base('XDG_DATA_HOME', '.local/share'),
    base('XDG_STATE_HOME', '.local/state'),
    base('XDG_CACHE_HOME', '.cache'),
  );
}

/** Makes a directory and its parents, 0700 whatever the umask. An existing one stays as it is. Throws the system's
 * error. Does not use `mkdir`'s `recursive`: Node 20 never returns from that when a parent refuses new names with
 * ENOENT (`/proc`). */
export function ensurePrivateDirectory(path: string): void {
  if (existsSync(path)) return;
  if (dirname(path) !== path) ensurePrivateDirectory(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (!existsSync(path)) throw error;
  }
}

function paths(config: string, data: string, state: string, cache: string): AgentPaths {
  return {
    config: join(config, 'config.json'),
    trust: join(config, 'trust.json'),
    signIns: join(config, 'mcp-auth.json'),
    keys: join(config, 'keys.json'),
    database: join(data, 'agent.db'),
    log: join(state, 'agent.log'),
    history: join(state, 'history'),
    data,
    cache,
  };
}

/** A place in a file, both counted from 1. */
interface Position {
  readonly line: number;
  readonly column: number;
}

export type FileText =
  | { readonly kind: 'missing' }
  | { readonly kind: 'text'; readonly text: string }
  /** `reason` is a clause: `it is not a regular file`. */
  | { readonly kind: 'unreadable'; readonly reason: string };

type Parsed =
  | { readonly kind: 'object'; readonly value: Readonly<Record<string, unknown>> }
  | { readonly kind: 'broken'; readonly reason: string; readonly position: Position };

const maxBytes = 1_048_576;

/** Reads a settings file without waiting: pipes, devices and files over 1 MiB are refused. */
export function readConfigFile(path: string): FileText {
  const found = readBounded(path, { maxBytes, longer: 'refuse', links: 'follow' });
  switch (found.kind) {
    case 'missing':
      return { kind: 'missing' };
    case 'refused':
      return { kind: 'unreadable', reason: found.reason };
    case 'read':
      return { kind: 'text', text: found.bytes.toString('utf8').replace(/^\uFEFF/, '') };
    default:
      return found satisfies never;
  }
}

/** Reads the user's own settings. One that somebody else may have written is refused, as ssh refuses its own. */
export function readOwnConfigFile(path: string): FileText {
  const content = readConfigFile(path);
  const reason = content.kind === 'text' ? othersHand(path) : null;
  return reason === null ? content : { kind: 'unreadable', reason };
}

function othersHand(path: string): string | null {
  const [uid, gid, stat] = [process.getuid?.(), process.getgid?.(), statsAt(path)];
  if (uid === undefined || stat === null) return null;
  if (stat.uid !== uid && stat.uid !== 0)
    return `it belongs to another user (uid ${stat.uid}); take it over with chown`;
  const mode = (stat.mode & 0o777).toString(8).padStart(4, '0');
  if ((stat.mode & 0o002) !== 0) return `anyone can write to it (mode ${mode}); chmod go-w it`;
  return (stat.mode & 0o020) !== 0 && stat.gid !== gid
    ? `another group can write to it (mode ${mode}); chmod go-w it`
    : null;
}

const tooDeep: Parsed = {
  kind: 'broken',
  reason: `it is nested too deeply (over ${maxJsonDepth} levels)`,
  position: { line: 1, column: 1 },
};

/** Loaded for a text that is not plain JSON, or that is changed. */
const loadCommentParser = () => import('jsonc-parser');

/** Reads JSON with comments and trailing commas. The parser for these is loaded only when the text is not plain JSON.
 * An empty text is `{}`. */
export async function parseConfigText(text: string): Promise<Parsed> {
  if (text.trim() === '') return { kind: 'object', value: {} };
  if (isTooDeep(text)) return tooDeep;
  const plain = plainJson(text);
  if (plain !== undefined) return asObject(plain, text);
  const { parse, printParseErrorCode } = await loadCommentParser();
  const errors: { error: number; offset: number; length: number }[] = [];
  let value: unknown;
  try {
    value = parse(text, errors, { allowTrailingComma: true, allowEmptyContent: true });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return tooDeep;
  }
  const first = errors[0];
  if (first)
    return {
      kind: 'broken',
      reason: sentence(printParseErrorCode(first.error)),
      position: positionAt(text, first.offset),
    };
  return asObject(value ?? {}, text);
}

/** The place of `path` in `text`: its key (`at` "key") or its value. Line 1 when it is missing. */
async function positionOf(text: string, path: KeyPath, at: 'key' | 'value'): Promise<Position> {
  const { findNodeAtLocation, parseTree } = await loadCommentParser();
  const root = parseTree(text, [], { allowTrailingComma: true });
  const node = root && findNodeAtLocation(root, [...path]);
  const key = at === 'key' && node?.parent?.type === 'property' ? node.parent.children?.[0] : node;
  return positionAt(text, key?.offset ?? 0);
}

function plainJson(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

function asObject(value: unknown, text: string): Parsed {
  if (isRecord(value)) return { kind: 'object', value };
  return { kind: 'broken', reason: 'it must contain one object: { … }', position: positionAt(text, text.search(/\S/)) };
}

function positionAt(text: string, offset: number): Position {
  const before = text.slice(0, offset);
  return { line: before.split('\n').length, column: offset - before.lastIndexOf('\n') };
}

/** `CommaExpected` as `comma expected`. */
function sentence(code: string): string {
  return code.replace(/(?!^)([A-Z])/g, ' $1').toLowerCase();
}

/** A configuration error (exit code 2), for the caller to print. `message` says where, which key and what; `hint` says
 * what to do. Values that look like secrets are masked. */
export interface ConfigProblem {
  readonly message: string;
  readonly hint: string;
  readonly key: string;
  /** The file, the variable or the option. */
  readonly where: string;
  /** In a file; both from 1. */
  readonly line?: number;
  readonly column?: number;
  /** The valid key that was probably meant. */
  readonly nearest?: string;
}

/** A message that stops nothing. */
export interface ConfigNotice {
  readonly code: 'project_config' | 'config_variable';
  readonly message: string;
}

/** Turns an issue of a file into a problem with line and column. */
export async function fileProblem(file: string, text: string, issue: Issue): Promise<ConfigProblem> {
  const { line, column } = await positionOf(text, issue.path, issue.unknown ? 'key' : 'value');
  return { ...issueProblem(`${file}:${line}:${column}`, issue), where: file, line, column };
}

/** `place` comes first in the message; `where` is the place without a position. */
export function issueProblem(place: string, issue: Issue): ConfigProblem {
  const key = keyText(issue.path);
  const meant = issue.nearest === null ? '' : ` (did you mean "${issue.nearest}"?)`;
  const message = issue.unknown ? `${place}: unknown key "${key}"${meant}` : `${place}: "${key}" ${issue.reason}`;
  const hint = issue.unknown
    ? hintUnknown(issue.nearest)
    : `Correct the value of ${key}; \`agent config show\` lists every key with its value.`;
  return { message, hint, key, where: place, ...(issue.nearest === null ? {} : { nearest: issue.nearest }) };
}

function hintUnknown(meant: string | null): string {
  return meant === null
    ? 'Remove it; `agent config show` lists every key.'
    : `Write ${meant} instead, or remove it; \`agent config show\` lists every key.`;
}

/** Describes a text that is not a valid value. */
export function textProblem(where: string, path: KeyPath, reason: string): ConfigProblem {
  const key = keyText(path);
  return {
    message: `${where}${reason.startsWith(':') ? '' : ' '}${reason}`,
    hint: `It sets ${key}; \`agent config show\` lists every key with its value.`,
    key,
    where,
  };
}

export type EditResult = { readonly ok: true } | { readonly ok: false; readonly problem: ConfigProblem };

/** The text of a file before and after a change. `before`: null if there was no file. */
export interface FileEdit {
  readonly ok: true;
  readonly before: string | null;
  readonly after: string;
}

/** Sets one key of a settings file, or removes it (`value` undefined). Comments and the order of the rest stay.
 * Replaces the whole file (0600; the target of a symbolic link), or leaves it when it is not valid or would not be.
 * `isShared`: others may read it, as the file of a project; it keeps its mode. Throws the system's error. */
export async function editConfigFile(
  file: string,
  path: readonly string[],
  value: unknown,
  isShared = false,
): Promise<FileEdit | Extract<EditResult, { readonly ok: false }>> {
  const content = readConfigFile(file);
  if (content.kind === 'unreadable') return { ok: false, problem: unreadableProblem(file, content.reason) };
  const before = content.kind === 'text' && content.text.trim() !== '' ? content.text : '{}\n';
  const invalid = await problemOf(file, before);
  if (invalid) return { ok: false, problem: invalid };
  const misplaced = misplacedSecret(value, path);
  // One that is in the file already does not keep the user from changing the rest.
  if (misplaced && !before.includes(misplaced.secret))
    return { ok: false, problem: secretProblem(file, misplaced.path) };
  const after = await changedText(before, path, value);
  const spoilt = await problemOf(file, after, path);
  if (spoilt) return { ok: false, problem: spoilt };
  if (after !== before || content.kind === 'missing') replaceFile(file, after, isShared);
  return { ok: true, before: content.kind === 'text' ? content.text : null, after };
}

/** Sets one key of a JSON file that has no schema, as `editConfigFile` does. */
export async function editJsonFile(file: string, path: KeyPath, value: unknown): Promise<EditResult> {
  const content = readConfigFile(file);
  if (content.kind === 'unreadable') return { ok: false, problem: unreadableProblem(file, content.reason) };
  const before = content.kind === 'text' && content.text.trim() !== '' ? content.text : '{}\n';
  const invalid = await problemOf(file, before);
  if (invalid) return { ok: false, problem: invalid };
  replaceFile(file, await changedText(before, path, value));
  return { ok: true };
}

function unreadableProblem(file: string, reason: string): ConfigProblem {
  return { message: `${file}: ${reason}`, hint: 'Nothing was changed.', key: '', where: file };
}

async function changedText(text: string, path: KeyPath, value: unknown): Promise<string> {
  const { applyEdits, modify } = await loadCommentParser();
  const formattingOptions = { insertSpaces: true, tabSize: 2, insertFinalNewline: true, eol: lineEndOf(text) };
  return applyEdits(text, modify(text, [...path], value, { formattingOptions }));
}

function secretProblem(file: string, path: KeyPath): ConfigProblem {
  const key = keyText(path);
  return {
    message: `${key} would contain a secret, and settings are not private`,
    hint: 'Store keys with agent login and other secrets in environment variables. Nothing was changed.',
    key,
    where: file,
  };
}

function lineEndOf(text: string): string {
  return text.includes('\r\n') ? '\r\n' : '\n';
}

/** Finds why a text cannot be edited: it is not JSON, or (with `path`) the value at that key is wrong. */
async function problemOf(file: string, text: string, path?: readonly string[]): Promise<ConfigProblem | null> {
  const parsed = await parseConfigText(text);
  if (parsed.kind === 'broken') {
    const { line, column } = parsed.position;
    return {
      message: `${file}:${line}:${column}: not valid JSON: ${parsed.reason}`,
      hint: 'Correct it there first; nothing was changed.',
      key: '',
      where: file,
      line,
      column,
    };
  }
  if (!path) return null;
  const issue = checkSettings(parsed.value).find((item) => path.every((key, index) => item.path[index] === key));
  return issue ? fileProblem(file, text, issue) : null;
}

/** Writes a whole file (0600; `isShared`: its present mode, or 0644), or the target of a symbolic link; in place where it
 * is mounted and cannot be replaced. Throws the system's error. */
export function replaceFile(file: string, text: string, isShared = false): void {
  if (isShared && !existsSync(dirname(file))) mkdirSync(dirname(file));
  ensurePrivateDirectory(dirname(file));
  const target = resolved(file);
  const present = isShared ? statsAt(target) : null;
  const temporary = join(dirname(target), `.config-${randomBytes(6).toString('hex')}.tmp`);
  const descriptor = openSync(temporary, 'wx', isShared ? 0o644 : 0o600);
  try {
    if (present !== null) fchmodSync(descriptor, present.mode & 0o777);
    // `writeSync` may write only a part of the text, where the disk is nearly full.
    writeFileSync(descriptor, text);
    fsyncSync(descriptor);
    renameSync(temporary, target);
  } catch (error) {
    rmSync(temporary, { force: true });
    const isMounted = error instanceof Error && 'code' in error && (error.code === 'EBUSY' || error.code === 'EXDEV');
    if (!isMounted) throw error;
    writeFileSync(target, text);
  } finally {
    closeSync(descriptor);
  }
}

function resolved(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return file;
  }
}
