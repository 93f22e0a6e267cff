import document from '../../../config/config.schema.json' with { type: 'json' };
import { isRecord, type Json } from '../core/json.js';
import { createSecretScanner, type FoundSecret, secretForms, type SecretScanner } from '../core/secrets/scanner.js';
import { nearestName } from '../core/text.js';

/** The part of JSON Schema that `config/config.schema.json` uses. */
export interface SchemaNode {
  readonly $ref?: string;
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly anyOf?: readonly SchemaNode[];
  readonly minLength?: number;
  readonly minItems?: number;
  readonly minProperties?: number;
  readonly required?: readonly string[];
  readonly pattern?: string;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly additionalProperties?: boolean | SchemaNode;
  readonly propertyNames?: { readonly pattern: string };
  readonly items?: SchemaNode;
}

/** A key as its segments: `tools.limits.bash` is `['tools', 'limits', 'bash']`. Numbers are positions in a list. */
export type KeyPath = readonly (string | number)[];

/** The schema of the settings. It has a switch for each set of tools (`tools.web`), also for sets of features that this
 * program was built without. */
export const configSchema: SchemaNode = document;

/** The names of the sets of tools that the settings can switch. */
export const toolsetNames = Object.entries<SchemaNode>(document.properties.tools.properties).flatMap(([name, node]) =>
  node.type === 'boolean' && name !== 'confirm' ? [name] : [],
);

const definitions: Readonly<Record<string, SchemaNode>> = document.definitions;

/** Returns the node at `key` below `node`, or null when no such key is allowed. */
export function childNode(node: SchemaNode, key: string | number): SchemaNode | null {
  if (typeof key === 'number') return node.items ? follow(node.items) : null;
  if (node.properties && Object.hasOwn(node.properties, key)) return follow(node.properties[key] ?? {});
  if (typeof node.additionalProperties !== 'object') return null;
  if (node.propertyNames && !new RegExp(node.propertyNames.pattern, 'u').test(key)) return null;
  return follow(node.additionalProperties);
}

function follow(node: SchemaNode): SchemaNode {
  return node.$ref === undefined ? node : (definitions[node.$ref.slice('#/definitions/'.length)] ?? {});
}

/** True for a node whose keys are separate settings. Everything else (values, lists, objects that are open or have
 * required keys) is replaced as a whole. */
export function isSection(node: SchemaNode): boolean {
  if (node.required !== undefined) return false;
  return node.properties !== undefined || typeof node.additionalProperties === 'object';
}

/** Returns every key as text; `<name>` is a placeholder for a name that the user chooses. */
export function knownKeys(node: SchemaNode = configSchema, prefix = ''): string[] {
  const named = Object.keys(node.properties ?? {}).filter((key) => key !== '$schema');
  const keys = typeof node.additionalProperties === 'object' ? [...named, '<name>'] : named;
  return keys.flatMap((key) => {
    const child =
      key === '<name>' && typeof node.additionalProperties === 'object'
        ? follow(node.additionalProperties)
        : childNode(node, key);
    const path = `${prefix}${key}`;
    return child && isSection(child) ? [path, ...knownKeys(child, `${path}.`)] : [path];
  });
}

/** Returns the defaults of all settings in the shape of a file. */
export function defaultValues(node: SchemaNode = configSchema): Readonly<Record<string, unknown>> {
  const values = Object.entries(node.properties ?? {}).flatMap(([key, child]) => {
    if (child.default !== undefined) return [[key, child.default] as const];
    const inside = defaultValues(child);
    return Object.keys(inside).length === 0 ? [] : [[key, inside] as const];
  });
  return Object.fromEntries(values);
}

/** The text of a key, as a person writes it. */
export function keyText(path: KeyPath): string {
  return path.join('.');
}

/** A setting with its path and its schema. */
export interface SettingKey {
  readonly path: readonly string[];
  readonly node: SchemaNode;
}

/** Other names of settings. */
const mainKeys: Readonly<Record<string, string>> = { approval_mode: 'approval' };

const mainKey = (key: string): string => (Object.hasOwn(mainKeys, key) ? (mainKeys[key] ?? key) : key);

