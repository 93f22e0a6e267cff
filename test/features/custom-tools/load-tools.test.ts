import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { type Envelope, isError } from '../../../src/kernel/core/envelope.js';
import type { ToolContext } from '../../../src/kernel/core/tool.js';
import { createRegistry } from '../../../src/kernel/tools/registry.js';
import { customTools } from '../../../src/features/custom-tools/load-tools.js';
import { readToolFile } from '../../../src/features/custom-tools/tool-files.js';
import { listToolFiles } from '../../../src/features/custom-tools/tool-places.js';
import { context, processes, tree } from '../../kernel/tools/workbench.js';

const custom = { name: 'custom', on: false, about: '' };
const examples = fileURLToPath(new URL('../../../docs/examples', import.meta.url));

/** Loads tools that the user has allowed as they are now, and returns how to call one. */
async function loaded(files: readonly string[], env: Readonly<Record<string, string | undefined>> = process.env) {
  const notices: string[] = [];
  const found = await customTools(files, {
    processes,
    env,
    protectedEnv: ['MY_KEY'],
    timeoutMs: 60_000,
    isAllowed: () => true,
    notify: (message) => notices.push(message),
  });
  const registry = createRegistry({ maxOutputBytes: 1_048_576, now: () => 0 });
  for (const { tool } of found) registry.register({ ...tool, toolset: custom });
  const call = async (name: string, args: object, ctx: Partial<ToolContext> = {}): Promise<Envelope> => {
    const binding = await registry.bind({ name, arguments: JSON.stringify(args) });
    if (!binding.ok) return binding.error;
    const { tool, limits } = binding.bound;
    return (await tool.run(binding.bound.args, { ...context(tree()), limits, ...ctx })).envelope;
  };
  return { call, notices, names: found.map(({ tool }) => tool.name), found };
}

/** The files of a tool that is a shell script. */
function shellTool(script: string, more: object = {}, folder = 'tool'): Readonly<Record<string, string>> {
  const about = { name: folder, description: 'Does it.', command: ['sh', './run.sh'], ...more };
  return { [`${folder}/tool.json`]: JSON.stringify(about), [`${folder}/run.sh`]: script };
}

async function callShell(script: string, more: object = {}, args: object = {}, ctx: Partial<ToolContext> = {}) {
  const { call } = await loaded([tree(shellTool(script, more)) + '/tool']);
  return await call('tool', args, ctx);
}

test("seed 000's insert_clip is a Python program: it gets the arguments, and its result fits its schema", async () => {
  const cwd = tree();
  const { call } = await loaded([join(examples, 'insert_clip')]);
  const clip = { track: 'Drums', start_bar: 1, spec: { bars: 4, style: 'lofi "x"' } };
  const said: string[] = [];
  const progress = (chunk: string): void => void said.push(chunk);
  expect(await call('insert_clip', clip, { cwd, progress })).toEqual({ output: '{"ok":true,"clip_id":1}' });
  expect(await call('insert_clip', clip, { cwd })).toEqual({ output: '{"ok":true,"clip_id":2}' });
  expect(said.join('')).toBe('inserting 4 bars on Drums at bar 1\n');
  expect(JSON.parse(readFileSync(join(cwd, 'timeline.json'), 'utf8'))).toMatchObject([{ clip_id: 1, ...clip }, {}]);
  expect(await call('insert_clip', { ...clip, start_bar: 0 })).toMatchObject({
    code: 'invalid_args',
    details: { argument: 'start_bar', problem: 'out of range', expected: 'a value >= 1' },
  });
  expect(await call('insert_clip', { ...clip, bar: 1 })).toMatchObject({ details: { problem: 'unknown argument' } });
  expect(await call('insert_clip', { ...clip, spec: { bars: 0 } })).toEqual({
    error: 'spec.bars is 0; give a whole number from 1.',
    code: 'invalid_args',
  });
});

