import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { joinPrompt, readStdin } from '../../src/cli/conversation.js';

const input = (...chunks: readonly (Buffer | string)[]): NodeJS.ReadStream =>
  Readable.from(chunks) as unknown as NodeJS.ReadStream;
const silent = (text: string): void => {
  throw new Error(`nothing was to be said: ${text}`);
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
  expect(await readStdin(broken as unknown as NodeJS.ReadStream, silent)).toBe('');
});
