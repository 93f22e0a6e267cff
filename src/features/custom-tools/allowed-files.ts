import { basename, dirname, join, resolve } from 'node:path';
import { isSwitchedOff, upToRoot } from '../../kernel/config/load.js';
import { openTrustFile } from '../../kernel/config/trust-file.js';
import { CliError, exit } from '../../kernel/console/command.js';
import type { QuestionPort } from '../../kernel/console/feature.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import type { ToolFileFacts, ToolFiles } from '../../kernel/console/tool-files-port.js';
import { spelledOut } from '../../kernel/core/text.js';
import { readToolFile, type ToolFile } from './tool-files.js';
import { toolFileProblem } from './load-tools.js';

/** Asks again about allowed tools that have changed, where they would be offered. `chosen`: the value of `--tools`. */
export async function askForChangedTools(
  settings: Settings,
  chosen: string | boolean | undefined,
  openQuestion: () => Promise<QuestionPort>,
): Promise<void> {
  if (!areOffered(settings, chosen)) return;
  const files = openToolFiles(settings);
  if (files.changed().length > 0) await askForTools(files, await openQuestion());
}

/** Returns true if custom tools are offered, where some are allowed. `chosen`: `--tools`. */
function areOffered({ loaded }: Settings, chosen: string | boolean | undefined): boolean {
  if (chosen === false) return false;
  const names = typeof chosen === 'string' ? chosen.split(',').map((name) => name.trim()) : [];
  if (names.some((name) => name === 'custom' || name === '+custom')) return true;
  const namesOthersAlone = names.some((name) => /^[^+-]/.test(name));
  return !namesOthersAlone && !names.includes('-custom') && !isSwitchedOff('custom', loaded);
}

/** Asks again about tools whose files are not as they were when they were allowed. A no, which is the default, forgets
 * them, so that it is not asked a third time. */
async function askForTools(files: OwnToolFiles, port: QuestionPort): Promise<void> {
  for (const file of files.changed()) {
    const about = file.lines.map((line) => `  ${line}\n`).join('');
    port.write(`${spelledOut(file.path)}\n(sha256 ${file.sha256})\nhas changed since you allowed it:\n\n${about}\n`);
    await port.untilPause();
    port.write('Allow this version, until one of its files changes? [y/N] ');
    const answer = await port.line();
    if (answer === null) {
      port.write('\n');
      return;
    }
    if (/^\s*y(?:es)?\s*$/i.test(answer)) files.allow(file);
    else files.forget(file.path);
  }
}

interface OwnToolFiles extends ToolFiles {
  /** Files that count here and are not as they were when they were allowed. */
  changed(): readonly ToolFileFacts[];
}

/** Opens the files of custom tools, for the commands that add and remove them. */
export function openToolFiles({ config, cwd }: Pick<Settings, 'config' | 'cwd'>): OwnToolFiles {
  const { tools: trust } = openTrustFile(config.files.trust);
  /** `what`: a path, the folder of a tool, or its name. */
  const isMeant = (path: string, what: string): boolean => {
    const given = resolve(cwd, what);
    if (path === given || dirname(path) === given || basename(dirname(path)) === what) return true;
    const file = readToolFile(path);
    return file.kind === 'program' && file.descriptor.name === what;
  };
  const factsOf = (file: Exclude<ToolFile, { readonly kind: 'broken' }>): ToolFileFacts => ({
    path: file.path,
    sha256: file.sha256,
    isAllowed: trust.isAllowed(file),
    lines: linesOf(file),
  });
  return {
    changed: () => {
      const here = upToRoot(cwd).map((directory) => join(directory, '.agent', 'tools', '/'));
      return trust.list().flatMap(({ path, sha256 }) => {
        if (path.includes('/.agent/tools/') && !here.some((folder) => path.startsWith(folder))) return [];
        const file = readToolFile(path);
        return file.kind === 'broken' || file.sha256 === sha256 ? [] : [factsOf(file)];
      });
    },
    read: (path) => {
      const file = readToolFile(resolve(cwd, path));
      if (file.kind === 'broken')
        throw new CliError(
          exit.usage,
          `${spelledOut(file.path)} contains no tool: ${file.problem.replace(/\.$/, '')}`,
          'Give the folder of a tool.json, or an .mjs file; docs/custom-tools.md describes both.',
        );
      return factsOf(file);
    },
    refuseUnusable: async ({ path }) => {
      const problem = await toolFileProblem(path);
      if (problem !== null)
        throw new CliError(exit.usage, `Not added: ${problem}`, 'Correct the file and add it again.');
    },
    allow: ({ path, sha256 }) => {
      trust.allow({ path, sha256, allowedAt: Date.now() });
    },
    forget: (what) => {
      const path = trust.list().find((file) => isMeant(file.path, what))?.path ?? null;
      if (path !== null) trust.remove(path);
      return path;
    },
  };
}

/** Returns the facts that the user must know before they allow a file. */
function linesOf(file: Exclude<ToolFile, { readonly kind: 'broken' }>): readonly string[] {
  if (file.kind === 'module') return ['a module: its code runs inside this program, with all its rights'];
  const { name, description, command, effect } = file.descriptor;
  const words = command.map((word) => (/^[\w./:=@+-]+$/.test(word) ? word : JSON.stringify(word)));
  return [`${name} (${effect}): ${spelledOut(description)}`, `runs ${spelledOut(words.join(' '))}`];
}