test('a program gets the id of its call and no keys, and works where the call does', async () => {
  const cwd = tree();
  const env = { PATH: process.env.PATH, MY_KEY: 'secret', OTHER: 'kept' };
  const { call } = await loaded([tree(shellTool('echo "$AGENT_CALL_ID[$MY_KEY]$OTHER"; pwd; cat')) + '/tool'], env);
  const started = { tool_call_id: 'call_7' };
  const session = {
    id: 's',
    events: () => [],
    recent: () => [{ seq: 1, kind: 'tool_started', content: null, data: started, createdAt: 0 }],
  };
  expect(await call('tool', { a: "it's" }, { cwd, session })).toEqual({
    output: `call_7[]kept\n${cwd}\n{"a":"it's"}`,
  });
});

test.each([
  ['a limit of 300 ms', 'sleep 30', { limits: { timeout_ms: 300 } }, { code: 'timeout' }],
  ['an exit code', 'echo no >&2; exit 3', {}, { error: 'tool ended with exit code 3: no', code: 'execution_failed' }],
  ['a program that is missing', '', { command: ['no-such-program'] }, { code: 'execution_failed' }],
  ['what is not JSON', 'echo hello', { returns: 'json' }, { code: 'execution_failed', details: { output: 'hello' } }],
  ['two values', 'echo 1 2', { returns: 'json' }, { code: 'execution_failed' }],
  [
    'what is not as promised',
    `echo '{"ok":1}'`,
    { returns: { type: 'object', properties: { ok: { type: 'boolean' } } } },
    { error: 'tool returned ok: wrong type, not boolean.', code: 'execution_failed' },
  ],
  [
    'an error of its own',
    `echo '{"error":"not now","code":"rate_limited"}'; exit 1`,
    { returns: 'json' },
    { error: 'not now', code: 'rate_limited' },
  ],
  [
    'a code of its own',
    `echo '{"error":"x","code":"teapot"}'`,
    { returns: 'json' },
    { error: 'x', code: 'execution_failed' },
  ],
  ['a number', 'echo 7', { returns: 'json' }, { output: '7' }],
  ['an envelope', `echo '{"output":"done","rows":2}'`, { returns: 'json' }, { output: 'done', rows: 2 }],
  ['text', 'printf "a\\n\\n"', {}, { output: 'a\n' }],
])('%s', async (_what, script, more, envelope) => {
  expect(await callShell(script, more)).toMatchObject(envelope);
});

test('the output is cut to the limit of the tool', async () => {
  const script = 'head -c 200000 /dev/zero | tr "\\0" x';
  const cut = await callShell(script, { limits: { max_output_bytes: 65_536 } });
  expect(cut).toMatchObject({ truncated: true, total_bytes: 200_000 });
  expect(Buffer.byteLength(isError(cut) ? '' : cut.output)).toBe(65_536);
});

test('a call that is cancelled ends the program', async () => {
  const stop = new AbortController();
  const done = callShell(
    'echo started >&2; sleep 30',
    {},
    {},
    {
      signal: stop.signal,
      progress: () => {
        stop.abort();
      },
    },
  );
  expect(await done).toMatchObject({ code: 'cancelled' });
});

test('one changed byte of the descriptor or the program changes the hash, and no call runs any more', async () => {
  const root = tree(shellTool('echo 1'));
  const [path = ''] = listToolFiles(root);
  const before = readToolFile(path);
  const { call } = await loaded([path]);
  expect(await call('tool', {})).toEqual({ output: '1' });
  writeFileSync(join(root, 'tool/run.sh'), 'echo 2');
  expect(readToolFile(path)).not.toEqual(before);
  expect(await call('tool', {})).toMatchObject({
    code: 'permission_denied',
    error: expect.stringContaining(`agent tools add ${root}/tool`) as string,
  });
  writeFileSync(join(root, 'tool/run.sh'), 'echo 1');
  expect(readToolFile(path)).toEqual(before);
  expect(await call('tool', {})).toEqual({ output: '1' });
});

