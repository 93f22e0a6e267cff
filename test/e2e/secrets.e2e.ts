import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, place, script, type Place } from './program.js';
import { openScreen } from './terminal.js';

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

test('a secret is not on the screen while a command prints it piece by piece or a model says it, nor in the result of a call by hand', async () => {
  const at = seeded('http://127.0.0.1:9');
  const key = secrets.GROQ_API_KEY;
  const command =
    'key=$(grep fifth notes.txt); for n in 1 2 3; do printf %s "${key:0:7}"; sleep 0.2; printf "%s\\n" "${key:7}"; sleep 0.2; done; cat notes.txt; echo printed; sleep 0.3';
  const model = script(at, [
    { calls: [{ name: 'bash', arguments: { command } }] },
    { text: `It is ${key}, and that was all of it.` },
  ]);
  const screen = openScreen(at, ['--approval', 'never', '-m', model, 'go'], { columns: 200 });
  await screen.until(/that was all of it/);
  expect([found(screen.raw()), found(screen.text())]).toEqual([[], []]);
  expect(screen.text()).toContain('It is «redacted:GROQ_API_KEY»');
  const { stdout } = await agent(at, [
    'tools',
    'call',
    'bash',
    JSON.stringify({ command: 'cat notes.txt' }),
    '--approval',
    'never',
  ]);
  expect([found(stdout), Object.keys(JSON.parse(stdout) as object)]).toEqual([[], ['output', 'exit_code']]);
});

test('every file of ours is for its owner alone, whatever the umask', async () => {
  const at = place({ 'a.txt': 'x' });
  const before = process.umask(0);
  try {
    await agent(at, ['config', 'set', 'max_tool_turns', '7']);
    await agent(at, [
      '-p',
      '--debug',
      '-m',
      script(at, [{ calls: [{ name: 'file_write', arguments: { path: 'b.txt', content: 'y' } }] }, { text: 'ok' }]),
      'go',
    ]);
  } finally {
    process.umask(before);
  }
  const own = [
    '.agent',
    ...readdirSync(join(at.home, '.agent'), { recursive: true, encoding: 'utf8' }).map((name) => `.agent/${name}`),
  ];
  expect(own.length).toBeGreaterThan(2);
  expect(own.filter((name) => (statSync(join(at.home, name)).mode & 0o077) !== 0)).toEqual([]);
});
