import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { readForeignSettings, recordIn, type SettingsFields } from '../../kernel/config/foreign-settings.js';
import { type ImportProgram, type SourcePlace } from '../../kernel/console/importer.js';
import { foldersOfProgram, opencodeFiles, type ProgramPlace } from '../../kernel/console/program-folders.js';
import { parseJson } from '../../kernel/core/json.js';
import type { RuleList } from '../../kernel/core/policy.js';
import { readBounded } from '../../kernel/disk/bounded-file.js';

/** A permission rule of another program. `text`: as Claude Code would write it; null: `problem` says why not. */
export interface ForeignRule {
  readonly name: string;
  readonly list: RuleList;
  readonly text: string | null;
  readonly problem?: string;
}

/** A file of rules. `rules` throws an Error where it cannot be read. */
export interface RuleSource extends Pick<SourcePlace, 'path' | 'scope'> {
  readonly rules: () => readonly ForeignRule[];
}

const lists: readonly RuleList[] = ['allow', 'ask', 'deny'];

/** Returns the files of permission rules of a program. Sources: the documentation of the programs on permissions and
 * command rules, read 2026-11. */
export function ruleSources(program: ImportProgram, place: ProgramPlace): readonly RuleSource[] {
  const files = (read: (content: SettingsFields) => readonly ForeignRule[], ...names: readonly string[]) =>
    foldersOfProgram(program, place).flatMap(({ folder, scope }) =>
      names.map((name): RuleSource => {
        const path = join(folder, name);
        return { path, scope, rules: () => read(readForeignSettings(path) ?? {}) };
      }),
    );
  if (program === 'claude-code') return files(claudeRules, 'settings.json', 'settings.local.json');
  if (program === 'qwen') return files(qwenRules, 'settings.json');
  if (program === 'gemini') return files(geminiRules, 'settings.json');
  if (program === 'cursor') return files(cursorRules, 'cli-config.json', 'cli.json');
  if (program === 'codex') return codexSources(place);
  if (program !== 'opencode') return [];
  return opencodeFiles(place).map(({ path, scope }) => ({
    path,
    scope,
    rules: () => opencodeRules(readForeignSettings(path)?.['permission']),
  }));
}

function textsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((text): text is string => typeof text === 'string') : [];
}

function listedRules(permissions: unknown, translate: (text: string) => string): readonly ForeignRule[] {
  return lists.flatMap((list) =>
    textsIn(recordIn(permissions)[list]).map((name): ForeignRule => ({ name, list, text: translate(name) })),
  );
}

function claudeRules(content: SettingsFields): readonly ForeignRule[] {
  return listedRules(content['permissions'], (text) => text);
}

/** Names of tools of Gemini CLI and Qwen Code. */
const toolNames: Readonly<Record<string, string>> = {
  run_shell_command: 'Bash',
  ShellTool: 'Bash',
  Shell: 'Bash',
  read_file: 'Read',
  ReadFileTool: 'Read',
  write_file: 'Write',
  WriteFileTool: 'Write',
  replace: 'Edit',
  edit: 'Edit',
  EditTool: 'Edit',
  web_fetch: 'WebFetch',
  google_web_search: 'WebSearch',
  web_search: 'WebSearch',
};

function renamedTool(text: string): string {
  return text.replace(/^\w+/, (name) => toolNames[name] ?? name);
}

function qwenRules(content: SettingsFields): readonly ForeignRule[] {
  return listedRules(content['permissions'], renamedTool);
}

/** `run_shell_command(git log)` means all commands that begin so. */
function geminiRules(content: SettingsFields): readonly ForeignRule[] {
  const tools = recordIn(content['tools']);
  const open = (text: string): string => renamedTool(text).replace(/^(Bash\([^*]*[^*:])\)$/, '$1:*)');
  return listedRules({ allow: tools['allowed'], deny: tools['exclude'] }, open);
}

