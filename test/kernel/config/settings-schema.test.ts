import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkSettings } from '../../../src/kernel/config/settings-check.js';
import {
  defaultValues,
  type KeyPath,
  knownKeys,
  resolveKey,
  resolveVariable,
  variableOf,
} from '../../../src/kernel/config/settings-schema.js';
import { propertyRuns } from '../../property-runs.js';

test('the defaults pass the schema', () => {
  expect(checkSettings(defaultValues())).toEqual([]);
});

const scalar = fc
  .oneof(
    fc.constantFrom<unknown>('', 'x', 'always', 'dark', 'native', 0, 1, -1, 1.5, 50, true, false, null),
    fc.constantFrom<unknown>(
      [],
      ['a'],
      [1],
      [''],
      {},
      { a: 1 },
      [{}],
      [{ tool: 'x' }],
      [{ argv: [] }],
      [{ tol: 1 }],
      { above_tokens: 1, input_usd: 1, output_usd: 1 },
      { above_tokens: 1, input_usd: 1, output_usd: 1, cache: 1 },
    ),
  )
  .map((value) => structuredClone(value));

/** A tree with some of the schema's keys, some misspelt ones, and values of all kinds. */
const tree: fc.Arbitrary<Record<string, unknown>> = fc
  .array(
    fc.tuple(
      fc.constantFrom(
        ...knownKeys().map((key) => key.replaceAll('<name>', 'lab')),
        'modle',
        'tools.x',
        'tools.limits.-',
        'fs',
        'tools.limits.lab.y',
      ),
      scalar,
    ),
    { maxLength: 5 },
  )
  .map((pairs) => {
    const root: Record<string, unknown> = {};
    for (const [key, value] of pairs) {
      const path = key.split('.');
      let at = root;
      for (const name of path.slice(0, -1)) {
        const next = at[name];
        at = (typeof next === 'object' && next !== null && !Array.isArray(next) ? next : (at[name] = {})) as Record<
          string,
          unknown
        >;
      }
      at[path.at(-1)!] = value;
    }
    return root;
  });

/** Takes the setting at `path` away, whole where it is a list. */
function without(value: Record<string, unknown>, path: KeyPath): void {
  const inList = path.findIndex((key) => typeof key === 'number');
  const setting = inList < 0 ? path : path.slice(0, inList);
  let at: unknown = value;
  for (const key of setting.slice(0, -1)) at = (at as Record<string, unknown> | undefined)?.[key];
  if (at !== undefined) delete (at as Record<string, unknown>)[setting.at(-1) ?? ''];
}

test('of many values everything that is wrong is named: without it the rest is right', () => {
  const counts = { valid: 0, invalid: 0 };
  fc.assert(
    fc.property(tree, (value) => {
      const issues = checkSettings(value);
      counts[issues.length === 0 ? 'valid' : 'invalid']++;
      const rest = structuredClone(value);
      for (const { path } of issues) without(rest, path);
      expect({ value, issues: checkSettings(rest) }).toEqual({ value, issues: [] });
    }),
    { numRuns: propertyRuns(3000), seed: 7 },
  );
  expect(Math.min(counts.valid, counts.invalid)).toBeGreaterThan(propertyRuns(3000) / 10);
});

test('each wrong place is named once, from the outside, in the order of the value', () => {
  const issues = checkSettings({
    ui: { theme: '', wrap: 'wordz', keys: 1 },
    modle: 'x',
    rules: { deny: [{ tool: '' }, {}, { argv: [] }] },
    providers: { '-': { api: 1 }, lab: { headers: { a: 1 } } },
    models: { m: { long_prompt: { above_tokens: 1, more: 1 } } },
    fs: { max_size: 1.5 },
  });
  expect(issues.map(({ path, reason, nearest }) => [path.join('.'), reason, nearest])).toEqual([
    ['ui.theme', 'must be a string that matches ^[A-Za-z0-9][A-Za-z0-9_-]*$, not ""', null],
    ['ui.wrap', 'must be one of terminal, words (did you mean "words"?), not "wordz"', null],
    ['ui.keys', 'must be one of emacs, vim, not 1', null],
    ['modle', 'is not a setting', 'model'],
    ['rules.deny.0.tool', 'must be a string that is not empty, not ""', null],
    ['rules.deny.1', 'must be an object with at least one key, not {}', null],
    ['rules.deny.2.argv', 'must be a list, not []', null],
    ['providers.-', 'is not a setting', 'provider'],
    ['providers.lab.headers.a', 'must be a string, not 1', null],
    [
      'models.m.long_prompt',
      'must be an object with above_tokens, input_usd, output_usd, not {"above_tokens":1,"more":1}',
      null,
    ],
    ['fs.max_size', 'must be an integer of at least 1, not 1.5', null],
  ]);
});

test('every key is found by its own name and by its variable', () => {
  const keys = knownKeys().map((key) => key.replaceAll('<name>', 'lab'));
  const missed = keys.filter(
    (key) => resolveKey(key)?.path.join('.') !== key || resolveVariable(variableOf(key))?.path.join('.') !== key,
  );
  expect([keys.length > 60, missed]).toEqual([true, []]);
});

test('the manual names every key', () => {
  const manual = readFileSync(new URL('../../../docs/configuration.md', import.meta.url), 'utf8');
  const leaves = knownKeys().filter((key) => !knownKeys().some((other) => other.startsWith(`${key}.`)));
  expect(leaves.filter((key) => !manual.includes(`\`${key}\``))).toEqual([]);
});
