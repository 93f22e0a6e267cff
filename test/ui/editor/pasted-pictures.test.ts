import { expect, test } from 'vitest';
import type { PicturePort, TakenPicture } from '../../../src/ui/repl-options.js';
import { facts, openRepl } from '../repl-harness.js';

const chip: TakenPicture = { ok: true, chip: '[shot.png 8x4]' };
const port = (more: Partial<PicturePort> = {}): PicturePort => ({
  pasted: (text) => Promise.resolve(text.endsWith('.png') ? chip : null),
  clipboard: () => Promise.resolve(chip),
  ...more,
});
const pasted = (text: string): string => `\x1b[200~${text}\x1b[201~`;

test.each([
  ['a path that is pasted becomes a chip', `see ${pasted('/tmp/shot.png')}here\r`, 'see [shot.png 8x4] here'],
  ['any other paste stays as it is', `${pasted('shot.pngx')}\r`, 'shot.pngx'],
  ['Ctrl-V takes the picture in the clipboard', 'see \x16', 'see [shot.png 8x4] '],
  ['an empty paste, too', pasted(''), '[shot.png 8x4] '],
])('%s', async (_name, bytes, sent) => {
  const repl = openRepl({ pictures: port() });
  await repl.settle();
  repl.type(bytes.replace(/here\r|\r$/, ''));
  await repl.settle();
  repl.type(bytes.includes('here') ? 'here\r' : '\r');
  await repl.settle();
  expect(repl.session.submitted).toEqual([sent]);
});

test('what is sent before its chip comes is sent as it was pasted', async () => {
  let take: (taken: TakenPicture) => void = () => undefined;
  const repl = openRepl({ pictures: port({ pasted: () => new Promise((resolve) => (take = resolve)) }) });
  await repl.settle();
  repl.type(`${pasted('/tmp/shot.png')}\r`);
  take(chip);
  await repl.settle();
  expect(repl.session.submitted).toEqual(['/tmp/shot.png']);
  expect(repl.terminal.lines().join('\n')).not.toContain('[shot.png');
});

test('an image that is refused, and a clipboard without one, are told in a line', async () => {
  const problem = 'bomb.png is not attached: 10000x6000 are 60 megapixels, over 50.';
  const refused = (): Promise<TakenPicture> => Promise.resolve({ ok: false, problem });
  const repl = openRepl({ pictures: port({ pasted: refused, clipboard: refused }), columns: 100 });
  await repl.settle();
  for (const bytes of [pasted('/tmp/bomb.png'), '\x16']) {
    repl.type(bytes);
    await repl.settle();
    repl.tick(100);
    await repl.settle();
  }
  expect(repl.terminal.lines().join('\n').split(problem)).toHaveLength(3);
});

test.each([
  ['a path alone', '/tmp/shot.png', '[shot.png 8x4]'],
  ['in quotes, among words', "what is in '/tmp/my shot.png' here?", 'what is in [shot.png 8x4] here?'],
  ['with escaped blanks', 'see /tmp/my\\ shot.png', 'see [shot.png 8x4]'],
  ['as an address', 'see file:///tmp/shot.png', 'see [shot.png 8x4]'],
  ['two of them', '/tmp/a.png and ~/b.png', '[shot.png 8x4] and [shot.png 8x4]'],
  ['a word that is not a path', 'rename shot.png to x.png, please', 'rename shot.png to x.png, please'],
])('line by line, an image that is dragged into a line goes with it: %s', async (_name, line, sent) => {
  const taken = port({
    pasted: (text) => Promise.resolve(/^['"]?(?:~?\/|file:)\S*( shot)?\S*$/.test(text) ? chip : null),
  });
  const repl = openRepl({ pictures: taken, facts: { ...facts, plain: true } });
  repl.type(`${line}\nnext\n`);
  await repl.settle();
  expect(repl.session.submitted).toEqual([sent]);
  await repl.session.end();
  await repl.settle();
  expect(repl.session.submitted).toEqual([sent, 'next']);
  const said = repl.terminal.sent().includes(`Sent as: ${sent}`);
  expect(said).toBe(line !== sent);
});

test('a queued message that is taken back and edited keeps its picture', async () => {
  const repl = openRepl({ pictures: port() });
  await repl.settle();
  repl.type('first\r');
  repl.type(pasted('/tmp/shot.png'));
  await repl.settle();
  repl.type('is late\r');
  repl.type('\x1b[A');
  await repl.settle();
  repl.type(', or not\r');
  await repl.session.end();
  await repl.settle();
  expect(repl.session.submitted).toEqual(['first', '[shot.png 8x4] is late, or not']);
});