/** `Shell(git)` means all commands of a program, `Write` all changes of files. */
function cursorRules(content: SettingsFields): readonly ForeignRule[] {
  return listedRules(content['permissions'], (text) =>
    text
      .replace(/^Shell\(([^*:]+)\)$/, 'Bash($1:*)')
      .replace(/^Shell\(([^*:()]+):(.+)\)$/, 'Bash($1 $2)')
      .replace(/^Shell\b/, 'Bash')
      .replace(/^Write\b/, 'Edit')
      .replace(/^WebFetch\((?!domain:|\*)/, 'WebFetch(domain:')
      .replace(/^Mcp\(([^:]+):(.+)\)$/, 'mcp__$1__$2'),
  );
}

const opencodeTools: Readonly<Record<string, string>> = {
  bash: 'Bash',
  edit: 'Edit',
  read: 'Read',
  grep: 'Grep',
  glob: 'Glob',
  list: 'Glob',
  webfetch: 'WebFetch',
  websearch: 'WebSearch',
  skill: 'Skill',
  task: 'Agent',
};

/** In opencode the last rule that fits decides; here a rule that denies or asks does. So one for everything is left out
 * where others of the same tool allow something. */
function opencodeRules(permission: unknown): readonly ForeignRule[] {
  return Object.entries(recordIn(permission)).flatMap(([tool, given]) => {
    const name = opencodeTools[tool];
    const rules = Object.entries(typeof given === 'string' ? { '*': given } : recordIn(given));
    const allowsSome = rules.some(([pattern, action]) => pattern !== '*' && action === 'allow');
    return rules.flatMap(([pattern, action]): readonly ForeignRule[] => {
      const list = lists.find((one) => one === action);
      const shown = `${tool} ${pattern}`;
      if (list === undefined) return [];
      if (name === undefined) return [{ name: shown, list, text: null, problem: `there is no rule for ${tool} here` }];
      if (pattern === '*' && list !== 'allow' && allowsSome)
        return [{ name: shown, list, text: null, problem: 'here it would come before the rules that allow' }];
      return [{ name: shown, list, text: pattern === '*' ? name : `${name}(${pattern})` }];
    });
  });
}

const decisions: Readonly<Record<string, RuleList>> = { allow: 'allow', prompt: 'ask', forbidden: 'deny' };

function codexSources(place: ProgramPlace): readonly RuleSource[] {
  return foldersOfProgram('codex', place).flatMap(({ folder, scope }) =>
    namesIn(join(folder, 'rules'))
      .filter((name) => name.endsWith('.rules'))
      .map((name) => {
        const path = join(folder, 'rules', name);
        return { path, scope, rules: () => codexRules(path) };
      }),
  );
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).toSorted();
  } catch {
    return [];
  }
}

/** Reads `prefix_rule(pattern = ["git", ["push", "pull"]], decision = "allow")`. Source:
 * developers.openai.com/codex/rules, read 2026-11. */
function codexRules(path: string): readonly ForeignRule[] {
  const found = readBounded(path, { maxBytes: 1024 * 1024, longer: 'refuse', links: 'follow' });
  if (found.kind === 'refused') throw new Error(`${path} cannot be read: ${found.reason}`);
  const text = found.kind === 'read' ? found.bytes.toString('utf8').replaceAll(/^\s*#.*$/gm, '') : '';
  return text
    .split(/^\s*prefix_rule\s*\(/m)
    .slice(1)
    .flatMap(prefixRules);
}

function prefixRules(text: string): readonly ForeignRule[] {
  const [, pattern = ''] = /\bpattern\s*=\s*(\[(?:[^[\]"']|"[^"]*"|'[^']*'|\[[^\]]*\])*\])/.exec(text) ?? [];
  const [, decision = 'allow'] = /\bdecision\s*=\s*["'](\w+)["']/.exec(text) ?? [];
  const list = decisions[decision];
  const words = wordsIn(pattern);
  const name = `prefix_rule(${(text.split('\n')[0] ?? '').slice(0, 80)}`;
  if (list === undefined || words === null)
    return [{ name, list: 'ask', text: null, problem: 'its pattern is not a list of words' }];
  return words.map((command) => ({ name: `${decision} ${command}`, list, text: `Bash(${command}:*)` }));
}

const maxCommands = 100;

/** Returns the commands that a pattern means; null for what is no list of words. */
function wordsIn(pattern: string): readonly string[] | null {
  let parts: unknown;
  try {
    const json = pattern.replaceAll(/'([^'"\\]*)'/g, '"$1"').replaceAll(/,\s*(?=\])/g, '');
    parts = parseJson(json);
  } catch {
    return null;
  }
  if (!Array.isArray(parts) || parts.length === 0) return null;
  let commands: readonly string[] = [''];
  for (const part of parts as readonly unknown[]) {
    const choices: readonly unknown[] = Array.isArray(part) ? part : [part];
    const words = choices.filter((word): word is string => typeof word === 'string' && /^[^\s*]+$/.test(word));
    if (words.length === 0 || words.length < choices.length || commands.length * words.length > maxCommands)
      return null;
    commands = commands.flatMap((command) => words.map((word) => `${command} ${word}`.trim()));
  }
  return commands;
}
