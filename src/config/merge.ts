import { isRecord } from '../core/json.js';
import { childNode, configSchema, isSection, keyText, type KeyPath, type SchemaNode } from './schema.js';

/** Where the value of a key came from. */
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

/** The settings inside `values`, in order; keys the schema does not know are left out. */
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
    if (isSection(child) && isRecord(value)) return leavesOf(value, origin, child, here);
    return [{ path: here, value, origin }];
  });
}

/** One tree of the values of all leaves, the later ones winning, and the origin of each key in it. */
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

/** True where one of two paths begins with the other. */
export function overlaps(one: KeyPath, other: KeyPath): boolean {
  return one.slice(0, other.length).every((key, index) => key === other[index]);
}
