import { createHash } from 'node:crypto';
import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isRecord } from '../core/json.js';
import { type ApprovalMode, approvalModes, readApproval } from '../core/policy.js';
import { replaceUnseen } from '../core/text.js';
import {
  emptyLayer,
  environmentLayer,
  flagLayer,
  type Layer,
  type Leaf,
  leavesOf,
  mergeLeaves,
  type Origin,
  overlaps,
  setLayer,
  valueAt,
  type Values,
} from './layers.js';
import { type Config, toConfig } from './sections.js';
import {
  agentPaths,
  type ConfigNotice,
  type ConfigProblem,
  type Environment,
  fileProblem,
  type FileText,
  parseConfigText,
  readConfigFile,
  readOwnConfigFile,
} from './settings-file.js';
import { defaultValues, keyText, toolsetNames, withMainKeys } from './settings-schema.js';
import { checkSettings } from './settings-check.js';

export interface LoadOptions {
  readonly env: Environment;
  readonly cwd: string;
  readonly home: string;
  /** The command-line options that set one setting each, by key (`max_tool_turns`), already typed. */
  readonly flags?: Readonly<Record<string, unknown>>;
  /** `--set`, as `key=value`. */
  readonly set?: readonly string[];
  /** True when the user trusts this directory with exactly this file. Only asked when a project has a file. */
  readonly projectTrusted?: boolean | ((project: ProjectFile) => boolean);
}

export interface LoadedConfig {
  /** Complete even when there are problems: wrong values are left out. */
  readonly config: Config;
  /** The settings as one tree of keys, for listings. */
  readonly values: Values;
  /** By key; a key without a value has none. */
  readonly origins: Readonly<Record<string, Origin>>;
  /** Every setting of every layer; later ones win. */
  readonly leaves: readonly Leaf[];
  readonly notices: readonly ConfigNotice[];
  /** Not empty: the caller ends with exit code 2. */
  readonly problems: readonly ConfigProblem[];
  readonly project: LoadedProject | null;
}

/** `ignored`: keys without effect. `wanted`: the settings among them that trust in the directory would make
 * effective. */
export interface LoadedProject {
  readonly file: ProjectFile;
  readonly trusted: boolean;
  readonly ignored: readonly string[];
  readonly wanted: readonly Leaf[];
}

interface ProjectLayer extends Layer {
  readonly project: LoadedProject | null;
}

/** Reads all settings: option over environment, over trusted project file, over user file, over default. An untrusted
 * project file may tighten policy and choose a model by name. Reads the settings files only, writes nothing, and throws
 * nothing for bad input. */
export async function loadConfig(options: LoadOptions): Promise<LoadedConfig> {
  const { env, cwd, home, flags = {}, set = [], projectTrusted = false } = options;
  const files = agentPaths(env, home);
  const content = readOwnConfigFile(files.config);
  const user =
    content.kind === 'missing'
      ? emptyLayer
      : await fileLayer(files.config, content, { kind: 'user', file: files.config });
  const defaults = leavesOf(defaultValues(), { kind: 'default' });
  const above = await Promise.all([environmentLayer(env), setLayer(set), flagLayer(flags)]);
  const byUser = [user, ...above].flatMap((layer) => layer.leaves);
  const below = [...defaults, ...profileLeaves(byUser), ...user.leaves];
  const file = findProjectFile(cwd, files.config);
  const project = file
    ? await projectLayer(file, typeof projectTrusted === 'function' ? projectTrusted(file) : projectTrusted, below)
    : { ...emptyLayer, project: null };
  const layers = [user, project, ...above];
  const given = layers.flatMap((layer) => layer.leaves);
  const leaves = [...defaults, ...profileLeaves(given), ...given];
  const { values, origins } = mergeLeaves(leaves);
  return {
    config: toConfig(values, origins, files, modeAfterPlan(leaves)),
    values,
    origins,
    leaves,
    notices: layers.flatMap((layer) => layer.notices),
    problems: [...layers.flatMap((layer) => layer.problems), ...contradictions(leaves)],
    project: project.project,
  };
}

function modeAfterPlan(leaves: readonly Leaf[]): unknown {
  return leaves.findLast(({ path, value }) => keyText(path) === 'approval' && value !== 'plan')?.value;
}

/** The values of each profile, used where no other layer sets a value. Source: seed 000, "Safety defaults". */
const profiles: Readonly<Record<string, Values>> = {
  embedded: {
    max_tool_turns: 1,
    max_tool_calls: 1,
    tool_timeout_ms: 1000,
    max_output_size: 65_536,
    tools: { fs: false, exec: false, mcp: false, diagnostics: false },
  },
};

