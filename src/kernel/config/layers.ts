import { parseJson } from '../core/json.js';
import { isRecord } from '../core/json.js';
import { editDistance, nearestName } from '../core/text.js';
import { type ConfigNotice, type ConfigProblem, type Environment, issueProblem, textProblem } from './settings-file.js';
import {
  childNode,
  configSchema,
  expected,
  isSection,
  type SettingKey,
  type KeyPath,
  keyText,
  knownVariables,
  maskText,
  resolveKey,
  resolveVariable,
  type SchemaNode,
  unknownKey,
} from './settings-schema.js';
import { checkSetting } from './settings-check.js';

/** The source of a value. */
export type Origin =
  | { readonly kind: 'default' }
  | { readonly kind: 'user' | 'project'; readonly file: string }
  | { readonly kind: 'environment'; readonly variable: string }
  | { readonly kind: 'set' | 'flag' };

export type Values = Readonly<Record<string, unknown>>;

/** One setting with its value; lists and open objects are one value. */
export interface Leaf {
  readonly path: readonly string[];
  readonly value: unknown;
  readonly origin: Origin;
}

const ranks = { default: 0, user: 1, project: 2, environment: 3, set: 4, flag: 5 } as const;

/** The precedence of an origin; the higher one wins. */
export function originRank(origin: Origin | undefined): number {
  return ranks[origin?.kind ?? 'default'];
}

/** Returns true for a setting that the command line gives. */
export function isGivenOnCommandLine(
  { origins }: { readonly origins: Readonly<Record<string, Origin>> },
  key: string,
): boolean {
  return ['flag', 'set'].includes(origins[key]?.kind ?? '');
}

/** Returns the settings in `values`, in order, without keys that the schema does not know. */
export function leavesOf(
  values: Values,
  origin: Origin,
  node: SchemaNode = configSchema,
  path: readonly string[] = [],
): Leaf[] {
  return Object.entries(values).flatMap(([key, value]) => {
    const child = childNode(node, key);
    if (!child || (key === '$schema' && path.length === 0)) return [];
    const here = [...path, key];
    // An empty default is a value of its own; empty in a file, it says nothing.
    const isEmptyDefault = origin.kind === 'default' && JSON.stringify(value) === '{}';
    if (isSection(child) && isRecord(value) && !isEmptyDefault) return leavesOf(value, origin, child, here);
    return [{ path: here, value, origin }];
  });
}

/** Merges the leaves into one tree, in which later ones win, and says where each value came from. */
export function mergeLeaves(leaves: readonly Leaf[]): {
  readonly values: Values;
  readonly origins: Readonly<Record<string, Origin>>;
} {
  const values: Record<string, unknown> = {};
  const origins = new Map<string, Origin>();
  for (const leaf of leaves) {
    place(values, leaf.path, leaf.value);
    origins.set(keyText(leaf.path), leaf.origin);
  }
  return { values, origins: Object.fromEntries(origins) };
}

function place(tree: Record<string, unknown>, path: readonly string[], value: unknown): void {
  let at = tree;
  for (const key of path.slice(0, -1)) {
    const next = at[key];
    const section = isRecord(next) ? (next as Record<string, unknown>) : {};
    at[key] = section;
    at = section;
  }
  at[path.at(-1) ?? ''] = value;
}

/** The value at `path`, or undefined. */
export function valueAt(values: unknown, path: KeyPath): unknown {
  return path.reduce<unknown>((at, key) => (isRecord(at) && Object.hasOwn(at, key) ? at[key] : undefined), values);
}

/** True when one of two paths begins with the other. */
export function overlaps(one: KeyPath, other: KeyPath): boolean {
  return one.slice(0, other.length).every((key, index) => key === other[index]);
}

/** The settings of one source, with its problems and notices. */
export interface Layer {
  readonly leaves: readonly Leaf[];
  readonly problems: readonly ConfigProblem[];
  readonly notices: readonly ConfigNotice[];
}

