import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseEnvelope } from '../../../../src/kernel/core/envelope.js';
import type { Event, EventDraft } from '../../../../src/kernel/core/event.js';
import { createSecretGuard, type SecretGuard } from '../../../../src/kernel/core/secrets/guard.js';
import {
  createSecretScanner,
  isSecretVariable,
  secretForms,
  secretKinds,
} from '../../../../src/kernel/core/secrets/scanner.js';
import { propertyRuns } from '../../../property-runs.js';

interface Row {
  readonly kind: string;
  readonly before?: string;
  readonly secret: readonly string[];
  readonly after?: string;
}

const rows = JSON.parse(
  readFileSync(new URL('../../../../fixtures/secrets/forms.json', import.meta.url), 'utf8'),
) as readonly Row[];
const forms = rows.map(({ kind, before = '', secret, after = '' }) => ({
  kind,
  secret: secret.join(''),
  text: `${before}${secret.join('')}${after}`,
  before,
  after,
}));
const environment = forms.filter(({ kind }) => kind === 'environment').map(({ secret }) => secret);
const token = forms.find(({ kind }) => kind === 'github_token')?.secret ?? '';
const other = forms.findLast(({ kind }) => kind === 'github_token')?.secret ?? '';
const privateKey = forms.find(({ kind }) => kind === 'private_key')?.secret ?? '';
const password = forms.find(({ kind }) => kind === 'sql_password')?.secret ?? '';

function guard(unmasked: readonly string[] = []): SecretGuard {
  return createSecretGuard({
    forms: secretForms(unmasked),
    keys: [{ name: 'OPENAI_API_KEY', value: 'key-of-a-provider' }],
    environment: unmasked.includes('environment') ? [] : environment,
    fingerprint: (value) => createHmac('sha256', 'k').update(value).digest('hex'),
  });
}

const toolResult = (output: unknown, more: object = {}): EventDraft => ({
  kind: 'tool_result',
  content: 'exit 0',
  data: { tool_call_id: 'c', name: 'bash', output: JSON.stringify(output), success: true, duration_ms: 1, ...more },
});

test('every kind has its rows, a line in the manual and a switch in the schema; more than sixty forms', () => {
  const manual = readFileSync(new URL('../../../../docs/secrets.md', import.meta.url), 'utf8');
  const table = JSON.parse(
    readFileSync(new URL('../../../../config/secret-forms.json', import.meta.url), 'utf8'),
  ) as readonly { readonly kind: string; readonly what: string }[];
  const schema = JSON.parse(
    readFileSync(new URL('../../../../config/config.schema.json', import.meta.url), 'utf8'),
  ) as {
    properties: { secrets: { properties: { unmasked: { items: { enum: readonly string[] } } } } };
  };
  expect(secretKinds.filter((kind) => !forms.some((form) => form.kind === kind))).toEqual([]);
  expect(manual.split('\n').filter((line) => line.startsWith('| `'))).toEqual(
    table.map(({ kind, what }) => `| \`${kind}\` | ${what} |`),
  );
  expect(schema.properties.secrets.properties.unmasked.items.enum).toEqual(secretKinds);
  expect(forms.length).toBeGreaterThan(60);
});

/** Where a secret may stand, and what stands around it. */
const places: readonly (readonly [name: string, around: (text: string) => string])[] = [
  ['alone', (text) => text],
  ['at the start of a line', (text) => `first line\n${text}\nlast line`],
  ['behind =', (text) => `value=${text}`],
  ['in quotes', (text) => `token: "${text}", next`],
  ['in a string of JSON', (text) => JSON.stringify({ a: `line\n${text}\nline "quoted"\t${text}` })],
  ['in a string of JSON in one', (text) => JSON.stringify({ a: JSON.stringify({ b: `\n${text}\n` }) })],
  ['behind an escape of JSON', (text) => `"é\\u00e9${text}\\n"`],
  ['in colour', (text) => `\u001b[32m${text}\u001b[0m`],
  ['with a colour inside', (text) => `a \u001b[1m${text.slice(0, 9)}\u001b[01;31m\u001b[K${text.slice(9)}\u001b[0m b`],
  ['with a character without width inside', (text) => `${text.slice(0, 7)}\u200b${text.slice(7)}`],
  ['in brackets', (text) => `(${text})[${text}]`],
  ['twice in a line', (text) => `${text} ${text}`],
];

