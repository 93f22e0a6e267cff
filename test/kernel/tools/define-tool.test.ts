import { expect, expectTypeOf, test } from 'vitest';
import { inToolset } from '../../../src/kernel/tools/builtin.js';
import { defineTool, type FromSchema } from '../../../src/kernel/tools/define-tool.js';
import { createRegistry } from '../../../src/kernel/tools/registry.js';
import { context } from './workbench.js';

test('arguments have the type that the schema describes', () => {
  const schema = {
    type: 'object',
    properties: {
      name: { type: 'string' },
      count: { type: 'integer', minimum: 1 },
      mode: { enum: ['fast', 'slow'] },
      tags: { type: 'array', items: { type: 'string' } },
      place: {
        type: 'object',
        properties: { line: { type: 'number' }, open: { type: 'boolean' } },
        required: ['line'],
      },
      either: { anyOf: [{ type: 'string' }, { type: 'null' }] },
      both: { type: ['string', 'null'] },
      free: { type: 'object' },
      any: {},
    },
    required: ['name', 'mode'],
    additionalProperties: false,
  } as const;
  expectTypeOf<FromSchema<typeof schema>>().toEqualTypeOf<{
    readonly name: string;
    readonly mode: 'fast' | 'slow';
    readonly count?: number;
    readonly tags?: readonly string[];
    readonly place?: { readonly line: number; readonly open?: boolean };
    readonly either?: string | null;
    readonly both?: string | null;
    readonly free?: Readonly<Record<string, unknown>>;
    readonly any?: unknown;
  }>();
});

const add = defineTool({
  name: 'add',
  description: 'Adds two numbers.',
  effect: 'read',
  schema: {
    type: 'object',
    properties: { first: { type: 'number' }, second: { type: 'number' }, loud: { type: 'boolean' } },
    required: ['first', 'second'],
    additionalProperties: false,
  },
  check: ({ first }) => (first < 0 ? { argument: 'first', problem: 'negative', expected: '0 or more' } : null),
  run({ first, second, loud }) {
    expectTypeOf(first).toBeNumber();
    expectTypeOf(loud).toEqualTypeOf<boolean | undefined>();
    const output = `${first + second}${loud === true ? '!' : ''}`;
    return Promise.resolve({ envelope: { output }, summary: output });
  },
});

test('a tool that was defined is checked, described and run by the registry', async () => {
  const registry = createRegistry({ maxOutputBytes: 1000, now: () => 0 });
  for (const tool of inToolset({ name: 'sums', on: false, about: 'Sums.' }, [add])) registry.register(tool);
  const bind = (args: unknown) => registry.bind({ name: 'add', arguments: JSON.stringify(args) });
  const binding = await bind({ first: 1, second: 2, loud: true });
  if (!binding.ok) throw new Error(binding.error.error);
  const { tool, args } = binding.bound;
  expect(tool.describe(args)).toBe('add(first=1, second=2, loud=true)');
  expect(await tool.run(args, context('/'))).toEqual({ envelope: { output: '3!' }, summary: '3!' });
  expect(await bind({ first: '1', second: 2 })).toMatchObject({ ok: false, error: { code: 'invalid_args' } });
  expect(await bind({ first: -1, second: 2 })).toMatchObject({
    error: { error: 'add: "first": negative; expected 0 or more.' },
  });
});
