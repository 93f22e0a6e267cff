import { editDistance, nearestName } from '../core/text.js';
import { checkValue, unknownKey } from './check.js';
import { knownVariables, resolveKey, resolveVariable } from './key.js';
import { leavesOf, type Leaf, type Origin } from './merge.js';
import { parseText } from './parse-text.js';
import type { Environment } from './paths.js';
import { issueProblem, textProblem, type ConfigNotice, type ConfigProblem } from './problem.js';
import { configSchema, isSection } from './schema.js';
import { isRecord } from '../core/json.js';

/** Settings that were read, what was wrong with the others, and what is worth saying. */
export interface Layer {
  readonly leaves: readonly Leaf[];
  readonly problems: readonly ConfigProblem[];
  readonly notices: readonly ConfigNotice[];
}

export const emptyLayer: Layer = { leaves: [], problems: [], notices: [] };
const notKeys = new Set(['AGENT_HOME', 'AGENT_DEBUG', 'AGENT_PLAIN']);
/** Azure Pipelines gives its jobs variables of the same prefix. Source: its documentation, "Use predefined
 * variables". */
const foreign =
  /^AGENT_(?:BUILDDIRECTORY|CONTAINERMAPPING|DISABLELOGPLUGIN.*|HOMEDIRECTORY|ID|JOBNAME|JOBSTATUS|MACHINENAME|NAME|OS|OSARCHITECTURE|PROXY.*|RETAINDEFAULTENCODING|ROOTDIRECTORY|SERVEROMDIRECTORY|TEMPDIRECTORY|TOOLSDIRECTORY|VERSION|WORKFOLDER)$/;

/** The settings of the environment: `AGENT_A_B` is `a.b`. An empty variable counts as unset, one that names no setting
 * is passed over with a notice, which names the one that was probably meant. */
export function environmentLayer(env: Environment): Layer {
  const names = Object.keys(env)
    .filter((name) => name.startsWith('AGENT_') && !notKeys.has(name) && !foreign.test(name) && env[name] !== '')
    .sort();
  const stray = names.filter((variable) => resolveVariable(variable) === null);
  return combine([
    ...names.map((variable) => {
      const key = resolveVariable(variable);
      return key ? textLayer(env[variable] ?? '', key, variable, { kind: 'environment', variable }) : emptyLayer;
    }),
    strayVariables(stray),
  ]);
}

/** The settings of `--set key=value`; the last of one key counts. */
export function setLayer(pairs: readonly string[]): Layer {
  return combine(
    pairs.map((pair) => {
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
  );
}

/** The settings of options with names of their own, by key; already typed. Undefined counts as not given. */
export function flagLayer(flags: Readonly<Record<string, unknown>>): Layer {
  return combine(
    Object.entries(flags)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => {
        const where = `--${name.replaceAll(/[._]/g, '-').replace(/-usd$/, '')}`;
        const key = resolveKey(name);
        if (!key) return refused(unknownKeyProblem(name, where));
        const issue = checkValue(value, key.node, key.path)[0];
        if (issue) return refused(textProblem(where, issue.path, issue.reason));
        return { ...emptyLayer, leaves: [{ path: key.path, value, origin: { kind: 'flag' } }] };
      }),
  );
}

/** The problem of a key that does not exist, as `where` gave it. */
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

/** Other programs may have variables of this prefix: no error. */
function strayVariables(variables: readonly string[]): Layer {
  const near = variables.flatMap((variable) => {
    const meant = meantVariable(variable);
    return meant === null
      ? []
      : [{ variable, message: `The variable ${variable} sets nothing; did you mean ${meant}?` }];
  });
  const others = variables.filter((variable) => !near.some((item) => item.variable === variable));
  const messages = near.map(({ message }) => message);
  if (others.length > 0)
    messages.push(
      `${others.length === 1 ? 'The variable' : 'The variables'} ${others.join(', ')} ${others.length === 1 ? 'sets' : 'set'} nothing here.`,
    );
  return { ...emptyLayer, notices: messages.map((message) => ({ code: 'config_variable', message })) };
}

/** The variable of a setting that is a slip away, or whose last words are nearly these. */
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
