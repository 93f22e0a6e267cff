import { expect, test } from 'vitest';
import type { JsonSchema } from '../../../src/kernel/core/json.js';
import { configuredServer } from '../../../src/features/mcp/configured-servers.js';
import { directTools, flattened } from '../../../src/features/mcp/exposure.js';
import { namedTools, readTool } from '../../../src/features/mcp/foreign-tools.js';

const place = { env: {}, cwd: '/', home: '/' };

function server(name: string, entry: object) {
  return configuredServer(name, { command: 'x', ...entry }, 'mcp.json', place);
}

function tools(name: string, count: number, inputSchema: object = { type: 'object' }) {
  const all = Array.from({ length: count }, (_none, index) => readTool(name, { name: `t${index}`, inputSchema }));
  return namedTools(all.flatMap((tool) => (typeof tool === 'string' ? [] : [{ ...tool, project: null }])));
}

function given(entries: Readonly<Record<string, object>>, known: Readonly<Record<string, ReturnType<typeof tools>>>) {
  const servers = Object.entries(entries).map(([name, entry]) => server(name, entry));
  return directTools(servers, (name) => known[name] ?? null).map(({ name }) => name);
}

test('few tools that are known are given themselves; many, or those of unknown servers, are searched for', () => {
  const few = { a: tools('a', 1), b: tools('b', 1) };
  expect(given({ a: {}, b: {} }, few)).toEqual(['mcp__a__t0', 'mcp__b__t0']);
  expect(given({ a: {}, b: {} }, { ...few, b: tools('b', 200) })).toEqual([]);
  expect(given({ a: {}, b: {}, c: {} }, few)).toEqual([]);
  expect(given({ a: {}, b: { enabled: false } }, few)).toEqual(['mcp__a__t0']);
  expect(given({ a: { expose: 'deferred' }, b: {} }, few)).toEqual(['mcp__b__t0']);
  expect(given({ a: { expose: 'direct' }, b: {} }, { ...few, b: tools('b', 200) })).toEqual(['mcp__a__t0']);
  expect(given({ a: { alwaysLoad: true }, b: {} }, { a: few.a })).toEqual(['mcp__a__t0']);
});

test.each([
  [{ type: 'object', properties: { a: { type: 'text' } } }],
  [{ type: 'object', properties: { a: { $ref: '#/$defs/none' } } }],
  [{ type: 'object', properties: { a: { type: 'string', maxLength: '5' } } }],
  [{ type: 'object', required: 'a' }],
  [{ type: 'object', properties: { a: { enum: [] } } }],
])('a schema that a provider could refuse is not in a request: %j', (bad) => {
  expect(given({ a: {}, b: {} }, { a: tools('a', 1, bad), b: tools('b', 1) })).toEqual([]);
  expect(given({ a: { expose: 'direct' } }, { a: tools('a', 1, bad) })).toEqual([]);
});

test('choices at the root become properties; what they refer to stays', () => {
  const $defs = { one: { type: 'object', properties: { a: { type: 'string' } }, required: ['a', 'c'] } };
  const schema: JsonSchema = {
    type: 'object',
    additionalProperties: false,
    $defs,
    properties: { c: { type: 'integer' } },
    oneOf: [{ $ref: '#/$defs/one' }, { properties: { b: { $ref: '#/$defs/one' } }, required: ['c'] }],
    allOf: [{ required: ['d'] }],
  };
  expect(flattened(schema)).toEqual({
    type: 'object',
    $defs,
    properties: { a: { type: 'string' }, b: { $ref: '#/$defs/one' }, c: { type: 'integer' } },
    required: ['d', 'c'],
  });
  expect(flattened({ type: 'object', anyOf: [{ $ref: '#' }] })).toEqual({ type: 'object', properties: {} });
  expect(flattened({ type: 'object' })).toEqual({ type: 'object' });
});
