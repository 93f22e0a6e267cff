import { editDistance, nearestName } from '../core/nearest.js';
import { checkValue, unknownKey } from './check.js';
import { knownVariables, resolveKey, resolveVariable } from './key.js';
import { leavesOf, type Leaf, type Origin } from './merge.js';
import { parseText } from './parse-text.js';
import type { Environment } from './paths.js';
import { issueProblem, textProblem, type ConfigNotice, type ConfigProblem } from './problem.js';
import { configSchema, isSection } from './schema.js';
import { isRecord } from '../core/json.js';

/** Settings that were read, what was wrong with the others, and what is worth saying. */
export interface Layer { readonly leaves: readonly Leaf[]; readonly problems: readonly ConfigProblem[]; readonly notices: readonly ConfigNotice[] }

export const emptyLayer: Layer = { leaves: [], problems: [], notices: [] };
const notKeys = new Set(['AGENT_HOME', 'AGENT_DEBUG']);

/** The settings of the environment: `AGENT_A_B` is `a.b`. An empty variable counts as unset, one that names no setting is passed over,
 *  with a notice where it is one slip away from one that does. */
export function environmentLayer(env: Environment): Layer {
  const names = Object.keys(env).filter((name) => name.startsWith('AGENT_') && !notKeys.has(name) && env[name] !== '');
  return combine(names.sort().map((variable) => {
    const key = resolveVariable(variable);
    return key ? textLayer(env[variable] ?? '', key, variable, { kind: 'environment', variable }) : strayVariable(variable);
  }));
}

/** The settings of `--set key=value`; the last of one key counts. */
export function setLayer(pairs: readonly string[]): Layer {
  return combine(pairs.map((pair) => {
    const at = pair.indexOf('=');
    if (at < 1) return refused({ message: `--set ${JSON.stringify(pair)} is not key=value`, hint: 'Write for example --set max_tool_turns=10.', key: pair, where: '--set' });
    const name = pair.slice(0, at).trim();
    const key = resolveKey(name);
    return key ? textLayer(pair.slice(at + 1), key, `--set ${name}`, { kind: 'set' }) : refused(unknownKeyProblem(name, '--set'));
  }));
}

/** The settings of options with names of their own, by key; already typed. Undefined counts as not given. */
export function flagLayer(flags: Readonly<Record<string, unknown>>): Layer {
  return combine(Object.entries(flags).filter(([, value]) => value !== undefined).map(([name, value]) => {
    const where = `--${name.replaceAll(/[._]/g, '-').replace(/-usd$/, '')}`;
    const key = resolveKey(name);
    if (!key) return refused(unknownKeyProblem(name, where));
    const issue = checkValue(value, key.node, key.path)[0];
    if (issue) return refused(textProblem(where, issue.path, issue.reason));
    return { ...emptyLayer, leaves: [{ path: key.path, value, origin: { kind: 'flag' } }] };
  }));
}

/** The problem of a key that does not exist, as `where` gave it. */
export function unknownKeyProblem(name: string, where: string): ConfigProblem {
  const path = name.split('.');
  const parent = path.length > 1 ? resolveKey(path.slice(0, -1).join('.'))?.node : configSchema;
  return { ...issueProblem(where, unknownKey(path, parent ?? configSchema)), where };
}

function textLayer(text: string, key: NonNullable<ReturnType<typeof resolveKey>>, where: string, origin: Origin): Layer {
  const parsed = parseText(text, key);
  if (!parsed.ok) return refused(textProblem(where, key.path, parsed.reason));
  const { value } = parsed;
  const leaves = isSection(key.node) && isRecord(value) ? leavesOf(value, origin, key.node, key.path) : [{ path: key.path, value, origin }];
  return { ...emptyLayer, leaves };
}

function strayVariable(variable: string): Layer {
  const meant = nearestName(variable, knownVariables());
  if (meant === null || editDistance(variable, meant) > 2) return emptyLayer;
  return { ...emptyLayer, notices: [{ code: 'config_variable', message: `The variable ${variable} sets nothing; did you mean ${meant}?` }] };
}

function refused(problem: ConfigProblem): Layer {
  return { ...emptyLayer, problems: [problem] };
}

function combine(layers: readonly Layer[]): Layer {
  return { leaves: layers.flatMap((layer) => layer.leaves), problems: layers.flatMap((layer) => layer.problems), notices: layers.flatMap((layer) => layer.notices) };
}
