import { isRecord, type Json, type JsonObject, type JsonSchema } from '../../core/json.js';
import type { ToolSpec } from '../../core/event.js';
import type { Quirks, SchemaDialect } from '../quirks.js';

interface Rules {
  /** The keywords that are sent; null: all. */
  readonly keywords: ReadonlySet<string> | null;
  /** References are put in where they stand. */
  readonly inline: boolean;
  /** A node has one type, or is an `anyOf` and nothing else. */
  readonly oneType: boolean;
  /** Form in which a schema allows null. */
  readonly nulls: 'type' | 'nullable';
  /** The values of an `enum` are texts. */
  readonly textEnums: boolean;
  readonly formats: ReadonlySet<string> | null;
  readonly maxDepth: number;
}

const none: ReadonlySet<string> = new Set();
const said = ['title', 'description', 'default'];
const shape = ['type', 'properties', 'required', 'items', 'enum', 'anyOf'];
const bounds = ['minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems', 'pattern', 'format'];

/** Sources: Google AI, "Schema", and its refusals ("schema didn't specify the schema type field", "when using any_of,
 * it must be the only field set", "only allowed for STRING type", "missing field"); Moonshot, "Tool Use", and its
 * refusals ("type is not defined", "type should be defined in anyOf items instead of the parent schema"); llama.cpp,
 * grammars/README.md, and its issues 25746, 22314 and 17473 (patterns, bounds, `not`) (read November 2026). */
const dialects: Readonly<Record<SchemaDialect, Rules>> = {
  plain: {
    keywords: null,
    inline: false,
    oneType: false,
    nulls: 'type',
    textEnums: false,
    formats: null,
    maxDepth: 64,
  },
  gemini: {
    keywords: new Set([...said, ...shape, ...bounds, 'nullable', 'minProperties', 'maxProperties']),
    inline: true,
    oneType: true,
    nulls: 'nullable',
    textEnums: true,
    formats: new Set(['date-time', 'enum', 'float', 'double', 'int32', 'int64']),
    maxDepth: 16,
  },
  moonshot: {
    keywords: new Set([...said, ...shape, ...bounds, 'additionalProperties']),
    inline: true,
    oneType: true,
    nulls: 'type',
    textEnums: false,
    formats: null,
    maxDepth: 16,
  },
  grammar: {
    keywords: new Set([...said, ...shape, 'additionalProperties']),
    inline: true,
    oneType: false,
    nulls: 'type',
    textEnums: false,
    formats: none,
    maxDepth: 16,
  },
};

/** Models that take one dialect wherever they are served, by what their ids hold. */
const modelDialects: readonly { readonly models: RegExp; readonly dialect: SchemaDialect }[] = [
  { models: /(?:^|[/:~-])gemini-/i, dialect: 'gemini' },
  { models: /(?:^|[/:~-])(?:kimi|moonshot)-/i, dialect: 'moonshot' },
];

interface ModelAtServer {
  readonly model: string;
  readonly quirks: Quirks;
}

/** Returns the dialect for a model: the quirk of its server, else what its id says. */
export function schemaDialect({ quirks, model }: ModelAtServer): SchemaDialect {
  return quirks.tool_schemas ?? modelDialects.find(({ models }) => models.test(model))?.dialect ?? 'plain';
}

const written = new Map<SchemaDialect, WeakMap<JsonSchema, JsonSchema>>();
const lists = new WeakMap<readonly ToolSpec[], Map<string, readonly ToolSpec[]>>();

/** Returns the tools as the server takes them: each schema in its dialect, without those that it refused. The same list
 * and options give the same list. */
export function offeredTools(tools: readonly ToolSpec[], options: ModelAtServer): readonly ToolSpec[] {
  const dialect = schemaDialect(options);
  const refused = options.quirks.refused_tools ?? [];
  const key = JSON.stringify([dialect, refused]);
  const known = lists.get(tools) ?? new Map<string, readonly ToolSpec[]>();
  lists.set(tools, known);
  const made =
    known.get(key) ??
    tools
      .filter(({ name }) => !refused.includes(name))
      .map((tool) => ({ ...tool, input_schema: schemaFor(tool.input_schema, dialect) }));
  known.set(key, made);
  return made;
}

