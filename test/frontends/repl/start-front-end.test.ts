import { PassThrough, Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { joinPrompt, readStdin } from '../../../src/frontends/repl/start-front-end.js';

const input = (...chunks: readonly (Buffer | string)[]): Readable => Readable.from(chunks);
const silent = {
  notice: (text: string): void => {
    throw new Error(`nothing was to be said: ${text}`);
  },
  schedule: () => () => undefined,
  hasPrompt: false,
};

test.each([
  [['explain', 'this'], '', 'explain this'],
  [[], 'piped\n\n', 'piped'],
  [['review', 'this'], 'a diff\n', 'review this\n\na diff'],
  [['  '], ' \n', ''],
] as const)('the words %j with %j piped in are one prompt', (words, piped, prompt) => {
  expect(joinPrompt(words, piped)).toBe(prompt);
});

test('standard input is read to its end, also cut within a character, and half a surrogate is replaced', async () => {
  const bytes = Buffer.from('häßlich');
  expect(await readStdin(input(bytes.subarray(0, 2), bytes.subarray(2)), silent)).toBe('häßlich');
  expect(await readStdin(input('\ud800'), silent)).toBe('\ufffd');
});

test('more than any model takes is refused', async () => {
  const chunk = Buffer.alloc(16 * 1024 * 1024);
  await expect(readStdin(input(chunk, chunk, 'x'), silent)).rejects.toMatchObject({ exitCode: 2 });
});

test('a folder as standard input is an empty one', async () => {
  const broken = new Readable({
    read() {
      this.destroy(Object.assign(new Error('it is a directory'), { code: 'EISDIR' }));
    },
  });
  expect(await readStdin(broken, silent)).toBe('');
});

/** Reads what `chunks` bring, and then nothing, with time that passes only where nothing more comes. */
async function readOpen(chunks: readonly string[], hasPrompt: boolean) {
  const stdin = new PassThrough();
  const notices: string[] = [];
  const delays: number[] = [];
  const left = [...chunks];
  const text = await readStdin(stdin, {
    notice: (line) => notices.push(line),
    hasPrompt,
    schedule: (callback, delayMs) => {
      delays.push(delayMs);
      const chunk = left.shift();
      const happens = setImmediate(() => {
        if (chunk !== undefined) stdin.write(chunk);
        else callback();
      });
      // Without a prompt only the end of the input ends the wait.
      if (!hasPrompt) setImmediate(() => stdin.end('the rest'));
      return () => {
        clearImmediate(happens);
      };
    },
  });
  return { text, notices, delays };
}

test('beside a prompt, standard input that is silent and stays open is not waited for, and stderr says so', async () => {
  expect(await readOpen([], true)).toEqual({
    text: '',
    notices: [
      expect.stringMatching(/^agent: standard input sent nothing for 3 s and is still open; it is ignored\..*\n$/),
    ],
    delays: [3000],
  });
  expect(await readOpen(['a diff\n', 'more'], true)).toEqual({
    text: 'a diff\nmore',
    notices: [expect.stringMatching(/^agent: standard input sent nothing more for 3 s .* first 11 bytes are used/)],
    delays: [3000, 3000, 3000],
  });
  expect(await readOpen([], false)).toEqual({
    text: 'the rest',
    notices: [expect.stringMatching(/^agent: still reading standard input/)],
    delays: [2000],
  });
});
