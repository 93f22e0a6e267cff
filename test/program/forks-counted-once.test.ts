import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Place } from '../e2e/program.js';
import { agent, place, script } from './inside.js';

type Rows = readonly Readonly<Record<string, unknown>>[];

async function rows(at: Place, args: readonly string[]): Promise<Rows> {
  return JSON.parse((await agent(at, [...args, '--json'])).stdout) as Rows;
}

async function sql(at: Place, question: string): Promise<unknown> {
  return Object.values((await rows(at, ['sql', question]))[0] ?? {});
}

/** What each place says of two requests of $0.10, one call of a tool in the first, and a fork with the second. */
async function figures(at: Place): Promise<object> {
  const stats = await rows(at, ['stats']);
  const day = stats.find(({ table }) => table === 'day');
  const tool = stats.find(({ table }) => table === 'tool');
  const turns = stats.filter(({ table }) => String(table).startsWith('with')).map(({ turns: count }) => count);
  const costs = (await rows(at, ['sessions', 'list'])).map(({ cost_usd: cost }) => Number(cost));
  return {
    stats: [day?.['requests'], Number(day?.['cost_usd']).toFixed(2), tool?.['calls'], tool?.['success_rate'], turns],
    requests: await sql(at, "SELECT count(*), printf('%.2f', sum(cost_usd)) FROM v_requests"),
    calls: await sql(at, 'SELECT count(*) FROM v_tool_calls'),
    sessions: await sql(
      at,
      `SELECT sum(prompts), sum(requests), sum(tool_calls), sum(failed_calls), printf('%.2f', sum(cost_usd)) FROM v_sessions`,
    ),
    listed: costs.reduce((sum, cost) => sum + cost, 0).toFixed(2),
    audit: (await rows(at, ['audit'])).length,
  };
}

const once = {
  stats: [3, '0.20', 1, 0, [1, 1]],
  requests: [3, '0.20'],
  calls: [1],
  sessions: [2, 3, 1, 1, '0.20'],
  listed: '0.20',
  audit: 1,
};

test('a request and a call that forks and imports copied are counted once in every figure', async () => {
  const at = place();
  const usage = { input_tokens: 10, output_tokens: 2, cost_usd: 0.1 };
  const model = script(at, [
    { calls: [{ name: 'file_read', arguments: { path: 'none.txt' } }], usage },
    { text: 'failed' },
    { text: 'second', usage },
  ]);
  await agent(at, ['-p', '--model', model, 'one']);
  const [first] = await rows(at, ['sessions', 'list']);
  await agent(at, ['-p', '--model', model, '-c', '--fork', 'two']);
  expect(await figures(at)).toEqual(once);
  const file = join(at.work, 'copy.jsonl');
  await agent(at, ['sessions', 'export', String(first?.['id']), '--format', 'jsonl', '-o', file]);
  const imported = await agent(at, ['sessions', 'import', file, '--as-new']);
  expect(imported).toMatchObject({ code: 0 });
  expect(await figures(at)).toEqual(once);
  await agent(at, ['sessions', 'rm', String(first?.['id'])]);
  expect(await figures(at)).toEqual(once);
});