test.each(places)(
  'of every form nothing is left %s, in text and in pieces of any size, and what is around it stays',
  (_name, around) => {
    for (const { kind, secret, text } of forms) {
      const written = around(text);
      const masked = guard().text(written);
      const asJson = JSON.stringify(secret).slice(1, -1);
      expect([kind, masked.includes(secret), masked.includes(asJson), /«secret:/.test(masked)]).toEqual([
        kind,
        false,
        false,
        true,
      ]);
      for (const size of [1, 17]) {
        const stream = guard().stream();
        let shown = '';
        let leaked = false;
        for (let at = 0; at < written.length; at += size) {
          shown += stream.add(written.slice(at, at + size));
          leaked ||= shown.includes(secret);
        }
        expect([kind, size, leaked, shown + stream.end()]).toEqual([kind, size, false, masked]);
      }
    }
  },
);

test('each kind has its own name in the placeholder, and is left alone where it is disabled', () => {
  for (const { kind, secret, text, before, after } of forms) {
    expect(guard().text(text)).toBe(`${before}«secret:${kind}#1»${after}`);
    const open = guard([kind]).text(text);
    expect([kind, open.includes(secret) || !open.includes(`«secret:${kind}`)]).toEqual([kind, true]);
  }
});

test('a secret is found although a JSON text writes letters of it as escapes', () => {
  const escaped = (text: string): string =>
    [...text]
      .map((char, index) =>
        index % 5 === 0 && char !== '\n'
          ? `\\u00${char.charCodeAt(0).toString(16).padStart(2, '0')}`
          : char === '\n'
            ? '\\n'
            : char,
      )
      .join('');
  for (const { kind, secret, text } of forms) {
    const masked = guard().text(`{"a":"${escaped(text)}"}`);
    expect([kind, masked.includes(escaped(secret).slice(6, -6)), masked.includes('«secret:')]).toEqual([
      kind,
      false,
      true,
    ]);
  }
});

test('the same secret has the same number, another one the next, and masked text does not change', () => {
  const one = guard();
  expect(one.text(`${token} ${other} ${token}`)).toBe(
    '«secret:github_token#1» «secret:github_token#2» «secret:github_token#1»',
  );
  for (const { text } of forms) expect(one.text(one.text(text))).toBe(one.text(text));
  expect(one.text(`+${privateKey.replaceAll('\n', '\n+')}\n`)).toBe(`+${one.text(privateKey)}\n`);
  expect(one.text(`password is ${password}`)).toBe(`password is ${one.text(`;Password=${password}`).slice(10)}`);
});

