import { createHash } from 'node:crypto';
import { type BigIntStats, realpathSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { type HookEvent, hookEvents } from '../../kernel/core/hooks.js';
import { addAll } from '../../kernel/core/lists.js';
import { isRecord } from '../../kernel/core/json.js';
import type { FileOrigin } from '../../kernel/config/found-files.js';
import { readBounded } from '../../kernel/disk/bounded-file.js';
import { isThisMachine } from '../../kernel/network/proxies.js';
import { isHeader } from './hook-answers.js';
import { parseCondition } from './hook-condition.js';

/** The file that hooks come from. */
export interface HookSource {
  readonly path: string;
  readonly origin: FileOrigin;
  /** The folder of the project: where the hooks run, and where relative paths in them start. */
  readonly directory: string;
  /** The folder that `~` means. */
  readonly home: string;
  /** Variables of the plugin that it belongs to, by name: they are set for its commands. */
  readonly variables?: Readonly<Record<string, string>>;
}

const hookTypes = ['command', 'http', 'prompt', 'agent'] as const;

/** One command of a hooks file. */
export interface Hook {
  readonly from: HookSource;
  readonly event: HookEvent;
  /** The text in the file; '' for every subject. */
  readonly matcher: string;
  /** `http`: a request to a server; `prompt`: a question to the model; `agent`: one to a sub-agent that reads files. */
  readonly type: (typeof hookTypes)[number];
  /** The command line, the program, the address, or the question. */
  readonly command: string;
  /** Arguments of a program that is started without a shell. */
  readonly args?: readonly string[];
  /** Headers of a request, as they are in the file. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The variables whose values may be in the headers. */
  readonly allowedEnvVars?: readonly string[];
  readonly timeoutMs: number;
  /** A failure of it counts as a denial. */
  readonly required: boolean;
  /** The permission rule that a call has to fit (`if`). */
  readonly condition?: string;
  /** Nothing waits for it: it can decide nothing. With `rewake`, the model reads what it reports with exit code 2. */
  readonly background?: 'plain' | 'rewake';
}

export interface HookFile {
  readonly hooks: readonly Hook[];
  /** The invalid parts of the file, as sentences. */
  readonly problems: readonly string[];
}

const defaultTimeoutS = 600;
const modelTimeoutsS = { prompt: 30, agent: 60 } as const;
/** Connections without a byte end after that time. */
const longestRequestS = 300;
const timeoutsS: Readonly<Partial<Record<HookEvent, number>>> = { UserPromptSubmit: 30, SessionEnd: 1.5 };

/** Reads the object of a hooks file: `{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command",
 * "command": "./check.sh"}]}]}}`. Source: code.claude.com/docs/en/hooks, read 2026-10. */
export function readHookFile(value: Readonly<Record<string, unknown>>, from: HookSource): HookFile {
  if (value['disableAllHooks'] === true) return { hooks: [], problems: [] };
  const { hooks = {} } = value;
  if (!isRecord(hooks)) return { hooks: [], problems: ['"hooks" is not an object'] };
  const outside = hookEvents.filter((name) => Object.hasOwn(value, name));
  const unknown = Object.keys(hooks).filter((name) => !hookEvents.some((known) => known === name));
  const problems: string[] = [
    ...(outside.length === 0 ? [] : [`${outside.join(', ')} has no effect outside of "hooks"`]),
    ...(unknown.length === 0 ? [] : [`unknown event ${unknown.join(', ')}; known: ${hookEvents.join(', ')}`]),
  ];
  const found = Object.entries(hooks).flatMap(([name, groups]) => {
    const event = hookEvents.find((known) => known === name);
    if (event === undefined) return [];
    if (Array.isArray(groups)) return groups.flatMap((group) => hooksOfGroup(event, group, problems, from));
    problems.push(`${name} is not a list`);
    return [];
  });
  return { hooks: found, problems };
}

function hooksOfGroup(event: HookEvent, group: unknown, problems: string[], from: HookSource): readonly Hook[] {
  if (!isRecord(group) || !Array.isArray(group['hooks'])) {
    problems.push(`an entry of ${event} has no list "hooks"`);
    return [];
  }
  const { matcher = '' } = group;
  if (typeof matcher !== 'string' || !isMatcher(matcher)) {
    problems.push(`the matcher ${JSON.stringify(matcher)} of ${event} is neither a name nor a regular expression`);
    return [];
  }
  return group['hooks'].flatMap((entry: unknown) => {
    const hook = hookOf({ event, matcher, origin: from.origin }, entry);
    if (typeof hook !== 'string') {
      addAll(problems, withoutEffect(event, entry));
      return [{ ...hook, from }];
    }
    problems.push(hook);
    return [];
  });
}

/** Fields of Claude Code that change how a hook runs there. */
const unusedFields = ['model', 'once', 'shell'] as const;

function withoutEffect(event: HookEvent, entry: unknown): readonly string[] {
  const named = unusedFields.filter((field) => isRecord(entry) && entry[field] !== undefined);
  return named.length === 0
    ? []
    : [`"${named.join('", "')}" of a hook of ${event} ${named.length === 1 ? 'has' : 'have'} no effect`];
}

function hookOf(
  { event, matcher, origin }: Pick<Hook, 'event' | 'matcher'> & Pick<HookSource, 'origin'>,
  entry: unknown,
): Omit<Hook, 'from'> | string {
  if (!isRecord(entry)) return `an entry of ${event} is not an object`;
  const { timeout, required, if: condition } = entry;
  const type = hookTypes.find((known) => known === entry['type']);
  if (type === undefined) return `hooks of the type ${JSON.stringify(entry['type'])} are not run (${event})`;
  if (modelEvents.includes(event) && (type === 'prompt' || type === 'agent'))
    return `a hook of ${event} cannot have the type "${type}", which asks a model itself`;
  const work = type === 'http' ? requestOf(event, entry, origin) : workOf(event, type, entry);
  if (typeof work === 'string') return work;
  const problem = conditionProblem(event, work.command, condition);
  if (problem !== null) return problem;
  return {
    event,
    matcher,
    type,
    ...work,
    timeoutMs: timeoutOf(event, type, timeout),
    required: required === true,
    ...(typeof condition === 'string' ? { condition } : {}),
    ...backgroundOf(entry),
  };
}

/** The address and the headers of a request. */
function requestOf(
  event: HookEvent,
  entry: Readonly<Record<string, unknown>>,
  origin: HookSource['origin'],
): Pick<Hook, 'command' | 'headers' | 'allowedEnvVars'> | string {
  const { url: given, headers = {}, allowedEnvVars = [] } = entry;
  if (typeof given !== 'string' || !URL.canParse(given) || !/^https?:/i.test(given))
    return `a hook of ${event} with the type "http" has no "url" that begins with https:// or http://`;
  if (/^https?:[/\\]*[^/\\?#]*@/i.test(given))
    return `the "url" of a hook of ${event} contains a user or a password; put it into "headers"`;
  if (isReadableOnTheWay(new URL(given)) && !(origin === 'user' && entry['allow_insecure'] === true))
    return (
      `${given} (${event}) is not used: http is for this machine alone. ` +
      'Use https, or add "allow_insecure": true to the hook in your own hooks.json'
    );
  if (!isTexts(allowedEnvVars)) return `"allowedEnvVars" of ${given} is not a list of texts`;
  if (!isHeaders(headers)) return `"headers" of ${given} are not names with texts of one line`;
  return { command: given, headers, allowedEnvVars };
}

/** The input of a hook has parts of the conversation. */
function isReadableOnTheWay({ protocol, hostname }: URL): boolean {
  return protocol === 'http:' && !isThisMachine(hostname);
}

function isHeaders(value: unknown): value is Readonly<Record<string, string>> {
  return isRecord(value) && Object.entries(value).every(([name, text]) => isHeader(name, text));
}

/** A command line, a program with its arguments, or a question. `command` may be a list, too. */
function workOf(
  event: HookEvent,
  type: Exclude<Hook['type'], 'http'>,
  { command: given, args, prompt }: Readonly<Record<string, unknown>>,
): Pick<Hook, 'command' | 'args'> | string {
  if (type !== 'command')
    return isFilled(prompt) ? { command: prompt } : `a hook of ${event} with the type "${type}" has no "prompt"`;
  const [command, ...more]: readonly unknown[] = Array.isArray(given) ? given : [given];
  if (!isFilled(command)) return `a hook of ${event} has no command`;
  if (args !== undefined && !isTexts(args)) return `"args" of ${command} is not a list of texts`;
  if (!isTexts(more)) return `"command" of ${event} is not a list of texts`;
  return Array.isArray(given) || args !== undefined ? { command, args: [...more, ...(args ?? [])] } : { command };
}

function isFilled(text: unknown): text is string {
  return typeof text === 'string' && text.trim() !== '';
}

function timeoutOf(event: HookEvent, type: Hook['type'], timeout: unknown): number {
  const usual = type === 'prompt' || type === 'agent' ? modelTimeoutsS[type] : (timeoutsS[event] ?? defaultTimeoutS);
  const longest = type === 'http' ? longestRequestS : 3600;
  return Math.min(typeof timeout === 'number' && timeout > 0 ? timeout : usual, longest) * 1000;
}

function backgroundOf(entry: Readonly<Record<string, unknown>>): Pick<Hook, 'background'> {
  if (entry['asyncRewake'] === true) return { background: 'rewake' };
  return entry['async'] === true ? { background: 'plain' } : {};
}

const callEvents: readonly HookEvent[] = [
  'PreToolUse',
  'PermissionRequest',
  'PermissionDenied',
  'PostToolUse',
  'PostToolUseFailure',
];
/** A question to a model there would be a request itself. */
const modelEvents: readonly HookEvent[] = ['BeforeModel', 'AfterModel'];

/** Returns why a hook with this `if` never runs; null where it can run. */
function conditionProblem(event: HookEvent, command: string, condition: unknown): string | null {
  if (condition === undefined) return null;
  const shown = `${command} (${event})`;
  if (!callEvents.includes(event)) return `${shown} never runs: only events of tool calls have an "if"`;
  if (typeof condition === 'string' && parseCondition(condition) !== null) return null;
  return `${shown} is disabled: its "if", ${JSON.stringify(condition)}, is not a permission rule such as "Bash(git push *)"`;
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

const plainNames = /^[A-Za-z0-9_ ,|-]*$/;

function isMatcher(matcher: string): boolean {
  if (matcher === '*' || plainNames.test(matcher)) return true;
  try {
    return RegExp(matcher) instanceof RegExp;
  } catch {
    return false;
  }
}

/** Returns true if a matcher means one of these names: an empty matcher and `*` mean all, a list of names exactly
 * those, anything else is a regular expression without anchors. */
export function matches(matcher: string, names: readonly string[]): boolean {
  if (matcher.trim() === '' || matcher === '*') return true;
  if (!plainNames.test(matcher)) return names.some((name) => new RegExp(matcher).test(name));
  const wanted = matcher.split(/[|,]/).map((name) => name.trim());
  return names.some((name) => wanted.includes(name));
}

interface NamedFile {
  /** The word that names it in the command. */
  readonly word: string;
  /** Absolute, without following links, and with them. */
  readonly path: string;
  readonly landed: string;
  /** Hex; of a file over 4 MiB, or one that cannot be read, of what the file system says of it. */
  readonly sha256: string;
}

/** The files that a command line names, as they are now. */
export interface NamedFiles {
  /** SHA-256 (hex) of the command line and of those files. */
  readonly sha256: string;
  readonly files: readonly NamedFile[];
  /** Words that look like a script and lead nowhere. */
  readonly missing: readonly string[];
}

const ending = /\.(?:sh|bash|zsh|py|js|mjs|cjs|ts|rb|pl|php)$/;
const looksLikeScript = new RegExp(`/|${ending.source}`);
const interpreter = /^(?:.*\/)?(?:env|(?:ba|da|z|k)?sh|source|\.|python[\d.]*|node|deno|bun|tsx|ruby|perl|php|uv|run)$/;
const maxScriptBytes = 4 * 1024 * 1024;

/** Looks at the programs that a hook names: files that can be run, have the ending of a script, or stand behind an
 * interpreter. Where it writes to is none, or it would change itself with each run. */
export function namedFiles(
  hook: Pick<Hook, 'type' | 'command' | 'args' | 'from' | 'headers' | 'allowedEnvVars'>,
): NamedFiles {
  const { command, args = [], from, headers, allowedEnvVars } = hook;
  const asked = headers === undefined ? [] : [{ headers, allowedEnvVars }];
  const hash = createHash('sha256').update(JSON.stringify([command, ...args, ...asked]));
  const files: NamedFile[] = [];
  const missing: string[] = [];
  const words = commandWords(hook);
  let isInterpreted = false;
  for (const word of words.map((given) => expandFolders(given.replaceAll(/["']/g, ''), from))) {
    if (word === '' || word.startsWith('-') || word.includes('$')) continue;
    const file = lookedAt(word, resolve(from.directory, word), isInterpreted);
    isInterpreted = interpreter.test(word);
    if (file === 'missing' && looksLikeScript.test(word)) missing.push(word);
    if (file === null || file === 'missing' || files.some(({ path }) => path === file.path)) continue;
    hash.update(`\0${file.sha256}`);
    files.push(file);
  }
  return { sha256: hash.digest('hex'), files, missing };
}

/** The words of a hook that may name programs. A request and a question have none. */
function commandWords({ type, command, args = [] }: Pick<Hook, 'type' | 'command' | 'args'>): readonly string[] {
  if (type !== 'command') return [];
  return args.length > 0 ? [command, ...args, ...args.flatMap(wordsOf)] : wordsOf(command);
}

/** The words of a command line without those behind a `>`. */
function wordsOf(command: string): readonly string[] {
  const found = command.matchAll(/(?:(?<to>>[>|&]?)\s*)?(?<word>[^\s;&|<>()]+)/g);
  return [...found].flatMap(({ groups }) => (groups?.['to'] === undefined ? [groups?.['word'] ?? ''] : []));
}

/** Returns null for what is no program. */
function lookedAt(word: string, path: string, isInterpreted: boolean): NamedFile | 'missing' | null {
  const facts = factsOf(path);
  if (!facts) return 'missing';
  const { dev, ino, size, mtimeNs, ctimeNs, mode } = facts;
  if (!facts.isFile() || !(isInterpreted || ending.test(word) || (mode & 0o111n) !== 0n)) return null;
  const file = readBounded(path, { maxBytes: maxScriptBytes, longer: 'refuse', links: 'follow' });
  const seen = file.kind === 'read' ? file.bytes : [dev, ino, size, mtimeNs, ctimeNs].join(' ');
  const landed = file.kind === 'read' ? file.path : realpathSync(path);
  return { word, path, landed, sha256: createHash('sha256').update(seen).digest('hex') };
}

function factsOf(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    return undefined; // a text that is too long for a path, a folder that is not ours to enter
  }
}

/** Replaces the variable of the project's folder and the home folder, as a shell does. */
function expandFolders(word: string, from: HookSource): string {
  return withFolders(word, from).replace(/^(?:~|\$HOME|\$\{HOME\})(?=\/)/, () => from.home);
}

/** Returns the variables of folders that a hook is given: of the project, and of its plugin. */
export function folderVariables({
  directory,
  variables = {},
}: Pick<HookSource, 'directory' | 'variables'>): Readonly<Record<string, string>> {
  return { CLAUDE_PROJECT_DIR: directory, ...variables };
}

/** Puts folders in the place of their variables. */
export function withFolders(text: string, from: Pick<HookSource, 'directory' | 'variables'>): string {
  return Object.entries(folderVariables(from)).reduce(
    (filled, [name, value]) => filled.replaceAll(new RegExp(`\\$(?:${name}\\b|\\{${name}\\})`, 'g'), () => value),
    text,
  );
}
