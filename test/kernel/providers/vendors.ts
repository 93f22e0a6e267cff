import type { ModelRef } from '../../../src/kernel/core/projection.js';
import { builtInPresets, type Endpoint, keyNames, resolveProvider } from '../../../src/kernel/providers/catalog.js';
import { testKey } from './http/http-rig.js';
import type { VendorHabits } from './vendor-server.js';

/** The presets as their vendors behave. */
export const vendors: Readonly<Record<string, VendorHabits>> = {
  openai: { api: 'openai-responses' },
  anthropic: { api: 'anthropic-messages' },
  openrouter: { api: 'openai-chat', schema: 'openrouter-chat:request', reasoning: 'reasoning_details' },
  ollama: { api: 'openai-chat', reasoning: 'reasoning', wholeCalls: true },
  deepseek: { api: 'openai-chat', wantsReasoning: true },
  lmstudio: { api: 'openai-chat' },
  moonshot: { api: 'openai-chat', wantsReasoning: true },
  google: { api: 'openai-chat', wholeCalls: true },
  xai: { api: 'openai-chat' },
  mistral: { api: 'openai-chat', wholeCalls: true, nineIds: true, alternates: true, refusedFields: ['stream_options'] },
  meta: { api: 'openai-responses' },
  groq: {
    api: 'openai-chat',
    reasoning: 'reasoning',
    wholeCalls: true,
    refusedFields: ['reasoning_content', 'reasoning_details'],
  },
};

/** A preset as it is for its vendor's own host, but at `url`. */
export function vendorEndpoint(name: string, url: string): { readonly ref: ModelRef; readonly endpoint: Endpoint } {
  const preset = builtInPresets[name];
  const [variable = 'NONE'] = preset === undefined ? [] : keyNames(preset);
  const resolved = resolveProvider({
    name,
    model: preset?.default_model ?? 'm',
    env: { [variable]: testKey },
    presets: builtInPresets,
  });
  if (!resolved.ok) throw new Error(resolved.problem.message);
  return { ref: resolved.ref, endpoint: { ...resolved.endpoint, baseUrl: url } };
}
