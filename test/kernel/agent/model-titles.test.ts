import { expect, test } from 'vitest';
import type { ModelChunk } from '../../../src/kernel/core/provider.js';
import { titleByModel } from '../../../src/kernel/agent/model-titles.js';
import { end, kinds, rig, scripted, text } from './harness.js';

const used: ModelChunk = {
  type: 'usage',
  usage: { input: 30, cacheRead: 0, cacheWrite: 0, output: 4 },
  costUsd: 0.002,
};
const fault: readonly ModelChunk[] = [{ type: 'fault', fault: { code: 'network', message: 'gone' } }];
const priced = { input: 1, output: 10, cacheRead: 0, cacheWrite: 0 };

/** What a first turn leads to, where the model answers the request for a title so. */
async function named(
  answer: readonly ModelChunk[],
  before: string | null = null,
): Promise<{ given: string | null; shown: string; sent: unknown; rows: string; usage: unknown }> {
  const provider = scripted([[text('It is sorted now.'), end()], answer]);
  const { session, seen, rows } = rig({ provider });
  let title = before;
  const own = session.suggestTitle.bind(session);
  const done = new Promise<void>((resolve) => {
    session.suggestTitle = async (signal) => {
      const suggested = await own(signal);
      setImmediate(resolve);
      return suggested;
    };
  });
  titleByModel(
    session,
    () => title,
    async (given) => {
      title = given;
    },
  );
  await session.submit('sort the names');
  if (before === null) await done;
  await session.submit('and again');
  const shown = seen.flatMap((event) => (event.type === 'text_delta' ? [event.text] : [])).join('|');
  const usage = (await rows()).find(({ kind }) => kind === 'usage')?.data ?? null;
  return { given: title, shown, sent: provider.requests[1], rows: kinds(session.events()), usage };
}

test('after its first turn a session is named by its model, in a small request of which only the usage is recorded', async () => {
  const { given, shown, sent, rows, usage } = await named([used, text('**"Sorting names"**\nmore'), end()]);
  expect(given).toBe('Sorting names');
  expect(shown).toBe('It is sorted now.|**"Sorting names"**\nmore');
  expect(sent).toMatchObject({
    toolChoice: 'none',
    conversation: {
      tools: [],
      messages: [{ role: 'user', content: 'The user: sort the names\n\nThe assistant: It is sorted now.' }],
    },
  });
  expect(rows).toBe('system tools user assistant usage user usage assistant');
  expect(usage).toMatchObject({ purpose: 'title', input_tokens: 30, cost_usd: 0.002 });
});

test('a title that somebody gave is kept, and a model that fails gives none', async () => {
  expect(await named([text('Other'), end()], 'mine')).toMatchObject({ given: 'mine' });
  expect(await named(fault)).toMatchObject({ given: null });
});

test('a title is not asked for beyond the spend limit', async () => {
  const provider = scripted([[used, text('Done.'), end()]]);
  const budget = { maxCostUsd: 0.003, price: priced, maxOutputTokens: 4096, isEnforced: false };
  const { session } = rig({ provider, budget: () => budget });
  await session.submit('sort the names');
  expect(await session.suggestTitle(new AbortController().signal)).toBe('');
  expect(provider.requests).toHaveLength(1);
});
