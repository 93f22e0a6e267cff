import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { type HookEvent, hookEvents } from '../../core/hooks.js';
import { isRecord } from '../../core/json.js';
import { readBounded } from '../../disk/bounded-file.js';

/** One command of a hooks file. */
export interface Hook {
  readonly event: HookEvent;
  /** As it stands in the file; '' for every subject. */
  readonly matcher: string;
  readonly command: string;
  /** Arguments of a program that is started without a shell. */
  readonly args?: readonly string[];
  readonly timeoutMs: number;
  /** A failure of it counts as a denial. */
  readonly required: boolean;
}

export interface HookFile {
  readonly hooks: readonly Hook[];
  /** What is in the file and does not count, as sentences. */
  readonly problems: readonly string[];
}

const defaultTimeoutS = 60;
const timeoutsS: Readonly<Partial<Record<HookEvent, number>>> = { UserPromptSubmit: 30, SessionEnd: 1.5 };

/** Reads the object of a hooks file: `{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command",
 * "command": "./check.sh"}]}]}}`. Source: code.claude.com/docs/en/hooks, read 2026-10. */
export function readHookFile(value: Readonly<Record<string, unknown>>): HookFile {
  if (value['disableAllHooks'] === true) return { hooks: [], problems: [] };
  const { hooks = {} } = value;
  if (!isRecord(hooks)) return { hooks: [], problems: ['"hooks" is not an object'] };
  const problems: string[] = [];
  const found = Object.entries(hooks).flatMap(([name, groups]) => {
    const event = hookEvents.find((known) => known === name);
    if (event === undefined) {
      problems.push(`nothing happens here at ${name}; known: ${hookEvents.join(', ')}`);
      return [];
    }
    if (Array.isArray(groups)) return groups.flatMap((group) => hooksOfGroup(event, group, problems));
    problems.push(`${name} is not a list`);
    return [];
  });
  return { hooks: found, problems };
}

function hooksOfGroup(event: HookEvent, group: unknown, problems: string[]): readonly Hook[] {
  if (!isRecord(group) || !Array.isArray(group['hooks'])) {
    problems.push(`an entry of ${event} has no list "hooks"`);
    return [];
  }
  const { matcher = '' } = group;
  if (typeof matcher !== 'string' || !isMatcher(matcher)) {
    problems.push(`the matcher ${JSON.stringify(matcher)} of ${event} is no name and no regular expression`);
    return [];
  }
  return group['hooks'].flatMap((entry: unknown) => {
    const hook = hookOf(event, matcher, entry);
    if (typeof hook !== 'string') return [hook];
    problems.push(hook);
    return [];
  });
}

function hookOf(event: HookEvent, matcher: string, entry: unknown): Hook | string {
  if (!isRecord(entry)) return `an entry of ${event} is not an object`;
  const { type, command, args, timeout, required } = entry;
  if (type !== 'command') return `hooks of the type ${JSON.stringify(type)} are not run (${event})`;
  if (typeof command !== 'string' || command.trim() === '') return `a hook of ${event} has no command`;
  if (args !== undefined && !isTexts(args)) return `"args" of ${command} is not a list of texts`;
  const seconds = typeof timeout === 'number' && timeout > 0 ? timeout : (timeoutsS[event] ?? defaultTimeoutS);
  return {
    event,
    matcher,
    command,
    ...(args === undefined ? {} : { args }),
    timeoutMs: Math.min(seconds, 3600) * 1000,
    required: required === true,
  };
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

/** Whether a matcher means one of these names: nothing and `*` mean all, a list of names exactly those, anything else
 * is a regular expression without anchors. */
export function matches(matcher: string, names: readonly string[]): boolean {
  if (matcher.trim() === '' || matcher === '*') return true;
  if (!plainNames.test(matcher)) return names.some((name) => new RegExp(matcher).test(name));
  const wanted = matcher.split(/[|,]/).map((name) => name.trim());
  return names.some((name) => wanted.includes(name));
}

/** Sources of a hook that are not in its command line. */
export interface NamedFiles {
  /** SHA-256 (hex) of the command line and of the files that it names. */
  readonly sha256: string;
  /** Words that look like a script and lead nowhere. */
  readonly missing: readonly string[];
}

const looksLikeScript = /\/|\.(?:sh|bash|zsh|py|js|mjs|cjs|ts|rb|pl|php)$/;
const maxScriptBytes = 4 * 1024 * 1024;

/** Looks at the files that a hook names, as they are now. */
export function namedFiles({ command, args = [] }: Pick<Hook, 'command' | 'args'>, projectDir: string): NamedFiles {
  const hash = createHash('sha256').update(JSON.stringify([command, ...args]));
  const missing: string[] = [];
  const spelled = args.length > 0 ? [command, ...args] : command.split(/[\s;&|<>()]+/);
  for (const word of spelled.map((given) => withProject(given.replaceAll(/["']/g, ''), projectDir))) {
    if (!looksLikeScript.test(word) || word.startsWith('-') || word.includes('$')) continue;
    const file = readBounded(resolve(projectDir, word), {
      maxBytes: maxScriptBytes,
      longer: 'refuse',
      links: 'follow',
    });
    if (file.kind === 'read') hash.update('\0').update(file.bytes);
    if (file.kind === 'missing') missing.push(word);
  }
  return { sha256: hash.digest('hex'), missing };
}

/** Puts the folder of the project in the place of its variable. */
export function withProject(text: string, projectDir: string): string {
  return text.replaceAll(/\$(?:CLAUDE_PROJECT_DIR\b|\{CLAUDE_PROJECT_DIR\})/g, () => projectDir);
}
