import { expect, test } from 'vitest';
import {
  builtInPresets,
  joinUrl,
  type ProviderChoice,
  readBaseUrl,
  type Resolution,
  resolveProvider,
} from '../../../src/kernel/providers/catalog.js';

const keys = {
  OPENAI_API_KEY: 'k-openai',
  ANTHROPIC_API_KEY: 'k-anthropic',
  OPENROUTER_API_KEY: 'k-openrouter',
  MOONSHOT_API_KEY: 'k-moonshot',
};

function resolve(choice: Partial<ProviderChoice>): Resolution {
  return resolveProvider({ env: keys, presets: builtInPresets, ...choice });
}

/** `provider model api baseUrl key`, or the kind of problem. */
function told(choice: Partial<ProviderChoice>): string {
  const resolved = resolve(choice);
  if (!resolved.ok) return resolved.problem.kind;
  const { ref, endpoint } = resolved;
  return `${ref.provider} ${ref.model} ${ref.api} ${endpoint.baseUrl} ${endpoint.key ?? '-'}`;
}

test.each([
  [{ model: 'openai/gpt-5.2' }, 'openai gpt-5.2 openai-responses https://api.openai.com/v1 k-openai'],
  [{ model: 'openai' }, 'openai gpt-5.2 openai-responses https://api.openai.com/v1 k-openai'],
  [
    { model: 'openrouter/moonshotai/kimi-k2' },
    'openrouter moonshotai/kimi-k2 openai-chat https://openrouter.ai/api/v1 k-openrouter',
  ],
  [{ model: 'unheard/of' }, 'openai unheard/of openai-responses https://api.openai.com/v1 k-openai'],
  [
    { name: 'openrouter', model: 'openai/gpt-5.2' },
    'openrouter openai/gpt-5.2 openai-chat https://openrouter.ai/api/v1 k-openrouter',
  ],
  [
    { model: 'gpt-5.2', env: { ...keys, OPENAI_BASE_URL: 'http://127.0.0.1:8080/v1' } },
    'openai gpt-5.2 openai-chat http://127.0.0.1:8080/v1 k-openai',
  ],
  [
    { model: 'openai/x', baseUrl: 'https://gateway.example/v1/', api: 'openai-responses' as const },
    'openai x openai-responses https://gateway.example/v1 k-openai',
  ],
  [
    { model: 'openai/mock-model', env: { OPENAI_BASE_URL: 'http://127.0.0.1:8080/v1' } },
    'openai mock-model openai-chat http://127.0.0.1:8080/v1 -',
  ],
  [{ model: 'claude', baseUrl: 'http://localhost:9/v1', env: {} }, 'openai claude openai-chat http://localhost:9/v1 -'],
  [
    { name: 'anthropic', env: { ...keys, ANTHROPIC_BASE_URL: 'https://proxy.example' } },
    'anthropic claude-sonnet-5 anthropic-messages https://proxy.example k-anthropic',
  ],
  [
    { name: 'google', env: { GOOGLE_API_KEY: 'g' } },
    'google gemini-2.5-pro openai-chat https://generativelanguage.googleapis.com/v1beta/openai g',
  ],
  [{ env: { MOONSHOT_API_KEY: 'm' } }, 'moonshot kimi-k2.6 openai-chat https://api.moonshot.ai/v1 m'],
  [
    { model: 'ollama/qwen3:8b', env: { OLLAMA_HOST: '0.0.0.0' } },
    'ollama qwen3:8b openai-chat http://127.0.0.1:11434/v1 -',
  ],
  [{ model: 'ollama/m', env: { OLLAMA_HOST: 'localhost:9999' } }, 'ollama m openai-chat http://localhost:9999/v1 -'],
  [{ model: 'ollama/m', env: { OLLAMA_HOST: ':9999' } }, 'ollama m openai-chat http://127.0.0.1:9999/v1 -'],
  [
    { model: 'ollama/m', env: { OLLAMA_HOST: 'https://ollama.example' } },
    'ollama m openai-chat https://ollama.example/v1 -',
  ],
  [{ model: 'offline/scripts/a.json', env: {} }, 'offline scripts/a.json offline  -'],
  [{ name: 'offline', model: 'scripts/a.json', env: {} }, 'offline scripts/a.json offline  -'],
  [{ env: {} }, 'offline offline offline  -'],
  [
    {
      model: 'mine/big',
      env: {},
      userProviders: { mine: { base_url: 'https://llm.example/api', key_required: false } },
    },
    'mine big openai-chat https://llm.example/api -',
  ],
  [{ model: 'anthropic/x', env: {} }, 'key_missing'],
  [{ model: 'gpt-5.2', env: {} }, 'key_missing'],
  [{ model: 'gpt-5.2', env: {}, fallback: { provider: 'offline', model: null } }, 'key_missing'],
  [
    { model: 'qwen3', env: {}, fallback: { provider: 'ollama', model: 'first' } },
    'ollama qwen3 openai-chat http://127.0.0.1:11434/v1 -',
  ],
  [{ name: 'openai', baseUrl: 'https://gateway.example/v1', env: {} }, 'key_missing'],
  [{ name: 'ollama' }, 'model_missing'],
  [{ name: 'olama' }, 'unknown_provider'],
  [{ name: 'openai', baseUrl: 'http://llm.example/v1' }, 'insecure_url'],
  [{ name: 'openai', baseUrl: 'ftp://llm.example' }, 'bad_url'],
  [{ name: 'openai', baseUrl: 'https://user:secret@llm.example' }, 'bad_url'],
  [
    { name: 'openai', model: 'm', baseUrl: 'http://llm.example/v1', allowInsecure: true },
    'openai m openai-chat http://llm.example/v1 k-openai',
  ],
])('%j is %s', (choice, expected) => {
  expect(told(choice)).toBe(expected);
});