/** Returns the schema of a tool's arguments in a dialect. What it cannot say is left out, so that it allows more and
 * never less: arguments are checked against the schema as it was given. */
export function schemaFor(schema: JsonSchema, dialect: SchemaDialect): JsonSchema {
  const known = written.get(dialect) ?? new WeakMap<JsonSchema, JsonSchema>();
  written.set(dialect, known);
  const found = known.get(schema);
  if (found) return found;
  const made = convertRoot(schema, dialects[dialect]);
  known.set(schema, made);
  return made;
}

interface Context {
  readonly root: JsonSchema;
  readonly rules: Rules;
  readonly depth: number;
  /** References that this node is inside of. */
  readonly within: readonly string[];
  /** Number of nodes that may still be written: references put in twice at each level would double with each. */
  readonly budget: { left: number };
}

const maxNodes = 3000;

function convertRoot(schema: JsonSchema, rules: Rules): JsonSchema {
  const context: Context = { root: schema, rules, depth: 1, within: [], budget: { left: maxNodes } };
  const flat = Object.entries(flatRoot(schema, context)).filter(([key]) => !notAtRoot.test(key));
  const made = convert({ ...Object.fromEntries(flat), type: 'object' }, context);
  return made['type'] === 'object' ? made : { type: 'object' };
}

/** Keywords that say nothing of the arguments of a tool, or are refused at the root. */
const notAtRoot = /^(?:anyOf|oneOf|allOf|not|enum|const|nullable|items|prefixItems|if|then|else)$/;

const unions = ['anyOf', 'oneOf', 'allOf'] as const;

/** Merges what the forms of the arguments have into one object: no server takes a union at the root. */
function flatRoot(schema: JsonSchema, context: Context): JsonSchema {
  let { $ref, anyOf, oneOf, allOf, ...rest } = schema as Readonly<Record<string, Json>>;
  const target = typeof $ref === 'string' ? resolve($ref, context) : null;
  const inner = target === null ? null : flatRoot(target, { ...context, within: [...context.within, asString($ref)] });
  if (inner) rest = { ...inner, ...rest };
  for (const name of unions) {
    const forms = ({ anyOf, oneOf, allOf } as Readonly<Record<string, Json | undefined>>)[name];
    if (!Array.isArray(forms)) continue;
    const objects = (forms as readonly Json[]).flatMap((form) => (isObject(form) ? [flatRoot(form, context)] : []));
    rest = mergedObjects(rest, objects, name === 'allOf');
  }
  return context.rules.keywords === null && inner === null && !unions.some((name) => name in schema) ? schema : rest;
}

/** Merges the objects of a union. With `all`, each requirement counts; otherwise only those that all of them have. */
function mergedObjects(base: JsonObject, forms: readonly JsonObject[], all: boolean): JsonObject {
  const properties: Record<string, Json> = {};
  for (const form of [base, ...forms])
    for (const [name, schema] of Object.entries(isObject(form['properties']) ? form['properties'] : {})) {
      const known = properties[name];
      if (known === undefined) properties[name] = schema;
      else if (JSON.stringify(known) !== JSON.stringify(schema))
        properties[name] = { anyOf: [...formsOf(known), schema] };
    }
  const demanded = forms.map(requiredOf);
  const shared = all
    ? demanded.flat()
    : (demanded[0] ?? []).filter((name) => demanded.every((names) => names.includes(name)));
  const required = [...new Set([...requiredOf(base), ...shared])];
  // A form may be closed while another one is not.
  const {
    properties: _properties,
    required: _required,
    additionalProperties,
    ...open
  } = base as Readonly<Record<string, Json>>;
  const closed = forms.length === 0 && additionalProperties !== undefined ? { additionalProperties } : {};
  return { ...open, ...closed, properties, ...(required.length === 0 ? {} : { required }) };
}

function formsOf(schema: Json): readonly Json[] {
  return isObject(schema) && Array.isArray(schema['anyOf']) && Object.keys(schema).length === 1
    ? (schema['anyOf'] as readonly Json[])
    : [schema];
}

