import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { lexer } from 'marked';
import { expect, test } from 'vitest';
import { lexMarkdown } from '../../../src/ui/markdown/incremental.js';
import { generateTokens } from '../generated-text.js';

const pieces = [
  'a',
  'Word',
  ' ',
  '  ',
  '    ',
  '\t',
  '\n',
  '\n\n',
  '\n \n',
  '\n\t\n',
  '> ',
  '>',
  '- ',
  '1. ',
  '# ',
  '---',
  '--',
  '-',
  '===',
  '=',
  '- - -',
  '|',
  '| a | b |',
  '|---|:-:|',
  ':-',
  '```',
  '~~~js\n',
  '<div>',
  '</p>',
  '<!-- x -->',
  '<b>',
  '<?php',
  '<![CDATA[',
  '[a]: http://x.y',
  '[a]',
  '*',
  '**b**',
  '`c`',
  '\\',
  '…',
  '\u2028',
  '\r',
  '\u3000',
  ' \n',
  '\n   ---  ',
  '\n    ===',
  '\n> q',
];

test('a text has the blocks that marked finds in it', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...pieces), { maxLength: 24 }), (parts) => {
      const text = parts.join('');
      expect(lexMarkdown(text)).toEqual(lexer(text));
    }),
    { numRuns: 4_000 },
  );
});

test('so have real documents, whole and cut anywhere', () => {
  for (const file of ['README.md', 'CHANGELOG.md', 'AGENTS.md', 'docs/performance.md']) {
    const text = readFileSync(file, 'utf8');
    for (const end of [
      text.length,
      ...Array.from({ length: 40 }, (_, index) => Math.floor((text.length * index) / 40)),
    ])
      expect(lexMarkdown(text.slice(0, end))).toEqual(lexer(text.slice(0, end)));
  }
  const answer = generateTokens(3_000).join('');
  expect(lexMarkdown(answer)).toEqual(lexer(answer));
});
