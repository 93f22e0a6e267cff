import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { agent, place, script } from './inside.js';
import type { Place } from '../e2e/program.js';

/** Twelve secrets, by where the program is given them. None looks like a key: only their values give them away. */
const secrets = {
  OPENAI_API_KEY: 'first-of-twelve-0001',
  ANTHROPIC_API_KEY: 'second "quoted" 0002',
  OPENROUTER_API_KEY: 'third-of-twelve-0003',
  DEEPSEEK_API_KEY: 'fourth-of-twelve-0004',
  GROQ_API_KEY: 'fifth-of-twelve-0005',
  MISTRAL_API_KEY: 'sixth-of-twelve-0006',
  GATEWAY_PASS: 'seventh-of-twelve-0007',
  XAI_API_KEY: 'eighth\\of\\twelve-0008',
} as const;

const header = 'ninth-of-twelve-0009';

const cookie = 'tenth-of-twelve-0010';

const proxyPassword = 'eleventh-of-twelve-0011';

const basePassword = 'twelfth-of-twelve-0012';

const all = [...Object.values(secrets), header, cookie, proxyPassword, basePassword];

function seeded(gateway: string): Place {
  const at = place({ 'notes.txt': `${all.join('\n')}\n` });
  mkdirSync(join(at.home, '.agent'), { mode: 0o700 });
  writeFileSync(
    join(at.home, '.agent/config.json'),
    JSON.stringify({
      providers: {
        gateway: {
          base_url: gateway,
          key_env: 'GATEWAY_PASS',
          default_model: 'm',
          headers: { Authorization: `Bearer ${header}`, Cookie: cookie },
        },
      },
      http: { max_retries: 1, retry_base_ms: 1 },
    }),
    { mode: 0o600 },
  );
  Object.assign(at.env, secrets, {
    HTTPS_PROXY: `http://me:${proxyPassword}@127.0.0.1:9`,
    ANTHROPIC_BASE_URL: `https://me:${basePassword}@127.0.0.1:9`,
  });
  return at;
}

/** Where a secret stands in a text, also as JSON writes it. */
function found(text: string): readonly string[] {
  return all.filter((secret) => text.includes(secret) || text.includes(JSON.stringify(secret).slice(1, -1)));
}

function foundBelow(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name !== '.agent/config.json' && statSync(join(folder, name)).isFile())
    .flatMap((name) => found(readFileSync(join(folder, name), 'latin1')).map((secret) => `${name}: ${secret}`));
}