function requiredOf({ required }: JsonObject): readonly string[] {
  return Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [];
}

function isObject(value: Json | undefined): value is JsonObject {
  return isRecord(value);
}

/** Follows a reference within the document; null where it leads nowhere, or into itself. */
function resolve(reference: string, { root, within }: Context): JsonSchema | null {
  if (within.includes(reference) || within.length > 32) return null;
  if (reference === '#') return root;
  if (!reference.startsWith('#/')) return null;
  let at: Json | undefined = root;
  for (const part of reference.slice(2).split('/')) {
    const key = decodePart(part);
    at = Array.isArray(at)
      ? (at as readonly Json[])[Number(key)]
      : isObject(at) && Object.hasOwn(at, key)
        ? at[key]
        : undefined;
  }
  return isObject(at) ? at : null;
}

function decodePart(part: string): string {
  const plain = part.replaceAll('~1', '/').replaceAll('~0', '~');
  return URL.canParse(`x:${plain}`) && /%[0-9a-f]{2}/i.test(plain) ? safelyDecoded(plain) : plain;
}

function safelyDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Converts one node with all below it. */
function convert(given: Json, context: Context): JsonSchema {
  const { rules, depth } = context;
  if (!isObject(given)) return anything(rules);
  if (depth > rules.maxDepth || context.budget.left-- <= 0) return deepest(given, rules);
  const [node, inner] = rules.inline ? inlined(given, context) : [given, context];
  const [merged, below] = rules.inline && Array.isArray(node['allOf']) ? withAll(node, inner) : [node, inner];
  const typed = withEnum(withTypes(merged, rules), rules);
  return withUnion(typed, below) ?? plainNode(typed, below);
}

/** Returns a node at the greatest depth: only the kind of its value. */
function deepest({ type, description }: JsonObject, rules: Rules): JsonSchema {
  const kind = typeof type === 'string' && type !== 'array' ? type : rules.oneType ? 'string' : undefined;
  return { ...(kind === undefined ? {} : { type: kind }), ...(description === undefined ? {} : { description }) };
}

function anything(rules: Rules): JsonSchema {
  return rules.oneType ? { type: 'string' } : {};
}

/** Puts the target in the place of a reference; keywords beside the reference win. A reference into itself becomes a
 * value of its kind. */
function inlined(given: JsonObject, context: Context): readonly [JsonObject, Context] {
  let node = given;
  let at = context;
  for (let steps = 0; typeof node['$ref'] === 'string' && steps < 32; steps++) {
    const { $ref: reference, ...beside } = node as Readonly<Record<string, Json>>;
    const target = resolve(asString(reference), at);
    if (target === null) return [{ ...kindOf(asString(reference), context), ...beside }, at];
    at = { ...at, within: [...at.within, asString(reference)] };
    node = { ...target, ...beside };
  }
  return [node, at];
}

function kindOf(reference: string, context: Context): JsonObject {
  const target = resolve(reference, { ...context, within: [] });
  if (target === null) return {};
  const { type = isObject(target['properties']) ? 'object' : undefined, description } = target;
  const kind = typeof type === 'string' && type !== 'array' ? { type } : {};
  return { ...kind, ...(description === undefined ? {} : { description }) };
}

/** Merges what all of `allOf` say. Keywords beside them win. */
function withAll(node: JsonObject, context: Context): readonly [JsonObject, Context] {
  const { allOf, ...rest } = node as Readonly<Record<string, Json>>;
  let all: JsonObject = rest;
  let at = context;
  for (const part of allOf as readonly Json[]) {
    if (!isObject(part)) continue;
    const [form, inner] = inlined(part, at);
    at = inner;
    const [flat, last] = Array.isArray(form['allOf']) ? withAll(form, at) : [form, at];
    at = last;
    const both = { ...flat, ...all };
    all = 'properties' in flat || 'required' in flat ? mergedObjects(both, [flat], true) : both;
  }
  return [all, at];
}

/** Writes the type of a node. `const` is an `enum` of one; lists of types, `nullable` and unions of null become what
 * the dialect says. */
