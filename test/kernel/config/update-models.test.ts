import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

const program = fileURLToPath(new URL('../../../config/update-models.mjs', import.meta.url));

interface Sources {
  /** Rows of the first source by provider and API. */
  readonly pi: Readonly<Record<string, Readonly<Record<string, readonly object[]>>>>;
  /** Models of the second one, by provider. */
  readonly prices: Readonly<Record<string, readonly object[]>>;
  readonly table?: object;
  readonly overrides?: object;
}

interface Updated {
  readonly code: number | null;
  readonly lines: readonly string[];
  readonly stderr: string;
  readonly table: Readonly<Record<string, unknown>>;
}

function run({ pi, prices, table = {}, overrides = {} }: Sources, more: readonly string[] = []): Updated {
  const folder = mkdtempSync(join(tmpdir(), 'update-models-test-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  const write = (path: string, text: string): string => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
    return join(folder, path);
  };
  for (const [name, groups] of Object.entries(pi)) {
    const keyed = Object.entries(groups).map(([api, models]) => [
      api,
      Object.fromEntries(models.map((model, at) => [`row ${at}`, { api, type: 'chat', input: ['text'], ...model }])),
    ]);
    write(`pi/package/dist/providers/data/${name}.json`, JSON.stringify(Object.fromEntries(keyed)));
  }
  write('pi/package/package.json', '{"version": "7.0.0"}');
  write('prices/package/package.json', '{"version": "0.0.1", "type": "module"}');
  write(
    'prices/package/dist/index.js',
    `const all = ${JSON.stringify(prices)};
    export const findProvider = ({ providerId }) => (all[providerId] ? { models: all[providerId] } : undefined);
    export const calcPrice = () => { throw new Error('prices are read, not matched'); };`,
  );
  const packed = ['pi', 'prices'].map((name) => {
    execFileSync('tar', ['-czf', join(folder, `${name}.tgz`), '-C', join(folder, name), 'package']);
    return join(folder, `${name}.tgz`);
  });
  const file = write('models.json', JSON.stringify(table));
  const args = [
    '--pi',
    packed[0] ?? '',
    '--prices',
    packed[1] ?? '',
    '--table',
    file,
    '--overrides',
    write('overrides.json', JSON.stringify(overrides)),
    '--today',
    '2026-11-22',
    ...more,
  ];
  const done = spawnSync(process.execPath, [program, ...args], { encoding: 'utf8' });
  return {
    code: done.status,
    lines: done.stdout.trimEnd().split('\n'),
    stderr: done.stderr,
    table: JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>,
  };
}

const cost = { input: 2, output: 10, cacheRead: 0.2, cacheWrite: 0 };
const sonnet = {
  id: 'claude-sonnet-5',
  cost,
  contextWindow: 1000,
  maxTokens: 100,
  reasoning: true,
  input: ['text', 'image'],
  thinkingLevelMap: { xhigh: 'xhigh' },
};
const agreed: Sources = {
  pi: { anthropic: { 'anthropic-messages': [sonnet] } },
  prices: {
    anthropic: [
      {
        id: 'claude-sonnet-5',
        context_window: 1020,
        prices: { input_mtok: 2, output_mtok: 10, cache_write_1h_mtok: 4, web_searches_kcount: 10 },
      },
    ],
  },
};

test('what both sources say is merged into one row, and the table names them', () => {
  const { code, table, lines } = run(agreed);
  expect([code, lines]).toEqual([0, ['added     anthropic/claude-sonnet-5', '1 rows, 0 disputed']]);
  expect(table).toEqual({
    $sources: [
      { package: '@earendil-works/pi-ai', version: '7.0.0' },
      { package: '@pydantic/genai-prices', version: '0.0.1' },
    ],
    'anthropic/claude-sonnet-5': {
      context_window: 1000,
      max_output_tokens: 100,
      input_usd: 2,
      cache_read_usd: 0.2,
      cache_write_1h_usd: 4,
      output_usd: 10,
      web_search_usd: 0.01,
      vision: true,
      reasoning: true,
      efforts: ['none', 'low', 'medium', 'high', 'xhigh'],
    },
  });
});

test('sources that differ by more than 5 % end with 1 and write nothing, unless an override says why', () => {
  const dearer = {
    ...agreed,
    prices: { anthropic: [{ id: 'claude-sonnet-5', prices: { input_mtok: 3, output_mtok: 10.4 } }] },
  };
  const refused = run(dearer);
  expect([refused.code, refused.table, refused.lines.slice(0, 3)]).toEqual([
    1,
    {},
    [
      'added     anthropic/claude-sonnet-5',
      'disputed  anthropic/claude-sonnet-5: input_usd 2 or 3',
      '1 rows, 1 disputed',
    ],
  ]);
  const settled = run({
    ...dearer,
    overrides: { 'anthropic/claude-sonnet-5': { reason: 'the vendor says so', input_usd: 3 } },
  });
  expect([settled.code, settled.table['anthropic/claude-sonnet-5'], settled.lines]).toEqual([
    0,
    expect.objectContaining({ input_usd: 3, output_usd: 10 }),
    expect.arrayContaining(['override  anthropic/claude-sonnet-5: input_usd (the vendor says so)']),
  ]);
});

test('prices count from their day on, and what comes later is named', () => {
  const flash = { id: 'gemini-9', cost: { input: 1, output: 4 }, contextWindow: 10 };
  const dated = [
    { prices: { input_mtok: 9, output_mtok: 9 } },
    {
      constraint: { type: 'start_date', start_date: '2026-11-01' },
      prices: { input_mtok: 1, output_mtok: 4, cache_read_mtok: 0.1 },
    },
    { constraint: { type: 'time_of_date', start_time: '01:00:00Z', end_time: '02:00:00Z' }, prices: { input_mtok: 7 } },
    { constraint: { type: 'start_date', start_date: '2027-01-01' }, prices: { input_mtok: 2, output_mtok: 8 } },
  ];
  const { code, table, lines } = run({
    pi: { google: { g: [flash] } },
    prices: { google: [{ id: 'gemini-9', prices: dated }] },
  });
  expect([code, table['google/gemini-9']]).toEqual([
    0,
    { context_window: 10, input_usd: 1, cache_read_usd: 0.1, output_usd: 4, vision: false, reasoning: false },
  ]);
  expect(lines).toContain('later     google/gemini-9: other prices from 2027-01-01');
});

test('a second row for another use is refused, a price without the other too, and only exact ids count', () => {
  const luna = { id: 'gpt-6-luna', cost: { input: 0.1, output: 0 }, type: 'classifier', contextWindow: 9 };
  const { code, table, lines } = run({
    pi: {
      openai: {
        decisions: [luna],
        'openai-responses': [
          { ...luna, cost: { input: 0.1, output: 0.5 }, type: 'chat' },
          { ...luna, cost: { input: 8, output: 8 }, type: 'chat' },
          { id: 'free', cost: { input: 0, output: 0 }, contextWindow: 9 },
        ],
      },
    },
    prices: { openai: [{ id: 'gpt-6', match: { starts_with: 'gpt-6' }, prices: { input_mtok: 77, output_mtok: 77 } }] },
  });
  expect([code, lines.filter((line) => /^(?:refused|duplicate)/.test(line))]).toEqual([
    0,
    [
      'duplicate openai/gpt-6-luna: the first row counts',
      'refused   openai/gpt-6-luna: the input has a price and the output has none (classifier)',
    ],
  ]);
  const { $sources: _sources, ...rows } = table;
  expect(rows).toEqual({
    'openai/free': { context_window: 9, vision: false, reasoning: false },
    'openai/gpt-6-luna': { context_window: 9, input_usd: 0.1, output_usd: 0.5, vision: false, reasoning: false },
  });
});

test("a window that is capped where the dearer tier begins is the other source's, and the tier stays", () => {
  const tiers = [{ inputTokensAbove: 272_000, input: 4, output: 15, cacheRead: 0.4, cacheWrite: 0 }];
  const { code, table } = run({
    pi: { openai: { r: [{ id: 'gpt-7', cost: { ...cost, tiers }, contextWindow: 272_000 }] } },
    prices: {
      openai: [
        {
          id: 'gpt-7',
          context_window: 1_050_000,
          prices: {
            input_mtok: { base: 2, tiers: [{ start: 272_000, price: 4 }] },
            cache_write_mtok: { base: 2.5, tiers: [{ start: 272_000, price: 5 }] },
            output_mtok: 10,
          },
        },
      ],
    },
  });
  expect([code, table['openai/gpt-7']]).toEqual([
    0,
    {
      context_window: 1_050_000,
      input_usd: 2,
      cache_read_usd: 0.2,
      cache_write_usd: 2.5,
      output_usd: 10,
      long_prompt: { above_tokens: 272_000, input_usd: 4, output_usd: 15, cache_write_usd: 5, cache_read_usd: 0.4 },
      vision: false,
      reasoning: false,
    },
  ]);
});

test('a row is never deleted: what the first source no longer has is retired, and comes back with it', () => {
  const old = { context_window: 5, input_usd: 1, output_usd: 2 };
  const gone = run({ ...agreed, table: { 'anthropic/claude-1': old } });
  expect([gone.table['anthropic/claude-1'], gone.lines]).toEqual([
    { ...old, retired: true },
    expect.arrayContaining(['gone      anthropic/claude-1: no longer in the first source; kept as retired']),
  ]);
  const back = run({
    pi: { anthropic: { m: [{ id: 'claude-1', cost: { input: 1, output: 2 }, contextWindow: 5 }] } },
    prices: agreed.prices,
    table: { 'anthropic/claude-1': { ...old, retired: true } },
  });
  expect(back.table['anthropic/claude-1']).toEqual({ ...old, vision: false, reasoning: false });
});

test.each<readonly [string, Sources, readonly string[]]>([
  ['an unknown option', agreed, ['--bogus']],
  ['a day that is none', agreed, ['--today', 'tomorrow']],
  ['a file that is not a package', agreed, ['--pi', '/dev/null']],
  ['a source whose layout has changed', { pi: {}, prices: agreed.prices }, []],
  ['an override without a reason', { ...agreed, overrides: { 'anthropic/claude-sonnet-5': { input_usd: 1 } } }, []],
  [
    'an override of a field that no row has',
    { ...agreed, overrides: { 'anthropic/claude-sonnet-5': { reason: 'why', prize: 1 } } },
    [],
  ],
])('%s ends with 2 and writes nothing', (_name, sources, more) => {
  const { code, table, stderr } = run(sources, more);
  expect([code, table, stderr.includes('update-models: ')]).toEqual([2, {}, true]);
});
