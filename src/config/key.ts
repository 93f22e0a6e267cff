import { childNode, configSchema, isSection, knownKeys, type SchemaNode } from './schema.js';

/** A setting: where it stands and what it takes. */
export interface Key {
  readonly path: readonly string[];
  readonly node: SchemaNode;
}

/** The setting that `text` (`tools.limits.bash.timeout_ms`) names, or null. Names of the user's choice may hold
 * dots. */
export function resolveKey(text: string, node: SchemaNode = configSchema, path: readonly string[] = []): Key | null {
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

/** The setting that an environment variable names, or null: `AGENT_TOOLS_FS` is `tools.fs`. Names of the user's choice
 * are lower case there. */
export function resolveVariable(name: string): Key | null {
  return name.startsWith(prefix) ? matchWords(name.slice(prefix.length), configSchema, []) : null;
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

function matchWords(words: string, node: SchemaNode, path: readonly string[]): Key | null {
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

function matchKey(words: string, key: string, node: SchemaNode, path: readonly string[], whole = true): Key | null {
  const child = childNode(node, key);
  if (!child) return null;
  const upper = key.toUpperCase();
  if (whole && words === upper) return { path: [...path, key], node: child };
  return isSection(child) && words.startsWith(`${upper}_`)
    ? matchWords(words.slice(upper.length + 1), child, [...path, key])
    : null;
}
