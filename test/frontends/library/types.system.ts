import { expect, expectTypeOf, test } from 'vitest';
import {
  type AgentSession,
  type CustomTool,
  defineTool,
  type ResultEvent,
  type StreamEvent,
} from '../../../src/frontends/library/library.js';

// What is wrong here is found by `npm run types`.

const parameters = {
  type: 'object',
  properties: {
    track: { type: 'string' },
    start_bar: { type: 'integer', minimum: 1 },
    style: { enum: ['lofi', 'house'] },
    notes: { type: 'array', items: { type: 'number' } },
  },
  required: ['track', 'start_bar'],
  additionalProperties: false,
} as const;

test('the arguments of a tool have the types of its schema', () => {
  const tool = defineTool({
    name: 'insert_clip',
    description: 'Inserts a clip.',
    parameters,
    effect: 'write',
    execute(args, ctx) {
      expectTypeOf(args).toEqualTypeOf<{
        readonly track: string;
        readonly start_bar: number;
        readonly style?: 'lofi' | 'house';
        readonly notes?: readonly number[];
      }>();
      expectTypeOf(ctx.signal).toEqualTypeOf<AbortSignal>();
      // @ts-expect-error -- the schema has no such argument
      return { ok: true, bar: args.bar as unknown };
    },
  });
  expectTypeOf(tool).toEqualTypeOf<CustomTool>();
  expect(tool.parameters).toBe(parameters);
});

test('a tool without an effect or with another limit is refused by the compiler', () => {
  const about = { name: 'x', description: 'x', parameters: {}, execute: () => '' } as const;
  // @ts-expect-error -- policy has to know what the tool does
  defineTool(about);
  // @ts-expect-error -- the limit is called timeout_ms
  defineTool({ ...about, effect: 'read', limits: { timeout: 1 } });
  // @ts-expect-error -- there is no such kind of result
  expect(defineTool({ ...about, effect: 'read', returns: 'number' }).returns).toBe('number');
});

test('the events of a request are told apart by their type, and a prompt gives the last one', () => {
  expectTypeOf<Extract<StreamEvent, { type: 'tool_call' }>['arguments']>().toEqualTypeOf<string>();
  expectTypeOf<ReturnType<AgentSession['prompt']>>().toEqualTypeOf<Promise<ResultEvent>>();
  expectTypeOf<ResultEvent['status']>().toEqualTypeOf<'completed' | 'limit_reached' | 'failed' | 'interrupted'>();
});
