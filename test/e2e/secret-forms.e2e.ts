import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inflateRawSync } from 'node:zlib';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { modelServer } from './model-server.js';
import { agent, place, script, type Place } from './program.js';

interface Row {
  readonly kind: string;
  readonly before?: string;
  readonly secret: readonly string[];
  readonly after?: string;
}

const rows = JSON.parse(
  readFileSync(new URL('../../fixtures/secrets/forms.json', import.meta.url), 'utf8'),
) as readonly Row[];
const forms = rows.map(({ kind, before = '', secret, after = '' }) => ({
  kind,
  secret: secret.join(''),
  text: `${before}${secret.join('')}${after}`,
}));
const own = forms.filter(({ kind }) => kind === 'environment').map(({ secret }) => secret);
const token = forms.find(({ kind }) => kind === 'github_token')?.secret ?? '';
const all = forms.map(({ text }) => text).join('\n');

function seeded(files: Readonly<Record<string, string>>): Place {
  const at = place(files);
  Object.assign(at.env, { DEPLOY_TOKEN: own[0], APP_SECRET: own[1] });
  return at;
}

/** The kinds of which a secret stands in a text, also as JSON writes it. */
function found(text: string): readonly string[] {
  return forms
    .filter(({ secret }) => text.includes(secret) || text.includes(JSON.stringify(secret).slice(1, -1)))
    .map(({ kind }) => kind);
}

function foundBelow(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(join(folder, name)).isFile())
    .flatMap((name) => found(readFileSync(join(folder, name), 'utf8')).map((kind) => `${name}: ${kind}`));
}

function foundInContents(at: Place): readonly string[] {
  const db = new Database(join(at.home, '.agent/agent.db'), { readonly: true });
  const contents = db.prepare('SELECT encoding, bytes FROM blobs').all() as readonly {
    readonly encoding: string;
    readonly bytes: Buffer;
  }[];
  db.close();
  return contents.flatMap(({ encoding, bytes }) =>
    found((encoding === 'deflate' ? inflateRawSync(bytes) : bytes).toString('utf8')),
  );
}

test('of all forms none is on disk, in a request, in an export or on the screen, whoever says it; files hold them, and undo brings them back', async () => {
  const at = seeded({
    'forms.txt': `first line\n${all}\n`,
    'forms.json': JSON.stringify({ text: `line\n${all}\n"quoted" é\\u00e9`, lines: forms.map(({ text }) => text) }),
  });
  const server = await modelServer([
    {
      text: `I say ${all}\n`,
      calls: [
        { name: 'file_read', arguments: { path: 'forms.txt' } },
        { name: 'grep', arguments: { pattern: '[A-Za-z]', path: 'forms.txt' } },
      ],
    },
    { calls: [{ name: 'bash', arguments: { command: 'cat forms.json forms.txt; env' } }] },
    {
      calls: [
        { name: 'file_write', arguments: { path: 'forms.txt', content: `changed\n${all}` } },
        { name: 'file_write', arguments: { path: 'new.json', content: JSON.stringify({ all }) } },
      ],
    },
    { text: `In the end ${JSON.stringify({ all })}` },
  ]);
  const run = await agent(
    at,
    [
      '-p',
      '-m',
      'openai/m',
      '--base-url',
      server.url,
      '--approval',
      'never',
      '--debug',
      '--output-format',
      'stream-json',
    ],
    { stdin: `The secrets:\n${all}`, env: { OPENAI_API_KEY: 'key-of-a-provider-1' } },
  );
  expect([run.code, server.requests.length, found(run.stdout + run.stderr)]).toEqual([0, 4, []]);
  expect(run.stdout).toMatch(/secret seen, masked ×\d+/);
  expect(found(JSON.stringify(server.requests.map(({ body }) => body)))).toEqual([]);
  expect([foundBelow(at.home), foundInContents(at)]).toEqual([[], []]);
  const [session] = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as readonly {
    readonly id: string;
  }[];
  for (const args of [
    ['sessions', 'export', session?.id ?? ''],
    ['sessions', 'export', session?.id ?? '', '--format', 'jsonl', '--no-redact'],
    ['sessions', 'show', session?.id ?? '', '--as', 'openai-chat'],
  ]) {
    expect([args, found((await agent(at, args)).stdout)]).toEqual([args, []]);
  }
  expect((await agent(at, ['audit', 'verify'])).code).toBe(0);
  expect(readFileSync(join(at.work, 'forms.txt'), 'utf8')).toBe(`changed\n${all}`);
  expect(JSON.parse(readFileSync(join(at.work, 'new.json'), 'utf8'))).toEqual({ all });
  for (const _each of ['new.json', 'forms.txt'])
    expect(await agent(at, ['undo', '--yes'])).toMatchObject({ code: 0, stderr: '' });
  expect(readFileSync(join(at.work, 'forms.txt'), 'utf8')).toBe(`first line\n${all}\n`);
});

