import { readFileSync } from 'node:fs';
import Ajv from 'ajv';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import schema from '../../config/config.schema.json' with { type: 'json' };
import defaults from '../../config/defaults.json' with { type: 'json' };
import { checkValue, knownKeys, resolveKey, resolveVariable, variableOf } from '../../src/config/settings-schema.js';

const ajv = new Ajv.default({ allErrors: true });
const validate = ajv.compile(schema);

test('the defaults pass the schema', () => {
  expect(checkValue(defaults)).toEqual([]);
  expect(validate(defaults)).toBe(true);
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

test('the checker says of 3,000 values what ajv says of them', () => {
  const counts = { valid: 0, invalid: 0 };
  fc.assert(
    fc.property(tree, (value) => {
      const ours = checkValue(structuredClone(value)).length === 0;
      expect({ value, valid: ours }).toEqual({ value, valid: validate(structuredClone(value)) });
      counts[ours ? 'valid' : 'invalid']++;
    }),
    { numRuns: 3000, seed: 7 },
  );
  expect(Math.min(counts.valid, counts.invalid)).toBeGreaterThan(300);
});

test('every key is found by its own name and by its variable', () => {
  const keys = knownKeys().map((key) => key.replaceAll('<name>', 'lab'));
  const missed = keys.filter(
    (key) => resolveKey(key)?.path.join('.') !== key || resolveVariable(variableOf(key))?.path.join('.') !== key,
  );
  expect([keys.length > 60, missed]).toEqual([true, []]);
});

test('the manual names every key', () => {
  const manual = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8');
  const leaves = knownKeys().filter((key) => !knownKeys().some((other) => other.startsWith(`${key}.`)));
  expect(leaves.filter((key) => !manual.includes(`\`${key}\``))).toEqual([]);
});