export const emptyLayer: Layer = { leaves: [], problems: [], notices: [] };
const notKeys = new Set(['AGENT_HOME', 'AGENT_DEBUG', 'AGENT_PLAIN']);
/** Azure Pipelines gives its jobs variables of the same prefix. Source: its documentation, "Use predefined
 * variables". */
const foreign = new RegExp(
  '^AGENT_(?:BUILDDIRECTORY|CONTAINERMAPPING|DISABLELOGPLUGIN.*|HOMEDIRECTORY|ID|JOBNAME|JOBSTATUS|MACHINENAME|NAME|' +
    'OS|OSARCHITECTURE|PROXY.*|RETAINDEFAULTENCODING|ROOTDIRECTORY|SERVEROMDIRECTORY|TEMPDIRECTORY|TOOLSDIRECTORY|' +
    'VERSION|WORKFOLDER)$',
);

/** Reads the settings of the environment: `AGENT_A_B` is `a.b`. An empty variable counts as unset. A variable that
 * names no setting only causes a notice, which names the nearest setting. */
export async function environmentLayer(env: Environment): Promise<Layer> {
  const names = Object.keys(env)
    .filter((name) => name.startsWith('AGENT_') && !notKeys.has(name) && !foreign.test(name) && env[name] !== '')
    .sort();
  const stray = names.filter((variable) => resolveVariable(variable) === null);
  const layers = names.map(async (variable) => {
    const key = resolveVariable(variable);
    return key ? textLayer(env[variable] ?? '', key, variable, { kind: 'environment', variable }) : emptyLayer;
  });
  return combine([...(await Promise.all(layers)), strayVariables(stray)]);
}

/** Reads `--set key=value`. The last one of a key wins. */
export async function setLayer(pairs: readonly string[]): Promise<Layer> {
  return combine(
    await Promise.all(
      pairs.map(async (pair) => {
        const at = pair.indexOf('=');
        if (at < 1)
          return refused({
            message: `--set ${JSON.stringify(pair)} is not key=value`,
            hint: 'Write for example --set max_tool_turns=10.',
            key: pair,
            where: '--set',
          });
        const name = pair.slice(0, at).trim();
        const key = resolveKey(name);
        return key
          ? textLayer(pair.slice(at + 1), key, `--set ${name}`, { kind: 'set' })
          : refused(unknownKeyProblem(name, '--set'));
      }),
    ),
  );
}

/** Reads command-line options that are named like settings, by key and already typed. Undefined counts as not given. */
export async function flagLayer(flags: Readonly<Record<string, unknown>>): Promise<Layer> {
  return combine(
    await Promise.all(
      Object.entries(flags)
        .filter(([, value]) => value !== undefined)
        .map(async ([name, value]): Promise<Layer> => {
          const where = `--${name.replaceAll(/[._]/g, '-').replace(/-usd$/, '')}`;
          const key = resolveKey(name);
          if (!key) return refused(unknownKeyProblem(name, where));
          const [issue] = checkSetting(value, key.path);
          if (issue) return refused(textProblem(where, issue.path, issue.reason));
          return { ...emptyLayer, leaves: [{ path: key.path, value, origin: { kind: 'flag' } }] };
        }),
    ),
  );
}

/** Describes a key that does not exist. */
export function unknownKeyProblem(name: string, where: string): ConfigProblem {
  const path = name.split('.');
  const parent = path.length > 1 ? resolveKey(path.slice(0, -1).join('.'))?.node : configSchema;
  return { ...issueProblem(where, unknownKey(path, parent ?? configSchema)), where };
}