/** Returns the settings of a file with the main names of its keys. A main name beside another one wins. */
export function withMainKeys(values: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (!Object.keys(mainKeys).some((key) => Object.hasOwn(values, key))) return values;
  const entries = Object.entries(values);
  return Object.fromEntries([
    ...entries.map(([key, value]) => [mainKey(key), value] as const),
    ...entries.filter(([key]) => mainKey(key) === key),
  ]);
}

/** Finds the setting named `text` (`tools.limits.bash.timeout_ms`). Names of the user's choice may hold dots. */
export function resolveKey(
  text: string,
  node: SchemaNode = configSchema,
  path: readonly string[] = [],
): SettingKey | null {
  if (path.length === 0 && mainKey(text) !== text) return resolveKey(mainKey(text), node);
  const ends = [...text.matchAll(/\./g)].map((match) => match.index);
  for (const end of ends) {
    const key = text.slice(0, end);
    const child = childNode(node, key);
    const found = child && isSection(child) ? resolveKey(text.slice(end + 1), child, [...path, key]) : null;
    if (found) return found;
  }
  const child = text === '$schema' ? null : childNode(node, text);
  return child && { path: [...path, text], node: child };
}

/** Finds the setting of an environment variable: `AGENT_TOOLS_FS` is `tools.fs`. Names of the user's choice are lower
 * case there. */
export function resolveVariable(name: string): SettingKey | null {
  if (!name.startsWith(prefix)) return null;
  const words = name.slice(prefix.length);
  const main = mainKey(words.toLowerCase());
  return main === words.toLowerCase() ? matchWords(words, configSchema, []) : resolveKey(main);
}

/** The variables of all settings that have a fixed name. */
export function knownVariables(): string[] {
  return knownKeys()
    .filter((key) => !key.includes('<'))
    .map(variableOf);
}

/** The environment variable of a key: `a.b` is `AGENT_A_B`. */
export function variableOf(key: string): string {
  return prefix + key.toUpperCase().replace(/[^A-Z0-9]/g, '_');
}

const prefix = 'AGENT_';

function matchWords(words: string, node: SchemaNode, path: readonly string[]): SettingKey | null {
  for (const key of Object.keys(node.properties ?? {})) {
    const found = matchKey(words, key, node, path);
    if (found) return found;
  }
  if (typeof node.additionalProperties !== 'object') return null;
  const ends = [...words.matchAll(/_/g)].map((match) => match.index);
  for (const end of [...ends, words.length]) {
    const found = matchKey(words, words.slice(0, end).toLowerCase(), node, path, end === words.length);
    if (found) return found;
  }
  return null;
}

function matchKey(
  words: string,
  key: string,
  node: SchemaNode,
  path: readonly string[],
  whole = true,
): SettingKey | null {
  const child = childNode(node, key);
  if (!child) return null;
  const upper = key.toUpperCase();
  if (whole && words === upper) return { path: [...path, key], node: child };
  return isSection(child) && words.startsWith(`${upper}_`)
    ? matchWords(words.slice(upper.length + 1), child, [...path, key])
    : null;
}

/** A problem with the value at `path`. */
export interface Issue {
  readonly path: KeyPath;
  /** Follows the key's name in a sentence: `must be an integer of at least 1, not "x"`. */
  readonly reason: string;
  /** True: the key itself is not known. */
  readonly unknown: boolean;
  readonly nearest: string | null;
}

/** Makes the issue of a key that does not exist. It names the nearest valid key. */
export function unknownKey(path: KeyPath, parent: SchemaNode = configSchema): Issue {
  const name = String(path.at(-1) ?? '');
  const sibling = nearestName(name, Object.keys(parent.properties ?? {}));
  const meant = sibling === null ? nearestKey(path) : keyText([...path.slice(0, -1), sibling]);
  return { path, reason: 'is not a setting', unknown: true, nearest: meant };
}

/** Finds the nearest whole key, else a key elsewhere whose last word is nearly this one's. */
function nearestKey(path: KeyPath): string | null {
  const keys = knownKeys().filter((key) => !key.includes('<') && !keyText(path).startsWith(`${key}.`));
  const whole = nearestName(keyText(path), keys);
  if (whole !== null) return whole;
  const lastWords = new Map(keys.toReversed().map((key) => [key.slice(key.lastIndexOf('.') + 1), key]));
  const meant = nearestName(String(path.at(-1) ?? ''), [...lastWords.keys()]);
  return meant === null ? null : (lastWords.get(meant) ?? null);
}

