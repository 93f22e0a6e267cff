import { checkValue } from './check.js';
import { leavesOf, overlaps, valueAt, type Leaf, type Values } from './merge.js';
import { keyText } from './schema.js';

/** What an untrusted project may say, and what of it does not count. */
export interface Restricted {
  readonly accepted: readonly Leaf[];
  readonly ignored: readonly { readonly key: string; readonly reason: string }[];
  /** Those of the ignored that would count if the directory were trusted. */
  readonly wanted: readonly Leaf[];
}

/** `keep` gives the value that counts; undefined refuses it. Values have passed the schema. */
type Rule = (value: unknown, current: unknown, base: Values, path: readonly string[]) => unknown;

/** A project's settings cut to what tightens policy over `base` (the settings without it) or chooses a model by name.
 * Numbers may only fall, switches only close, lists of what is refused only grow. Source: contracts 2, last
 * paragraph. */
export function restrictProjectConfig(values: Values, base: Values, file: string): Restricted {
  const issues = checkValue(values);
  const sound = leavesOf(values, { kind: 'project', file }).filter(
    (leaf) => !issues.some((issue) => overlaps(leaf.path, issue.path)),
  );
  const ignored = issues.map((issue) => ({ key: keyText(issue.path), reason: issue.reason }));
  const accepted: Leaf[] = [];
  const wanted: Leaf[] = [];
  for (const leaf of sound) {
    const current = valueAt(base, leaf.path);
    const kept = ruleFor(leaf.path)(leaf.value, current, base, leaf.path);
    if (kept !== undefined) accepted.push({ ...leaf, value: kept });
    else if (JSON.stringify(leaf.value) !== JSON.stringify(current)) {
      const own = isUsersAlone(leaf.path);
      ignored.push({
        key: keyText(leaf.path),
        reason: own ? 'is taken from your own settings alone' : 'needs your trust in this directory',
      });
      if (!own) wanted.push(leaf);
    }
  }
  return { accepted, ignored, wanted };
}

/** Where requests and keys go is the user's to say, whatever directory is trusted: a repository that changes names a
 * host gets the key. Source: security 1.1, row 2. */
export function isUsersAlone(path: readonly string[]): boolean {
  return path[0] === 'base_url' || path[0] === 'providers' || keyText(path) === 'http.allow_insecure';
}

const byKey: Readonly<Record<string, Rule>> = {
  model: named,
  provider: named,
  approval: stricter(['never', 'dangerous', 'mutating', 'always']),
  sandbox: stricter(['off', 'workspace', 'read-only']),
  'tools.fs': only(false),
  'tools.exec': only(false),
  'tools.confirm': only(true),
  'rules.ask': added,
  'rules.deny': added,
  'fs.deny': (value, current) =>
    added(
      (value as readonly string[]).filter((glob) => !glob.startsWith('!')),
      current,
    ),
};
const smallerNumbers = new Set([
  'max_tool_turns',
  'max_tool_calls',
  'max_output_size',
  'model_output_size',
  'max_output_tokens',
  'max_cost_usd',
  'exec.timeout_s',
  'exec.max_timeout_s',
  'fs.max_size',
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

/** The embedded provider plays scripts: a model of its is a file of tool calls, not a name. */
function named(value: unknown): unknown {
  return typeof value === 'string' &&
    /^[\w~@][\w./:@~+-]*$/.test(value) &&
    !/^offline(?:\/|$)|\.json$|\.\./i.test(value)
    ? value
    : undefined;
}

function stricter(order: readonly string[]): Rule {
  return (value, current) => (order.indexOf(String(value)) > order.indexOf(String(current)) ? value : undefined);
}

function only(wanted: boolean): Rule {
  return (value) => (value === wanted ? value : undefined);
}

function smaller(value: unknown, current: unknown): unknown {
  return typeof current !== 'number' || Number(value) < current ? value : undefined;
}

/** A tool without a limit of its own stands under the general one. */
function toolLimit(value: unknown, current: unknown, base: Values, path: readonly string[]): unknown {
  if (path[3] === 'max_output_bytes') return smaller(value, current ?? valueAt(base, ['max_output_size']));
  if (path[3] === 'timeout_ms') return smaller(value, current ?? Number(valueAt(base, ['exec', 'timeout_s'])) * 1000);
  return smaller(value, current);
}

function added(value: unknown, current: unknown): unknown {
  return [...(Array.isArray(current) ? (current as readonly unknown[]) : []), ...(value as readonly unknown[])];
}