test('a text that had nothing to hide is masked again once what stands in it is known to be secret', () => {
  const keys = [{ name: 'FIRST', value: 'key-of-a-provider' }];
  const one = createSecretGuard({ forms: secretForms(), keys, environment: [], fingerprint: (value) => value });
  const { secret: bare = '', text: assigned = '' } = forms.find(({ kind }) => kind === 'assigned_secret') ?? {};
  const texts = [`the door opens with ${bare}`, 'a late-given key'];
  expect([texts, texts].map((same) => same.map((text) => one.text(text)))).toEqual([texts, texts]);
  one.text(assigned);
  keys.push({ name: 'LATER', value: 'late-given' });
  expect(texts.map((text) => one.text(text))).toEqual([
    `the door opens with ${one.text(bare)}`,
    'a «redacted:LATER» key',
  ]);
  expect(one.text(bare)).toMatch(/^«secret:\w+#1»$/);
});

test('events keep their shape: envelopes and arguments stay JSON, each number is recorded once', () => {
  const one = guard();
  const args = `{ "path" : "a.txt",\n  "content":"x\\n${token}\\u0041","n": 1.0 }`;
  const call: EventDraft = {
    kind: 'tool_call',
    content: `w(${token})`,
    data: { id: 'c', type: 'function', function: { name: 'w', arguments: args }, response_id: 'r' },
  };
  const masked = one.event(call);
  expect(masked).toMatchObject({
    content: 'w(«secret:github_token#1»)',
    data: { secrets: { 'github_token#1': expect.stringMatching(/^[0-9a-f]{64}$/) } },
  });
  if (masked.kind === 'tool_call')
    expect(masked.data.function.arguments).toBe(
      `{ "path" : "a.txt",\n  "content":"x\\n«secret:github_token#1»A","n": 1.0 }`.replace('»A', '\u00bbA'),
    );
  const result = one.event(toolResult({ output: `\n${token}\n"${other}"`, exit_code: 0 }, { diff: `+${token}` }));
  expect(JSON.parse((result.data as { output: string }).output)).toEqual({
    output: '\n«secret:github_token#1»\n"«secret:github_token#2»"',
    exit_code: 0,
  });
  expect(result.data).toMatchObject({
    diff: '+«secret:github_token#1»',
    secrets: { 'github_token#2': expect.any(String) },
  });
  expect(result.data).not.toHaveProperty(['secrets', 'github_token#1']);
  expect(one.takeSeen()).toEqual({ count: 5, placeholders: ['«secret:github_token#1»', '«secret:github_token#2»'] });
  expect(one.takeSeen()).toBe(null);
  const plain = toolResult({ output: 'nothing to hide, and 0123456789abcdef0123456789abcdef01234567 is a commit' });
  expect(one.event(plain)).toBe(plain);
});

test('a form that needs text before it finds nothing without that text', () => {
  const rest = `:AA${'bC3d'.repeat(8)}x`;
  expect(guard().text(`123456789${rest}`)).toBe('123456789:«secret:telegram_token#1»');
  for (const before of ['', 'a', '12345', '1234x789']) expect(guard().text(before + rest)).toBe(before + rest);
});

test('a secret counts as seen where it goes into an event, not where it is only shown', () => {
  const one = guard();
  one.text(token);
  expect([one.takeSeen(), one.count()]).toEqual([null, 1]);
  one.event({ kind: 'user', content: token, data: null });
  one.text(token);
  expect([one.takeSeen(), one.takeSeen(), one.count()]).toEqual([
    { count: 1, placeholders: ['«secret:github_token#1»'] },
    null,
    3,
  ]);
});

test('a name and its value in two strings belong together', () => {
  const secret = forms.find(({ kind }) => kind === 'aws_secret_key')?.secret ?? '';
  expect(guard().json(JSON.stringify({ env: { AWS_SECRET_ACCESS_KEY: secret } }))).toBe(
    '{"env":{"AWS_SECRET_ACCESS_KEY":"«secret:aws_secret_key#1»"}}',
  );
  expect(guard().deep({ secretAccessKey: secret })).toEqual({ secretAccessKey: '«secret:aws_secret_key#1»' });
});

test('signed fields of a provider do not change, and its clear text is masked', () => {
  const reasoning = [{ type: 'thinking', thinking: `it is ${token}`, signature: `x ${token}` }];
  const event = {
    kind: 'assistant',
    content: '',
    data: { response_id: 'r', provider: 'p', api: 'a', model: 'm', stop: 'stop', reasoning },
  } as const;
  expect(guard().event<EventDraft>(event).data).toMatchObject({
    reasoning: [{ thinking: 'it is «secret:github_token#1»', signature: `x ${token}` }],
  });
});

test('after a resume numbers are known at once, and values once they are seen again', () => {
  const before = guard();
  const events = [before.event(toolResult({ output: `${token} ${other}` }))].map((draft, index): Event => ({
    ...draft,
    seq: index + 1,
    createdAt: 0,
  }));
  const after = guard();
  after.recall(events);
  expect(after.restore({ command: 'echo «secret:github_token#2»' }, true)).toEqual({
    ok: false,
    placeholders: ['«secret:github_token#2»'],
    reason: 'unknown',
  });
  expect(after.text(other)).toBe('«secret:github_token#2»');
  expect(after.restore({ command: 'echo «secret:github_token#2»' }, true)).toEqual({
    ok: true,
    value: { command: `echo ${other}` },
  });
  expect(after.text(forms[2]?.secret ?? '')).toBe('«secret:github_token#3»');
});

test('a call gets values back, but no key of a provider, no unknown value and none that a shell would obey', () => {
  const one = guard();
  const secrets = forms
    .filter(({ kind }) => kind !== 'environment')
    .map(({ text, secret }) => [one.text(text), text, secret] as const);
  for (const [masked, text] of secrets)
    expect(one.restore({ edits: [{ old_string: masked }] }, false)).toEqual({
      ok: true,
      value: { edits: [{ old_string: text }] },
    });
  expect(one.restore({ content: 'a «secret:<kind>#<n>» of the manual, «secret:no_such_kind#1»' }, false).ok).toBe(true);
  expect(one.restore('«redacted:OPENAI_API_KEY»', false)).toMatchObject({ ok: false, reason: 'key' });
  expect(one.restore('«redacted:NO_SUCH»', false)).toMatchObject({ ok: true });
  for (const lost of ['«secret:github_token»', '«secret:cut»', '«secret:jwt#99»'])
    expect(one.restore(lost, false)).toMatchObject({ ok: false, reason: 'unknown', placeholders: [lost] });
  const pem = one.text(privateKey);
  expect(one.restore(`echo ${pem}`, true)).toMatchObject({ ok: false, reason: 'shell' });
  expect(one.restore(`echo "${pem}"`, true)).toMatchObject({ ok: false, reason: 'shell' });
  expect(one.restore(`echo "it's" '${pem}'`, true)).toEqual({ ok: true, value: `echo "it's" '${privateKey}'` });
});

test('where an output is cut, neither the start nor the end of a secret is left', () => {
  const one = guard();
  const half = token.slice(0, 20);
  const masked = one.envelope({
    output: `text ${half}\n[… 9 bytes omitted …]\n${token.slice(20)} text`,
    truncated: true,
  });
  expect(masked).toEqual({ output: 'text «secret:cut»\n[… 9 bytes omitted …]\n«secret:cut» text', truncated: true });
  expect(one.envelope({ output: 'a\n[… 9 bytes omitted …]\nb', truncated: true, file: `${token} of it` })).toEqual({
    output: 'a\n[… 9 bytes omitted …]\nb',
    truncated: true,
    file: '«secret:github_token#1» of it',
  });
  const details = { output: `text\n[… 9 bytes omitted …]\n${token.slice(20)} text`, truncated: true };
  expect(one.envelope({ error: 'too slow', code: 'timeout', details })).toEqual({
    error: 'too slow',
    code: 'timeout',
    details: { output: 'text\n[… 9 bytes omitted …]\n«secret:cut» text', truncated: true },
  });
  expect(one.envelope(parseEnvelope(JSON.stringify({ output: `text ${half}\n[… 9 bytes omitted …]\nmore` })))).toEqual({
    output: 'text «secret:github_token»\n[… 9 bytes omitted …]\nmore',
  });
  expect(one.text(`bash(command="echo ${token.slice(0, 30)}…")`)).toBe('bash(command="echo «secret:github_token»…")');
  expect(one.text(privateKey.slice(0, 200))).toBe('«secret:private_key»');
});

test("ordinary text is nobody's secret", () => {
  for (const text of [
    'sk-learn is scikit-learn; task-force, ask-me-anything-about-it, sk-SK, sk-spinner-double-bounce-1',
    'git@github.com:a/b.git https://example.com:8080/a?b=c#d',
    'https://user:password@example.com http://${USER}:${PASS}@host',
    'commit 0123456789abcdef0123456789abcdef01234567',
    'AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
    'Authorization: Bearer <token> and bearer authentication',
    'API_KEY=your-api-key-goes-here',
    'process.env.SECRET_KEY',
    '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----',
    'npm_config_registry npm_lifecycle_event',
    'const PUBLIC_KEY = fs.readFileSync(path)',
    'eyJ is how a token begins',
    '«secret:github_token#1» «redacted:KEY»',
  ])
    expect(guard().text(text)).toBe(text);
});

test.each([
  ['DEPLOY_TOKEN', 'x9Kq2mPz71', true],
  ['DB_PASSWORD', 'Summer2024', true],
  ['DB_PASSWORD', 'correct-horse-battery', true],
  ['APP_SECRET', 'hunter2x', true],
  ['DATADOG_KEY', 'e3ff2839c048b25c', true],
  ['FEATURE_KEY', 'feature-x-1', false],
  ['API_KEY', 'none', false],
  ['TOKEN', 'disabled', false],
  ['SSH_KEY', '/home/me/.ssh/id', false],
  ['MAX_TOKEN', '123456789', false],
  ['PATH', 'x9Kq2mPz71', false],
  ['CACHE_KEY', 'production', false],
])('the value of %s=%s is a secret: %s', (name, value, is) => {
  expect(isSecretVariable(name, value)).toBe(is);
});

test('for any text, pieces give the same as the whole, and a second pass finds nothing', () => {
  const part = fc.oneof(
    fc.constantFrom(
      ...forms.map(({ text }) => text),
      '-----BEGIN ',
      'PRIVATE KEY-----',
      'sk-',
      'Bearer ',
      '://a:',
      '@b',
      'eyJ',
      'AWS_SECRET_ACCESS_KEY=',
      '\n',
      ' ',
      '"',
      '\\n',
      '\u001b[0m',
    ),
    fc.string({ maxLength: 6 }),
  );
  fc.assert(
    fc.property(
      fc.array(part, { maxLength: 8 }),
      fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 20 }),
      (parts, sizes) => {
        const text = parts.join('');
        fc.pre(!/\\u00/.test(text));
        const whole = guard().text(text);
        const stream = guard().stream();
        let shown = '';
        for (let at = 0, n = 0; at < text.length; n++) {
          const size = sizes[n % sizes.length] ?? 1;
          shown += stream.add(text.slice(at, at + size));
          at += size;
        }
        expect(shown + stream.end()).toBe(whole);
      },
    ),
    { numRuns: propertyRuns(200) },
  );
});