test('a problem says what to do', () => {
  expect(resolve({ model: 'google/x', env: {} })).toEqual({
    ok: false,
    problem: {
      kind: 'key_missing',
      message: 'no key for Google Gemini',
      hint: 'set GEMINI_API_KEY or GOOGLE_API_KEY, or enter it with `agent login google`',
    },
  });
  const unknown = resolve({ name: 'olama' });
  expect(unknown.ok ? '' : unknown.problem.hint).toContain('ollama');
});

test('a key with a line break is refused before it breaks a header', () => {
  expect(told({ name: 'openai', env: { OPENAI_API_KEY: 'sk\nx' } })).toBe('key_missing');
});

test('OpenRouter requests carry the attribution headers', () => {
  const resolved = resolve({ name: 'openrouter' });
  expect(resolved.ok ? Object.keys(resolved.endpoint.headers) : []).toEqual(['HTTP-Referer', 'X-Title']);
});

test('every preset has a usable address, and names the variable of its key or the cloud whose credentials it uses', () => {
  const wrong = Object.entries(builtInPresets).filter(
    ([name, preset]) =>
      name !== 'offline' &&
      (!readBaseUrl(preset.base_url?.replaceAll(/\{\w+\}/g, 'part') ?? null, { allowInsecure: false }).ok ||
        (preset.key_required !== false && preset.cloud === undefined && preset.key_env.length === 0)),
  );
  expect(wrong).toEqual([]);
});

test.each([
  ['https://api.anthropic.com', '/v1/messages', 'https://api.anthropic.com/v1/messages'],
  ['http://127.0.0.1:1/v1', '/v1/messages', 'http://127.0.0.1:1/v1/messages'],
  ['http://127.0.0.1:1/v1', '/chat/completions', 'http://127.0.0.1:1/v1/chat/completions'],
  ['https://a.example/x?api-version=2', '/chat/completions', 'https://a.example/x/chat/completions?api-version=2'],
  ['https://a.example', '/v1/models?limit=1000', 'https://a.example/v1/models?limit=1000'],
])('%s and %s join to %s', (base, path, joined) => {
  expect(joinUrl(base, path)).toBe(joined);
});