function textLayer(
  text: string,
  key: NonNullable<ReturnType<typeof resolveKey>>,
  where: string,
  origin: Origin,
): Layer {
  const parsed = parseText(text, key);
  if (!parsed.ok) return refused(textProblem(where, key.path, parsed.reason));
  const { value } = parsed;
  const leaves =
    isSection(key.node) && isRecord(value)
      ? leavesOf(value, origin, key.node, key.path)
      : [{ path: key.path, value, origin }];
  return { ...emptyLayer, leaves };
}

/** Other programs may use the same prefix, so this is no error. */
function strayVariables(variables: readonly string[]): Layer {
  const near = variables.flatMap((variable) => {
    const meant = meantVariable(variable);
    return meant === null
      ? []
      : [{ variable, message: `The variable ${variable} is not a setting; did you mean ${meant}?` }];
  });
  const others = variables.filter((variable) => !near.some((item) => item.variable === variable));
  const messages = near.map(({ message }) => message);
  if (others.length > 0)
    messages.push(
      others.length === 1
        ? `The variable ${others.join()} sets nothing here.`
        : `The variables ${others.join(', ')} set nothing here.`,
    );
  return { ...emptyLayer, notices: messages.map((message) => ({ code: 'config_variable', message })) };
}

/** Finds the variable of a setting that nearly has this name, or ends with it. */
function meantVariable(variable: string): string | null {
  const known = knownVariables();
  const whole = nearestName(variable, known);
  if (whole !== null && editDistance(variable, whole) <= 2) return whole;
  const words = variable.slice('AGENT_'.length);
  return known.find((name) => name.endsWith(`_${words}`)) ?? null;
}

function refused(problem: ConfigProblem): Layer {
  return { ...emptyLayer, problems: [problem] };
}

function combine(layers: readonly Layer[]): Layer {
  return {
    leaves: layers.flatMap((layer) => layer.leaves),
    problems: layers.flatMap((layer) => layer.problems),
    notices: layers.flatMap((layer) => layer.notices),
  };
}

type ParsedText = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly reason: string };

const truths = new Map([
  ['true', true],
  ['1', true],
  ['yes', true],
  ['on', true],
  ['false', false],
  ['0', false],
  ['no', false],
  ['off', false],
]);

/** Parses a text of the environment or of `--set` by the type of its key; lists and objects are JSON. `reason` follows
 * the name of the key or variable in a sentence. */
export function parseText(text: string, key: SettingKey): ParsedText {
  const value = typed(text, key);
  if (value === undefined) {
    const wanted = `${expected(key.node)}${isStructure(key) ? ' in JSON' : ''}`;
    return { ok: false, reason: `must be ${wanted}, not ${maskText(JSON.stringify(text.slice(0, 60)))}` };
  }
  const [issue] = checkSetting(value, key.path);
  if (!issue) return { ok: true, value };
  const inside = issue.path.slice(key.path.length).join('.');
  return {
    ok: false,
    reason:
      inside === ''
        ? issue.reason
        : `: ${inside} ${issue.reason}${issue.nearest === null ? '' : ` (did you mean "${issue.nearest}"?)`}`,
  };
}

function typed(text: string, key: SettingKey): unknown {
  const { anyOf } = key.node;
  if (anyOf) return anyOf.map((node) => typed(text, { ...key, node })).find((value) => value !== undefined);
  switch (key.node.type) {
    case 'integer':
    case 'number':
      return /^-?(?:\d+|\d*\.\d+)$/.test(text.trim()) ? Number(text) : undefined;
    case 'boolean':
      return truths.get(text.trim().toLowerCase());
    case 'array':
      return isNames(key.node) && !text.trim().startsWith('[') ? splitList(text) : json(text);
    case 'object':
      return json(text);
    default:
      return text;
  }
}

function isStructure({ node }: SettingKey): boolean {
  return (node.type === 'array' && !isNames(node)) || node.type === 'object';
}

/** True for a list of known names, which is written `web,tasks`. */
function isNames({ items }: SchemaNode): boolean {
  return items?.enum !== undefined;
}

function splitList(text: string): readonly string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

function json(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
