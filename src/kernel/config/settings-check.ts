import type { ErrorObject } from 'ajv';
import themeDocument from '../../../config/theme.schema.json' with { type: 'json' };
import { globProblem } from '../core/files/glob-steps.js';
import { isRecord } from '../core/json.js';
import {
  childNode,
  configSchema,
  expected,
  type Issue,
  type KeyPath,
  maskText,
  type SchemaNode,
  unknownKey,
} from './settings-schema.js';
import { settings, theme } from './validators.js';

/** A schema that ajv has compiled. */
interface Validate {
  (value: unknown): boolean;
  errors?: readonly ErrorObject[] | null;
}

/** Finds everything wrong with the settings in `value`, in its order. Empty: they are valid. Never coerces. */
export function checkSettings(value: unknown): readonly Issue[] {
  const issues = issuesOf(settings, configSchema, value);
  const globs = globIssues(value).filter(({ path }) => !issues.some((issue) => isWithin(path, issue.path)));
  return globs.length === 0
    ? issues
    : [...issues, ...globs].toSorted((one, other) => inOrderOf(value, one.path, other.path));
}

const maxGlobs = 1000;

/** Finds globs that cannot be used. */
function globIssues(value: unknown): readonly Issue[] {
  const denied = valueAtPath(value, ['fs', 'deny']);
  const lists = ['allow', 'ask', 'deny'].map((list) => ['rules', list] as const);
  const long = [['fs', 'deny'] as const, ...lists].flatMap((path) => {
    const list = valueAtPath(value, path);
    const count = Array.isArray(list) ? list.length : 0;
    return count > maxGlobs ? [globIssue(path, `has ${count} entries; at most ${maxGlobs}`)] : [];
  });
  if (long.length > 0) return long;
  return [
    ...stringsIn(denied).flatMap((glob, index) => globIssueAt(['fs', 'deny', index], glob)),
    ...lists.flatMap((path) => {
      const list = valueAtPath(value, path);
      const rules: readonly unknown[] = Array.isArray(list) ? list : [];
      return rules.flatMap((rule, index) =>
        isRecord(rule) ? globIssueAt([...path, index, 'path'], rule['path']) : [],
      );
    }),
  ];
}

function stringsIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function globIssueAt(path: KeyPath, glob: unknown): readonly Issue[] {
  const problem = typeof glob === 'string' ? globProblem(glob) : null;
  return problem === null ? [] : [globIssue(path, problem)];
}

function globIssue(path: KeyPath, reason: string): Issue {
  return { path, reason, unknown: false, nearest: null };
}

/** Checks one setting. */
export function checkSetting(value: unknown, path: readonly string[]): readonly Issue[] {
  return checkSettings(path.reduceRight<unknown>((inside, key) => ({ [key]: inside }), value));
}

/** Checks a theme. */
export function checkTheme(value: unknown): readonly Issue[] {
  return issuesOf(theme, themeDocument, value);
}

/** Makes one issue for each key. Issues inside a value that is wrong as a whole are left out. */
function issuesOf(validate: Validate, schema: SchemaNode, value: unknown): readonly Issue[] {
  if (validate(value)) return [];
  const byPath = new Map<string, Issue>();
  for (const error of validate.errors ?? []) {
    const issue = issueOf(error, schema, value);
    const key = JSON.stringify(issue?.path);
    if (issue && (issue.unknown || !byPath.has(key))) byPath.set(key, issue);
  }
  const issues = [...byPath.values()];
  return issues
    .filter(({ path }) => !issues.some((other) => other.path.length < path.length && isWithin(path, other.path)))
    .sort((one, other) => inOrderOf(value, one.path, other.path));
}

/** Returns null for an error that another one explains better. */
function issueOf(error: ErrorObject, schema: SchemaNode, value: unknown): Issue | null {
  const path = pathOf(error.instancePath, value);
  const parent = nodeAt(schema, path);
  const params = error.params as Readonly<Record<string, unknown>>;
  // The rule that a name breaks; the error `propertyNames` of the same name follows.
  if (error.propertyName !== undefined) return null;
  if (error.keyword === 'additionalProperties')
    return unknownKey([...path, String(params['additionalProperty'])], parent);
  if (error.keyword === 'propertyNames') return unknownKey([...path, String(params['propertyName'])], parent);
  const found = valueAtPath(value, path);
  return {
    path,
    reason: `must be ${expected(parent, found)}, not ${formatValue(found)}`,
    unknown: false,
    nearest: null,
  };
}

/** Splits a JSON pointer; positions in lists become numbers. */
function pathOf(pointer: string, value: unknown): KeyPath {
  const path: (string | number)[] = [];
  for (const segment of pointer.split('/').slice(1)) {
    const key = segment.replaceAll('~1', '/').replaceAll('~0', '~');
    path.push(Array.isArray(valueAtPath(value, path)) ? Number(key) : key);
  }
  return path;
}

function valueAtPath(value: unknown, path: KeyPath): unknown {
  return path.reduce<unknown>((at, key) => {
    if (Array.isArray(at)) return (at as readonly unknown[])[Number(key)];
    return isRecord(at) ? at[key] : undefined;
  }, value);
}

function nodeAt(schema: SchemaNode, path: KeyPath): SchemaNode {
  return path.reduce<SchemaNode>((node, key) => childNode(node, key) ?? {}, schema);
}

function isWithin(path: KeyPath, outer: KeyPath): boolean {
  return outer.every((key, index) => key === path[index]);
}

function inOrderOf(value: unknown, one: KeyPath, other: KeyPath): number {
  const at = one.findIndex((key, index) => key !== other[index]);
  const inside = valueAtPath(value, one.slice(0, at));
  const keys = Array.isArray(inside) ? [...inside.keys()] : Object.keys(isRecord(inside) ? inside : {});
  const place = (path: KeyPath): number => (keys as KeyPath).indexOf(path[at] ?? '');
  return place(one) - place(other);
}

function formatValue(value: unknown): string {
  const json = JSON.stringify(value) ?? 'nothing';
  return maskText(json.length > 60 ? `${json.slice(0, 59)}…` : json);
}