function profileLeaves(given: readonly Leaf[]): readonly Leaf[] {
  const chosen = given.findLast(({ path }) => keyText(path) === 'profile')?.value;
  const values = typeof chosen === 'string' ? profiles[chosen] : undefined;
  return values ? leavesOf(values, { kind: 'default' }) : [];
}

/** Returns a problem for each set of tools that one source switches on and off. Between two sources, off wins. */
function contradictions(leaves: readonly Leaf[]): readonly ConfigProblem[] {
  const lists = leaves.filter(({ path, origin }) => keyText(path) === 'toolsets' && origin.kind !== 'default');
  const both = lists.flatMap(({ value, origin }) => {
    const names: readonly unknown[] = Array.isArray(value) ? value : [];
    const isBoth = (name: string): boolean => names.includes(name) && names.includes(`-${name}`);
    return toolsetNames.flatMap((name) => (isBoth(name) ? [{ name, origin }] : []));
  });
  const inLists = both.map(({ name, origin }) => ({
    message: `${sourceOf(origin)}: \`toolsets\` names ${name} and -${name}`,
    hint: 'Remove one of the two.',
    key: 'toolsets',
    where: sourceOf(origin),
  }));
  const bySwitches = lists.flatMap(({ value, origin }) =>
    leaves.flatMap((leaf) => {
      const [group, name = ''] = leaf.path;
      const opposite = leaf.value === false ? name : `-${name}`;
      const isSwitch = group === 'tools' && typeof leaf.value === 'boolean';
      const named = isSwitch && Array.isArray(value) && value.includes(opposite);
      if (!named || sourceOf(leaf.origin) !== sourceOf(origin)) return [];
      const key = keyText(leaf.path);
      return [
        {
          message: `${sourceOf(origin)}: \`toolsets\` names ${opposite}, and \`${key}\` is ${String(leaf.value)}`,
          hint: 'Remove one of the two.',
          key,
          where: sourceOf(origin),
        },
      ];
    }),
  );
  return [...inLists, ...bySwitches];
}

/** Returns true if the settings switch a set of tools off, by `tools.web: false` or `toolsets: ["-web"]`. */
export function isSwitchedOff(toolset: string, { values, origins }: LoadedConfig): boolean {
  const { tools, toolsets: listed } = values;
  const isSet = (origins[`tools.${toolset}`]?.kind ?? 'default') !== 'default';
  if (isSet) return isRecord(tools) && tools[toolset] === false;
  return Array.isArray(listed) && listed.includes(`-${toolset}`);
}

function sourceOf(origin: Origin): string {
  return origin.kind === 'user' || origin.kind === 'project' ? origin.file : origin.kind;
}

async function fileLayer(
  path: string,
  content: Exclude<FileText, { kind: 'missing' }>,
  origin: Origin,
): Promise<Layer> {
  if (content.kind === 'unreadable')
    return broken({
      message: `${path}: ${content.reason}`,
      hint: 'Make it a readable settings file, or move it away.',
      key: '',
      where: path,
    });
  const parsed = await parseConfigText(content.text);
  if (parsed.kind === 'broken') {
    const { line, column } = parsed.position;
    return broken({
      message: `${path}:${line}:${column}: not valid JSON: ${parsed.reason}`,
      hint: 'Correct it there; comments and trailing commas are allowed.',
      key: '',
      where: path,
      line,
      column,
    });
  }
  const values = withMainKeys(parsed.value);
  const issues = checkSettings(values);
  const problems = await Promise.all(issues.map((issue) => fileProblem(path, content.text, issue)));
  const leaves = leavesOf(values, origin).filter((leaf) => !issues.some((issue) => overlaps(leaf.path, issue.path)));
  return { leaves, problems, notices: [] };
}

async function projectLayer(file: ProjectFile, trusted: boolean, below: readonly Leaf[]): Promise<ProjectLayer> {
  if (trusted) return await trustedLayer(file);
  if (file.content.kind === 'unreadable') return ignoredProject(file, `is ignored: ${file.content.reason}.`);
  const parsed = await parseConfigText(file.content.text);
  if (parsed.kind === 'broken')
    return ignoredProject(
      file,
      `is ignored: not valid JSON at line ${parsed.position.line}, column ${parsed.position.column}: ${parsed.reason}.`,
    );
  const { accepted, ignored, wanted } = await restrictProjectConfig(
    withMainKeys(parsed.value),
    mergeLeaves(below).values,
    file.path,
  );
  const keys = ignored.map((item) => item.key);
  const notices =
    keys.length === 0 ? [] : ignoredProject(file, `is not trusted; ignored: ${formatKeys(keys)}.`).notices;
  return { ...emptyLayer, notices, leaves: accepted, project: { file, trusted, ignored: keys, wanted } };
}

