import { expect, test } from 'vitest';
import type { ModelChunk, Provider } from '../../../src/kernel/core/provider.js';
import { createSecretGuard } from '../../../src/kernel/core/secrets/guard.js';
import { maskProvider } from '../../../src/kernel/providers/masked-provider.js';

const request = {
  conversation: { system: '', tools: [], messages: [] },
  ref: { provider: 'p', model: 'm' },
  toolChoice: 'auto',
  signal: new AbortController().signal,
} as never;

async function masked(chunks: readonly ModelChunk[]): Promise<readonly ModelChunk[]> {
  const provider = {
    async *stream() {
      await Promise.resolve();
      yield* chunks;
    },
  };
  const open = (): Promise<Provider> => Promise.resolve(provider);
  const out: ModelChunk[] = [];
  for await (const chunk of maskProvider(
    { open },
    createSecretGuard({ forms: [], keys: [{ name: 'K', value: 'key-value' }], environment: [] }),
  ).stream(request))
    out.push(chunk);
  return out;
}

const end: ModelChunk = { type: 'end', stop: 'stop' };
const retry: ModelChunk = { type: 'retry', attempt: 1, maxRetries: 2, delayMs: 1, reason: 'key-value' };

test('text and reasoning of a model are masked across their pieces, each by itself, in their order', async () => {
  const chunks: readonly ModelChunk[] = [
    { type: 'reasoning', text: 'it is ke' },
    { type: 'reasoning', text: 'y-value; ke' },
    { type: 'text', text: 'the key' },
    { type: 'text', text: '-val' },
    { type: 'text', text: 'ue and ke' },
    { type: 'tool_call', call: { id: 'c', name: 'bash', arguments: '{}' } },
    { type: 'text', text: 'ys.' },
    end,
  ];
  expect(await masked(chunks)).toEqual([
    { type: 'reasoning', text: 'it is ' },
    { type: 'reasoning', text: '«redacted:K»; ' },
    { type: 'reasoning', text: 'ke' },
    { type: 'text', text: 'the ' },
    { type: 'text', text: '«redacted:K» and ' },
    { type: 'text', text: 'ke' },
    chunks[5],
    { type: 'text', text: 'ys.' },
    end,
  ]);
});

test('the end of an answer that arrived whole is shown with the rest of it', async () => {
  expect(await masked([{ type: 'text', text: 'press any key' }, end])).toEqual([
    { type: 'text', text: 'press any ' },
    { type: 'text', text: 'key' },
    end,
  ]);
  expect(await masked([{ type: 'text', text: 'press any key', isLast: true }, end])).toEqual([
    { type: 'text', text: 'press any key' },
    end,
  ]);
});

test('what waited when a request is sent again is void with the rest', async () => {
  expect(await masked([{ type: 'text', text: 'a key' }, retry, { type: 'text', text: '-value' }, end])).toEqual([
    { type: 'text', text: 'a ' },
    { ...retry, reason: '«redacted:K»' },
    { type: 'text', text: '-value' },
    end,
  ]);
});
