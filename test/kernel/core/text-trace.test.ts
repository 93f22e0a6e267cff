import { expect, test } from 'vitest';
import { redactedText, traceTexts } from '../../../src/kernel/core/text-trace.js';

const text = 'The key of the vault is under the red stone,\nbehind the "old" mill of Grünau-77.';
const trace = traceTexts([text]);

test.each([
  ['verbatim', `Before. ${text} After.`],
  ['with other white space', text.replaceAll(/\s+/g, '\n\n  ')],
  ['as JSON', JSON.stringify({ a: text })],
  ['as JSON in JSON', JSON.stringify({ a: JSON.stringify({ b: text }) })],
  ['a piece from the middle', 'they say the vault is under the red stone, so go'],
  ['cut', `${text.slice(0, 47)}…`],
])('%s', (_name, quoted) => {
  const left = trace?.text(quoted) ?? '';
  expect([left.includes(redactedText), /vault|stone|mill|behin/.test(left)]).toEqual([true, false]);
});

test('JSON stays JSON, and what quotes nothing is the same value', () => {
  const value = { a: JSON.stringify({ b: [text, 1], c: 'else' }), d: 'as it was' };
  const next = trace?.deep(value);
  expect(JSON.parse(next?.a ?? '')).toEqual({ b: [expect.stringContaining(redactedText), 1], c: 'else' });
  const other = { e: 'the red mill', f: ['under the stone'] };
  expect(trace?.deep(other)).toBe(other);
});

test('a part of a long word is found, and a short text is not looked for', () => {
  const word = 'Zq8'.repeat(20);
  expect(traceTexts([word])?.text(`x ${word.slice(3, 40)} y`)).toBe(`x ${redactedText} y`);
  expect(traceTexts(['ok', 'go on then'])).toBeNull();
});