function withTypes(given: JsonObject, rules: Rules): JsonObject {
  if (rules.keywords === null) return given;
  const { const: only, nullable, ...rest } = given as Readonly<Record<string, Json>>;
  const listed = rest['type'];
  const types = Array.isArray(listed) ? (listed as readonly Json[]) : [];
  const kinds = types.filter((type) => type !== 'null' && typeof type === 'string');
  const node = withKinds(only === undefined ? rest : { enum: [only], ...rest }, kinds, rules);
  return nullable === true || types.includes('null') ? withNull(node, rules) : node;
}

function withKinds(node: JsonObject, kinds: readonly Json[], rules: Rules): JsonObject {
  const [first] = kinds;
  if (kinds.length === 1 && first !== undefined) return { ...node, type: first };
  return Array.isArray(node['type']) && rules.oneType ? unionOfKinds(node, kinds) : node;
}

function withNull(node: JsonObject, rules: Rules): JsonObject {
  if (rules.nulls === 'nullable') return { ...node, nullable: true };
  if (!rules.oneType) return typeof node['type'] === 'string' ? { ...node, type: [node['type'], 'null'] } : node;
  const { description, ...form } = node as Readonly<Record<string, Json>>;
  const forms = Array.isArray(form['anyOf']) ? (form['anyOf'] as readonly Json[]) : [form];
  return { ...(description === undefined ? {} : { description }), anyOf: [...forms, { type: 'null' }] };
}

/** Which keywords say something of a value of one kind. */
const ofKind: Readonly<Record<string, RegExp>> = {
  object: /^(?:properties|required|additionalProperties|(?:min|max)Properties|patternProperties)$/,
  array: /^(?:items|prefixItems|(?:min|max)Items|uniqueItems)$/,
  string: /^(?:(?:min|max)Length|pattern|format)$/,
  number: /^(?:minimum|maximum|exclusive(?:Minimum|Maximum)|multipleOf)$/,
  integer: /^(?:minimum|maximum|exclusive(?:Minimum|Maximum)|multipleOf|format)$/,
};

function unionOfKinds(node: JsonObject, kinds: readonly Json[]): JsonObject {
  const { type: _type, enum: values, ...rest } = node as Readonly<Record<string, Json>>;
  const isOfSome = (key: string): boolean => Object.values(ofKind).some((pattern) => pattern.test(key));
  const common = Object.entries(rest).filter(([key]) => !isOfSome(key));
  const forms = kinds.map((kind) => ({
    type: kind,
    ...Object.fromEntries(Object.entries(rest).filter(([key]) => ofKind[asString(kind)]?.test(key) === true)),
    ...(Array.isArray(values) ? { enum: values.filter((value) => isOfType(value, asString(kind))) } : {}),
  }));
  if (forms.length === 0) return Object.fromEntries(common);
  return { ...Object.fromEntries(common), anyOf: forms };
}

function isOfType(value: Json, kind: string): boolean {
  const type = typeOfValue(value);
  return type === kind || (type === 'integer' && kind === 'number');
}

function typeOfValue(value: Json): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value === 'number' ? (Number.isInteger(value) ? 'integer' : 'number') : typeof value;
}

/** Writes the `enum` of a node. An empty one allows nothing and is refused by all, so it is left out. */
function withEnum(node: JsonObject, rules: Rules): JsonObject {
  const { enum: values, ...rest } = node as Readonly<Record<string, Json>>;
  if (values === undefined) return node;
  const list = Array.isArray(values) ? (values as readonly Json[]) : [];
  if (rules.keywords === null) return list.length === 0 ? rest : node;
  const plain = list.filter((value) => value !== null);
  const type = rest['type'] ?? typeOfAll(plain);
  const typed = type === undefined ? rest : { ...rest, type };
  const open = list.length > plain.length && rules.nulls === 'nullable' ? { ...typed, nullable: true } : typed;
  if (rules.textEnums) return withTextEnum(open, plain);
  return plain.length === 0 ? open : { ...open, enum: rules.oneType ? plain : list };
}

function withTextEnum(node: JsonObject, values: readonly Json[]): JsonObject {
  const texts = values.filter((value) => typeof value === 'string' && value !== '');
  if (texts.length === values.length && texts.length > 0) return { ...node, type: 'string', enum: texts };
  return withSaid(node, values);
}