/** A gateway that answers with everything it was sent, and counts. */
async function echoingGateway(status: number): Promise<{ readonly url: string; requests: number }> {
  const gateway = { url: '', requests: 0 };
  const server = createServer((request, response) => {
    gateway.requests++;
    response
      .writeHead(status, { 'content-type': 'application/json' })
      .end(JSON.stringify({ error: { message: `no: ${JSON.stringify(request.headers)} ${all.join(' ')}` } }));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => {
    server.close();
  });
  gateway.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return gateway;
}

test.each([401, 400, 500])(
  'a server that echoes keys in its error (%i) makes none of twelve secrets appear anywhere',
  async (status) => {
    const gateway = await echoingGateway(status);
    const at = seeded(gateway.url);
    for (const format of ['text', 'json', 'stream-json']) {
      const { code, stdout, stderr } = await agent(at, [
        '-p',
        '--provider',
        'gateway',
        '--debug',
        '-v',
        '--output-format',
        format,
        'go',
      ]);
      expect(code).toBe(status === 401 ? 4 : 1);
      expect(found(stdout + stderr)).toEqual([]);
    }
    const checked = await agent(at, ['providers', 'check', 'gateway', '--json']);
    expect([checked.code !== 0, found(checked.stdout + checked.stderr)]).toEqual([true, []]);
    expect(gateway.requests).toBeGreaterThanOrEqual(4);
    expect(foundBelow(at.home)).toEqual([]);
  },
);

test('secrets that tools print, files hold and people paste are not recorded, shown or sent on', async () => {
  const at = seeded('http://127.0.0.1:9');
  const call = (name: string, args: unknown): unknown => ({ name, arguments: args });
  const model = script(at, [
    {
      calls: [
        call('bash', {
          command:
            'env > env.txt; for each in /proc/[0-9]*/cmdline; do tr "\\0" " " < "$each"; done > processes.txt 2>/dev/null; env; cat notes.txt',
        }),
      ],
    },
    {
      calls: [
        call('file_read', { path: 'notes.txt' }),
        call('grep', { pattern: 'twelve' }),
        call('file_write', { path: 'new.txt', content: secrets.OPENAI_API_KEY }),
      ],
    },
    { text: 'Done.' },
  ]);
  const run = await agent(
    at,
    ['-p', '-m', model, '--approval', 'never', '--debug', '-v', '--output-format', 'stream-json'],
    { stdin: `the key is ${secrets.GROQ_API_KEY}` },
  );
  expect([run.code, found(run.stdout + run.stderr)]).toEqual([0, []]);
  expect(run.stdout).toContain('«redacted:OPENAI_API_KEY»');
  expect(foundBelow(at.home)).toEqual([]);
  const [session] = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as readonly { id: string }[];
  const id = session?.id ?? '';
  for (const args of [
    ['sessions', 'show', id, '--json'],
    ['sessions', 'show', id],
    ['sessions', 'show', id, '--as', 'anthropic-messages'],
    ['sessions', 'export', id],
    ['audit', '--json'],
    ['config', 'show'],
    ['providers', '--json'],
    ['doctor'],
  ]) {
    const { stdout, stderr } = await agent(at, args);
    expect([args, found(stdout + stderr)]).toEqual([args, []]);
    expect(stdout.length).toBeGreaterThan(20);
  }
  expect(found(readFileSync(join(at.work, 'processes.txt'), 'latin1'))).toEqual([]);
  expect(found(readFileSync(join(at.work, 'env.txt'), 'latin1'))).toEqual([proxyPassword, basePassword]);
  expect(readFileSync(join(at.work, 'new.txt'), 'utf8')).toBe(secrets.OPENAI_API_KEY);
});

test('a redacted event is gone from every file, its copies too; the chain stays whole and the session goes on', async () => {
  const at = place({ 'a.txt': 'before-the-change\n' });
  const calls = [
    { name: 'bash', arguments: { command: 'echo first-output-word' } },
    { name: 'file_write', arguments: { path: 'a.txt', content: 'written-content-word\n' } },
  ];
  await agent(at, ['-p', '-m', script(at, [{ calls }, { text: 'answer-word' }]), 'prompt-word']);
  const rows = async (id: string): Promise<readonly { seq: number; kind: string }[]> =>
    JSON.parse((await agent(at, ['sessions', 'show', id, '--json'])).stdout) as never;
  const [session] = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as readonly { id: string }[];
  const id = session?.id ?? '';
  await agent(at, [
    '-p',
    '-r',
    id,
    '--fork',
    '-m',
    script(at, [{ text: '' }, { text: '' }, { text: 'Forked.' }]),
    'next',
  ]);
  expect((await agent(at, ['search', 'first-output-word', '--json'])).stdout).toContain('first');
  for (const { seq, kind } of await rows(id)) {
    const { code, stderr } = await agent(at, ['redact', id, String(seq)]);
    expect([kind, code, stderr.split('\n').length]).toEqual([
      kind,
      ['tools', 'usage', 'tool_started'].includes(kind) ? 2 : 0,
      ['tools', 'usage', 'tool_started'].includes(kind) ? 3 : 1,
    ]);
  }
  const texts = readdirSync(join(at.home, '.agent'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    .join('');
  expect(
    ['prompt-word', 'first-output-word', 'written-content-word', 'before-the-change', 'answer-word'].filter((word) =>
      texts.includes(word),
    ),
  ).toEqual([]);
  expect(await agent(at, ['audit', 'verify'])).toMatchObject({ code: 0 });
  const body = JSON.parse((await agent(at, ['sessions', 'show', id, '--as', 'openai-chat'])).stdout) as {
    messages: readonly { role: string }[];
  };
  expect(body.messages.map((message) => message.role)).toEqual([
    'system',
    'user',
    'assistant',
    'tool',
    'tool',
    'assistant',
  ]);
  expect((await agent(at, ['search', 'first-output-word', '--json'])).stdout).toBe('[]\n');
  expect(
    await agent(at, ['-p', '-r', id, '-m', script(at, [{ text: '' }, { text: '' }, { text: 'Going on.' }]), 'go on']),
  ).toMatchObject({ code: 0, stdout: 'Going on.\n' });
  expect(await agent(at, ['redact', id, '999'])).toMatchObject({ code: 2 });
});