test('texts made to be slow are read in one pass: no repetition in a repetition, a bound in each expression', () => {
  const plain = (expression: RegExp): string =>
    expression.source.replaceAll(/\[(?:\\.|[^\]\\])*\]/g, 'c').replaceAll(/\\./g, 'e');
  const isOpenEnded = (expression: RegExp): boolean => /[*+]|,\}/.test(plain(expression));
  for (const form of secretForms().filter(({ pem }) => !pem)) {
    const expressions = [form.whole(), form.open(), ...(form.behind ? [form.behind] : [])];
    expect([
      form.kind,
      expressions.filter(
        (expression) => /\([^()]*[*+}][^()]*\)[*+]/.test(plain(expression)) && !plain(expression).endsWith('(?:c+_)+$'),
      ),
    ]).toEqual([form.kind, []]);
    expect([form.kind, isOpenEnded(form.whole()) || !isOpenEnded(form.open())]).toEqual([form.kind, true]);
  }
  const scanner = createSecretScanner(secretForms());
  const starts = [...new Set(secretForms().flatMap((form) => form.starts))];
  for (const start of [
    ...starts,
    '-----BEGIN RSA PRIVATE KEY-----\n',
    'eyJaaaaaaaa.',
    'password=',
    '; pwd=',
    'A_'.repeat(20),
  ]) {
    for (const text of [
      start.repeat(16_384 / start.length),
      `${start}${'a'.repeat(16_384)}`,
      `${start}${'a.'.repeat(8_192)}`,
      `${`${start}a1`.repeat(16_384 / start.length)}!`,
    ]) {
      expect(scanner.scan(text).openAt).toBe(text.length);
      expect(scanner.scan(text, 0, false).openAt).toBeLessThanOrEqual(text.length);
    }
  }
});

test.each([
  ['a colour', '\u001b[1m\u001b[31m'],
  ['the end of a colour', '\u001b[0m'],
  ['a link', '\u001b]8;;\u0007'],
  ['a character without width', '\u200b'],
  ['a joiner', '\u2060'],
  ['a soft hyphen', '\u00ad'],
  ['a control character', '\u0001'],
])('a secret with %s in it is masked as it would be shown', (_what, mark) => {
  for (const at of [1, 4, 5, 20]) {
    const text = `before ${token.slice(0, at)}${mark}${token.slice(at)} behind`;
    const masked = guard().text(text);
    expect(masked).toMatch(/^before «secret:github_token[^»]*» behind$/);
  }
});

test('colours of a text without secrets stay', () => {
  const text = '\u001b[31mred\u001b[0m and \u200bplain\n\tand more';
  expect(guard().text(text)).toBe(text);
});
