import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { type CommandHandler, type CommandLine, CliError, exit } from '../../kernel/console/command.js';
import { readBoundedText } from '../../kernel/disk/bounded-file.js';
import { explainStaged } from './commit-lines.js';
import type { Repository } from './git-lines.js';
import { needed, withBlame } from './trace.js';

const hookName = 'prepare-commit-msg';
const start = '# agent trace: the lines up to "end of agent trace" were added by `agent trace hook install`';
const end = '# end of agent trace';
/** A commit never fails because of this. */
const block = [
  start,
  'if command -v agent >/dev/null 2>&1; then agent trace trailer "$1" "${2-}" </dev/null >/dev/null 2>&1 || true; fi',
  end,
];

/** `agent trace hook install|remove`: a hook that names the sessions in the message of a commit. */
export const traceHook: CommandHandler = {
  line: {
    example: 'agent trace hook install',
    run: (line, [action = '']) => changeHook(line, action),
  },
};

async function changeHook(line: CommandLine, action: string): Promise<number> {
  if (action !== 'install' && action !== 'remove')
    throw new CliError(exit.usage, `\`${action}\` is not known`, 'Known: install, remove.');
  return await withBlame(line, async ({ repository, cwd }) => {
    const found = needed(repository, cwd);
    const file = await hookFile(found);
    const shown = relative(cwd, file) || file;
    const isInstalled = textOfHook(file)?.includes(start) === true;
    if (action === 'install' && !isInstalled) installHook(file);
    if (action === 'remove' && isInstalled) removeHook(file);
    const now = { install: 'The hook is installed', remove: 'The hook is removed' }[action];
    const before = { install: 'The hook was installed already', remove: 'The hook was not installed' }[action];
    line.out.print(`${isInstalled === (action === 'install') ? before : now}: ${shown}\n`);
    return exit.done;
  });
}

/** Returns the file of the hook: in `core.hooksPath`, else in the repository, which all worktrees share. The folder
 * `.husky/_` is made by husky, which runs the files beside it. */
async function hookFile(repository: Repository): Promise<string> {
  const configured = await repository.run(['config', '--show-scope', '--type=path', '--get-all', 'core.hooksPath']);
  const folder = configured.output
    .split('\n')
    .filter((row) => row !== '' && !row.startsWith('command\t'))
    .map((row) => row.slice(row.indexOf('\t') + 1))
    .at(-1);
  if (folder !== undefined) {
    const path = resolve(repository.top, folder);
    return join(basename(path) === '_' && basename(dirname(path)) === '.husky' ? dirname(path) : path, hookName);
  }
  const shared = (await repository.run(['rev-parse', '--git-common-dir'])).output.trim();
  return join(resolve(repository.top, shared), 'hooks', hookName);
}

const maxHookBytes = 1_048_576;

function textOfHook(file: string): string | null {
  return readBoundedText(file, { maxBytes: maxHookBytes, longer: 'refuse', links: 'follow' });
}

/** Adds the lines to a shell script, behind its first line. Any other program is moved aside and run first. */
function installHook(file: string): void {
  const before = textOfHook(file);
  mkdirSync(dirname(file), { recursive: true });
  if (before === null && !existsSync(file)) {
    writeScript(file, ['#!/bin/sh', ...block, '']);
    return;
  }
  const lines = before?.split('\n') ?? [];
  const isShell = before !== null && (!before.startsWith('#!') || /^#!.*\b(?:sh|bash|dash|zsh|ksh)\b/.test(before));
  if (isShell) {
    const at = before.startsWith('#!') ? 1 : 0;
    writeScript(file, lines.toSpliced(at, 0, ...block), statSync(file).mode);
    return;
  }
  renameSync(file, asideOf(file));
  writeScript(file, ['#!/bin/sh', ...block, `"$(dirname "$0")/${basename(asideOf(file))}" "$@"`, '']);
}

function asideOf(file: string): string {
  return `${file}.before-agent`;
}

function writeScript(file: string, lines: readonly string[], mode = 0o755): void {
  writeFileSync(file, lines.join('\n'));
  chmodSync(file, mode & 0o777);
}

function removeHook(file: string): void {
  const lines = (textOfHook(file) ?? '').split('\n');
  const first = lines.indexOf(start);
  const rest = lines.toSpliced(first, lines.indexOf(end) - first + 1);
  if (existsSync(asideOf(file))) renameSync(asideOf(file), file);
  else if (rest.join('').trim() === '#!/bin/sh') rmSync(file);
  else writeScript(file, rest, statSync(file).mode);
}

/** `agent trace trailer`: adds `Agent-Session: <id>` to a commit message, for each session that wrote a staged line. Run
 * by the hook. */
export const addTrailer: CommandHandler = {
  line: {
    example: 'agent trace trailer .git/COMMIT_EDITMSG',
    run: async (line, [file = '', source = '']) =>
      await withBlame(line, async ({ work, repository, cwd }) => {
        if (source === 'merge' || source === 'squash') return exit.done;
        const found = needed(repository, cwd);
        const calls = (await explainStaged(work, found)).flatMap(({ lines }) =>
          lines.flatMap(({ call }) => call ?? []),
        );
        const sessions = new Set(
          calls.map(({ session: { row } }) => (row.parentCallId === undefined ? row.id : (row.parentId ?? row.id))),
        );
        if (sessions.size === 0) return exit.done;
        const trailers = [...sessions].map((id) => `--trailer=Agent-Session: ${id}`);
        const edit = ['interpret-trailers', '--in-place', '--if-exists=addIfDifferent', ...trailers];
        const { exitCode, errors } = await found.run([...edit, resolve(cwd, file)]);
        if (exitCode !== 0)
          throw new CliError(exit.failed, `the message ${file} was not changed: ${errors.trim()}`, 'Check the path.');
        return exit.done;
      }),
  },
};
