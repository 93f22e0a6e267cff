import xterm from '@xterm/headless';
import { expect, test } from 'vitest';
import { LiveText } from '../../../src/frontends/viewers/live-text.js';
import { createTheme } from '../../../src/kernel/console/theme.js';

const theme = createTheme({ unicode: true, colors: 0, theme: 'none' });
const style = { theme, columns: 20, detail: { show: 'full', maxRows: 10 } } as const;

/** What a terminal of 20 columns and 6 rows shows, or a file contains. */
function output(isTerminal: boolean) {
  const terminal = new xterm.Terminal({
    cols: 20,
    rows: 6,
    scrollback: 1000,
    allowProposedApi: true,
    convertEol: true,
  });
  let written = '';
  const text = new LiveText(style, {
    size: () => (isTerminal ? { columns: 20, rows: 6 } : null),
    print: (part) => {
      written += part;
    },
    eraseRows: (above) => {
      written += `\r${above > 0 ? `\x1b[${above}A` : ''}\x1b[J`;
    },
  });
  const shown = async (): Promise<string> => {
    await new Promise<void>((resolve) => {
      terminal.write(written, resolve);
    });
    written = '';
    const { active } = terminal.buffer;
    return Array.from({ length: active.length }, (_, at) => active.getLine(at))
      .map((line) => (line?.isWrapped === true ? '' : '\n') + (line?.translateToString(true) ?? ''))
      .join('')
      .trim();
  };
  return { text, shown };
}

const answers = {
  'a short line': 'It is **made**.',
  'words that wrap': 'One two three four five six seven eight nine ten eleven twelve.',
  'marks that close later': 'Some **bold words over a row end** and `code here`.',
  blocks: '# Title\n\nFirst paragraph.\n\n- one\n- two\n\n```js\nlet a = 1;\n```\n\nThe end.',
  'a word longer than a row': `See ${'x'.repeat(45)} there.`,
  'more rows than the screen': Array.from({ length: 12 }, (_, at) => `- item ${at}`).join('\n'),
  'a table': '| a | b |\n| - | - |\n| 1 | 2 |\n\nDone.',
};

test.each(Object.entries(answers))('an answer is shown once, however it streams: %s', async (_, answer) => {
  const whole = output(true);
  whole.text.draw([...whole.text.finish(answer), 'after']);
  const expected = await whole.shown();
  for (const isTerminal of [true, false])
    for (const step of [1, 7]) {
      const { text, shown } = output(isTerminal);
      for (let end = step; end < answer.length; end += step) text.draw(text.update(answer.slice(0, end)));
      text.draw([...text.finish(answer), 'after']);
      expect(await shown()).toBe(expected);
    }
});

test('other lines stay above the open block', async () => {
  const { text, shown } = output(true);
  text.draw(text.update('The begin'));
  text.draw(['notice']);
  text.draw(text.update('The beginning'));
  expect(await shown()).toBe('notice\nThe beginning');
});

test('an answer that breaks off stays where it was shown, and nothing of it comes again', async () => {
  const { text, shown } = output(true);
  text.draw(text.update('First'));
  expect(text.isShown()).toBe(true);
  text.draw([...text.stop(), 'void']);
  text.draw(text.update('Second'));
  text.draw(text.finish('Second try'));
  expect(await shown()).toBe('First\nvoid\nSecond try');
});

test('of an answer with a masked secret the lines that are as recorded are not shown again', async () => {
  const { text, shown } = output(true);
  text.draw(text.update('Above.\n\nThe key is abc.\n\n'));
  text.draw(text.finish('Above.\n\nThe key is *.'));
  expect(await shown()).toBe('Above.\n\nThe key is *.');
});
