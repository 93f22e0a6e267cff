import { addAll } from '../kernel/core/lists.js';
import { accessSync, constants, lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { type LoadedOnce, loadOnce } from '../kernel/core/runtime.js';
import { directoryNews } from '../kernel/core/directories.js';
import {
  type ApprovalMode,
  approvalModes,
  planNews,
  type Policy,
  type Rule,
  ruleKey,
  type Rules,
  type Verdict,
} from '../kernel/core/policy.js';
import { readBounded } from '../kernel/disk/bounded-file.js';
import type { PolicyOptions } from '../kernel/permissions/permission-policy.js';
import type { PathFacts } from '../kernel/permissions/guarded-paths.js';
import { commandEnv } from '../kernel/config/sections.js';
import type { Settings, SwitchablePolicy } from '../kernel/console/run-settings.js';

/** Loads the code of permissions, which a session without calls does not need. */
export const loadPermissions = () => import('./permission-code.js');
export const loadRules = () => import('./rules-code.js');

type PolicySource = Pick<Settings, 'config' | 'cwd' | 'directories' | 'env' | 'home' | 'loaded' | 'ephemeral'>;

/** Opens the policy of this run. Its code is loaded with the first call that it judges. */
export function openPolicy(settings: PolicySource): SwitchablePolicy {
  /** The mode that the user set, and the one that counts. */
  let chosen = settings.config.policy.approval;
  let mode = chosen;
  let { acceptsEdits, planning, rules, sandbox } = settings.config.policy;
  /** The edits are accepted in one mode: a stricter one asks about them. */
  const rulesNow = (): Rules => (acceptsEdits && mode === 'mutating' ? withEdits(rules, settings) : rules);
  const loaded = (): LoadedOnce<Policy> =>
    loadOnce(() => loadPolicy(settings, { approval: mode, rules: rulesNow(), planning, sandbox }));
  let policy = loaded();
  const changeRules: SwitchablePolicy['changeRules'] = async (list, change) => {
    const { keepRules } = await loadRules();
    const { own, next, kept } = await keepRules(settings, list, change);
    rules = { ...rules, [list]: withoutRules(rules[list], own).concat(next) };
    policy = loaded();
    return kept;
  };
  const plan = (on: boolean): void => {
    planning = on;
    policy = loaded();
  };
  const choose = (next: ApprovalMode, withEdits: boolean): void => {
    chosen = next;
    mode = next;
    acceptsEdits = withEdits;
    policy = loaded();
  };
  return {
    mode: () => mode,
    switchTo: (next) => {
      choose(next, false);
    },
    acceptEdits: () => {
      choose('mutating', true);
    },
    acceptsEdits: () => acceptsEdits && mode === 'mutating',
    planning: () => planning,
    news: (events) => [...planNews(planning, events), ...directoryNews(settings.directories.list(), events)],
    plan,
    next: () => {
      const way = [...approvalModes.slice(approvalModes.indexOf(chosen)), 'plan'] as const;
      const stop = way[(way.indexOf(planning ? 'plan' : mode) + 1) % way.length];
      mode = stop === undefined || stop === 'plan' ? chosen : stop;
      plan(stop === 'plan');
    },
    sandbox: () => sandbox,
    confineTo: (next) => {
      sandbox = next;
      policy = loaded();
    },
    directories: () => settings.directories.list(),
    addDirectory: (directory) => {
      settings.directories.add(directory);
      policy = loaded();
    },
    rules: rulesNow,
    changeRules,
    allow: (added) => changeRules('allow', (own) => [...own, ...added]),
    assess: async (call, cwd, session) => await (await policy.get()).assess(call, cwd, session),
    dangersOf: async (paths) => (await (await policy.get()).dangersOf?.(paths)) ?? [],
  };
}

/** Returns a policy for calls in another directory, as free as `policy` is at the time of each call. Its rules are the
 * same; where edits in the project are accepted, those in that directory are. `allow`: rules beside those of `policy`. */
export function policyElsewhere(policy: SwitchablePolicy, settings: PolicySource, allow: readonly Rule[] = []): Policy {
  let key = '';
  let opened: LoadedOnce<Policy> | null = null;
  const current = (): LoadedOnce<Policy> => {
    const own = policy.acceptsEdits() ? withEdits(policy.rules(), settings) : policy.rules();
    const rules = allow.length === 0 ? own : { ...own, allow: [...own.allow, ...allow] };
    const now = { approval: policy.mode(), rules, planning: policy.planning(), sandbox: policy.sandbox() };
    const text = JSON.stringify([now, settings.directories.list()]);
    if (opened === null || text !== key) opened = loadOnce(() => loadPolicy(settings, now));
    key = text;
    return opened;
  };
  return {
    assess: async (...call) => await (await current().get()).assess(...call),
    dangersOf: async (paths) => (await (await current().get()).dangersOf?.(paths)) ?? [],
    allow: async (rules) => (await policy.allow?.(rules)) ?? { done: false, said: 'No rules can be kept in this run.' },
  };
}

function withoutRules(rules: readonly Rule[], gone: readonly Rule[]): readonly Rule[] {
  const keys = new Set(gone.map(ruleKey));
  return rules.filter((rule) => !keys.has(ruleKey(rule)));
}

/** Adds the rules that allow edits of files in the directories of the run. */
function withEdits(rules: Rules, { directories, cwd }: PolicySource): Rules {
  const added = directories.list().flatMap(({ path, readOnly }) => (readOnly ? [] : [path]));
  const edits = [cwd, ...added].flatMap((folder): readonly Rule[] =>
    ['file_edit', 'file_write'].map((tool) => ({ tool, path: `${folder}/**` })),
  );
  return { ...rules, allow: [...rules.allow, ...edits] };
}

/** Adds to each verdict on a file tool where its paths led, so that the tool can refuse a path that was exchanged
 * meanwhile. Calls are judged one after the other. */
export function withLandings(facts: PathFacts, open: (facts: PathFacts) => Policy): Policy {
  let noted: string[] = [];
  let last: Promise<unknown> = Promise.resolve();
  const policy = open({
    ...facts,
    landing: async (path) => {
      const landed = await facts.landing(path);
      if (landed !== null) noted.push(landed);
      return landed;
    },
  });
  const judge = async (...call: Parameters<Policy['assess']>): Promise<Verdict> => {
    noted = [];
    const verdict = await policy.assess(...call);
    const { effect } = call[0].tool;
    return effect === 'read' || effect === 'write' ? { ...verdict, landings: noted } : verdict;
  };
  return {
    ...policy,
    assess: (...call) => {
      const judged = last.then(() => judge(...call));
      last = judged.catch(() => undefined);
      return judged;
    },
  };
}

async function loadPolicy(
  { config, cwd, directories, env, home }: PolicySource,
  chosen: Pick<PolicyOptions, 'approval' | 'planning' | 'rules' | 'sandbox'>,
): Promise<Policy> {
  const { createPolicy } = await loadPermissions();
  const { files } = config;
  const facts = createPathFacts({
    home,
    workspace: cwd,
    added: directories.list(),
    ownPaths: [...new Set([dirname(files.config), files.data, dirname(files.log), files.cache])],
    env: commandEnv({ env, config }),
  });
  return withLandings(facts, (noting) =>
    createPolicy({
      ...chosen,
      fsDeny: config.fs.deny,
      facts: noting,
    }),
  );
}

const maxLinks = 40;

/** Follows paths as the kernel does, one component at a time, also those that do not exist yet. */
export function createPathFacts({
  env,
  ...places
}: Pick<PathFacts, 'added' | 'home' | 'workspace' | 'ownPaths'> & { readonly env?: Settings['env'] }): PathFacts {
  const programs =
    env === undefined ? {} : { programAt: async (name: string) => await Promise.resolve(programAt(name, env)) };
  return {
    ...places,
    ...programs,
    landing: async (path) => await landing(path, places.workspace),
    readWhole,
    hasFile,
    namesIn,
  };
}

/** A function of the environment goes before every program. */
function programAt(name: string, env: Settings['env']): string | null {
  if (env[`BASH_FUNC_${name}%%`] !== undefined) return null;
  const folders = (env['PATH'] ?? '').split(delimiter);
  if (!folders.every((folder) => isAbsolute(folder))) return null;
  for (const folder of folders) {
    try {
      accessSync(join(folder, name), constants.X_OK);
      return realpathSync(join(folder, name));
    } catch {
      /* It is not here. */
    }
  }
  return null;
}

const maxNames = 5_000;

async function namesIn(folder: string): Promise<readonly string[]> {
  return (await readdir(folder).catch(() => [])).slice(0, maxNames);
}

const maxLookedAt = 20_000;

async function hasFile(folder: string, fits: (path: string) => boolean): Promise<boolean> {
  const folders = [folder];
  let seen = 0;
  for (let at = 0; at < folders.length; at++) {
    const current = folders[at] ?? '';
    const entries = await readdir(current, { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      if (++seen > maxLookedAt) return false;
      const path = join(current, entry.name);
      if (entry.isFile() && fits(path)) return true;
      if (entry.isDirectory()) folders.push(path);
    }
  }
  return false;
}

async function landing(path: string, workspace: string): Promise<string | null> {
  if (!isAbsolute(path)) return null;
  // A file system that does not answer holds up a worker thread here, not the program. The workspace's has answered
  // before, and the synchronous call costs a fraction.
  if (path !== workspace && !path.startsWith(`${workspace}/`)) await lstat(path).catch(() => null);
  return landed(path) ?? walk(path);
}

/** Returns null where there is nothing, or it may not be seen. */
function landed(path: string): string | null {
  try {
    return realpathSync.native(path);
  } catch {
    return null;
  }
}

function walk(path: string): string | null {
  const left = path
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .toReversed();
  let at = '/';
  let missing = false;
  for (let links = 0; left.length > 0;) {
    const part = left.pop() ?? '';
    if (part === '..') {
      at = dirname(at);
      continue;
    }
    const next = join(at, part);
    const link: LinkTarget = missing ? { kind: 'plain' } : linkTarget(next);
    if (link.kind === 'unknown') return null;
    if (link.kind === 'missing') missing = true;
    if (link.kind === 'link') {
      if (++links > maxLinks) return null;
      if (isAbsolute(link.target)) at = '/';
      addAll(
        left,
        link.target
          .split('/')
          .filter((item) => item !== '' && item !== '.')
          .toReversed(),
      );
    } else at = next;
  }
  return at;
}

type LinkTarget =
  | { readonly kind: 'plain' | 'missing' | 'unknown' }
  | { readonly kind: 'link'; readonly target: string };

function linkTarget(path: string): LinkTarget {
  try {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat === undefined) return { kind: 'missing' };
    return stat.isSymbolicLink() ? { kind: 'link', target: readlinkSync(path) } : { kind: 'plain' };
  } catch {
    return { kind: 'unknown' };
  }
}

async function readWhole(path: string, maxBytes: number): Promise<Uint8Array | 'missing' | 'refused'> {
  await lstat(path).catch(() => null); // a file system that does not answer keeps a worker waiting, not the program
  const found = readBounded(path, { maxBytes, longer: 'refuse', links: 'refuse' });
  return found.kind === 'read' ? found.bytes : found.kind;
}