/** Says in words which values a node takes. */
export function expected(node: SchemaNode, value?: unknown): string {
  if (node.anyOf) return node.anyOf.map((one) => expected(one, value).replace('one of ', '')).join(' or ');
  if (node.enum) {
    const meant = typeof value === 'string' ? nearestName(value, node.enum) : null;
    return `one of ${node.enum.join(', ')}${meant === null ? '' : ` (did you mean "${meant}"?)`}`;
  }
  switch (node.type) {
    case 'integer':
    case 'number':
      return `${node.type === 'integer' ? 'an integer' : 'a number'}${rangeOf(node)}`;
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

function rangeOf({ minimum, maximum }: SchemaNode): string {
  if (minimum !== undefined && maximum !== undefined) return ` from ${minimum} to ${maximum}`;
  return minimum === undefined ? '' : ` of at least ${minimum}`;
}

function object(node: SchemaNode): string {
  if (node.required) return `an object with ${node.required.join(', ')}`;
  return node.minProperties === undefined ? 'an object' : 'an object with at least one key';
}

function text(node: SchemaNode): string {
  if (node.pattern !== undefined) return `a string that matches ${node.pattern}`;
  return node.minLength === undefined ? 'a string' : 'a string that is not empty';
}

const keyForm = /\b(?:sk|pk|rk|xai|gsk|ghp|gho|ghs|github_pat|glpat|AIza|hf|xox[a-z])[-_]?[A-Za-z0-9_-]{12,}/g;
const webToken = /\beyJ[\w-]{10,}\.[\w.-]+/g;
const userInfo = /(:\/\/[^\s/@:]*:)[^\s/@]+@/g;
const authorization = /\b(bearer|basic)\s+[\w.~+/=-]{8,}/gi;
const secretName = /authorization|cookie|secret|token$|password|passwd|api[-_]?key|^key$/i;

let scanner: SecretScanner | null = null;

function secretsIn(text: string): readonly FoundSecret[] {
  scanner ??= createSecretScanner(secretForms());
  return scanner.scan(text).found;
}

/** Replaces by `***` everything that looks like a key, a password in an address or a credential header. */
export function maskText(text: string): string {
  const masked = secretsIn(text).toReversed();
  return masked
    .reduce((shown, { start, end }) => `${shown.slice(0, start)}***${shown.slice(end)}`, text)
    .replace(keyForm, '***')
    .replace(webToken, '***')
    .replace(userInfo, '$1***@')
    .replace(authorization, '$1 ***');
}

/** Masks a setting for the screen: values of headers and of names that suggest a secret are replaced whole, other texts
 * are searched. */
export function maskValue(value: unknown, path: KeyPath): Json {
  if (typeof value === 'string') return isSecret(path) ? '***' : maskText(value);
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: unknown, index) => maskValue(item, [...path, index]));
  if (!isRecord(value)) return null;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, maskValue(item, [...path, key])]));
}

/** Settings that are used verbatim and may need a secret: addresses, headers, commands, variables. */
const takesSecrets = /(?:^|_)(?:url|endpoint|headers|command|hooks|env)$/;

/** Returns the first secret, as JSON writes it, where no setting needs one; null where there is none. The words of a
 * command are looked at together: an option shows that the next word is a secret. */
export function misplacedSecret(
  value: unknown,
  path: KeyPath,
): { readonly path: KeyPath; readonly secret: string } | null {
  if (isSecret(path) || path.some((key) => takesSecrets.test(String(key)))) return null;
  if (typeof value === 'string' || (Array.isArray(value) && value.every((item) => typeof item === 'string'))) {
    const text = JSON.stringify(value);
    const [found] = secretsIn(text);
    return found ? { path, secret: text.slice(found.start, found.end) } : null;
  }
  if (!Array.isArray(value) && !isRecord(value)) return null;
  for (const [key, item] of Object.entries(value)) {
    const found = misplacedSecret(item, [...path, key]);
    if (found) return found;
  }
  return null;
}

function isSecret(path: KeyPath): boolean {
  return path.at(-2) === 'headers' || secretName.test(String(path.at(-1) ?? ''));
}
