import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import type { AddedSource, Here, ProjectPart } from '../../kernel/config/project.js';
import { readJsonObject } from '../../kernel/config/json-object.js';
import { statsAt } from '../../kernel/disk/path-stats.js';
import { type Hook, type HookSource, namedFiles, readHookFile } from './listed-hooks.js';

/** Hooks as they are on the disk now. */
export interface HookFiles {
  /** Of the user, from their own file. */
  readonly own: FoundHooks;
  /** Hooks of the project. They count once the user trusts them. */
  readonly project: FoundHooks;
  /** Hooks of the user's settings of Claude Code. They count once the user trusts them. */
  readonly claude: FoundHooks;
  /** Hooks of plugins, which the user has trusted as they are. */
  readonly plugins: FoundHooks;
}

export interface FoundHooks {
  readonly hooks: readonly Hook[];
  /** The invalid parts of the files, as sentences. */
  readonly problems: readonly string[];
}

export const noHooks: FoundHooks = { hooks: [], problems: [] };

/** Leaves out files that are links out of `root`. */
export function insideOf(paths: readonly string[], root: string): readonly string[] {
  return paths.filter((path) => isBelow(realpathSync(path), root));
}

/** Reads the hooks of a project. They run in the folder that holds `.agent` or `.claude`. */
export function readProjectHooks(paths: readonly string[], home: string): FoundHooks {
  return together(
    paths.map((path) => readSettings(path, { path, origin: 'project', directory: join(path, '..', '..'), home })),
  );
}

/** Reads the hooks in a file of settings. */
export function readSettings(path: string, from: HookSource): FoundHooks {
  const found = readJsonObject(path);
  if (found.kind === 'missing') return noHooks;
  if (found.kind === 'broken') return { hooks: [], problems: [`${path} cannot be read: ${found.reason}`] };
  return hooksOf(found.value, from);
}

/** Leaves out hooks that the user has copied into their own file, so that none runs twice. */
export function withoutCopies({ hooks, problems }: FoundHooks, own: readonly Hook[]): FoundHooks {
  const factsOf = ({ matcher, from: _from, ...hook }: Hook): string =>
    JSON.stringify([
      matcher === '*' ? '' : matcher,
      Object.entries(hook).toSorted(([one], [other]) => (one < other ? -1 : 1)),
    ]);
  const copied = new Set(own.map(factsOf));
  return { hooks: hooks.filter((hook) => !copied.has(factsOf(hook))), problems };
}

function hooksOf(value: Readonly<Record<string, unknown>>, from: HookSource): FoundHooks {
  const { hooks, problems } = readHookFile(value, from);
  return { hooks, problems: problems.map((problem) => `${from.path}: ${problem}`) };
}

/** Reads the hooks of plugins. They run in the working directory. */
export function readPluginHooks(sources: readonly AddedSource[], { cwd: directory, home }: Here): FoundHooks {
  return together(
    sources.flatMap(({ origin, variables, hooks }) =>
      hooks.map(({ path, value }) =>
        hooksOf(value, { path, origin, directory, home, variables: variablesByName(variables) }),
      ),
    ),
  );
}

/** `${NAME}` as `NAME`. */
function variablesByName(variables: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(variables).map(([name, value]) => [name.replaceAll(/\W/g, ''), value]));
}

function together(found: readonly FoundHooks[]): FoundHooks {
  return { hooks: found.flatMap(({ hooks }) => hooks), problems: found.flatMap(({ problems }) => problems) };
}

/** Returns true if a hook of the user starts a file of the project: a stranger may have written that file. */
export function reachesInto(hook: Hook, root: string): boolean {
  return (
    hook.from.origin === 'user' &&
    namedFiles(hook).files.some(({ path, landed }) => isBelow(path, root) || isBelow(landed, root))
  );
}

function isBelow(path: string, root: string): boolean {
  const top = realpathSync(root);
  return path.startsWith(top.endsWith('/') ? top : `${top}/`);
}

/** Lists the hooks that need trust, by their file: the command lines, and each file that they name with its hash. Other
 * parts of the file do not matter. */
export function partsOfHooks({ own, project }: HookFiles, root: string): readonly ProjectPart[] {
  return partsByFile([...project.hooks, ...own.hooks.filter((hook) => reachesInto(hook, root))]);
}

/** Lists the hooks of the user's settings of Claude Code. */
export function partsOfClaude({ claude }: HookFiles): readonly ProjectPart[] {
  return partsByFile(claude.hooks);
}

function partsByFile(asked: readonly Hook[]): readonly ProjectPart[] {
  return [...new Set(asked.map(({ from }) => from.path))].map((path) => {
    const hooks = asked.filter(({ from }) => from.path === path);
    const hash = createHash('sha256');
    for (const { event, matcher, timeoutMs, required, condition, background, ...hook } of hooks) {
      const isPlain = condition === undefined && background === undefined && hook.type === 'command';
      const how = isPlain ? [] : [condition ?? '', background ?? '', hook.type];
      hash.update(JSON.stringify([event, matcher, timeoutMs, required, ...how, namedFiles(hook).sha256]));
    }
    const bytes = statsAt(path)?.size ?? 0;
    return { kind: 'hooks', path, sha256: hash.digest('hex'), bytes, lines: hooks.flatMap(linesOf) };
  });
}

const asks: Readonly<Record<Hook['type'], string>> = {
  command: 'runs',
  http: 'sends its input to',
  prompt: 'asks the model',
  agent: 'asks a sub-agent',
};

function linesOf(hook: Hook): readonly string[] {
  const command = [hook.command, ...(hook.args ?? [])].join(' ');
  const condition = hook.condition === undefined ? '' : ` if ${hook.condition}`;
  const matcher = hook.matcher === '' && condition === '' ? '' : ` (${`${hook.matcher}${condition}`.trim()})`;
  const { files, missing } = namedFiles(hook);
  return [
    `hook ${hook.event}${matcher} ${asks[hook.type]}: ${command}`,
    ...Object.entries(hook.headers ?? {}).map(([name, value]) => `  with the header ${name}: ${value}`),
    ...files.map(({ word, sha256 }) => `  with ${word} (sha256 ${sha256})`),
    ...missing.map((word) => `  with ${word}, which is missing`),
  ];
}
