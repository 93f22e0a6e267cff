import { isRecord } from '../core/json.js';
import { nearestName } from '../core/text.js';
import { maskText } from './mask.js';
import { childNode, configSchema, keyText, knownKeys, type KeyPath, type SchemaNode } from './schema.js';

/** One thing wrong with a value. `path` is the key it stands at. */
export interface Issue {
  readonly path: KeyPath;
  /** Follows the key's name in a sentence: `must be an integer of at least 1, not "x"`. */
  readonly reason: string;
  /** True: the key itself is not known. */
  readonly unknown: boolean;
  readonly nearest: string | null;
}

/** Everything wrong with `value` by the schema, in the order of the value. Empty where it is valid. Never coerces. */
export function checkValue(value: unknown, node: SchemaNode = configSchema, path: KeyPath = []): readonly Issue[] {
  const reason = wrong(value, node);
  if (reason !== null) return [{ path, reason: `${reason}, not ${shown(value)}`, unknown: false, nearest: null }];
  if (Array.isArray(value) && node.items)
    return value.flatMap((item: unknown, index) => checkValue(item, childNode(node, index) ?? {}, [...path, index]));
  if (!isRecord(value) || (node.properties === undefined && node.additionalProperties === undefined)) return [];
  return Object.entries(value).flatMap(([key, item]) => {
    const child = childNode(node, key);
    return child ? checkValue(item, child, [...path, key]) : [unknownKey([...path, key], node)];
  });
}

/** The issue of a key that does not exist, naming the valid one that was probably meant. */
export function unknownKey(path: KeyPath, parent: SchemaNode = configSchema): Issue {
  const name = String(path.at(-1) ?? '');
  const sibling = nearestName(name, Object.keys(parent.properties ?? {}));
  const meant = sibling === null ? nearestKey(path) : keyText([...path.slice(0, -1), sibling]);
  return { path, reason: 'is not a setting', unknown: true, nearest: meant };
}

/** The whole key, else a key elsewhere whose last word is nearly this one's. */
function nearestKey(path: KeyPath): string | null {
  const keys = knownKeys().filter((key) => !key.includes('<') && !keyText(path).startsWith(`${key}.`));
  const whole = nearestName(keyText(path), keys);
  if (whole !== null) return whole;
  const lastWords = new Map(keys.toReversed().map((key) => [key.slice(key.lastIndexOf('.') + 1), key]));
  const meant = nearestName(String(path.at(-1) ?? ''), [...lastWords.keys()]);
  return meant === null ? null : (lastWords.get(meant) ?? null);
}

function wrong(value: unknown, node: SchemaNode): string | null {
  const fits = node.enum
    ? typeof value === 'string' && node.enum.includes(value)
    : hasType(value, node) && inBounds(value, node);
  return fits ? null : `must be ${expected(node, value)}`;
}

function hasType(value: unknown, node: SchemaNode): boolean {
  switch (node.type) {
    case 'integer':
      return Number.isSafeInteger(value);
    case 'number':
      return typeof value === 'number' && Number.isFinite(value);
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isRecord(value);
    case undefined:
      return true;
    default:
      return typeof value === node.type;
  }
}

function inBounds(value: unknown, node: SchemaNode): boolean {
  if (typeof value === 'number') return value >= (node.minimum ?? -Infinity);
  if (typeof value === 'string')
    return (
      value.length >= (node.minLength ?? 0) && (node.pattern === undefined || new RegExp(node.pattern, 'u').test(value))
    );
  if (Array.isArray(value)) return value.length >= (node.minItems ?? 0);
  if (!isRecord(value)) return true;
  return (
    Object.keys(value).length >= (node.minProperties ?? 0) &&
    (node.required ?? []).every((key) => Object.hasOwn(value, key))
  );
}

/** What a node takes, in words. */
export function expected(node: SchemaNode, value?: unknown): string {
  if (node.enum) {
    const meant = typeof value === 'string' ? nearestName(value, node.enum) : null;
    return `one of ${node.enum.join(', ')}${meant === null ? '' : ` (did you mean "${meant}"?)`}`;
  }
  switch (node.type) {
    case 'integer':
    case 'number':
      return `${node.type === 'integer' ? 'an integer' : 'a number'}${node.minimum === undefined ? '' : ` of at least ${node.minimum}`}`;
    case 'boolean':
      return 'true or false';
    case 'array':
      return 'a list';
    case 'object':
      return object(node);
    default:
      return text(node);
  }
}

function object(node: SchemaNode): string {
  if (node.required) return `an object with ${node.required.join(', ')}`;
  return node.minProperties === undefined ? 'an object' : 'an object with at least one key';
}

function text(node: SchemaNode): string {
  if (node.pattern !== undefined) return `a text that matches ${node.pattern}`;
  return node.minLength === undefined ? 'a text' : 'a text that is not empty';
}

function shown(value: unknown): string {
  const json = JSON.stringify(value) ?? 'nothing';
  return maskText(json.length > 60 ? `${json.slice(0, 59)}…` : json);
}