/** Returns the type of all of these values; undefined where they differ. */
function typeOfAll(values: readonly Json[]): string | undefined {
  const kinds = new Set(values.map(typeOfValue));
  const [only] = kinds;
  if (kinds.size === 1) return only;
  return kinds.size === 2 && kinds.has('integer') && kinds.has('number') ? 'number' : undefined;
}

/** Values that an `enum` may not hold are said in words. */
function withSaid(node: JsonObject, values: readonly Json[]): JsonObject {
  if (values.length === 0) return node;
  const { description } = node;
  const words = `One of: ${values.map((value) => JSON.stringify(value)).join(', ')}.`.slice(0, 500);
  return {
    ...node,
    description: typeof description === 'string' && description !== '' ? `${description} ${words}` : words,
  };
}

/** Converts a union; null where the node is none. Forms that only say which properties go together are left out. */
function withUnion(node: JsonObject, context: Context): JsonSchema | null {
  const { rules, depth } = context;
  const { anyOf, oneOf, ...beside } = node as Readonly<Record<string, Json | undefined>>;
  if (rules.keywords === null || (anyOf === undefined && oneOf === undefined)) return null;
  const open = Object.fromEntries(Object.entries(beside).filter((one): one is [string, Json] => one[1] !== undefined));
  const forms = [anyOf, oneOf]
    .flatMap((list) => (Array.isArray(list) ? (list as readonly Json[]) : []))
    .filter(saysMore);
  if (forms.length === 0) return plainNode(open, context);
  const others = forms.filter((form) => form['type'] !== 'null');
  const hasNull = open['nullable'] === true || others.length < forms.length;
  const inherited = Object.fromEntries(Object.entries(open).filter(([key]) => !ofUnion.test(key)));
  const below = { ...context, depth: depth + 1 };
  const made = unlike(others.map((form) => convert({ ...inherited, ...form }, below)));
  return unionOf(made, open, hasNull, context);
}

function saysMore(form: Json): form is JsonObject {
  return isObject(form) && !Object.keys(form).every((key) => key === 'required' || key === 'not');
}

/** Keywords that describe a union as a whole. */
const ofUnion = /^(?:title|description|default|nullable)$/;

function unionOf(forms: readonly JsonSchema[], beside: JsonObject, hasNull: boolean, context: Context): JsonSchema {
  const { rules } = context;
  const isFlag = rules.nulls === 'nullable';
  const flag = isFlag && hasNull ? { nullable: true } : {};
  const nulls = hasNull && !isFlag ? [{ type: 'null' }] : [];
  const { description, default: usual } = beside;
  const words = Object.fromEntries(Object.entries(beside).filter(([key]) => key === 'title' || key === 'description'));
  const [first] = forms;
  if (first === undefined) return plainNode({ ...words, ...flag, type: 'string' }, context);
  if (forms.length === 1 && nulls.length === 0) return { ...first, ...words, ...flag };
  if (isFlag) return { anyOf: describedFirst(forms, description).map((form) => ({ ...form, ...flag })) };
  const shown = usual === undefined || rules.oneType ? words : { ...words, default: usual };
  return { ...shown, anyOf: [...forms, ...nulls] };
}

/** Puts the description of a union into its first form, because nothing may be beside the union. */
function describedFirst(forms: readonly JsonSchema[], description: Json | undefined): readonly JsonSchema[] {
  return forms.map((form, at) =>
    at === 0 && description !== undefined && form['description'] === undefined ? { ...form, description } : form,
  );
}

/** Flattens unions within unions, and drops equal forms. */
function unlike(forms: readonly JsonSchema[]): readonly JsonSchema[] {
  const flat = forms.flatMap((form) =>
    Array.isArray(form['anyOf']) ? (form['anyOf'] as readonly JsonSchema[]) : [form],
  );
  return [...new Map(flat.map((form) => [JSON.stringify(form), form])).values()];
}