test.each([
  ['https://h.example/v1/chat/completions', 'openai-chat https://h.example/v1'],
  ['https://h.example/v1/chat/completions/', 'openai-chat https://h.example/v1'],
  ['https://h.example/v1/responses', 'openai-responses https://h.example/v1'],
  ['https://h.example/v1/messages', 'anthropic-messages https://h.example/v1'],
  ['https://h.example/v1/models', 'openai-chat https://h.example/v1'],
  ['https://h.example/api/paas/v4/models/', 'openai-chat https://h.example/api/paas/v4'],
  ['https://h.example/v1beta/models', 'openai-chat https://h.example/v1beta'],
  // Azure's base URL for models of others ends so.
  ['https://h.services.ai.azure.com/models', 'openai-chat https://h.services.ai.azure.com/models'],
  [
    'https://h.services.ai.azure.com/models/chat/completions?api-version=1',
    'openai-chat https://h.services.ai.azure.com/models?api-version=1',
  ],
  [
    'https://h.example/openai/deployments/gpt/chat/completions?api-version=2024-10-21',
    'openai-chat https://h.example/openai/deployments/gpt?api-version=2024-10-21',
  ],
  ['https://h.example/chat/completions', 'openai-chat https://h.example'],
  ['https://h.example/v1', 'openai-chat https://h.example/v1'],
  ['https://h.example/messages-proxy/v1', 'openai-chat https://h.example/messages-proxy/v1'],
])('the address %s, pasted whole, is %s', (baseUrl, expected) => {
  const resolved = resolve({ model: 'openai/m', baseUrl });
  expect(resolved.ok && `${resolved.endpoint.api} ${resolved.endpoint.baseUrl}`).toBe(expected);
});

test('a wire that is configured wins over the path of a pasted address', () => {
  const baseUrl = 'https://h.example/v1/responses';
  expect(told({ model: 'openai/m', baseUrl, api: 'openai-chat' })).toContain('openai-chat https://h.example/v1 ');
  const userProviders = { own: { api: 'openai-chat' as const, base_url: baseUrl, key_env: [], key_required: false } };
  expect(told({ model: 'own/m', userProviders })).toContain('openai-chat https://h.example/v1 ');
});

test('headers take variables, and the key of the provider wherever it is kept', () => {
  const headers = {
    'api-key': '${AZURE_KEY}',
    'X-Team': '${TEAM:-none} ${TEAM}',
    'X-Plain': '$5 {a} ${}',
    'X-Default': '${UNSET:-d}${UNSET:-}',
  };
  const azure = {
    label: 'Azure',
    api: 'openai-chat' as const,
    base_url: 'https://a.example',
    key_env: 'AZURE_KEY',
    headers,
  };
  const sent = (env: Readonly<Record<string, string>>, kept?: string): unknown => {
    const stored = kept === undefined ? {} : { keys: { azure: { key: kept } } };
    const resolved = resolve({ model: 'azure/m', userProviders: { azure }, env, ...stored });
    return resolved.ok ? resolved.endpoint.headers : resolved.problem;
  };
  const filled = { 'api-key': 'secret', 'X-Team': 'a a', 'X-Plain': '$5 {a} ${}', 'X-Default': 'd' };
  expect(sent({ AZURE_KEY: 'secret', TEAM: 'a' })).toEqual(filled);
  expect(sent({ TEAM: 'a' }, 'secret')).toEqual(filled);
  expect(sent({ AZURE_KEY: 'secret' })).toEqual({
    kind: 'bad_header',
    message: 'the header X-Team of Azure names `${TEAM}`, which is not set',
    hint: 'set TEAM, or write `${TEAM:-value}` in providers.azure.headers',
  });
  expect(sent({ AZURE_KEY: 'se\ncret', TEAM: 'a' })).toMatchObject({ kind: 'bad_header' });
});