test('a call that repeats a placeholder carries the value, the record does not; after a resume it is refused until the secret is read again', async () => {
  const at = seeded({ 'a.env.txt': `TOKEN_A=${token}\nother=1\n` });
  const call = (name: string, args: unknown): unknown => ({ name, arguments: args });
  const mark = '«secret:github_token#1»';
  const first = script(at, [
    { calls: [call('file_read', { path: 'a.env.txt' })] },
    {
      calls: [
        call('file_edit', {
          path: 'a.env.txt',
          old_string: `TOKEN_A=${mark}\nother=1`,
          new_string: `TOKEN_B=${mark}\nother=2`,
        }),
        call('file_write', { path: 'b.txt', content: `x ${mark}` }),
        call('bash', { command: `printf %s ${mark} | wc -c; echo ${mark}` }),
      ],
    },
    { text: 'Done.' },
  ]);
  const run = await agent(at, ['-p', '-m', first, '--approval', 'never', '--output-format', 'stream-json', 'go']);
  expect([run.code, found(run.stdout)]).toEqual([0, []]);
  expect([readFileSync(join(at.work, 'a.env.txt'), 'utf8'), readFileSync(join(at.work, 'b.txt'), 'utf8')]).toEqual([
    `TOKEN_B=${token}\nother=2\n`,
    `x ${token}`,
  ]);
  expect(run.stdout).toContain(`${token.length}\\\\n${mark}`);
  const second = script(at, [
    { text: '' },
    { text: '' },
    { text: '' },
    { calls: [call('file_write', { path: 'c.txt', content: mark })] },
    { calls: [call('file_read', { path: 'b.txt' })] },
    { calls: [call('file_write', { path: 'c.txt', content: `${mark}!` })] },
    { text: 'Done.' },
  ]);
  const again = await agent(at, [
    '-p',
    '-c',
    '-m',
    second,
    '--approval',
    'never',
    '--output-format',
    'stream-json',
    'again',
  ]);
  expect([again.code, found(again.stdout)]).toEqual([0, []]);
  expect(again.stdout).toContain('Read the file that contains it again');
  expect(readFileSync(join(at.work, 'c.txt'), 'utf8')).toBe(`${token}!`);
  expect([foundBelow(at.home), foundInContents(at)]).toEqual([[], []]);
  expect(statSync(join(at.home, '.agent/secrets.key')).mode & 0o777).toBe(0o600);
});

test('a kind that is switched off is left as it is, and so are all with secrets.mask false', async () => {
  for (const [setting, kept] of [
    ['secrets.unmasked=["github_token"]', 1],
    ['secrets.mask=false', 2],
    ['secrets.mask=true', 0],
  ] as const) {
    const at = seeded({});
    const jwt = forms.find(({ kind }) => kind === 'jwt')?.secret ?? '';
    const { stdout } = await agent(at, [
      '-p',
      '-m',
      script(at, [{ text: `${token} and ${jwt}` }]),
      '--set',
      setting,
      'go',
    ]);
    expect([setting, [token, jwt].filter((secret) => stdout.includes(secret)).length]).toEqual([setting, kept]);
  }
  const at = seeded({});
  writeFileSync(join(at.work, 'x'), '');
  expect(await agent(at, ['config', 'check', '--set', 'secrets.unmasked=["no_such_kind"]'])).toMatchObject({ code: 2 });
});
