import { expect, test } from 'vitest';
import type { Event } from '../../../src/kernel/core/event.js';
import type { MarkdownStyle } from '../../../src/ui/markdown/blocks.js';
import { MarkdownStream, renderMarkdown } from '../../../src/ui/markdown/incremental.js';
import { createTheme } from '../../../src/kernel/console/theme.js';
import { assistant, createFakeSession } from '../fake-session.js';
import { facts, openRepl } from '../repl-harness.js';

const plain: MarkdownStyle = {
  theme: createTheme({ unicode: true, colors: 0, theme: 'dark' }),
  columns: 40,
  highlight: () => null,
};
const colored: MarkdownStyle = { ...plain, theme: createTheme({ unicode: true, colors: 16, theme: 'dark' }) };

const sample = `# Title

A paragraph with **bold**, *italic*, \`code\`, ~~gone~~ and a [link](https://example.org/a).
Second line <b>html</b> &amp; more.

- one
- two
  - nested
    deeper
- [x] done

1. first
2. second

> quoted
> text

| name | size | note |
|:-----|-----:|:----:|
| 日本 | 12 | a long note that has to be wrapped |
| b | 3 | x |

\`\`\`ts
const a = 1;
\`\`\`

---
https://example.org ![pic](https://evil.example/p)
`;

test('each kind of block without colours', () => {
  expect(renderMarkdown(sample, plain)).toEqual([
    '# Title',
    '',
    'A paragraph with bold, italic, code,',
    'gone and a link (https://example.org/a).',
    'Second line <b>html</b> & more.',
    '',
    '• one',
    '• two',
    '  • nested',
    '    deeper',
    '• [x] done',
    '',
    '1. first',
    '2. second',
    '',
    '> quoted',
    '> text',
    '',
    'name: 日本',
    'size: 12',
    'note: a long note that has to be wrapped',
    '',
    'name: b',
    'size: 3',
    'note: x',
    '',
    '```ts',
    'const a = 1;',
    '```',
    '',
    '────────────────────────────────────────',
    '',
    'https://example.org pic',
    '(https://evil.example/p)',
  ]);
});

test('cut anywhere while it streams, the lines are the same in the end, and none is given out twice', () => {
  for (const style of [plain, colored]) {
    const whole = renderMarkdown(sample, style);
    for (let step = 1; step < 40; step += 3) {
      const stream = new MarkdownStream(style);
      const lines: string[] = [];
      for (let end = step; end < sample.length; end += step) lines.push(...stream.update(sample.slice(0, end)).done);
      lines.push(...stream.finish(sample));
      expect(lines).toEqual(whole);
    }
  }
});

test('a finished block is given out while the next one streams', () => {
  const stream = new MarkdownStream(plain);
  expect(stream.update('First para')).toEqual({ done: [], open: ['First para'] });
  expect(stream.update('First paragraph.\n\nSec')).toEqual({ done: ['First paragraph.'], open: ['', 'Sec'] });
});

test('a long code block is given out in parts and loses nothing', () => {
  const code = Array.from({ length: 500 }, (_, i) => `const line${i} = ${i};`);
  const text = `before\n\n\`\`\`ts\n${code.join('\n')}\n\`\`\`\n\nafter`;
  const stream = new MarkdownStream(colored);
  const lines: string[] = [];
  let widest = 0;
  for (let end = 7; end < text.length; end += 37) {
    const frame = stream.update(text.slice(0, end));
    lines.push(...frame.done);
    widest = Math.max(widest, frame.open.length);
  }
  lines.push(...stream.finish(text));
  expect(lines).toEqual(['before', '', ...code, '', 'after']);
  expect(widest).toBeLessThan(60);
});

test('a long list and a long paragraph are given out in parts and lose nothing', () => {
  const items = Array.from({ length: 300 }, (_, i) => `${i + 1}. item number ${i + 1}`);
  const words = Array.from({ length: 3_000 }, (_, i) => `word${i}`);
  const text = `${items.join('\n')}\n\n${words.join(' ')}`;
  const stream = new MarkdownStream(plain);
  const lines: string[] = [];
  for (let end = 50; end < text.length; end += 50) lines.push(...stream.update(text.slice(0, end)).done);
  lines.push(...stream.finish(text));
  expect(lines.slice(0, 301)).toEqual([...items, '']);
  expect(
    lines
      .slice(301)
      .join(' ')
      .split(/\s+/)
      .filter((word) => word !== ''),
  ).toEqual(words);
});

