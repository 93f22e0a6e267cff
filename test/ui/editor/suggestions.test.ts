import { expect, test } from 'vitest';
import { createKeyDecoder } from '../../../src/ui/terminal/key-decoder.js';
import { type InputAction, PromptInput } from '../../../src/ui/editor/prompt-input.js';
import { createRank } from '../../../src/ui/editor/suggestions.js';

const settled = async (): Promise<void> => {
  await import('fuzzysort');
  for (let i = 0; i < 5; i++)
    await new Promise((done) => {
      setImmediate(done);
    });
};

test('paths are found by parts, by initials, by words in any order, before and after the matcher is loaded', async () => {
  const rank = createRank();
  const texts = ['docs/readme.md', 'src/ui/key-decoder.ts', 'src/ui/editor.ts', 'test/ui/editor/editor.test.ts'];
  expect(rank('edit', texts).map((index) => texts[index])).toEqual([
    'src/ui/editor.ts',
    'test/ui/editor/editor.test.ts',
  ]);
  await settled();
  const settings = ['approval_timeout  not set', 'approval          "mutating"'];
  expect(rank('approval', settings)).toEqual([1, 0]);
  expect(texts[rank('editor', texts)[0] ?? -1]).toBe('src/ui/editor.ts');
  expect(texts[rank('keydec', texts)[0] ?? -1]).toBe('src/ui/key-decoder.ts');
  expect(rank('decoder ui', texts)).toEqual([1]);
  expect(rank('zzz', texts)).toEqual([]);
});

test('of 100,000 paths each is found, and no more are scored than a key has time for', async () => {
  const rank = createRank();
  const texts = Array.from(
    { length: 100_000 },
    (_, i) => `packages/module-${i % 97}/src/feature-${i % 1013}/file-${i}.ts`,
  );
  rank('f', texts);
  await settled();
  expect(texts[rank('file-98765.', texts)[0] ?? -1]).toBe('packages/module-19/src/feature-504/file-98765.ts');
  expect(rank('f', texts)).toHaveLength(200);
});

test('Enter completes a path and sends one that is there already', async () => {
  const rank = createRank();
  rank('s', ['s']);
  await settled();
  const pressed = (keys: string): readonly InputAction[] => {
    const input = new PromptInput({ commands: () => [], rank, wantFiles: () => undefined });
    input.setFiles(['shot.png', 'src/a.ts', 'shot.png.txt']);
    return createKeyDecoder()
      .decode(keys)
      .map((event) => input.take(event))
      .filter(({ type }) => type !== 'none');
  };
  const sends = (text: string): unknown => [{ type: 'submit', text, when: 'steer' }];
  expect(pressed('see @shot.png\r')).toEqual(sends('see @shot.png '));
  expect(pressed('see @src/\r')).toEqual(sends('see @src/'));
  expect(pressed('see @sho\r')).toEqual([]);
  expect(pressed('see @sho\r\r')).toEqual(sends('see @shot.png '));
});

/** An input that offers these paths, with `typed` in it. */
async function typedInto(paths: readonly string[], typed: string): Promise<PromptInput> {
  const rank = createRank();
  rank('s', ['s']);
  await settled();
  const input = new PromptInput({ commands: () => [], rank, wantFiles: () => undefined });
  input.setFiles(paths);
  for (const event of createKeyDecoder().decode(typed)) input.take(event);
  return input;
}

const composed = 'Spécial.txt'.normalize('NFC');
const decomposed = 'Spécifications.txt'.normalize('NFD');

test.each([
  ['a composed letter and a name in pieces', '@spécif'.normalize('NFC'), [decomposed]],
  ['a letter in pieces and a composed name', '@spécial'.normalize('NFD'), [composed]],
  ['no accent and a name with one', '@specia', [composed]],
  ['another script in pieces', '@ёлка'.normalize('NFD'), ['ёлка.md'.normalize('NFC')]],
  ['Hangul', '@한글'.normalize('NFD'), ['한글.md'.normalize('NFC')]],
  ['a folder and a blank', '@foo b', ['foo bar/', 'foo bar/one.md']],
  ['a blank within a deeper name', 'see (@docs/my fi', ['docs/my file.md']],
  ['open quotes', '@"foo bar/o', ['foo bar/one.md']],
  ['a name with an at sign', '@packages/@sc', ['packages/@scope/', 'packages/@scope/index.ts']],
])('@ offers names for %s', async (_name, typed, offered) => {
  const paths = [
    composed,
    decomposed,
    'ёлка.md',
    '한글.md',
    'foo bar/one.md',
    'docs/my file.md',
    'packages/@scope/index.ts',
  ];
  const input = await typedInto(
    paths.map((path) => (path === decomposed ? path : path.normalize('NFC'))),
    typed,
  );
  expect((input.menu()?.rows ?? []).map(({ label }) => label)).toEqual(offered);
});

test.each(['@src/a.ts please', '@src/a.ts ', 'a@b', '@foo then', '@"foo bar/one.md" and'])(
  '@ offers nothing for %j',
  async (typed) => {
    expect((await typedInto(['src/a.ts', 'foo bar/one.md'], typed)).menu()).toBeNull();
  },
);

test('a folder with a blank is completed with open quotes, and one goes on inside it', async () => {
  const input = await typedInto(['foo bar/one.md', 'foo bar/two.md'], '@foo\t');
  expect(input.text()).toBe('@"foo bar/');
  for (const event of createKeyDecoder().decode('tw\t')) input.take(event);
  expect(input.text()).toBe('@"foo bar/two.md" ');
});

test('the quotes of a folder are closed when it is sent', async () => {
  const input = await typedInto(['foo bar/one.md'], 'list @"foo bar/');
  const [enter] = createKeyDecoder().decode('\r');
  expect(enter && input.take(enter)).toEqual({ type: 'submit', text: 'list @"foo bar/"', when: 'steer' });
});
