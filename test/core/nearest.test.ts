import { expect, test } from 'vitest';
import { editDistance, nearestName } from '../../src/core/text.js';

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

test('a swap of neighbours costs one', () => {
  expect([
    editDistance('ab', 'ba'),
    editDistance('kitten', 'sitting'),
    editDistance('', 'abc'),
    editDistance('same', 'same'),
  ]).toEqual([1, 3, 3, 0]);
});
