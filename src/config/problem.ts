import type { Issue } from './check.js';
import { positionOf } from './file.js';
import { keyText, type KeyPath } from './schema.js';

/** Something wrong with a setting: a configuration error (exit 2) for the caller to print. `message` says where, which
 * key and what; `hint` what to do. Values that look like secrets are masked. */
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

/** Something to be told that stops nothing. */
export interface ConfigNotice {
  readonly code: 'project_config' | 'config_variable';
  readonly message: string;
}

/** An issue of a file as a problem with its line and column. */
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

/** A text that could not be read as a value. */
export function textProblem(where: string, path: KeyPath, reason: string): ConfigProblem {
  const key = keyText(path);
  return {
    message: `${where}${reason.startsWith(':') ? '' : ' '}${reason}`,
    hint: `It sets ${key}; \`agent config show\` lists every key with its value.`,
    key,
    where,
  };
}
