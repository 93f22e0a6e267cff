import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isRecord, type Json, type JsonSchema } from '../../../../src/kernel/core/json.js';
import { type SchemaDialect, schemaDialects } from '../../../../src/kernel/providers/quirks.js';
import { offeredTools, schemaDialect, schemaFor } from '../../../../src/kernel/providers/wires/tool-schemas.js';
import { propertyRuns } from '../../../property-runs.js';

const file = new URL('../../../../fixtures/tool-schemas.json', import.meta.url);
/** Schemas with the shapes that public MCP servers send. */
const corpus = JSON.parse(readFileSync(file, 'utf8')) as Readonly<Record<string, JsonSchema>>;

type Problem = (node: Readonly<Record<string, unknown>>, at: string) => readonly string[];

/** Walks a schema as a server does, and says what it would refuse. */
function refusals(schema: unknown, problem: Problem, at = 'root'): readonly string[] {
  if (!isRecord(schema)) return [`${at} is not a schema`];
  const below: string[] = [];
  for (const key of ['properties', '$defs', 'definitions']) {
    const map = schema[key];
    if (map !== undefined && !isRecord(map)) below.push(`${at}.${key} is not an object`);
    for (const [name, node] of Object.entries(isRecord(map) ? map : {}))
      if (typeof node !== 'boolean') below.push(...refusals(node, problem, `${at}.${name}`));
  }
  if (schema['items'] !== undefined) below.push(...refusals(schema['items'], problem, `${at}[]`));
  if (isRecord(schema['additionalProperties']))
    below.push(...refusals(schema['additionalProperties'], problem, `${at}.*`));
  for (const key of ['anyOf', 'oneOf', 'allOf']) {
    const forms = schema[key];
    if (forms === undefined) continue;
    if (!Array.isArray(forms) || forms.length === 0) below.push(`${at}.${key} is empty`);
    else for (const [index, form] of forms.entries()) below.push(...refusals(form, problem, `${at}|${index}`));
  }
  return [...problem(schema, at), ...below];
}

const types = new Set(['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']);

/** What every server refuses. */
const common: Problem = (node, at) => {
  const said: string[] = [];
  const { type, items } = node;
  if (at === 'root' && type !== 'object') said.push('root is not an object');
  for (const key of ['anyOf', 'oneOf', 'allOf', 'enum', 'not', '$ref'])
    if (at === 'root' && key in node) said.push(`root has ${key}`);
  for (const one of [type].flat())
    if (one !== undefined && !types.has(one as string)) said.push(`${at}: type ${JSON.stringify(one)}`);
  if ([type].flat().includes('array') && !isRecord(items)) said.push(`${at}: an array without items`);
  if (Array.isArray(node['enum']) && node['enum'].length === 0) said.push(`${at}: an empty enum`);
  return said;
};

const geminiKeys = new Set(
  'type format title description nullable enum items maxItems minItems properties required minProperties maxProperties minLength maxLength pattern anyOf default minimum maximum'.split(
    ' ',
  ),
);

/** Source: Google AI, "Schema"; see `tool-schemas.ts`. */
const gemini: Problem = (node, at) => {
  const said: string[] = [];
  for (const key of Object.keys(node)) if (!geminiKeys.has(key)) said.push(`${at}: unknown name ${key}`);
  const { type, format } = node;
  if ('anyOf' in node) {
    if (Object.keys(node).length > 1) said.push(`${at}: fields beside any_of: ${Object.keys(node).join()}`);
  } else if (typeof type !== 'string' || type === 'null') said.push(`${at}: no type`);
  if ('enum' in node) {
    if (type !== 'string') said.push(`${at}: enum of ${JSON.stringify(type)}`);
    for (const value of node['enum'] as readonly unknown[])
      if (typeof value !== 'string' || value === '') said.push(`${at}: enum holds ${JSON.stringify(value)}`);
  }
  if (type === 'string' && format !== undefined && format !== 'enum' && format !== 'date-time')
    said.push(`${at}: ${JSON.stringify(format)}`);
  const { properties, required = [] } = node;
  if (isRecord(properties) && Object.keys(properties).length === 0) said.push(`${at}: empty properties`);
  for (const name of required as readonly string[])
    if (!isRecord(properties) || !(name in properties)) said.push(`${at}: required ${name} is not defined`);
  return said;
};

const moonshot: Problem = (node, at) => {
  const said: string[] = [];
  for (const key of ['$ref', '$defs', 'oneOf', 'allOf', 'if', 'not', 'const', 'nullable', 'prefixItems'])
    if (key in node) said.push(`${at}: ${key}`);
  if ('anyOf' in node && 'type' in node) said.push(`${at}: type beside anyOf`);
  if (!('anyOf' in node) && typeof node['type'] !== 'string') said.push(`${at}: type is not defined`);
  return said;
};

const grammar: Problem = (node, at) =>
  [
    '$ref',
    '$defs',
    'allOf',
    'if',
    'not',
    'pattern',
    'format',
    'minLength',
    'maxLength',
    'minItems',
    'maxItems',
    'nullable',
    'propertyNames',
  ]
    .filter((key) => key in node)
    .map((key) => `${at}: ${key}`);

const problems: Readonly<Record<SchemaDialect, Problem>> = {
  plain: common,
  gemini: (node, at) => [...common(node, at), ...gemini(node, at)],
  moonshot: (node, at) => [...common(node, at), ...moonshot(node, at)],
  grammar: (node, at) => [...common(node, at), ...grammar(node, at)],
};

