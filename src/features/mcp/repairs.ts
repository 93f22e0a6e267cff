import { addAll } from '../../kernel/core/lists.js';
import { isRecord } from '../../kernel/core/json.js';

/** The finding of a schema of the SDK about a value. */
export interface SchemaIssue {
  readonly code?: string;
  readonly path: readonly PropertyKey[];
  readonly message: string;
  /** Of each form that the value could have had. */
  readonly errors?: readonly (readonly SchemaIssue[])[];
}

const maxRounds = 16;
const removed = Symbol('removed');

type Container = Record<PropertyKey, unknown>;

/** Takes fields of the wrong type out of a JSON object that the caller owns, until the schema accepts it: an optional
 * field alone, a required one with the object that needs it. `onEntry` is called for removed entries of the lists at
 * the top. Returns null, or a sentence if the object as a whole cannot be used. */
export function repairFields(
  value: Record<string, unknown>,
  issuesOf: (value: unknown) => readonly SchemaIssue[],
  onEntry: (list: string, entry: unknown, problem: string) => void,
): string | null {
  /** The first problem of a field or an entry: later issues only follow from its removal. */
  const causes = new Map<string, SchemaIssue>();
  for (let round = 0; round < maxRounds; round++) {
    const issues = issuesOf(value).flatMap(plainIssues);
    if (issues.length === 0) return null;
    const lists = new Set<unknown[]>();
    for (const issue of issues) {
      const top = issue.path.slice(0, 2);
      const cause = causes.get(top.join('.')) ?? issue;
      causes.set(top.join('.'), cause);
      const gone = remove(value, issue.path, lists);
      if (gone === null) return sentenceOf(cause, 0);
      const [list, index] = gone.path;
      if (typeof index === 'number' && gone.path.length === 2) onEntry(String(list), gone.value, sentenceOf(cause, 2));
    }
    for (const list of lists) {
      const kept = list.filter((item) => item !== removed);
      list.length = 0;
      addAll(list, kept);
    }
  }
  return 'its form is unknown';
}

/** `from`: how much of the path is named already. */
function sentenceOf({ path, message }: SchemaIssue, from: number): string {
  const words = message.replace(/^Invalid (?:input|option): /, '').replace(/^.*received undefined$/, 'is missing');
  const field = path.slice(from).join('.');
  return field === '' ? words : `${field}: ${words}`;
}

/** Chooses the form that the value was meant to have: the one whose `type` it has, else the one that misses least. */
function plainIssues(issue: SchemaIssue): readonly SchemaIssue[] {
  if (issue.code !== 'invalid_union' || !issue.errors?.length) return [issue];
  const forms = issue.errors.map((form) => form.flatMap(plainIssues));
  const typed = forms.filter((form) => !form.some(({ path }) => path.length === 1 && path[0] === 'type'));
  const [best = []] = (typed.length > 0 ? typed : forms).toSorted((a, b) => a.length - b.length);
  return best.map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] }));
}

/** Removes what is at the path, or the object that lacks it. Null: that would be the whole value. */
function remove(
  root: Container,
  path: readonly PropertyKey[],
  lists: Set<unknown[]>,
): { readonly path: readonly PropertyKey[]; readonly value: unknown } | null {
  for (let length = path.length; length > 0; length--) {
    const owner = at(root, path.slice(0, length - 1));
    const key = path[length - 1] ?? '';
    if (Array.isArray(owner)) {
      const index = Number(key);
      const value: unknown = owner[index];
      owner[index] = removed;
      lists.add(owner);
      return { path: value === removed ? [] : path.slice(0, length), value };
    }
    if (isRecord(owner) && owner[String(key)] !== undefined) {
      const value = owner[String(key)];
      delete (owner as Container)[key];
      return { path: path.slice(0, length), value };
    }
    if (owner === removed) return { path: [], value: null };
  }
  return null;
}

function at(root: unknown, path: readonly PropertyKey[]): unknown {
  let value = root;
  for (const key of path) {
    if (value === removed) return removed;
    value = typeof value === 'object' && value !== null ? (value as Container)[key] : undefined;
  }
  return value;
}

/** Gives the arguments of a tool the form that the protocol wants where they have one meaning. Returns a sentence where
 * they have none. */
export function repairTool(entry: unknown): Readonly<Record<string, unknown>> | string {
  if (!isRecord(entry)) return 'it is not an object';
  if (typeof entry['name'] !== 'string' || entry['name'] === '') return 'it has no name';
  // What a server says of its results is checked by nobody: its schemas are a stranger's.
  const { outputSchema: _unused, inputSchema: given, ...tool } = entry;
  const isAbsent = given === undefined || given === null || given === true || isEmptyList(given);
  const inputSchema = isAbsent ? { type: 'object' } : objectSchema(given);
  return inputSchema === null ? 'its input schema is not an object' : { ...tool, inputSchema };
}

function objectSchema(given: unknown): Readonly<Record<string, unknown>> | null {
  if (!isRecord(given)) return null;
  const { type = null, properties, required, ...others } = given;
  if (type !== null && ![type].flat().includes('object')) return null;
  // The order of the fields counts for those who compare tools with what they saw before.
  return {
    type: 'object',
    ...(isRecord(properties) ? { properties: propertiesIn(properties) } : {}),
    ...(Array.isArray(required) ? { required: required.filter((name) => typeof name === 'string') } : {}),
    ...Object.fromEntries(
      Object.entries(others).filter(([name, value]) => name !== '$schema' || typeof value === 'string'),
    ),
  };
}

/** Replaces invalid schemas of arguments by schemas that accept every value. */
function propertiesIn(properties: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const schemas = Object.entries(properties).filter(([name, schema]) => name !== 'required' || !Array.isArray(schema));
  return Object.fromEntries(
    schemas.map(([name, schema]) => [name, isRecord(schema) || typeof schema === 'boolean' ? schema : {}]),
  );
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}
