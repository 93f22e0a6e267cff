import { expect, test } from 'vitest';
import { lexMarkdown } from '../../../src/ui/markdown/incremental.js';

// A lexer that takes a mark against all others needs minutes for these.
test.each(['*a_', '**a', '___a', '[a](', '![', '<a '])(
  'a megabyte of %s is lexed',
  (unit) => {
    const text = unit.repeat(Math.floor(1_000_000 / unit.length));
    expect(
      lexMarkdown(text)
        .map(({ raw }) => raw)
        .join(''),
    ).toBe(text);
  },
  20_000,
);

test('a long list with emphasis stays a list', () => {
  expect(lexMarkdown('- **bold** and *more*\n'.repeat(400))[0]?.type).toBe('list');
});
