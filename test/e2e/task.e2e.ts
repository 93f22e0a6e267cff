import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { agent, lines, place } from './program.js';
import { modelServer, type Turn } from './model-server.js';

const repository = fileURLToPath(new URL('../..', import.meta.url));

/** Finds a broken function in a copy of this repository, mends it and runs its test: five different tools, six
 * turns. */
const task: readonly Turn[] = [
  {
    text: 'I look for the file first.',
    calls: [
      { name: 'glob', arguments: { pattern: 'src/kernel/core/i*.ts' } },
      { name: 'grep', arguments: { pattern: 'function ulid', path: 'src' } },
    ],
  },
  { calls: [{ name: 'file_read', arguments: { path: 'src/kernel/core/store.ts' } }] },
  { calls: [{ name: 'bash', arguments: { command: 'node check.mjs' } }] },
  {
    calls: [
      {
        name: 'file_edit',
        arguments: { path: 'src/kernel/core/store.ts', old_string: '30 ** digit', new_string: '32 ** digit' },
      },
    ],
  },
  { calls: [{ name: 'bash', arguments: { command: 'node check.mjs' } }] },
  { text: 'The version bits were wrong; the test passes now.' },
];
const check =
  "import { readFileSync } from 'node:fs';\nif (!readFileSync('src/kernel/core/store.ts', 'utf8').includes('32 ** digit')) { console.error('the base is wrong'); process.exit(1); }\nconsole.log('ok');\n";

test.each([
  [
    'openai-chat',
    (url: string) => ({ OPENAI_API_KEY: 'k-0123456789', OPENAI_BASE_URL: `${url}/v1`, AGENT_MODEL: 'openai/m' }),
  ],
  [
    'anthropic-messages',
    (url: string) => ({ ANTHROPIC_API_KEY: 'k-0123456789', ANTHROPIC_BASE_URL: url, AGENT_MODEL: 'anthropic/m' }),
  ],
  [
    'openai-responses',
    (url: string) => ({
      OPENAI_API_KEY: 'k-0123456789',
      OPENAI_BASE_URL: `${url}/v1`,
      AGENT_MODEL: 'openai/m',
      AGENT_PROVIDER_API: 'openai-responses',
    }),
  ],
] as const)(
  'over %s and real HTTP a task on a real checkout ends with an edit that makes a failing test pass',
  async (wire, environment) => {
    const at = place();
    cpSync(join(repository, 'src'), join(at.work, 'src'), { recursive: true });
    const broken = readFileSync(join(at.work, 'src/kernel/core/store.ts'), 'utf8').replace(
      '32 ** digit',
      '30 ** digit',
    );
    writeFileSync(join(at.work, 'src/kernel/core/store.ts'), broken);
    writeFileSync(join(at.work, 'check.mjs'), check);
    execFileSync('git', ['init', '-q', at.work]);
    expect(spawnSync(process.execPath, ['check.mjs'], { cwd: at.work }).status).toBe(1);

    const server = await modelServer(task);
    const { code, stdout, stderr } = await agent(at, ['-p', '--output-format', 'stream-json', 'make the check pass'], {
      env: environment(server.url),
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const results = lines(stdout).filter((line) => line.type === 'tool_result');
    expect(results.map((line) => [line.name, line.success])).toEqual([
      ['glob', true],
      ['grep', true],
      ['file_read', true],
      ['bash', true],
      ['file_edit', true],
      ['bash', true],
    ]);
    expect(results.map((line) => (JSON.parse(String(line.output)) as { exit_code?: number }).exit_code)).toEqual([
      undefined,
      undefined,
      undefined,
      1,
      undefined,
      0,
    ]);
    expect(lines(stdout).at(-1)).toMatchObject({
      status: 'completed',
      text: 'The version bits were wrong; the test passes now.',
      turns: 5,
      tool_calls: 6,
    });
    expect(spawnSync(process.execPath, ['check.mjs'], { cwd: at.work }).status).toBe(0);
    expect(server.requests).toHaveLength(6);
    const shown = await agent(at, ['sessions', 'show', String(lines(stdout)[0]?.session_id), '--as', wire, '--json']);
    expect(shown.code).toBe(0);
  },
);

test('every request is an exact prefix of the next one', async () => {
  const at = place({ 'a.txt': 'x' });
  const turns: Turn[] = [
    ...Array.from({ length: 12 }, (_, n): Turn => ({ calls: [{ name: 'bash', arguments: { command: `echo ${n}` } }] })),
    { text: 'done' },
  ];
  const server = await modelServer(turns);
  await agent(at, ['-p', 'go'], {
    env: { OPENAI_API_KEY: 'k-0123456789', OPENAI_BASE_URL: `${server.url}/v1`, AGENT_MODEL: 'openai/m' },
  });
  const messages = server.requests.map((request) => request.body.messages as readonly unknown[]);
  expect(messages).toHaveLength(13);
  for (const [index, list] of messages.slice(1).entries())
    expect(list.slice(0, messages[index]?.length)).toEqual(messages[index]);
  expect(new Set(server.requests.map((request) => JSON.stringify(request.body.tools))).size).toBe(1);
});

test('the default prompt and the six tools stay within their budget of 1,100 tokens', async () => {
  const at = place();
  const server = await modelServer([{ text: 'hello' }]);
  await agent(at, ['-p', 'hi'], {
    env: { OPENAI_API_KEY: 'k-0123456789', OPENAI_BASE_URL: `${server.url}/v1`, AGENT_MODEL: 'openai/m' },
  });
  const body = server.requests[0]?.body as { messages: readonly { content: string }[]; tools: readonly unknown[] };
  const bytes = Buffer.byteLength(body.messages[0]?.content ?? '') + Buffer.byteLength(JSON.stringify(body.tools));
  expect(bytes / 4).toBeLessThanOrEqual(1100);
  expect(body.tools).toHaveLength(6);
  expect(Buffer.byteLength(JSON.stringify(body))).toBeLessThanOrEqual(4706);
});
