import { expect, test } from 'vitest';
import type { ModelChunk, Provider } from '../../../src/kernel/core/provider.js';
import { watchLocalWindow } from '../../../src/kernel/providers/discover.js';
import { conversation, hello, listen } from './http/http-rig.js';

const answers: Provider = {
  async *stream(): AsyncGenerator<ModelChunk> {
    yield { type: 'text', text: 'ok' };
    yield { type: 'usage', usage: { input: 10, cacheRead: 0, cacheWrite: 0, output: 1 }, costUsd: null };
    await Promise.resolve();
    yield { type: 'end', stop: 'stop' };
  },
};

function notices(chunks: readonly ModelChunk[]): readonly string[] {
  return chunks.flatMap((chunk) => (chunk.type === 'notice' ? [chunk.message] : []));
}

const long = conversation([{ role: 'user', seq: 3, content: 'x'.repeat(40_000) }]);

test('a request longer than the window that a local server uses is said once, before its end', async () => {
  const provider = watchLocalWindow(answers, { label: 'Ollama', ask: () => Promise.resolve(4096) });
  const first = await listen(provider, long, 'openai-chat');
  expect(notices(first.chunks)).toEqual([
    expect.stringMatching(
      /^Ollama uses a context window of 4096 tokens for m and .* has about 10\d\d\d: the server cuts its beginning/,
    ),
  ]);
  expect(first.chunks.map(({ type }) => type)).toEqual(['text', 'usage', 'notice', 'end']);
  expect(notices((await listen(provider, long, 'openai-chat')).chunks)).toEqual([]);
});

test('a small window is said at the first answer, a large or unknown one is not', async () => {
  const said = async (window: number | null): Promise<readonly string[]> =>
    notices(
      (
        await listen(
          watchLocalWindow(answers, { label: 'LM Studio', ask: () => Promise.resolve(window) }),
          hello,
          'openai-chat',
        )
      ).chunks,
    );
  expect(await said(2048)).toEqual([expect.stringMatching(/only 2048 tokens/)]);
  expect(await said(32_768)).toEqual([]);
  expect(await said(null)).toEqual([]);
});
