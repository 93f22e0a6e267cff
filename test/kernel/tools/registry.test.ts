import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Tool } from '../../../src/kernel/core/tool.js';
import { builtinTools, inTestMode } from '../../../src/kernel/tools/builtin.js';
import { describeCall } from '../../../src/kernel/tools/define-tool.js';
import { createRegistry, loadSchemaCompiler } from '../../../src/kernel/tools/registry.js';
import { call, context, envelopeOf, registry, toolOptions, tree } from './workbench.js';

function tool(changed: Partial<Tool> = {}): Tool {
  return {
    name: 'probe',
    description: '',
    effect: 'read',
    toolset: { name: 'fs', on: true, about: '' },
    input_schema: { type: 'object', properties: { n: { type: 'integer' } }, additionalProperties: false },
    describe: () => '',
    run: () => Promise.resolve({ envelope: { output: 'ran' }, summary: 'ran' }),
    ...changed,
  };
}

function empty(now: () => number = () => 0) {
  return createRegistry({ maxOutputBytes: 1000, now });
}

test('tools are registered, listed in order, found by exact name and unregistered', () => {
  const tools = empty();
  tools.register(tool({ name: 'b' }));
  tools.register(tool({ name: 'a' }));
  expect(tools.list().map(({ name }) => name)).toEqual(['b', 'a']);
  expect([tools.get('a')?.name, tools.get('A'), tools.get('constructor'), tools.get('__proto__')]).toEqual([
    'a',
    undefined,
    undefined,
    undefined,
  ]);
  expect([tools.unregister('b'), tools.unregister('b'), tools.list().length]).toEqual([true, false, 1]);
});

test('a name that is taken, a bad name and a schema that does not compile are thrown', async () => {
  const tools = empty();
  tools.register(tool());
  expect(() => {
    tools.register(tool());
  }).toThrow('already');
  expect(() => {
    tools.register(tool({ name: 'a b' }));
  }).toThrow('bad tool name');
  const compile = await loadSchemaCompiler();
  for (const schema of [{ type: 'no such type' }, { required: 'a' }, { properties: 1 }, { minimum: 'a' }])
    expect(() => compile(schema)).toThrow(/must be/);
});

test('an unknown tool is answered with the names there are, its own cut and escaped', async () => {
  const tools = registry();
  for (const name of ['Bash', 'bash ', 'constructor', '__proto__', '', 'toString'])
    expect(await tools.bind({ name, arguments: '{}' })).toMatchObject({
      ok: false,
      error: {
        code: 'unknown_tool',
        details: { available: tools.list().map((known) => known.name) },
      },
    });
  const binding = await tools.bind({ name: `\u001b[31m${'x'.repeat(500)}`, arguments: '{}' });
  expect(binding).toMatchObject({
    ok: false,
    error: { error: expect.stringMatching(/^There is no tool called "\\u001b\[31mx{58}…"/) },
  });
});

test.each([
  ['[]', '', 'an array'],
  ['"ls"', '', 'a string'],
  ['null', '', 'null'],
  ['{', '', 'not JSON'],
  [' ', '', 'not JSON'],
  ['{"n":1}{"n":2}', '', 'not JSON'],
  ["{'n':1}", '', 'not JSON'],
  ['{"n":1,}', '', 'not JSON'],
  ['{"n":"1"}', 'n', 'wrong type'],
  ['{"n":1.5}', 'n', 'wrong type'],
  ['{"m":1}', 'm', 'unknown argument'],
  ['{"__proto__":{"n":1}}', '__proto__', 'unknown argument'],
  ['{"n":1,"n":2}', 'n', 'given twice'],
  ['{"n":1, "\\u006e" :2}', 'n', 'given twice'],
  [`{"n":${'['.repeat(100)}${']'.repeat(100)}}`, '', 'nested too deeply'],
])('arguments %s are refused, naming %j', async (text, argument, problem) => {
  const tools = empty();
  tools.register(tool());
  expect(await tools.bind({ name: 'probe', arguments: text })).toMatchObject({
    ok: false,
    error: {
      code: 'invalid_args',
      details: { argument, problem: expect.stringContaining(problem), expected: expect.any(String) },
    },
  });
});

test('only the empty text stands for no arguments; text in values is not a structure', async () => {
  const tools = empty();
  tools.register(tool({ input_schema: { type: 'object' } }));
  expect(await tools.bind({ name: 'probe', arguments: '' })).toMatchObject({ ok: true, bound: { args: {} } });
  expect(
    await tools.bind({
      name: 'probe',
      arguments: String.raw`{"a":"\"b\":{[[", "b":{"a":[{"a":1},{"a":2}]}, "c":"\\"}`,
    }),
  ).toMatchObject({ ok: true });
  expect(({} as Record<string, unknown>).n).toBeUndefined();
});

test('eight MiB are too many, and a refusal repeats little of what was sent', async () => {
  const tools = empty();
  tools.register(tool());
  for (const text of [`{"n":"${'x'.repeat(8 * 1024 * 1024)}"}`, `{"${'k'.repeat(100_000)}":1}`, 'z'.repeat(100_000)]) {
    const binding = await tools.bind({ name: 'probe', arguments: text });
    expect(binding).toMatchObject({ ok: false, error: { code: 'invalid_args' } });
    expect(JSON.stringify(binding).length).toBeLessThan(900);
  }
});

