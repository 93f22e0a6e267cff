import defaults from '../../config/defaults.json' with { type: 'json' };
import { replaceUnseen } from '../core/text.js';
import { checkValue } from './check.js';
import { toConfig, type Config } from './config.js';
import { parseConfigText, readConfigFile, type FileText } from './file.js';
import { leavesOf, mergeLeaves, overlaps, type Leaf, type Origin, type Values } from './merge.js';
import { emptyLayer, environmentLayer, flagLayer, setLayer, type Layer } from './override.js';
import { agentPaths, type Environment } from './paths.js';
import { fileProblem, type ConfigNotice, type ConfigProblem } from './problem.js';
import { findProjectFile, type ProjectFile } from './project-file.js';
import { isUsersAlone, restrictProjectConfig } from './restrict-project.js';
import { keyText } from './schema.js';

export interface LoadOptions {
  readonly env: Environment;
  readonly cwd: string;
  readonly home: string;
  /** Options with names of their own, by key (`max_tool_turns`), already typed. */
  readonly flags?: Readonly<Record<string, unknown>>;
  /** `--set`, as `key=value`. */
  readonly set?: readonly string[];
  /** Whether the user has trusted this directory with exactly this file. Asked once, only where a project has a
   * file. */
  readonly projectTrusted?: boolean | ((project: ProjectFile) => boolean);
}

export interface LoadedConfig {
  /** Complete even where there are problems: what is wrong is left out. */
  readonly config: Config;
  /** The settings as one tree of keys, for listings. */
  readonly values: Values;
  /** By key; a key without a value has none. */
  readonly origins: Readonly<Record<string, Origin>>;
  /** Every setting of every layer, the ones that win later. */
  readonly leaves: readonly Leaf[];
  readonly notices: readonly ConfigNotice[];
  /** Not empty: the caller ends with exit code 2. */
  readonly problems: readonly ConfigProblem[];
  readonly project: LoadedProject | null;
}

/** `ignored`: the keys that do not count. `wanted`: the settings among them that trust in the directory would let
 * count. */
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
 * project file may tighten policy and choose a model by name. Touches nothing but the files that are there; writes
 * nothing; throws nothing for bad input. */
export async function loadConfig(options: LoadOptions): Promise<LoadedConfig> {
  const { env, cwd, home, flags = {}, set = [], projectTrusted = false } = options;
  const files = agentPaths(env, home);
  const content = readConfigFile(files.config);
  const user =
    content.kind === 'missing'
      ? emptyLayer
      : await fileLayer(files.config, content, { kind: 'user', file: files.config });
  const below = [...leavesOf(defaults, { kind: 'default' }), ...user.leaves];
  const file = findProjectFile(cwd, files.config);
  const project = file
    ? await projectLayer(file, typeof projectTrusted === 'function' ? projectTrusted(file) : projectTrusted, below)
    : { ...emptyLayer, project: null };
  const layers = [user, project, environmentLayer(env), setLayer(set), flagLayer(flags)];
  const leaves = [...below, ...layers.slice(1).flatMap((layer) => layer.leaves)];
  const { values, origins } = mergeLeaves(leaves);
  return {
    config: toConfig(values, origins, files),
    values,
    origins,
    leaves,
    notices: layers.flatMap((layer) => layer.notices),
    problems: layers.flatMap((layer) => layer.problems),
    project: project.project,
  };
}

async function fileLayer(
  path: string,
  content: Exclude<FileText, { kind: 'missing' }>,
  origin: Origin,
): Promise<Layer> {
  if (content.kind === 'unreadable')
    return broken({
      message: `${path}: ${content.reason}`,
      hint: 'Make it a readable file of settings, or move it away.',
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
  const issues = checkValue(parsed.value);
  const problems = await Promise.all(issues.map((issue) => fileProblem(path, content.text, issue)));
  const leaves = leavesOf(parsed.value, origin).filter(
    (leaf) => !issues.some((issue) => overlaps(leaf.path, issue.path)),
  );
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
  const { accepted, ignored, wanted } = restrictProjectConfig(parsed.value, mergeLeaves(below).values, file.path);
  const keys = ignored.map((item) => item.key);
  const notices = keys.length === 0 ? [] : ignoredProject(file, `is not trusted; ignored: ${listed(keys)}.`).notices;
  return { ...emptyLayer, notices, leaves: accepted, project: { file, trusted, ignored: keys, wanted } };
}

async function trustedLayer(file: ProjectFile): Promise<ProjectLayer> {
  const layer = await fileLayer(file.path, file.content, { kind: 'project', file: file.path });
  const ignored = layer.leaves.filter((leaf) => isUsersAlone(leaf.path)).map((leaf) => keyText(leaf.path));
  const notices =
    ignored.length === 0
      ? []
      : ignoredProject(file, `is trusted, but these are taken from your own settings alone: ${listed(ignored)}.`)
          .notices;
  return {
    ...layer,
    notices,
    leaves: layer.leaves.filter((leaf) => !isUsersAlone(leaf.path)),
    project: { file, trusted: true, ignored, wanted: [] },
  };
}

/** Names from a file nobody vouches for: on one line, without control characters, not without end. */
function listed(keys: readonly string[]): string {
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
