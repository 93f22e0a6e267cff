import { type Origin, valueAt } from '../../config/layers.js';
import type { LoadedConfig } from '../../config/load.js';
import { knownKeys, maskValue, resolveKey } from '../../config/settings-schema.js';
import type { Json } from '../../core/json.js';

/** One row of `agent config show --json`. `source`: the file or variable, or null. A key without a value has null. */
export interface ConfigRow {
  readonly key: string;
  readonly value: Json;
  readonly origin: Origin['kind'];
  readonly source: string | null;
}

/** Every key with a fixed name, and every other one that has a value, in the order of the schema. Secrets are
 * masked. */
export function configRows({ values, origins }: Pick<LoadedConfig, 'values' | 'origins'>): readonly ConfigRow[] {
  const known = knownKeys();
  const fixed = known.filter((key) => !key.includes('<') && !known.some((other) => other.startsWith(`${key}.`)));
  const added = Object.keys(origins).filter((key) => !fixed.includes(key));
  return [...fixed, ...added].map((key) => {
    const origin = origins[key] ?? { kind: 'default' };
    const path = resolveKey(key)?.path ?? [key];
    return {
      key,
      value: maskValue(valueAt(values, path) ?? null, path),
      origin: origin.kind,
      source: sourceOf(origin),
    };
  });
}

/** Where a value came from, in words. */
export function originText(row: ConfigRow): string {
  if (row.value === null) return 'not set';
  switch (row.origin) {
    case 'default':
      return 'default';
    case 'user':
    case 'project':
      return `${row.origin} file ${row.source ?? ''}`;
    case 'environment':
      return row.source ?? '';
    case 'set':
      return '--set';
    case 'flag':
      return 'option';
    default:
      return row.origin satisfies never;
  }
}

function sourceOf(origin: Origin): string | null {
  switch (origin.kind) {
    case 'user':
    case 'project':
      return origin.file;
    case 'environment':
      return origin.variable;
    case 'default':
    case 'set':
    case 'flag':
      return null;
    default:
      return origin satisfies never;
  }
}