async function trustedLayer(file: ProjectFile): Promise<ProjectLayer> {
  const layer = await fileLayer(file.path, file.content, { kind: 'project', file: file.path });
  const ignored = layer.leaves.filter((leaf) => isUsersAlone(leaf.path)).map((leaf) => keyText(leaf.path));
  const notices =
    ignored.length === 0
      ? []
      : ignoredProject(file, `is trusted, but these can only be set in your own settings: ${formatKeys(ignored)}.`)
          .notices;
  return {
    ...layer,
    notices,
    leaves: layer.leaves.filter((leaf) => !isUsersAlone(leaf.path)),
    project: { file, trusted: true, ignored, wanted: [] },
  };
}

/** Cleans names from an untrusted file: one line, no control characters, a limited length. */
function formatKeys(keys: readonly string[]): string {
  const names = keys.slice(0, 12).map((key) => key.replaceAll(/[^\w.<>@/$-]/g, '?').slice(0, 60));
  return names.join(', ') + (keys.length > names.length ? ` and ${keys.length - names.length} more` : '');
}

function ignoredProject(file: ProjectFile, what: string): ProjectLayer {
  return {
    ...emptyLayer,
    notices: [{ code: 'project_config', message: `${replaceUnseen(file.path, () => '?')} ${what}` }],
    project: { file, trusted: false, ignored: [], wanted: [] },
  };
}

function broken(problem: ConfigProblem): Layer {
  return { ...emptyLayer, problems: [problem] };
}

/** The settings of an untrusted project, accepted and ignored. */
interface Restricted {
  readonly accepted: readonly Leaf[];
  readonly ignored: readonly { readonly key: string; readonly reason: string }[];
  /** The ignored settings that would be effective if the directory were trusted. */
  readonly wanted: readonly Leaf[];
}

/** Returns the value that counts, or undefined to refuse it. Values have passed the schema. */
type Rule = (value: unknown, current: unknown, base: Values, path: readonly string[]) => unknown;

/** Accepts those settings of a project that tighten policy over `base` (the settings without it) or choose a model by
 * name. Numbers may only fall, switches only close, lists of refused things only grow. Source: contracts 2, last
 * paragraph. */
async function restrictProjectConfig(values: Values, base: Values, file: string): Promise<Restricted> {
  const issues = checkSettings(values);
  const sound = leavesOf(values, { kind: 'project', file }).filter(
    (leaf) => !issues.some((issue) => overlaps(leaf.path, issue.path)),
  );
  const ignored = issues.map((issue) => ({ key: keyText(issue.path), reason: issue.reason }));
  const accepted: Leaf[] = [];
  const wanted: Leaf[] = [];
  for (const leaf of sound) {
    const current = valueAt(base, leaf.path);
    const allowed = ruleFor(leaf.path)(leaf.value, current, base, leaf.path);
    if (allowed !== undefined) accepted.push({ ...leaf, value: allowed });
    else if (JSON.stringify(leaf.value) !== JSON.stringify(current)) {
      const own = isUsersAlone(leaf.path);
      ignored.push({
        key: keyText(leaf.path),
        reason: own ? 'can only be set in your own settings' : 'needs your trust in this directory',
      });
      if (!own) wanted.push(leaf);
    }
  }
  return { accepted, ignored, wanted };
}

const usersKeys = new Set([
  'docs.embeddings.base_url',
  'docs.embeddings.model',
  'http.allow_insecure',
  'key_store',
  'store.mode',
  'store.team',
  'store.url',
  'tasks.machine',
  'tasks.notify_command',
  'ui.status_command',
  'web.api.allow',
  'web.search.provider',
  'web.search.base_url',
]);

/** Only the user decides where requests and keys go, and which program hears of tasks or writes the status line,
 * whatever directory is trusted: a repository that names a host would get the key. Source: security 1.1, row 2. */
export function isUsersAlone(path: readonly string[]): boolean {
  const [first = '', ...rest] = path;
  if (['base_url', 'providers', 'telemetry'].includes(first) || usersKeys.has(keyText(path))) return true;
  return first === 'tools' && rest[0] === 'bash' && rest[1] === 'env' && loadsCode.test(rest[2] ?? '');
}

/** Variables by which every command would load or run something else, or find other programs and settings. */
const loadsCode = new RegExp(
  '^(?:LD_|DYLD_|BASH|ENV$|PATH$|HOME$|SHELL|IFS$|PS\\d|PROMPT_COMMAND$|GIT_|SSH_|NODE_|PYTHON|PERL|RUBY|JAVA_|_JAVA_|JDK_|' +
    'CLASSPATH$|AGENT_|PAGER$|EDITOR$|VISUAL$|BROWSER$|XDG_|GCONV_PATH$|LOCPATH$|NIX_|CARGO_|RUSTC|GOFLAGS$|MAKEFLAGS$)|' +
    '_(?:PAGER|EDITOR|BASE_URL|proxy|PROXY)$',
);

