import { createHash } from 'node:crypto';
import { existsSync, realpathSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { FileOrigin } from '../kernel/config/found-files.js';
import { type LoadedConfig, upToRoot } from '../kernel/config/load.js';
import { type Here, type ProjectPart, projectRoot, type TrustedHere } from '../kernel/config/project.js';
import { readJsonObject } from '../kernel/config/json-object.js';
import { isRecord } from '../kernel/core/json.js';
import { addAll } from '../kernel/core/lists.js';
import type { RuleList } from '../kernel/core/policy.js';
import type { ReadRule } from './claude-rules.js';
import { type NamedDirectory, ownDirectories } from './extra-directories.js';
import type { Notice } from '../kernel/console/run-settings.js';
import { notTrusted } from '../kernel/console/listed-files.js';
import { loadRules } from './open-policy.js';

/** A permission rule in the settings of Claude Code. */
export interface ClaudeRule {
  /** As written. */
  readonly text: string;
  readonly list: RuleList;
  readonly origin: Extract<FileOrigin, 'project' | 'claude-code'>;
  readonly path: string;
  readonly read: ReadRule;
}

/** A directory of `permissions.additionalDirectories`: like a rule that allows something, it needs trust. */
interface ClaudeDirectory extends Pick<ClaudeRule, 'text' | 'origin' | 'path'> {
  /** Absolute, or below `~`. */
  readonly directory: string;
}

interface ClaudeRules {
  readonly rules: readonly ClaudeRule[];
  readonly directories: readonly ClaudeDirectory[];
  /** Sentences about rules and fields that have no effect. */
  readonly problems: readonly string[];
  /** Sentences about files that cannot be read. */
  readonly broken: readonly string[];
}

const lists = ['allow', 'ask', 'deny'] as const satisfies readonly RuleList[];

interface ClaudeSettingsFile extends Pick<ClaudeRule, 'path' | 'origin'> {
  /** It is a link out of the project, and is not used. */
  readonly isOutside: boolean;
}

/** Returns the settings files of Claude Code that are there: those of the project, and the user's. */
function settingsFiles({ cwd, home }: Pick<Here, 'cwd' | 'home'>): readonly ClaudeSettingsFile[] {
  const root = projectRoot({ cwd });
  const own = { path: join(home, '.claude', 'settings.json'), origin: 'claude-code', isOutside: false } as const;
  const project = upToRoot(cwd)
    .filter((folder) => !isSameFolder(folder, home))
    .flatMap((folder) => ['settings.json', 'settings.local.json'].map((name) => join(folder, '.claude', name)))
    .filter((path) => existsSync(path))
    .map((path) => {
      const isOutside = !realpathSync(path).startsWith(`${realpathSync(root)}/`);
      return { path, origin: 'project', isOutside } as const;
    });
  return existsSync(own.path) ? [...project, own] : project;
}

function isSameFolder(one: string, other: string): boolean {
  return one === other || (existsSync(one) && existsSync(other) && realpathSync(one) === realpathSync(other));
}

const directoriesKey = 'additionalDirectories';

/** Reads the permission rules in the settings of Claude Code. Loads nothing where there are none. */
export async function claudeRules(here: Pick<Here, 'cwd' | 'home'>): Promise<ClaudeRules> {
  const found = settingsFiles(here).map((file) => ({ ...file, ...permissionsIn(file) }));
  const rules: ClaudeRule[] = [];
  const directories: ClaudeDirectory[] = [];
  const problems: string[] = [];
  const broken = found.flatMap(({ problem }) => problem ?? []);
  for (const { path, origin, permissions } of found) {
    const unused = Object.keys(permissions).filter(
      (key) => key !== directoriesKey && !lists.some((list) => list === key),
    );
    if (unused.length > 0) problems.push(`${path}: permissions.${unused.join(', permissions.')} has no effect here.`);
    const named = namedDirectories({ path, origin }, permissions[directoriesKey] ?? [], here);
    addAll(directories, named.directories);
    addAll(problems, named.problems);
    for (const list of lists) {
      const texts = permissions[list];
      for (const text of Array.isArray(texts) ? texts : []) {
        const read = await readRuleText(text, list, path, here);
        if (read === null) problems.push(`${path}: ${JSON.stringify(text)} is not a permission rule.`);
        else rules.push({ text: String(text), list, origin, path, read });
      }
    }
  }
  return { rules, directories, problems, broken };
}

function namedDirectories(
  { path, origin }: Pick<ClaudeDirectory, 'path' | 'origin'>,
  named: unknown,
  { cwd }: Pick<Here, 'cwd'>,
): { readonly directories: readonly ClaudeDirectory[]; readonly problems: readonly string[] } {
  const all: readonly unknown[] = Array.isArray(named) ? named : [named];
  const isName = (text: unknown): text is string => typeof text === 'string' && text.trim() !== '';
  // Relative paths start at the folder of the project; in the user's file, at the directory of the session.
  const from = origin === 'project' ? dirname(dirname(path)) : cwd;
  return {
    directories: all.filter(isName).map((text) => {
      return { text, origin, path, directory: isHomePath(text) ? text : resolve(from, text) };
    }),
    problems: all
      .filter((text) => !isName(text))
      .map((text) => `${path}: ${JSON.stringify(text)} is not a directory (permissions.${directoriesKey}).`),
  };
}

function isHomePath(text: string): boolean {
  return text === '~' || text.startsWith('~/');
}

async function readRuleText(
  text: unknown,
  list: RuleList,
  path: string,
  { cwd }: Pick<Here, 'cwd'>,
): Promise<ReadRule | null> {
  if (typeof text !== 'string') return null;
  const { readClaudeRule } = await loadRules();
  return readClaudeRule(text, list, { cwd, folder: dirname(dirname(path)) });
}

function permissionsIn({ path, isOutside }: ClaudeSettingsFile): {
  readonly permissions: Readonly<Record<string, unknown>>;
  readonly problem: string | null;
} {
  if (isOutside) return { permissions: {}, problem: `${path} is a link out of the project and is not used` };
  const found = readJsonObject(path);
  if (found.kind === 'broken') {
    const problem = `${path} is not used, neither its permission rules nor its hooks: ${found.reason}`;
    return { permissions: {}, problem };
  }
  const permissions = found.kind === 'object' ? found.value['permissions'] : undefined;
  return { permissions: isRecord(permissions) ? permissions : {}, problem: null };
}

/** Returns the reason why a rule has no effect; null for one that counts. `trusted`: by its origin. */
export function ruleProblem(
  { list, origin, read }: ClaudeRule,
  trusted: Readonly<Record<ClaudeRule['origin'], boolean>>,
): string | null {
  if (read.rules.length === 0 && (read.domains ?? []).length === 0) return read.problem ?? 'it has no meaning here';
  return list === 'allow' && !trusted[origin] ? notTrusted : null;
}

/** Adds the rules of Claude Code's settings: those that deny or ask at once, because they only tighten; those that allow,
 * and directories, once the user trusts their file. `directories`: those and the ones of our own settings. */
export async function withClaudeRules<Settings extends TrustedHere & { readonly config: LoadedConfig['config'] }>(
  settings: Settings,
): Promise<{
  readonly settings: Settings;
  readonly directories: readonly NamedDirectory[];
  readonly problems: readonly Notice[];
}> {
  const { rules, directories, problems, broken } = await claudeRules(settings);
  const notices = [...broken.map((message) => notice('warn', message)), ...problems.map((one) => notice('info', one))];
  if (rules.length + directories.length === 0)
    return { settings, directories: ownDirectories(settings.config), problems: notices };
  const trusted = await trustedOrigins(settings, rules, directories);
  const counting = rules.filter((rule) => ruleProblem(rule, trusted) === null);
  const { policy, web } = settings.config;
  const added = (list: RuleList) => counting.filter((rule) => rule.list === list).flatMap(({ read }) => read.rules);
  const config = {
    ...settings.config,
    policy: {
      ...policy,
      rules: {
        allow: [...policy.rules.allow, ...added('allow')],
        ask: [...policy.rules.ask, ...added('ask')],
        deny: [...policy.rules.deny, ...added('deny')],
      },
    },
    web: { ...web, allowDomains: [...web.allowDomains, ...counting.flatMap(({ read }) => read.domains ?? [])] },
  };
  const without = rules.filter((rule) => rule.read.rules.length === 0 && (rule.read.domains ?? []).length === 0);
  const said = withoutEffect(without).map((message) => notice('info', message));
  const opened: readonly NamedDirectory[] = directories
    .filter(({ origin }) => trusted[origin])
    .map(({ directory, path }) => ({ text: directory, from: `permissions.${directoriesKey} of ${path}` }));
  return {
    settings: { ...settings, config },
    directories: [...ownDirectories(settings.config), ...opened],
    problems: [...notices, ...said],
  };
}

function notice(level: 'info' | 'warn', message: string): Notice {
  return { level, code: 'claude_settings', message };
}

function withoutEffect(rules: readonly ClaudeRule[]): readonly string[] {
  const [first] = rules;
  if (first === undefined) return [];
  const count = rules.length === 1 ? '1 permission rule' : `${rules.length} permission rules`;
  return [`${count} of ${first.path} cannot be used here, such as ${first.text}; agent permissions list says why.`];
}

/** Returns which of the files that allow something the user trusts. */
export async function trustedOrigins(
  here: TrustedHere,
  rules: readonly ClaudeRule[],
  directories: readonly ClaudeDirectory[] = [],
): Promise<Readonly<Record<ClaudeRule['origin'], boolean>>> {
  const allows = (origin: ClaudeRule['origin']): boolean =>
    [...rules.filter(({ list }) => list === 'allow'), ...directories].some((one) => one.origin === origin);
  const { projects } = here;
  return {
    project: allows('project') && projects.answerFor(here, await projects.files(here)) === true,
    'claude-code': allows('claude-code') && projects.answerFor(here, await projects.userFiles(here)) === true,
  };
}

/** Lists the rules that allow something and the directories, by their file: they need trust. */
export async function claudeRuleParts(
  here: Pick<Here, 'cwd' | 'home'>,
  origin: ClaudeRule['origin'],
): Promise<readonly ProjectPart[]> {
  const { rules, directories } = await claudeRules(here);
  const allowing = rules.filter((rule) => rule.list === 'allow' && rule.origin === origin);
  const opening = directories.filter((one) => one.origin === origin);
  return [...new Set([...allowing, ...opening].map(({ path }) => path))].map((path) => {
    const texts = allowing.filter((rule) => rule.path === path).map(({ text }) => text);
    const opened = opening.filter((one) => one.path === path).map(({ text }) => text);
    return {
      kind: 'permissions',
      path,
      bytes: [...texts, ...opened].join('').length,
      sha256: createHash('sha256')
        .update(JSON.stringify(opened.length === 0 ? texts : [texts, opened]))
        .digest('hex'),
      lines: [...texts.map((text) => `allows ${text}`), ...opened.map((text) => `opens the directory ${text}`)],
    };
  });
}
