import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { agent, place, repl, script } from './inside.js';

const example = fileURLToPath(new URL('../../docs/examples/insert_clip', import.meta.url));
const clip = { track: 'Drums', start_bar: 1, spec: { bars: 4, style: 'lofi' } };
const turns = [{ calls: [{ name: 'insert_clip', arguments: clip }] }, { text: 'It is in.' }];

type At = ReturnType<typeof place>;

/** A place with seed 000's tool in the folder of the project. */
function withClip(): At {
  const at = place();
  mkdirSync(join(at.work, '.agent/tools'), { recursive: true });
  cpSync(example, join(at.work, '.agent/tools/insert_clip'), { recursive: true });
  return at;
}

const folder = '.agent/tools/insert_clip';

/** Allows the tool by its hash, as no terminal to ask in. */
async function allow(at: At, path = folder): Promise<string> {
  const shown = await agent(at, ['tools', 'add', path]);
  const [, sha256 = ''] = /^sha256 (\w{64})$/m.exec(shown.stdout) ?? [];
  expect(await agent(at, ['tools', 'add', path, '--sha256', sha256])).toMatchObject({ code: 0, stderr: '' });
  return sha256;
}

test('a tool is shown before it is allowed, and nothing of it counts before', async () => {
  const at = withClip();
  const shown = await agent(at, ['tools', 'add', folder]);
  expect(shown).toMatchObject({ code: 2, stderr: expect.stringContaining('--sha256') as string });
  expect(shown.stdout).toContain('insert_clip (write): Insert a validated ClipSpec');
  expect(shown.stdout).toMatch(/runs python3 \/.*insert_clip\/insert_clip\.py/);
  const before = await agent(at, ['tools', 'list', '--tools', '+custom']);
  expect(before.stdout).not.toContain('insert_clip');
  expect(before.stderr).toMatch(/disabled: the current files were not allowed/);
  expect((await agent(at, ['tools', 'add', folder, '--sha256', 'abc'])).code).toBe(2);
  await allow(at);
  expect((await agent(at, ['tools', 'list', '--tools', '+custom'])).stdout).toMatch(/^insert_clip +custom +write/m);
  expect((await agent(at, ['tools', 'list'])).stdout).toMatch(/^insert_clip +custom +write/m);
  expect((await agent(at, ['tools', 'list', '--tools=-custom'])).stdout).not.toContain('insert_clip');
  const described = await agent(at, ['tools', 'show', 'insert_clip', '--json']);
  expect(JSON.parse(described.stdout)).toMatchObject({
    returns: { required: ['ok', 'clip_id'] },
    effect: 'write',
    limits: { timeout_ms: 5000 },
  });
});

test('a model uses it, headless too; one changed byte, or its removal, ends that', async () => {
  const at = withClip();
  await allow(at);
  const go = ['-p', '--tools', '+custom', '-m', script(at, turns), '--output-format', 'stream-json', 'go'];
  const used = await agent(at, go);
  expect(used).toMatchObject({ code: 0, stderr: '' });
  expect(used.stdout).toContain(String.raw`"output":"{\"output\":\"{\\\"ok\\\":true,\\\"clip_id\\\":1}\"}"`);
  expect(readFileSync(join(at.work, 'timeline.json'), 'utf8')).toContain('lofi');
  const program = join(at.work, folder, 'insert_clip.py');
  writeFileSync(program, `${readFileSync(program, 'utf8')}#`);
  const changed = await agent(at, go);
  expect(changed.stdout).toContain('unknown_tool');
  expect(changed.stdout).toContain('the current files were not allowed');
  await allow(at);
  expect((await agent(at, go)).stdout).toContain('clip_id');
  expect((await agent(at, ['tools', 'remove', 'insert_clip'])).stdout).toMatch(/is no longer allowed/);
  expect((await agent(at, ['tools', 'remove', 'insert_clip'])).code).toBe(2);
  expect((await agent(at, go)).stdout).toContain('unknown_tool');
});

test('tools beside the settings and tools added from elsewhere are offered, and their limits may be set', async () => {
  const at = place({
    'elsewhere/hello.mjs':
      'export default { name: "hello", description: "Hello.", parameters: {}, execute: () => "hi" };',
  });
  await allow(at, 'elsewhere/hello.mjs');
  const called = await agent(at, [
    'tools',
    'call',
    'hello',
    '--set',
    'toolsets=custom',
    '--set',
    'tools.limits={"hello":{"rate_per_min":5}}',
  ]);
  expect(called).toMatchObject({ code: 0, stdout: '{"output":"hi"}\n', stderr: '' });
  const tested = await agent(at, ['tools', 'call', 'hello', '--test', '--set', 'toolsets=custom']);
  expect(JSON.parse(tested.stdout)).toEqual({ output: '[test mode] hello not run', test_mode: true });
});