const byKey: Readonly<Record<string, Rule>> = {
  model: acceptModelName,
  provider: acceptModelName,
  approval: (value, current) => stricter(approvalModes)(value, comparedMode(current)),
  sandbox: stricter(['off', 'workspace', 'read-only']),
  'memory.save': stricter(['auto', 'ask', 'off']),
  ...Object.fromEntries(toolsetNames.map((name) => [`tools.${name}`, only(false)])),
  'tools.confirm': only(true),
  'tools.bash.on_timeout': stricter(['background', 'stop']),
  'rules.ask': added,
  'rules.deny': added,
  'sync.exclude': added,
  'fs.deny': (value, current) =>
    added(
      (value as readonly string[]).filter((glob) => !glob.startsWith('!')),
      current,
    ),
};
const smallerNumbers = new Set([
  'max_tool_turns',
  'max_tool_calls',
  'tool_timeout_ms',
  'max_output_size',
  'model_output_size',
  'max_output_tokens',
  'max_cost_usd',
  'exec.timeout_s',
  'exec.max_timeout_s',
  'fs.max_size',
  'tasks.max_cost_usd',
  'tasks.max_cost_usd_per_day',
]);

function ruleFor(path: readonly string[]): Rule {
  const key = keyText(path);
  if (Object.hasOwn(byKey, key)) return byKey[key] ?? refused;
  if (smallerNumbers.has(key)) return smaller;
  return path[0] === 'tools' && path[1] === 'limits' ? toolLimit : refused;
}

function refused(): undefined {
  return undefined;
}

/** A model of the embedded provider is a script of tool calls, not a name. */
function acceptModelName(value: unknown): unknown {
  return typeof value === 'string' &&
    /^[\w~@][\w./:@~+-]*$/.test(value) &&
    !/^offline(?:\/|$)|\.json$|\.\./i.test(value)
    ? value
    : undefined;
}

function stricter(order: readonly string[]): (value: unknown, current: unknown) => unknown {
  return (value, current) => (order.indexOf(String(value)) > order.indexOf(String(current)) ? value : undefined);
}

/** Returns the mode that a project's mode must be stricter than. Nothing is stricter than plan mode. */
function comparedMode(current: unknown): ApprovalMode | undefined {
  const named = readApproval(String(current));
  return named?.plan === true ? 'always' : named?.mode;
}

function only(wanted: boolean): Rule {
  return (value) => (value === wanted ? value : undefined);
}

function smaller(value: unknown, current: unknown): unknown {
  return typeof current !== 'number' || Number(value) < current ? value : undefined;
}

/** A tool without a limit of its own has the general one. */
function toolLimit(value: unknown, current: unknown, base: Values, path: readonly string[]): unknown {
  if (path[3] === 'max_output_bytes') return smaller(value, current ?? valueAt(base, ['max_output_size']));
  if (path[3] === 'timeout_ms') return smaller(value, current ?? Number(valueAt(base, ['exec', 'timeout_s'])) * 1000);
  return smaller(value, current);
}

function added(value: unknown, current: unknown): unknown {
  return [...(Array.isArray(current) ? (current as readonly unknown[]) : []), ...(value as readonly unknown[])];
}

/** A project's settings as they were read. Trust is given to `directory` with exactly these bytes. */
export interface ProjectFile {
  /** The directory that holds `.agent/`, absolute. */
  readonly directory: string;
  readonly path: string;
  readonly content: Exclude<FileText, { kind: 'missing' }>;
  /** Hash of the text (hex); of an empty text when the file cannot be read. */
  readonly sha256: string;
}

/** Finds the nearest `.agent/config.json` from `cwd` up to the repository's root (outside a repository: in `cwd`
 * alone). The user's own file is never taken for a project's. */
export function findProjectFile(cwd: string, userFile: string): ProjectFile | null {
  for (const directory of upToRoot(cwd)) {
    const path = join(directory, '.agent', 'config.json');
    if (!existsSync(path) || isSameFile(path, userFile)) continue;
    const content = readConfigFile(path);
    if (content.kind === 'missing') continue;
    const sha256 = createHash('sha256')
      .update(content.kind === 'text' ? content.text : '')
      .digest('hex');
    return { directory, path, content, sha256 };
  }
  return null;
}

/** Returns the directories from `cwd` up to the repository's root; outside a repository `cwd` alone. */
export function upToRoot(cwd: string): readonly string[] {
  const directories = [cwd];
  for (let at = cwd; !existsSync(join(at, '.git')); at = dirname(at)) {
    if (dirname(at) === at) return [cwd];
    directories.push(dirname(at));
  }
  return directories;
}

function isSameFile(one: string, other: string): boolean {
  return existsSync(other) && realpathSync(one) === realpathSync(other);
}
