import { parseJson } from '../../kernel/core/json.js';
import { createHash } from 'node:crypto';
import { isRecord, jsonDepth, type Json, type JsonSchema } from '../../kernel/core/json.js';
import { headBytes, replaceUnseen, utf8Bytes } from '../../kernel/core/text.js';

/** A tool of a server, made safe to show to the user and the model. */
export interface ForeignTool {
  /** `mcp__<server>__<tool>`: the name that a model gives. */
  readonly name: string;
  readonly server: string;
  /** The file of the project that names the server; null for a server of the user. */
  readonly project: string | null;
  /** The name that the server gives it. */
  readonly ownName: string;
  readonly description: string;
  readonly schema: JsonSchema;
  /** Of its name, description and schema, as the server sent them. */
  readonly sha256: string;
  /** The server says that it destroys something. That it does not is believed of no server. */
  readonly destroys: boolean;
}

/** A tool before all names are known. */
export type NamelessTool = Omit<ForeignTool, 'name'>;

const maxNameChars = 64;
const maxDescriptionBytes = 2048;
const maxSchemaBytes = 64 * 1024;
const maxSchemaDepth = 32;

/** Reads a tool as its server lists it. A text says why it is left out. */
export function readTool(server: string, listed: unknown): Omit<NamelessTool, 'project'> | string {
  if (!isRecord(listed) || typeof listed['name'] !== 'string') return 'a tool without a name';
  const { name: ownName, description = '', inputSchema, annotations } = listed;
  const shown = JSON.stringify(visible(ownName).slice(0, 64));
  const text = JSON.stringify(inputSchema) as string | undefined;
  if (text === undefined || !isRecord(inputSchema) || inputSchema['type'] !== 'object')
    return `${shown}: its input schema is not an object`;
  if (utf8Bytes(text) > maxSchemaBytes) return `${shown}: its input schema has more than 64 KiB`;
  if (jsonDepth(text, maxSchemaDepth) > maxSchemaDepth) return `${shown}: its input schema is nested too deeply`;
  if (/"\$(?:ref|dynamicRef)":"(?!#)/.test(text)) return `${shown}: its input schema refers to another document`;
  return {
    server,
    ownName,
    description: headBytes(visible(typeof description === 'string' ? description : ''), maxDescriptionBytes),
    schema: visibleDeep(parseJson(text)) as JsonSchema,
    sha256: createHash('sha256')
      .update(JSON.stringify([ownName, description, inputSchema]))
      .digest('hex'),
    destroys: isRecord(annotations) && annotations['destructiveHint'] === true,
  };
}

/** Names all tools. Names that are too long, or the same for two tools, end in a hash; the order does not matter. */
export function namedTools(tools: readonly NamelessTool[]): readonly ForeignTool[] {
  const plain = tools.map(({ server, ownName }) => `mcp__${server}__${ownName}`.replaceAll(/[^A-Za-z0-9_-]/g, '_'));
  const count = new Map<string, number>();
  for (const name of plain) count.set(name, (count.get(name) ?? 0) + 1);
  return tools.map((tool, index) => {
    const name = plain[index] ?? '';
    if (name.length <= maxNameChars && count.get(name) === 1) return { ...tool, name };
    const hash = createHash('sha256').update(`${tool.server}\0${tool.ownName}`).digest('hex').slice(0, 6);
    return { ...tool, name: `${name.slice(0, maxNameChars - 7)}_${hash}` };
  });
}

const maps = new Set(['properties', '$defs', 'definitions', 'dependentSchemas']);
const values = new Set(['enum', 'const', 'default', 'examples']);
/** Patterns of a stranger can take for ever; the others would make the compiler look for a document. */
const dropped = new Set(['pattern', 'patternProperties', 'format', '$schema', '$id']);

/** Returns the schema without what is not checked here. */
export function checkedSchema(schema: JsonSchema): JsonSchema {
  const open = Object.hasOwn(schema, 'patternProperties');
  const kept = Object.entries(schema).filter(
    ([key]) => !dropped.has(key) && !(open && (key === 'additionalProperties' || key === 'unevaluatedProperties')),
  );
  return Object.fromEntries(
    kept.map(([key, value]) => {
      if (values.has(key)) return [key, value];
      if (maps.has(key) && isRecord(value))
        return [key, Object.fromEntries(Object.entries(value).map(([name, node]) => [name, within(node)]))];
      return [key, within(value)];
    }),
  );
}

function within(node: Json): Json {
  if (Array.isArray(node)) return node.map((item: Json) => within(item));
  return isRecord(node) ? checkedSchema(node) : node;
}

/** Takes out what nobody sees; lines and tabs stay. */
export function visible(text: string): string {
  return replaceUnseen(text.toWellFormed(), (char) => (/[\n\r\t]/.test(char) ? char : ''));
}

function visibleDeep(value: unknown): unknown {
  if (typeof value === 'string') return visible(value);
  if (Array.isArray(value)) return value.map(visibleDeep);
  return isRecord(value)
    ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, visibleDeep(item)]))
    : value;
}
