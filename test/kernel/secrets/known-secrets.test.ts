import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import searchServices from '../../../config/search-services.json' with { type: 'json' };
import { guardedStore, knownSecrets, plainGuard, secretVariables } from '../../../src/kernel/secrets/known-secrets.js';
import { guardedNotes } from '../../../src/features/memory/guarded-notes.js';
import { builtInPresets, keyNames } from '../../../src/kernel/providers/catalog.js';
import { createMemoryNotes } from '../../../src/features/memory/memory-notes.js';
import { openMemoryStore } from '../../../src/kernel/store/memory-store.js';
import { clock, event, sessionRow, tickingClock } from '../store/samples.js';

const providers = {
  own: {
    base_url: 'https://me:p%40ssword-9@host/v1',
    key_env: 'OWN_PASS',
    headers: { Authorization: 'Bearer header-value', 'X-Title': 'my own title' },
  },
};
const env = {
  OPENAI_API_KEY: ' key-value-1 ',
  GROQ_API_KEY: 'short',
  OWN_PASS: 'key-value-1-longer',
  HTTPS_PROXY: 'http://proxy.test:3128',
  NOT_A_KEY: 'ordinary value',
  PATH: '/bin',
};

test('keys of variables, signing headers and passwords in addresses are known, longest first; short and ordinary values are not', () => {
  expect(secretVariables(env, { providers, api: [] })).toEqual(['OPENAI_API_KEY', 'GROQ_API_KEY', 'OWN_PASS']);
  expect(knownSecrets(env, { providers, api: [] }).map(({ name, value }) => `${name} ${value}`)).toEqual([
    'OWN_PASS key-value-1-longer',
    'Authorization header-value',
    'own p%40ssword-9',
    'OPENAI_API_KEY key-value-1',
    'own p@ssword-9',
  ]);
});

test('the key of every preset, of one added as data and of one in the settings is known at once, by its value, its headers and the password in its address', () => {
  const services = Object.values(searchServices).flatMap(({ key_env: name }) => name ?? []);
  const names = [...Object.values(builtInPresets).flatMap(keyNames), ...services];
  expect(services).toContain('BRAVE_API_KEY');
  expect(names.length).toBeGreaterThan(10);
  const given = Object.fromEntries(names.map((name, index) => [name, `value-of-key-${index}`]));
  expect(secretVariables(given).toSorted()).toEqual([...new Set(names)].toSorted());
  const added = {
    api: 'openai-chat',
    base_url: 'https://me:pass-in-address@host/v1',
    base_url_env: ['NEWCOMER_HOST'],
    key_env: ['NEWCOMER_CREDENTIAL', 'NEWCOMER_OTHER'],
    default_model: null,
    headers: { 'X-Api-Key': '${NEWCOMER_HEADER}' },
  } as const;
  const own = { corp: { key_env: 'CORP_PASS', headers: { Authorization: 'Bearer $CORP_TICKET' } } };
  const more = {
    NEWCOMER_CREDENTIAL: 'credential-1',
    NEWCOMER_OTHER: 'credential-2',
    NEWCOMER_HEADER: 'credential-3',
    NEWCOMER_HOST: 'http://a:pass-in-host@h',
    CORP_PASS: 'credential-4',
    CORP_TICKET: 'credential-5',
    ORDINARY: 'credential-6',
  };
  const presets = { ...builtInPresets, newcomer: added };
  expect(secretVariables(more, { providers: own, api: [] }, presets)).toEqual([
    'NEWCOMER_CREDENTIAL',
    'NEWCOMER_OTHER',
    'NEWCOMER_HEADER',
    'CORP_PASS',
    'CORP_TICKET',
  ]);
  const said = plainGuard(more, knownSecrets(more, { providers: own, api: [] }, presets)).text(
    Object.values(more).join(' ') + ' pass-in-address',
  );
  expect(said).toBe(
    '«redacted:NEWCOMER_CREDENTIAL» «redacted:NEWCOMER_OTHER» «redacted:NEWCOMER_HEADER» http://a:«redacted:NEWCOMER_HOST»@h «redacted:CORP_PASS» «redacted:CORP_TICKET» credential-6 «redacted:newcomer»',
  );
});

