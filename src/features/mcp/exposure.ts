import { isRecord, type Json, type JsonSchema } from '../../kernel/core/json.js';
import { utf8Bytes } from '../../kernel/core/text.js';
import type { ConfiguredServer } from './configured-servers.js';
import { checkedSchema, type ForeignTool } from './foreign-tools.js';

const maxAutoBytes = 8000;
/** The JSON around the texts of a tool. */
const frame = JSON.stringify({ name: '', description: '', input_schema: {} });

/** Returns the tools that a new session is given themselves, with the schemas that a model is shown; all others are
 * found by a search. Decides by what is known without connecting to anything. `toolsOf`: null for a server that nobody
 * has asked. */
export function directTools(
  servers: readonly ConfiguredServer[],
  toolsOf: (server: string) => readonly ForeignTool[] | null,
): readonly ForeignTool[] {
  const used = servers.filter(({ enabled, way }) => enabled && way.kind !== 'unusable');
  const given = used.map(({ name, expose }) => ({ expose, tools: toolsOf(name) }));
  const isSmall = fitsWholly(given.filter(({ expose }) => expose === 'auto').map(({ tools }) => tools));
  return given
    .filter(({ expose }) => expose === 'direct' || (expose === 'auto' && isSmall))
    .flatMap(({ tools }) => tools?.map(withAcceptedSchema).filter(({ schema }) => isPlain(schema, schema)) ?? []);
}

/** All of them or none: a tool more on one server must not change what is given of the others in part. Looks at no
 * more schemas than fit. */
function fitsWholly(servers: readonly (readonly ForeignTool[] | null)[]): boolean {
  const least = servers.flatMap((tools) => tools ?? []).map(({ name, description }) => name + description + frame);
  if (least.join('').length > maxAutoBytes) return false;
  let left = maxAutoBytes;
  return servers.every(
    (tools) =>
      tools?.every((tool) => {
        const { name, description, schema } = withAcceptedSchema(tool);
        left -= utf8Bytes(JSON.stringify({ name, description, input_schema: schema }));
        return left >= 0 && isPlain(schema, schema);
      }) === true,
  );
}

function withAcceptedSchema(tool: ForeignTool): ForeignTool {
  return { ...tool, schema: flattened(checkedSchema(tool.schema)) };
}

/** Choices within choices are followed this deep: they may refer to themselves. */
const maxChoices = 4;

/** Returns the schema without choices at its root, which providers refuse there: all properties of all choices, and as
 * required what each of them requires. The server checks the rest. */
export function flattened(schema: JsonSchema): JsonSchema {
  return withoutChoices(schema, schema, 0);
}

function withoutChoices(schema: JsonSchema, root: JsonSchema, depth: number): JsonSchema {
  const { anyOf, oneOf, allOf, ...rest } = schema;
  const branches = (list: Json | undefined): readonly JsonSchema[] =>
    Array.isArray(list) && depth < maxChoices
      ? list.flatMap((item: Json) => {
          const target = isRecord(item) && typeof item['$ref'] === 'string' ? targetOf(item['$ref'], root) : item;
          return isRecord(target) ? [withoutChoices(target, root, depth + 1)] : [];
        })
      : [];
  if (anyOf === undefined && oneOf === undefined && allOf === undefined) return schema;
  const { additionalProperties: _closed, ...open } = rest;
  const parts = [rest, ...branches(allOf)];
  const choices = [branches(anyOf), branches(oneOf)];
  const required = new Set([
    ...parts.flatMap(requiredIn),
    ...choices.flatMap(([first = {}, ...others]) =>
      requiredIn(first).filter((name) => others.every((other) => requiredIn(other).includes(name))),
    ),
  ]);
  return {
    ...open,
    type: 'object',
    properties: Object.fromEntries(
      [...choices.flat(), ...parts.toReversed()].flatMap(({ properties }) => Object.entries(properties ?? {})),
    ),
    ...(required.size > 0 ? { required: [...required] } : {}),
  };
}

function requiredIn({ required }: JsonSchema): readonly string[] {
  return Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [];
}

function targetOf(reference: string, root: JsonSchema): Json | undefined {
  if (reference === '#') return root;
  let at: Json | undefined = root;
  for (const step of reference.replace(/^#\//, '').split('/')) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~');
    at = isRecord(at) && Object.hasOwn(at, key) ? at[key] : undefined;
  }
  return at;
}

const types = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']);

type Check = (value: unknown, root: JsonSchema) => boolean;

const isText: Check = (value) => typeof value === 'string';
const isNumber: Check = (value) => typeof value === 'number';
const isMap: Check = (value, root) => isRecord(value) && Object.values(value).every((item) => isPlain(item, root));
const isList: Check = (value, root) => Array.isArray(value) && value.every((item) => isPlain(item, root));

/** The keywords of schemas that providers check; they ignore others. */
const checks: Readonly<Record<string, Check>> = {
  type: (value) => [value].flat().every((type) => typeof type === 'string' && types.has(type)),
  $ref: (value, root) => typeof value === 'string' && targetOf(value, root) !== undefined,
  enum: (value) => Array.isArray(value) && value.length > 0,
  required: (value) => Array.isArray(value) && value.every((name) => typeof name === 'string'),
  description: isText,
  ...Object.fromEntries(['properties', '$defs', 'definitions'].map((key) => [key, isMap])),
  ...Object.fromEntries(['anyOf', 'oneOf', 'allOf', 'prefixItems'].map((key) => [key, isList])),
  ...Object.fromEntries(
    ['minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems', 'multipleOf'].map((key) => [
      key,
      isNumber,
    ]),
  ),
  ...Object.fromEntries(
    ['items', 'not', 'additionalProperties', 'contains', 'propertyNames', 'if', 'then', 'else'].map((key) => [
      key,
      isPlain,
    ]),
  ),
};

/** Returns whether a provider would take the schema: one bad tool makes every request of a session fail. */
function isPlain(node: unknown, root: JsonSchema): boolean {
  if (!isRecord(node)) return typeof node === 'boolean';
  return Object.entries(node).every(
    ([key, value]) => !Object.hasOwn(checks, key) || checks[key]?.(value, root) !== false,
  );
}
