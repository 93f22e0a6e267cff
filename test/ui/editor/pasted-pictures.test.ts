import { expect, test } from 'vitest';
import type { PicturePort, TakenPicture } from '../../../src/ui/repl-options.js';
import { openRepl } from '../repl-harness.js';

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

test('a picture that is refused, and a clipboard without one, are told in a line', async () => {
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