test('what nobody has allowed is left out with a notice, and not even loaded', async () => {
  const root = tree({ 'evil.mjs': 'throw new Error("it ran")', ...shellTool('echo 1') });
  const notices: string[] = [];
  const found = await customTools(listToolFiles(root), {
    processes,
    env: {},
    protectedEnv: [],
    timeoutMs: 1000,
    isAllowed: () => false,
    notify: (message) => notices.push(message),
  });
  expect(found).toEqual([]);
  expect(notices).toEqual([
    expect.stringContaining(`agent tools add ${root}/evil.mjs`),
    expect.stringContaining(`agent tools add ${root}/tool/tool.json`),
  ]);
});

test('a module gives one tool or several', async () => {
  const module = `
    class ToolError extends Error { name = 'ToolError'; constructor(code, message) { super(message); this.code = code; } }
    export default [
      { name: 'double', description: 'Doubles.', parameters: { type: 'object', properties: { n: { type: 'number' } } },
        returns: 'json', effect: 'read', execute: ({ n }) => ({ doubled: n * 2 }) },
      { name: 'hang', description: 'Never ends.', parameters: {}, execute: () => new Promise(() => {}) },
      { name: 'refuse', description: 'Refuses.', parameters: {}, execute: () => { throw new ToolError('not_found', 'No.'); } },
    ];`;
  const { call, found } = await loaded([join(tree({ 'two.mjs': module }), 'two.mjs')]);
  expect(found.map(({ tool }) => [tool.name, tool.effect])).toEqual([
    ['double', 'read'],
    ['hang', 'execute'],
    ['refuse', 'execute'],
  ]);
  expect(await call('double', { n: 4 })).toEqual({ output: '{"doubled":8}' });
  expect(await call('refuse', {})).toEqual({ error: 'No.', code: 'not_found' });
  const stop = new AbortController();
  const hanging = call('hang', {}, { signal: stop.signal });
  stop.abort();
  expect(await hanging).toMatchObject({ code: 'cancelled' });
});

test('the hash of a module covers what it imports, at any depth, and a module that changes while it loads is refused', async () => {
  const root = tree({
    'tool.mjs': `import { double } from './lib/double.mjs';
      export default { name: 'double', description: 'Doubles.', parameters: {}, execute: () => double(2) };`,
    'lib/double.mjs': "export { double } from '../deep/er.mjs'; import './tool-data.json';",
    'lib/tool-data.json': '{}',
    'deep/er.mjs': 'const other = await import("./last.mjs"); export const double = (n) => String(other.factor * n);',
    'deep/last.mjs': 'export const factor = 2;',
    'beside.mjs': 'export {}',
  });
  const path = join(root, 'tool.mjs');
  const before = readToolFile(path);
  const write = (name: string, text: string): void => {
    writeFileSync(join(root, name), text);
  };
  write('beside.mjs', 'export const x = 1;');
  expect(readToolFile(path)).toEqual(before);
  for (const name of ['lib/double.mjs', 'lib/tool-data.json', 'deep/er.mjs', 'deep/last.mjs']) {
    const text = readFileSync(join(root, name), 'utf8');
    write(name, `${text}\n`);
    expect(readToolFile(path), name).not.toEqual(before);
    write(name, text);
  }
  const changing = join(tree({ 'changes.mjs': '' }), 'changes.mjs');
  writeFileSync(
    changing,
    `import { appendFileSync } from 'node:fs'; appendFileSync(new URL(import.meta.url).pathname, '//');
     export default { name: 'one', description: 'One.', parameters: {}, execute: () => '1' };`,
  );
  expect((await loaded([changing])).notices).toEqual([expect.stringContaining('it changed while it was loaded')]);
});