test.each(schemaDialects)('every schema of the corpus is one that a server of %s takes', (dialect) => {
  const refused = Object.entries(corpus).flatMap(([name, schema]) =>
    refusals(schemaFor(schema, dialect), problems[dialect]).map((problem) => `${name}: ${problem}`),
  );
  expect(refused).toEqual([]);
});

test('the validators refuse what servers refuse', () => {
  const counts = schemaDialects.map(
    (dialect) => Object.values(corpus).filter((schema) => refusals(schema, problems[dialect]).length > 0).length,
  );
  expect(counts.map((count) => count > 4)).toEqual([true, true, true, true]);
});

/** Any tree of the keywords that servers send, also where they make no sense. */
const anySchema: fc.Arbitrary<Json> = fc.letrec<{ node: Json }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom<Json>({}, true, { type: 'string' }, { type: ['integer', 'null'] }, { const: 1 }, { $ref: '#' }),
    fc.record(
      {
        type: fc.constantFrom<Json>('object', 'array', 'string', 'number', ['string', 'array'], ['object', 'null']),
        description: fc.constant('d'),
        nullable: fc.boolean(),
        enum: fc.constantFrom<Json>([], [''], ['a', null], [1, 2], [{ a: 1 }, 'b']),
        format: fc.constantFrom('uri', 'date-time', 'int32'),
        properties: fc.dictionary(fc.constantFrom('a', 'b', 'type', 'properties'), tie('node'), { maxKeys: 3 }),
        required: fc.constantFrom<Json>(['a'], ['z'], []),
        items: fc.oneof(tie('node'), fc.array(tie('node'), { maxLength: 2 })),
        prefixItems: fc.array(tie('node'), { maxLength: 2 }),
        anyOf: fc.array(tie('node'), { maxLength: 3 }),
        oneOf: fc.array(tie('node'), { maxLength: 2 }),
        allOf: fc.array(tie('node'), { maxLength: 2 }),
        additionalProperties: tie('node'),
        $ref: fc.constantFrom('#', '#/properties/a', '#/nowhere', '#/properties/b/items'),
      },
      { requiredKeys: [] },
    ) as fc.Arbitrary<Json>,
  ),
})).node;

test.each(['gemini', 'moonshot', 'grammar'] as const)('any schema becomes one that a server of %s takes', (dialect) => {
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom('a', 'b', 'c'), anySchema), anySchema, (properties, root) => {
      const schema = { ...(isRecord(root) ? root : {}), type: 'object', properties } as JsonSchema;
      const made = schemaFor(schema, dialect);
      expect(refusals(made, problems[dialect])).toEqual([]);
      expect(JSON.stringify(made).length).toBeLessThan(400_000);
    }),
    { numRuns: propertyRuns(300) },
  );
});

test('what has one meaning keeps it', () => {
  const of = (name: string, dialect: SchemaDialect): unknown => schemaFor(corpus[name] ?? {}, dialect)['properties'];
  expect(schemaFor(corpus['plain'] ?? {}, 'plain')).toEqual(corpus['plain']);
  expect(of('notion-create-attachment', 'plain')).toEqual({
    filename: { anyOf: [{ type: 'string' }, { type: 'string', maxLength: 900 }] },
    content: { type: 'string' },
    source_url: { type: 'string', format: 'uri' },
  });
  expect(schemaFor(corpus['notion-create-attachment'] ?? {}, 'plain')['required']).toEqual(['filename']);
  expect(of('fastmcp-optional', 'gemini')).toEqual({
    email: { type: 'string', title: 'Email' },
    body: { title: 'Body', description: 'The text.', type: 'string', nullable: true },
    limit: { type: 'integer', minimum: 1, nullable: true },
  });
  expect(of('github-issue-fields', 'moonshot')).toMatchObject({
    labels: { items: { anyOf: [{ type: 'string' }, { type: 'object', properties: { name: { type: 'string' } } }] } },
    milestone: { anyOf: [{ type: 'integer' }, { type: 'null' }] },
  });
  expect(of('devops-kinds', 'gemini')).toMatchObject({
    kind: { type: 'integer', description: 'One of: 0, 1, 2, 4.' },
    only: { type: 'integer', description: 'One of: 3.' },
  });
  expect(of('playwright-select', 'plain')).toMatchObject({
    values: { type: 'array', items: {} },
    point: { items: { type: 'number' }, minItems: 2, maxItems: 2 },
    pair: { items: { anyOf: [{ type: 'string' }, { type: 'integer' }] }, minItems: 2, maxItems: 2 },
  });
  expect(of('apollo-tasks-create', 'moonshot')).toMatchObject({
    tasks: { items: { type: 'object', properties: { priority: { type: 'string', enum: ['low', 'high'] } } } },
  });
});

test('the dialect is that of the server, else that of the model; refused tools are left out', () => {
  const of = (model: string, quirks = {}): string => schemaDialect({ model, quirks });
  expect([
    of('google/gemini-3-pro'),
    of('gemini-2.5-flash'),
    of('moonshotai/kimi-k2'),
    of('kimi-k3'),
    of('gpt-5.2'),
    of('x-gemini-like', { tool_schemas: 'plain' }),
  ]).toEqual(['gemini', 'gemini', 'moonshot', 'moonshot', 'plain', 'plain']);
  const tools = ['a', 'b'].map((name) => ({ name, description: '', input_schema: { type: 'object' } }));
  const options = { model: 'm', quirks: { refused_tools: ['a'] } };
  expect(offeredTools(tools, options).map(({ name }) => name)).toEqual(['b']);
  expect(offeredTools(tools, options)).toBe(offeredTools(tools, options));
});