test('a known value is replaced whole, in text, in JSON and inside a longer one, and nothing else is', () => {
  const guard = plainGuard({}, [
    { name: 'LONG', value: 'key-value-1-longer' },
    { name: 'QUOTED', value: 'say "quoted"' },
    { name: 'KEY', value: 'key-value-1' },
  ]);
  const text = (said: string): string => guard.text(said);
  expect(text('a key-value-1-longer, key-value-1; key-value-2')).toBe('a «redacted:LONG», «redacted:KEY»; key-value-2');
  expect(text(JSON.stringify({ output: 'say "quoted"\n' }))).toBe('{"output":"«redacted:QUOTED»\\n"}');
});

test('an event is masked wherever it says something, and is left alone where there is nothing to hide', () => {
  const data = {
    tool_call_id: 'c',
    name: 'bash',
    output: '{"output":"x key-value-1"}',
    success: true,
    duration_ms: 3,
    extra: [{ 'key-value-1': null }],
  };
  const event = { kind: 'tool_result', content: 'key-value-1', data } as const;
  expect(plainGuard({}, []).event(event)).toBe(event);
  expect(plainGuard({}, [{ name: 'KEY', value: 'key-value-1' }]).event(event)).toEqual({
    kind: 'tool_result',
    content: '«redacted:KEY»',
    data: { ...data, output: '{"output":"x «redacted:KEY»"}', extra: [{ '«redacted:KEY»': null }] },
  });
});

test('a note that holds a secret is refused, also in tags, in a change and where the settings mask nothing', async () => {
  const forms = JSON.parse(
    readFileSync(new URL('../../../fixtures/secrets/forms.json', import.meta.url), 'utf8'),
  ) as readonly Readonly<{ kind: string; before?: string; secret: readonly string[]; after?: string }>[];
  const ofVariables = forms.filter(({ kind }) => kind === 'environment');
  const env = {
    OPENAI_API_KEY: 'test-key-openai-123',
    ...Object.fromEntries(ofVariables.map(({ secret }, index) => [`DEPLOY_${index}_SECRET`, secret.join('')])),
  };
  const keys = knownSecrets(env);
  const masking = { mask: false, unmasked: [] };
  const source = {
    env,
    secrets: keys,
    guard: plainGuard(env, keys, masking),
    config: { secrets: masking },
    keys: { ofInstallation: () => Buffer.alloc(32) },
  };
  const notes = guardedNotes(createMemoryNotes(tickingClock()), source);
  const draft = { project: 'here', tags: [], trust: 'model', approved: true } as const;
  await notes.save({ ...draft, content: 'The key is in the vault.' });
  const texts = [
    ...forms.map(({ before = '', secret, after = '' }) => before + secret.join('') + after),
    'test-key-openai-123',
    'use «secret:github_token#1»',
  ];
  for (const text of texts) {
    const refused = { saved: false, why: 'secret' };
    expect(await notes.save({ ...draft, content: `Remember: ${text} for later` }), text).toEqual(refused);
    expect(await notes.save({ ...draft, content: 'x', tags: [text] }), text).toEqual(refused);
    expect(await notes.change(1, { content: text }), text).toEqual(refused);
  }
  expect(texts.length).toBeGreaterThan(40);
  expect(await notes.list()).toMatchObject([{ id: 1, content: 'The key is in the vault.' }]);
});

test('a secret keeps its number on all pages of a session that older versions stored', async () => {
  const [one, other] = ['aB3d', 'Xy9z'].map((part) => `ghp_${part.repeat(9)}`);
  const store = openMemoryStore({ now: clock });
  const row = sessionRow();
  await store.createSession(row);
  for (const [index, secret] of [one, 'none', other, one].entries())
    await store.append(row.id, event(index + 1, { content: `use ${secret}` }));
  const key = Buffer.alloc(32, 1);
  const guarded = guardedStore(store, {
    env: {},
    secrets: [],
    guard: plainGuard({}, []),
    config: { secrets: { mask: true, unmasked: [] } },
    keys: { ofInstallation: () => key },
  });
  for (let reading = 0; reading < 2; reading++) {
    const pages = [await guarded.page(row.id, Number.MIN_SAFE_INTEGER, 2), await guarded.page(row.id, 2, 2)].flat();
    const numbers = pages.map(({ content }) => /#\d+/.exec(content ?? '')?.[0]);
    expect(numbers).toEqual(['#1', undefined, '#2', '#1']);
  }
});
