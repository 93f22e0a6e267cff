import { expect, test } from 'vitest';
import {
  builtInPresets,
  joinUrl,
  type ProviderChoice,
  readBaseUrl,
  type Resolution,
  resolveProvider,
} from '../../src/providers/catalog.js';

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

test('every preset has a usable address and every one that needs a key names its variable', () => {
  const wrong = Object.entries(builtInPresets).filter(
    ([name, preset]) =>
      name !== 'offline' &&
      (!readBaseUrl(preset.base_url, { allowInsecure: false }).ok ||
        (preset.key_required !== false && preset.key_env.length === 0)),
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