test.each([
  ['{', 'it is not JSON'],
  ['[]', 'it is not a JSON object'],
  [{ name: 'a b' }, '`name` needs letters'],
  [{ description: '' }, '`description` needs a text'],
  [{ descripton: 'x' }, 'no key `descripton`; did you mean `description`.'],
  [{ command: 'run' }, '`command` needs the program'],
  [{ command: ['sh', 1] }, '`command` needs the program'],
  [{ command: ['bin/run'] }, 'write ./bin/run'],
  [{ command: ['./../run'] }, 'is outside the tool'],
  [{ command: ['./gone.sh'] }, 'there is no file'],
  [{ effect: 'none' }, '`effect` needs one of'],
  [{ returns: 'text' }, '`returns` needs'],
  [{ limits: { timeout: 1 } }, '`limits` takes timeout_ms'],
  [{ limits: { timeout_ms: 0.5 } }, '`limits` takes timeout_ms'],
])('a descriptor with %j is left out: %s', async (change, problem) => {
  const files = shellTool('echo 1');
  const right: unknown = JSON.parse(files['tool/tool.json'] ?? '');
  const text = typeof change === 'string' ? change : JSON.stringify({ ...(right as object), ...change });
  const root = tree({ ...files, 'tool/tool.json': text });
  const { notices, names } = await loaded([join(root, 'tool')]);
  expect(names).toEqual([]);
  expect(notices).toEqual([expect.stringContaining(problem)]);
  expect(notices[0]).toContain(join(root, 'tool/tool.json'));
});

test.each([
  ['{ execute: 1 }', 'a module needs a default export'],
  ['{ effect: "none" }', '`effect` needs one of read, write, execute, network'],
  ['{ limits: { timeout: 5 } }', '`limits` takes timeout_ms'],
  ['{ returns: "text" }', '`returns` needs'],
  ['{ parameters: { type: "object", required: 1 } }', 'required'],
])('a module with %s is left out: %s', async (change, problem) => {
  const right = '{ name: "a", description: "A.", parameters: {}, execute: () => "" }';
  const root = tree({ 'a.mjs': `export default { ...${right}, ...${change} };` });
  const { notices, names } = await loaded([join(root, 'a.mjs')]);
  expect(names).toEqual([]);
  expect(notices).toEqual([expect.stringContaining(problem)]);
});

test('nothing that nobody sees stands in the description a model is given', async () => {
  const description = 'Adds.\u200b\u{e0041}\n\u202eTwice.';
  const { found } = await loaded([join(tree(shellTool('', { description })), 'tool')]);
  expect(found.map(({ tool }) => tool.description)).toEqual(['Adds.\nTwice.']);
});

test('secrets in the progress of a module are hidden, the last piece too', async () => {
  const module = `export default { name: 'talk', description: 'Talks.', parameters: {}, effect: 'read',
    execute: (args, { progress }) => { progress('the key is abc'); progress('def, really'); return 'done'; } };`;
  const { call } = await loaded([join(tree({ 'talk.mjs': module }), 'talk.mjs')]);
  let held = '';
  const outputMask = {
    longest: 6,
    skip: () => undefined,
    add: (piece: string) => {
      const text = (held + piece).replaceAll('abcdef', '***');
      held = text.slice(-5);
      return text.slice(0, -5);
    },
    end: () => held,
  };
  const said: string[] = [];
  await call('talk', {}, { outputMask, progress: (chunk) => void said.push(chunk) });
  expect(said.join('')).toBe('the key is ***, really');
});

test('a schema that cannot be compiled is found when the tools are loaded', async () => {
  const root = tree(shellTool('echo 1', { input_schema: { type: 'object', properties: { a: { type: 'text' } } } }));
  const { notices, names } = await loaded([join(root, 'tool')]);
  expect(names).toEqual([]);
  expect(notices).toEqual([expect.stringMatching(/tool\.json are disabled: .*type/)]);
});

test('a program of its own is run by its first line', async () => {
  const root = tree(shellTool('#!/bin/sh\necho mine', { command: ['./run.sh'] }));
  chmodSync(join(root, 'tool/run.sh'), 0o755);
  const { call } = await loaded([join(root, 'tool')]);
  expect(await call('tool', {})).toEqual({ output: 'mine' });
});
