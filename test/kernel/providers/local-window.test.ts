import { expect, test } from 'vitest';
import type { Conversation } from '../../../src/kernel/core/projection.js';
import type { ModelChunk, ModelRequest } from '../../../src/kernel/core/provider.js';
import { createWindowCheck } from '../../../src/kernel/providers/discover.js';
import { conversation, hello } from './http/http-rig.js';

function requestOf(asked: Conversation): ModelRequest {
  const ref = { provider: 'test', api: 'openai-chat', model: 'm' };
  return { conversation: asked, ref, toolChoice: 'auto', signal: new AbortController().signal };
}

function messageOf(notice: ModelChunk | null): string | null {
  return notice?.type === 'notice' ? notice.message : null;
}

const long = conversation([{ role: 'user', seq: 3, content: 'x'.repeat(40_000) }]);

test('a request longer than the window that a local server uses is reported once', async () => {
  const check = createWindowCheck('Ollama', () => Promise.resolve(4096));
  expect(messageOf(await check(requestOf(long), 10))).toMatch(
    /^Ollama uses a context window of 4096 tokens for m and .* has about 10\d\d\d: the server cuts its beginning/,
  );
  expect(await check(requestOf(long), 10)).toBeNull();
});

test('a small window is reported at the first answer, a large or unknown one is not', async () => {
  const report = async (window: number | null): Promise<string | null> =>
    messageOf(await createWindowCheck('LM Studio', () => Promise.resolve(window))(requestOf(hello), 10));
  expect(await report(2048)).toMatch(/only 2048 tokens/);
  expect(await report(32_768)).toBeNull();
  expect(await report(null)).toBeNull();
});