/** Converts a node that is no union. */
function plainNode(node: JsonObject, context: Context): JsonSchema {
  const { rules } = context;
  const made: Record<string, Json> = {};
  for (const [key, value] of Object.entries(withType(withItems(node), rules))) {
    if (rules.keywords !== null && !rules.keywords.has(key)) continue;
    const kept = keywordValue(key, value, context);
    if (kept !== undefined) made[key] = kept;
  }
  const { format } = made;
  // The formats of numbers are none of texts, and the other way round.
  if (
    rules.formats !== null &&
    format !== undefined &&
    /^(?:int|float|double)/.test(asString(format)) === (made['type'] === 'string')
  )
    delete made['format'];
  return rules.keywords === null ? made : consistent(made, rules);
}

function keywordValue(key: string, value: Json, context: Context): Json | undefined {
  const below = { ...context, depth: context.depth + 1 };
  const { formats } = context.rules;
  switch (key) {
    case 'properties':
    case 'patternProperties':
    case '$defs':
    case 'definitions':
      return isObject(value) ? converted(value, below) : undefined;
    case 'items':
      return convert(value, below);
    case 'additionalProperties':
      return isObject(value) ? convert(value, below) : value === false ? false : undefined;
    case 'anyOf':
    case 'oneOf':
    case 'allOf':
      return Array.isArray(value) ? formsIn(value, below) : undefined;
    case 'format':
      return formats === null || formats.has(asString(value)) ? value : undefined;
    default:
      return value;
  }
}

function formsIn(forms: readonly Json[], context: Context): readonly Json[] {
  return forms.map((form) => (isObject(form) ? convert(form, context) : form));
}

function asString(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}

function converted(schemas: JsonObject, context: Context): JsonObject {
  const { rules } = context;
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [
      name,
      rules.keywords === null && typeof schema === 'boolean' ? schema : convert(schema, context),
    ]),
  );
}

/** Gives an array one schema for all of its items; those of a tuple are its forms. */
function withItems(node: JsonObject): JsonObject {
  const { items, prefixItems, ...rest } = node as Readonly<Record<string, Json>>;
  const tuple = [items, prefixItems].find((list) => Array.isArray(list)) as readonly Json[] | undefined;
  if (tuple !== undefined) return { ...rest, ...tupleItems(tuple, node) };
  const isArray = [node['type']].flat().includes('array');
  return isArray && !isObject(items) ? { ...rest, items: {} } : node;
}

function tupleItems(tuple: readonly Json[], { items, prefixItems, minItems, maxItems }: JsonObject): JsonObject {
  const forms = [...new Map(tuple.map((form) => [JSON.stringify(form), form])).values()];
  const [first = {}] = forms;
  const made = { items: forms.length > 1 ? { anyOf: forms } : first };
  const isWhole = tuple.length > 0 && (items === false || prefixItems === undefined);
  if (!isWhole)
    return {
      ...made,
      ...(minItems === undefined ? {} : { minItems }),
      ...(maxItems === undefined ? {} : { maxItems }),
    };
  return { ...made, minItems: minItems ?? tuple.length, maxItems: maxItems ?? tuple.length };
}

/** Gives a node without a type the one that its keywords are about. */
function withType(node: JsonObject, rules: Rules): JsonObject {
  if (rules.keywords === null || node['type'] !== undefined) return node;
  const kind = Object.keys(ofKind).find((name) => Object.keys(node).some((key) => ofKind[name]?.test(key) === true));
  const type = kind ?? (rules.oneType ? 'string' : undefined);
  return type === undefined ? node : withItems({ type, ...node });
}

/** Leaves out what speaks of properties that are not there. */
function consistent(node: Record<string, Json>, rules: Rules): JsonSchema {
  const { properties, required } = node;
  const names = isObject(properties) ? Object.keys(properties) : [];
  const kept = Array.isArray(required)
    ? required.filter((name) => typeof name === 'string' && names.includes(name))
    : [];
  const { required: _required, ...rest } = node;
  const made: JsonObject =
    kept.length === 0 ? rest : node['required'] === undefined ? rest : { ...node, required: kept };
  if (rules.nulls !== 'nullable' || names.length > 0) return made;
  const { properties: _empty, ...open } = made as Readonly<Record<string, Json>>;
  return open;
}