test('limits of one tool travel with the call; an output limit only lowers the general one', async () => {
  const tools = empty();
  tools.register(tool({ name: 'a' }), { timeout_ms: 5, max_output_bytes: 10 });
  tools.register(tool({ name: 'b' }), { max_output_bytes: 5000 });
  expect(await tools.bind({ name: 'a', arguments: '{}' })).toMatchObject({
    bound: { limits: { timeoutMs: 5, maxOutputBytes: 10 } },
  });
  expect(await tools.bind({ name: 'b', arguments: '{}' })).toMatchObject({
    bound: { limits: { timeoutMs: null, maxOutputBytes: 1000 } },
  });
});

test('a rate limit gives back the time to wait, and units come back after a minute', () => {
  let time = 0;
  const tools = empty(() => time);
  tools.register(tool(), { rate_per_min: 2 });
  expect([tools.admit('probe'), tools.admit('probe'), tools.admit('other')]).toEqual([null, null, null]);
  time = 15_000;
  expect(tools.admit('probe')).toEqual({
    error: 'probe reached its calls per minute; wait 45 s.',
    code: 'rate_limited',
    details: { wait_ms: 45_000 },
  });
  time = 60_000;
  expect(tools.admit('probe')).toBeNull();
});

test('a tool that a schema found too late breaks only itself', async () => {
  const tools = createRegistry({ maxOutputBytes: 1, now: () => 0 });
  tools.register(tool({ input_schema: { type: 'no such type' } }));
  expect(await tools.bind({ name: 'probe', arguments: '{}' })).toMatchObject({
    ok: false,
    error: { code: 'internal' },
  });
});

test('in test mode what writes or runs is not run, what reads is, and arguments are still checked', async () => {
  const cwd = tree({ 'a.txt': 'x' });
  const tools = createRegistry({ maxOutputBytes: 1000, now: () => 0 });
  for (const one of inTestMode(builtinTools(toolOptions()))) tools.register(one);
  for (const [name, args] of [
    ['file_write', { path: 'b', content: '' }],
    ['file_edit', { path: 'a.txt', old_string: 'x', new_string: 'y' }],
    ['bash', { command: 'touch b' }],
  ] as const) {
    expect(await call(name, args, context(cwd), tools)).toEqual({
      envelope: { output: `[test mode] ${name} not run`, test_mode: true },
      summary: `[test mode] ${name} not run`,
    });
  }
  expect(await envelopeOf('glob', { pattern: '*' }, context(cwd), tools)).toEqual({ output: 'a.txt', count: 1 });
  expect(await envelopeOf('bash', { command: 7 }, context(cwd), tools)).toMatchObject({ code: 'invalid_args' });
});

test('the catalogue that every request carries stays small', () => {
  const catalogue = builtinTools(toolOptions()).map(({ name, description, input_schema }) => ({
    name,
    description,
    input_schema,
  }));
  expect(Buffer.byteLength(JSON.stringify(catalogue))).toBeLessThanOrEqual(2900);
  expect(catalogue.every(({ input_schema }) => input_schema.additionalProperties === false)).toBe(true);
});

test('a call is described by its name and arguments, bounded and well-formed', () => {
  expect(describeCall('glob', { pattern: '*.ts', path: 'src/' })).toBe('glob(pattern="*.ts", path="src/")');
  expect(describeCall('bash', { command: 'a\nb "c"', timeout_seconds: 5 })).toBe(
    String.raw`bash(command="a\nb \"c\"", timeout_seconds=5)`,
  );
  const long = describeCall('file_write', {
    path: 'p'.repeat(100),
    content: '\u{1F600}'.repeat(1000),
    more: 'x'.repeat(80),
  });
  expect([long.length <= 200, long.isWellFormed(), long.endsWith('…)')]).toEqual([true, true, true]);
});

test('bad calls as models send them get the class the fixtures name, and nothing throws', async () => {
  interface Case {
    readonly id: string;
    readonly tool_calls?: readonly { readonly function?: { readonly name?: unknown; readonly arguments?: unknown } }[];
    readonly expected: readonly string[];
    readonly accept?: readonly (readonly string[])[];
    readonly generator?: string;
  }
  const url = new URL('../../../fixtures/security/bad-tool-args.json', import.meta.url);
  const { cases } = JSON.parse(readFileSync(url, 'utf8')) as { readonly cases: readonly Case[] };
  const tools = registry();
  const cwd = tree({ a: 'x' });
  const renamed: Readonly<Record<string, string>> = { edit: 'file_edit' };
  const wrong: string[] = [];
  let skipped = 0;
  for (const one of cases) {
    const sent = one.tool_calls?.[0]?.function;
    // Rows about streams, ids and the web tool are the loop's; a class the contracts do not have is not a tool's
    // either.
    const known = one.expected.every((code) => ['unknown_tool', 'invalid_args', 'tool_error', 'ok'].includes(code));
    if (
      one.generator !== undefined ||
      one.tool_calls?.length !== 1 ||
      !known ||
      sent?.name === 'web_fetch' ||
      (sent && typeof sent.arguments !== 'string' && typeof sent.name === 'string')
    ) {
      skipped++;
      continue;
    }
    const name = typeof sent?.name === 'string' ? sent.name : '';
    const text = (typeof sent?.arguments === 'string' ? sent.arguments : '').replace('timeout_ms', 'timeout_seconds');
    const envelope = await envelopeOf(renamed[name] ?? name, text, context(cwd), tools);
    const code = typeof envelope.code === 'string' ? envelope.code : 'ok';
    const got = ['unknown_tool', 'invalid_args', 'ok'].includes(code) ? code : 'tool_error';
    if (![one.expected, ...(one.accept ?? [])].some((codes) => codes[0] === got)) wrong.push(`${one.id}: ${got}`);
  }
  console.log(`bad-tool-args: ${cases.length - skipped} run, ${skipped} skipped`);
  expect(wrong).toEqual([]);
});
