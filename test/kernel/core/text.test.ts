import { expect, test } from 'vitest';
import { jsonDepth } from '../../../src/kernel/core/json.js';
import { ulid } from '../../../src/kernel/core/store.js';
import {
  didYouMean,
  editDistance,
  firstLine,
  nearest,
  nearestName,
  wellFormedDeep,
} from '../../../src/kernel/core/text.js';

test('a typing error finds the word that was meant, and any other word finds none', () => {
  const words = ['max_tool_turns', 'max_tool_calls', 'model', 'sandbox', 'fs'];
  const rows = ['max_tool_turn', 'maxToolTurns', 'max-tool-call', 'modle', 'sanbox', 'temperature', 'xy', ''].map(
    (word) => [word, nearestName(word, words)],
  );
  expect(rows).toEqual([
    ['max_tool_turn', 'max_tool_turns'],
    ['maxToolTurns', 'max_tool_turns'],
    ['max-tool-call', 'max_tool_calls'],
    ['modle', 'model'],
    ['sanbox', 'sandbox'],
    ['temperature', null],
    ['xy', null],
    ['', null],
  ]);
});

test.each([
  ['btw', null],
  ['cd', null],
  ['tree', null],
  ['nwe', 'new'],
  ['undp', 'undo'],
  ['mc', 'mcp'],
])('of the short name %s the nearest command is %j', (word, command) => {
  expect(nearestName(word, ['new', 'mcp', 'theme', 'undo', 'redo', 'tools'])).toBe(command);
});

test('a swap of neighbours costs one', () => {
  expect([
    editDistance('ab', 'ba'),
    editDistance('kitten', 'sitting'),
    editDistance('', 'abc'),
    editDistance('same', 'same'),
  ]).toEqual([1, 3, 3, 0]);
});

test('ids sort by the time they were made', () => {
  const random = new Uint8Array(16).fill(255);
  const ids = [0, 1, 1_469_918_176_385, 2 ** 48 - 1].map((ms) => ulid(ms, random));
  // The time of the specification's own example.
  expect(ids.slice(2)).toEqual(['01ARYZ6S41ZZZZZZZZZZZZZZZZ', '7ZZZZZZZZZZZZZZZZZZZZZZZZZ']);
  expect([...ids].sort()).toEqual(ids);
});

test('depth is counted on the raw text, strings left out', () => {
  expect(
    ['1', '[]', '{"a":[{}]}', '"[[["', '["\\"[[",[]]', '['.repeat(100_000)].map((text) => jsonDepth(text, 64)),
  ).toEqual([0, 1, 3, 0, 2, 65]);
});

test('a typing error gets the nearest names', () => {
  expect(nearest('sesions', ['sessions', 'stats', 'tools'])).toEqual(['sessions']);
  expect(didYouMean('max_tool_turn', ['max_tool_turns', 'max_tool_calls', 'model'])).toBe(
    'Did you mean max_tool_turns?',
  );
  expect(didYouMean('zzz', ['model'])).toBe('');
});

test('lone surrogates are replaced wherever they are', () => {
  expect(wellFormedDeep({ a: ['x\ud800y', '😀'], '\udc00': 1, b: '\\ud800' })).toEqual({
    a: ['x\ufffdy', '😀'],
    b: '\\ud800',
    '\ufffd': 1,
  });
});

test('a first line that is cut ends with an ellipsis', () => {
  expect([firstLine('one\ntwo', 10), firstLine('abcdef', 4), firstLine('abc', 4)]).toEqual(['one…', 'abc…', 'abc']);
});