const hasSandbox = existsSync('/usr/bin/bwrap');

test.skipIf(!hasSandbox)('a program is held by the sandbox, and finds its own files there', async () => {
  const at = withClip();
  await allow(at);
  const call = ['tools', 'call', 'insert_clip', JSON.stringify(clip), '--set', 'toolsets=custom', '--sandbox'];
  expect(JSON.parse((await agent(at, [...call, 'workspace'])).stdout)).toEqual({ output: '{"ok":true,"clip_id":1}' });
  const held = await agent(at, [...call, 'read-only']);
  expect(JSON.parse(held.stdout)).toMatchObject({
    code: 'execution_failed',
    error: expect.stringMatching(/[Rr]ead-only/) as string,
  });
});

test.each([
  ['read', {}, 'read-only', []],
  ['read', { path: '.env' }, 'dangerous', ['WORK/.env contains secrets']],
  ['write', {}, 'mutating', ['probe writes']],
  ['execute', { command: 'ls' }, 'mutating', ['probe runs a program']],
  ['execute', { command: 'rm -rf ~' }, 'dangerous', [expect.stringContaining('rm -rf') as string]],
  ['network', { command: 'ls' }, 'mutating', ['probe uses the network']],
])('policy judges a tool that may %s and is called with %j as %s', async (effect, args, risk, reasons) => {
  const parameters = { type: 'object', properties: { path: {}, command: {} } };
  const about = JSON.stringify({ name: 'probe', description: 'Probes.', parameters, effect });
  const at = place({ 'probe.mjs': `export default { ...${about}, execute: () => 'ok' };` });
  await allow(at, 'probe.mjs');
  const { stdout } = await agent(at, ['tools', 'check', 'probe', JSON.stringify(args), '--set', 'toolsets=custom']);
  expect(JSON.parse(stdout.replaceAll(at.work, 'WORK'))).toMatchObject({ risk, reasons });
});

test('a name that is taken is an error at the start, which names both', async () => {
  const grep = 'export default { name: "grep", description: "Mine.", parameters: {}, execute: () => "" };';
  const at = place({ 'mine.mjs': grep });
  await allow(at, 'mine.mjs');
  const taken = await agent(at, ['-p', '--tools', '+custom', 'list *']);
  expect(taken.code).toBe(2);
  expect(taken.stderr).toMatch(/two tools are called `grep`: one of .*mine\.mjs and one of the set fs of the program/);
  expect((await agent(at, ['-p', 'list *'])).code).toBe(0);
});

test('in the REPL a tool is added with a yes, and the session records it', async () => {
  const at = withClip();
  const model = script(at, turns);
  const { stdout } = await repl(
    at,
    ['-m', model],
    [
      [`/tools add ${folder}`, /runs python3 [^]*Allow these tools/],
      ['2', 'insert_clip. This invalidates the prompt cache.'],
      ['go', 'It is in.'],
    ],
  );
  expect(stdout).toContain('✔ insert_clip track=Drums start_bar=1');
  const again = await repl(at, ['-c', '-m', model], [['/tools', /insert_clip[^]*custom/]]);
  expect(again.code).toBe(0);
});

test('tools whose schema the start would refuse are not added', async () => {
  const program = { name: 'odd', description: 'Odd.', effect: 'read', command: ['true'] };
  const schemas = [{ type: 'nonsense' }, { type: 'string' }, { properties: { a: { type: 'nonsense' } } }];
  for (const schema of schemas) {
    const at = place({
      'odd/tool.json': JSON.stringify({ ...program, input_schema: schema }),
      'odd.mjs': `export default { name: 'odd', description: 'Odd.', effect: 'read', parameters: ${JSON.stringify(schema)}, execute: () => 'x' };`,
    });
    for (const path of ['odd', 'odd.mjs']) {
      const shown = await agent(at, ['tools', 'add', path]);
      const [, sha256 = ''] = /^sha256 (\w{64})$/m.exec(shown.stdout) ?? [];
      const added = await agent(at, ['tools', 'add', path, '--sha256', sha256]);
      expect([path, added.code, added.stderr]).toEqual([
        path,
        2,
        expect.stringMatching(/^agent: Not added: .*\n.*\n$/),
      ]);
    }
  }
});
