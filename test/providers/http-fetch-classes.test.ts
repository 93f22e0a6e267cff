import { expect, test } from 'vitest';
import { Headers as LeanHeaders, Response as LeanResponse } from '../../src/providers/http/http-fetch-classes.js';

const cases: readonly (readonly [string, readonly (readonly [string, string])[]])[] = [
  ['names are lower case', [['Content-Type', 'a']]],
  [
    'values of one name are joined',
    [
      ['accept', 'a'],
      ['Accept', ' b '],
    ],
  ],
  ['an empty value is a value', [['x-empty', '']]],
];

test.each(cases)('like the fetch standard: %s', (_, given) => {
  const standard = new Headers(given.map(([name, value]): [string, string] => [name, value]));
  const lean = new LeanHeaders(given);
  expect(Object.fromEntries(lean)).toEqual(Object.fromEntries(standard));
  for (const name of new Set(given.map(([name]) => name.toLowerCase()))) {
    expect(lean.get(name.toUpperCase())).toBe(standard.get(name));
    expect(lean.has(name)).toBe(true);
    lean.delete(name.toUpperCase());
    expect(lean.get(name)).toBeNull();
  }
});

test('takes records and other headers', () => {
  expect([...new LeanHeaders(new LeanHeaders({ 'X-One': '1' }))]).toEqual([['x-one', '1']]);
  expect([...new LeanHeaders()]).toEqual([]);
});

test.each([
  ['bad name', 'a'],
  ['x', 'line\nbreak'],
  ['x', 'nul\0'],
  ['x', 'wide\u0100'],
  ['', 'a'],
])('refuses what HTTP does not allow: %j %j', (name, value) => {
  expect(() => {
    new Headers().set(name, value);
  }).toThrow(TypeError);
  expect(() => {
    new LeanHeaders().set(name, value);
  }).toThrow(TypeError);
});

test('the empty answer is a success', () => {
  expect(new LeanResponse()).toMatchObject({ ok: true, status: 200, body: null });
});
