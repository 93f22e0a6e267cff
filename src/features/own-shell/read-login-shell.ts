import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import { basename, delimiter, isAbsolute, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { readBounded } from '../../kernel/disk/bounded-file.js';
import type { ProcessRunner } from '../../kernel/tools/process/runner.js';
import { readAliases, readFunctions } from './shell-listings.js';

/** The definitions of a login shell. All of them are text for bash, which runs commands. */
export interface LoginShell {
  /** `bash`, `zsh` or `fish`. */
  readonly name: string;
  readonly aliases: ReadonlyMap<string, string>;
  /** Whole definitions by name. */
  readonly functions: ReadonlyMap<string, string>;
  /** The absolute folders of its PATH. */
  readonly path: readonly string[];
}

export type ReadShell =
  | { readonly ok: true; readonly shell: LoginShell }
  /** A sentence. */
  | { readonly ok: false; readonly problem: string };

interface ShellPlace {
  readonly processes: ProcessRunner;
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
  /** The value of SHELL; '' for that of the account. */
  readonly shell: string;
}

const limitMs = 1_000;
const maxBytes = 4 * 1024 * 1024;

/** The commands that print the aliases, the functions and the PATH. Builtins are called as such: the user may have
 * functions of these names. Aliases of fish are its functions. */
const listings: Readonly<Record<string, readonly [aliases: string, functions: string, path: string]>> = {
  bash: ['builtin alias -p', 'builtin declare -f', 'builtin echo "$PATH"'],
  zsh: ['builtin alias -L', 'builtin functions', 'builtin echo "$PATH"'],
  fish: ['alias', 'true', 'string join : $PATH'],
};

/** Starts the login shell once, as a terminal would, and reads what it defines. Takes a second at most. Its start files
 * run in the home folder without a terminal; they see AGENT_READS_SHELL=1. */
export async function readLoginShell(place: ShellPlace): Promise<ReadShell> {
  const file = place.shell === '' ? accountShell() : place.shell;
  const name = basename(file);
  const listing = listings[name];
  if (!listing) return { ok: false, problem: `${name || 'your shell'} is not bash, zsh or fish.` };
  const mark = `agent-${randomBytes(12).toString('hex')}`;
  const chunks: Buffer[] = [];
  const listed = place.processes.run({
    file,
    args: argumentsFor(name, scriptOf(listing, mark), place.home),
    cwd: place.home,
    env: { ...place.env, AGENT_READS_SHELL: '1', HISTFILE: '/dev/null' },
    sandbox: 'off',
    signal: new AbortController().signal,
    timeoutMs: limitMs,
    maxTotalBytes: maxBytes,
    onOutput: (chunk, stream) => {
      if (stream === 'stdout') chunks.push(Buffer.from(chunk));
    },
  });
  // An interactive shell ignores the signal that asks it to end; it is killed, and the start does not wait for that.
  const ended = await Promise.race([listed.then((result) => result.ended), delay(limitMs, 'timeout', { ref: false })]);
  const [, aliases = '', functions = '', path, end] = Buffer.concat(chunks).toString('utf8').split(`${mark}\n`);
  return ended === 'exit' && path !== undefined && end !== undefined
    ? { ok: true, shell: toShell(name, { aliases, functions, path }) }
    : { ok: false, problem: problemOf(name, ended) };
}

/** Returns a script that prints `mark` before each list and behind the last. */
function scriptOf(commands: readonly string[], mark: string): string {
  return [...commands, 'true'].map((command) => `builtin echo ${mark}; ${command}`).join('; ');
}

function problemOf(name: string, ended: string): string {
  if (ended === 'timeout')
    return `${name} took more than ${limitMs / 1000} s to start. Its start files can leave slow parts out where AGENT_READS_SHELL is set.`;
  if (ended === 'not_started') return `${name} could not be started.`;
  return `${name} ended before it had listed them.`;
}

function accountShell(): string {
  try {
    return userInfo().shell ?? '';
  } catch {
    return ''; // there is no such account
  }
}

/** A terminal on Linux starts bash without reading the files of a login; these often read `.bashrc`, but need not. */
function argumentsFor(name: string, script: string, home: string): readonly string[] {
  if (name !== 'bash') return ['-l', '-i', '-c', script];
  const login = ['.bash_profile', '.bash_login', '.profile'].map((file) => join(home, file)).find(existsSync);
  const found =
    login === undefined ? null : readBounded(login, { maxBytes: 1_000_000, longer: 'refuse', links: 'follow' });
  const readsRc = found?.kind === 'read' && Buffer.from(found.bytes).includes('bashrc');
  const rc = join(home, '.bashrc');
  return ['-l', '-i', '-c', readsRc || !existsSync(rc) ? script : `. ~/.bashrc; ${script}`];
}

function toShell(
  name: string,
  { aliases, functions, path }: { readonly aliases: string; readonly functions: string; readonly path: string },
): LoginShell {
  return {
    name,
    aliases: readAliases(aliases),
    functions: readFunctions(functions),
    path: path
      .trim()
      .split(delimiter)
      .filter((folder) => isAbsolute(folder)),
  };
}
