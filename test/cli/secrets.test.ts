import { expect, test } from 'vitest';
import { createDraftMask, createMask, knownSecrets, secretVariables } from '../../src/cli/secrets.js';

const providers = { own: { base_url: 'https://me:p%40ssword-9@host/v1', key_env: 'OWN_PASS', headers: { Authorization: 'Bearer header-value', 'X-Title': 'my own title' } } };
const env = { OPENAI_API_KEY: ' key-value-1 ', GROQ_API_KEY: 'short', OWN_PASS: 'key-value-1-longer', HTTPS_PROXY: 'http://proxy.test:3128', NOT_A_KEY: 'ordinary value', PATH: '/bin' };

test('keys of variables, signing headers and passwords in addresses are known, longest first; short and ordinary values are not', () => {
  expect(secretVariables(env, providers)).toEqual(['OPENAI_API_KEY', 'GROQ_API_KEY', 'OWN_PASS']);
  expect(knownSecrets(env, providers).map(({ name, value }) => `${name} ${value}`)).toEqual([
    'OWN_PASS key-value-1-longer', 'Authorization header-value', 'own p%40ssword-9', 'OPENAI_API_KEY key-value-1', 'own p@ssword-9',
  ]);
});

test('a known value is replaced whole, in text, in JSON and inside a longer one, and nothing else is', () => {
  const mask = createMask([{ name: 'LONG', value: 'key-value-1-longer' }, { name: 'QUOTED', value: 'say "quoted"' }, { name: 'KEY', value: 'key-value-1' }]);
  expect(mask('a key-value-1-longer, key-value-1; key-value-2')).toBe('a «redacted:LONG», «redacted:KEY»; key-value-2');
  expect(mask(JSON.stringify({ output: 'say "quoted"\n' }))).toBe('{"output":"«redacted:QUOTED»\\n"}');
});

test('an event is masked wherever it says something, and is left alone where there is nothing to hide', () => {
  expect(createDraftMask([])).toBe(undefined);
  const mask = createDraftMask([{ name: 'KEY', value: 'key-value-1' }]);
  const data = { tool_call_id: 'c', name: 'bash', output: '{"output":"x key-value-1"}', success: true, duration_ms: 3, extra: [{ 'key-value-1': null }] };
  expect(mask?.({ kind: 'tool_result', content: 'key-value-1', data })).toEqual({
    kind: 'tool_result', content: '«redacted:KEY»', data: { ...data, output: '{"output":"x «redacted:KEY»"}', extra: [{ '«redacted:KEY»': null }] },
  });
});