test('a long quotation is given out in parts and loses nothing', () => {
  const rows = Array.from({ length: 900 }, (_, i) => `> quoted ${i}`);
  const text = rows.join('\n');
  const stream = new MarkdownStream(plain);
  const lines: string[] = [];
  let most = 0;
  for (let end = 200; end < text.length; end += 200) {
    const { done, open } = stream.update(text.slice(0, end));
    lines.push(...done);
    most = Math.max(most, open.length);
  }
  lines.push(...stream.finish(text));
  expect(lines.join(' ').match(/quoted \d+/g)).toEqual(rows.map((row) => row.slice(2)));
  expect(most).toBeLessThan(600);
});

test('a table never is wider than the terminal', () => {
  const table = `| ${'a'.repeat(50)} | b | ${'c '.repeat(40)} |\n|-|-|-|\n| 1 | 2 | 3 |`;
  for (const columns of [70, 80, 100]) {
    for (const line of renderMarkdown(table, { ...plain, columns })) expect(line.length).toBeLessThanOrEqual(columns);
  }
});

test('escape sequences in a model text do not pass', () => {
  expect(renderMarkdown('a\x1b]0;t\x07b \x1b[31mred\x1b[2J', plain)).toEqual(['ab red']);
});

test('prose is broken at words, code never', () => {
  const text = `${'word '.repeat(20).trimEnd()}\n\n- ${'item '.repeat(12).trimEnd()}\n\n\`\`\`\n${'x'.repeat(60)}\n\`\`\``;
  const lines = renderMarkdown(text, colored);
  expect(lines.map((line) => line.replace(/\x1b\[[0-9;]*m/g, ''))).toEqual([
    'word word word word word word word word',
    'word word word word word word word word',
    'word word word word',
    '',
    '• item item item item item item item',
    '  item item item item item',
    '',
    'x'.repeat(60),
  ]);
});

test('a long task keeps its box clear', () => {
  expect(renderMarkdown(`- [ ] ${'task '.repeat(8).trimEnd()}\n- [x] two`, { ...plain, columns: 26 })).toEqual([
    '• [ ] task task task task',
    '      task task task task',
    '• [x] two',
  ]);
  expect(renderMarkdown('- [ ] one\n\n- [x] two\n', plain)).toEqual(['• [ ] one', '', '• [x] two']);
});

test('where the terminal breaks lines, prose stays as it came', () => {
  const text = 'word '.repeat(20).trimEnd();
  expect(renderMarkdown(`${text}\n\n- ${text}`, { ...plain, wrap: 'terminal' })).toEqual([text, '', `• ${text}`]);
});

test('text without blanks is broken between wide characters, not before what closes a sentence', () => {
  expect(renderMarkdown('日本語の文章はどこでも折り返せます。終わり', { ...plain, columns: 16 })).toEqual([
    '日本語の文章はど',
    'こでも折り返せま',
    'す。終わり',
  ]);
  expect(renderMarkdown('あいうえおかき。く', { ...plain, columns: 14 })).toEqual(['あいうえおか', 'き。く']);
});

test('a joined emoji never makes a row wider than a terminal that shows its parts apart has room for', () => {
  const family = '👨\u200d👩\u200d👧\u200d👦';
  const lines = renderMarkdown(`${family} `.repeat(8).trimEnd(), { ...plain, columns: 20 });
  expect(lines).toEqual([`${family} ${family}`, `${family} ${family}`, `${family} ${family}`, `${family} ${family}`]);
});

test('a table stays one where its columns can be read, and becomes records where not', () => {
  const table = '| file | what it is for |\n|-|-|\n| a.ts | the loop that everything runs |\n| b.ts | |';
  expect(renderMarkdown(table, { ...plain, columns: 80 })).toEqual([
    'file  what it is for',
    `────  ${'─'.repeat(29)}`,
    'a.ts  the loop that everything runs',
    'b.ts',
  ]);
  expect(renderMarkdown(table, { ...plain, columns: 24 })).toEqual([
    'file: a.ts',
    'what it is for: the loop',
    '  that everything runs',
    '',
    'file: b.ts',
  ]);
});

test.each(['streamed', 'at once', 'from a resumed session'])(
  'code of an answer is coloured in its first block too: %s',
  async (way) => {
    await import('../../../src/ui/markdown/code-languages.js');
    const text = 'Here:\n\n```py\nimport os\n```\n\nand\n\n- in a list:\n\n  ```py\n  return os\n  ```\n\nDone.';
    const options = { facts: { ...facts, colors: 16 as const } };
    const past: Event[] = [
      { seq: 3, kind: 'user', content: 'hi', data: null, createdAt: 1 },
      {
        seq: 4,
        kind: 'assistant',
        content: text,
        data: { response_id: 'r', provider: 'p', api: 'openai-chat', model: 'm', stop: 'end' },
        createdAt: 2,
      },
    ];
    const harness = openRepl(
      way === 'from a resumed session' ? { ...options, session: createFakeSession(past) } : options,
    );
    if (way !== 'from a resumed session') {
      harness.type('go\r');
      if (way === 'streamed') harness.session.stream(text);
      harness.session.append(assistant(text));
      await harness.session.end();
    }
    await harness.settle();
    await harness.settle();
    expect(harness.terminal.lines()).toContain('import os');
    expect(harness.terminal.sent()).toContain('\x1b[95mimport\x1b[39m os');
    expect(harness.terminal.sent()).toContain('\x1b[95mreturn\x1b[39m os');
    expect(harness.terminal.lines().filter((line) => line.includes('import os'))).toHaveLength(1);
  },
);

test('code of another language inside of code is coloured as well', async () => {
  const { markUp } = await import('../../../src/ui/markdown/code-languages.js');
  expect(markUp('<script>const a = 1;</script>', 'xml')).toContain('<span class="hljs-keyword">const</span>');
  expect(markUp('RUN if true; then ls; fi', 'dockerfile')).toContain('<span class="hljs-keyword">if</span>');
});

test('on a terminal that knows links an address is one, also over the end of a row; elsewhere nothing is sent', async () => {
  const address = `https://example.org/${'long-'.repeat(20)}end`;
  const text = `See [the **page**](${address}) or https://example.org/b.\n\n| a |\n|-|\n| [x](https://example.org/c) |\n\n[no](javascript:alert(1)) [no](https://e.org/\x07)`;
  for (const links of [true, false]) {
    const harness = openRepl({ columns: 40, facts: { ...facts, colors: 16, links } });
    harness.type('go\r');
    harness.session.stream(text);
    harness.session.append(assistant(text));
    await harness.session.end();
    await harness.settle();
    const sent = harness.terminal.sent();
    expect(sent).not.toContain('888');
    const opened = [...sent.matchAll(/\x1b\]8;;([^\x1b]*)\x1b\\/g)].map((found) => found[1] ?? '');
    expect(opened.filter((to) => to === '')).toHaveLength(opened.length / 2);
    expect(new Set(opened)).toEqual(
      new Set(links ? [address, '', 'https://example.org/b', 'https://example.org/c', 'https://e.org/'] : []),
    );
    expect(harness.terminal.lines().join('\n')).toContain(`See the page\n(${address})\nor https://example.org/b.`);
  }
});

test.each(['', '> '])('a long paragraph of lines (begun by %j) is given out in parts that end with a line', (lead) => {
  const source = Array.from(
    { length: 400 },
    (_, i) => `${lead}Line ${i} of a long streamed paragraph without an empty line.`,
  );
  const text = source.join('\n');
  const stream = new MarkdownStream({ ...plain, columns: 100 });
  const lines: string[] = [];
  for (let end = 50; end < text.length; end += 50) lines.push(...stream.update(text.slice(0, end)).done);
  lines.push(...stream.finish(text));
  const said = lines.map((line) => line.replace(/^[^L]*/, '')).filter((line) => line !== '');
  expect(said).toEqual(source.map((line) => line.slice(lead.length)));
});
