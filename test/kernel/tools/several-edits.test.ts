import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { propertyRuns } from '../../property-runs.js';
import { call, context, envelopeOf, registry, tree } from './workbench.js';

const edit = (old_string: string, new_string: string, replace_all?: boolean) => ({
  old_string,
  new_string,
  ...(replace_all === undefined ? {} : { replace_all }),
});

const text = (cwd: string, name = 'f'): string => readFileSync(join(cwd, name), 'utf8');

test('several edits are made in order on the text as it becomes, with one diff and one change', async () => {
  const before = '\uFEFFone\r\ntwo\nthree\r\nthree\r\n';
  const cwd = tree({ f: before });
  const edits = [edit('one\ntwo', 'first\nsecond'), edit('second', '2nd'), edit('three', 'x', true)];
  const outcome = await call('file_edit', { path: 'f', edits }, context(cwd));
  expect(outcome).toMatchObject({
    envelope: { output: 'Replaced 4 occurrence(s) in f', count: 4 },
    diff: expect.stringContaining('-one\n-two\n-three\n-three\n+first\n+2nd\n+x\n+x\n') as string,
    changes: [{ before: Buffer.from(before), after: Buffer.from('\uFEFFfirst\r\n2nd\nx\r\nx\r\n') }],
  });
  expect(text(cwd)).toBe('\uFEFFfirst\r\n2nd\nx\r\nx\r\n');
});

test.each<[what: string, edits: readonly unknown[], error: RegExp, details: Readonly<Record<string, unknown>>]>([
  ['a text that is not there', [edit('a', 'b'), edit('hello wurld', 'x')], /^Edit 2 of 2: old_string does not/, {}],
  ['a text that is there twice', [edit('b', 'c'), edit('x', 'y')], /^Edit 2 of 2: old_string occurs 2/, { edit: 2 }],
  ['a text that an earlier edit took', [edit('a', 'b2'), edit('a', 'd')], /after the edits before it/, { edit: 2 }],
  ['the first of three', [edit('none', 'b'), edit('a', 'c'), edit('b', 'd')], /^Edit 1 of 3: /, { edit: 1 }],
])('%s is named by the number of its edit, and nothing is written', async (_what, edits, error, details) => {
  const cwd = tree({ f: 'a\nb\nx x\nhello world\n' });
  const envelope = await envelopeOf('file_edit', { path: 'f', edits }, context(cwd));
  expect(envelope).toMatchObject({ code: 'execution_failed', error: expect.stringMatching(error) as string, details });
  expect(envelope.error).toContain('Nothing was written: all edits are made, or none.');
  expect(text(cwd)).toBe('a\nb\nx x\nhello world\n');
});

test.each<[what: string, args: Readonly<Record<string, unknown>>, argument: string, problem: string]>([
  ['neither', {}, 'old_string', 'missing'],
  ['both', { edits: [edit('a', 'b')], old_string: 'a', new_string: 'b' }, 'old_string', 'given beside edits'],
  ['replace_all beside edits', { edits: [edit('a', 'b')], replace_all: true }, 'replace_all', 'given beside edits'],
  ['none', { edits: [] }, 'edits', 'too few'],
  ['more than 50', { edits: Array.from({ length: 51 }, () => edit('a', 'b')) }, 'edits', 'too many'],
  [
    'an edit without a change',
    { edits: [edit('a', 'b'), edit('c', 'c')] },
    'edits/1/new_string',
    'edit 2 of 2: the same as old_string',
  ],
  ['an empty text', { edits: [edit('', 'b')] }, 'edits/0/old_string', 'edit 1 of 1: too short'],
  [
    'half of a character',
    { edits: [edit('a', '\uD800')] },
    'edits/0/new_string',
    'edit 1 of 1: contains half of a character',
  ],
  ['an unknown key', { edits: [{ ...edit('a', 'b'), type: 'block' }] }, 'edits/0/type', 'unknown argument'],
  ['a missing text', { edits: [{ old_string: 'a' }] }, 'edits/0/new_string', 'missing'],
  ['JSON as a text', { edits: '[{"old_string":"a","new_string":"b"}]' }, 'edits', 'wrong type'],
])('%s: the argument is named', async (_what, args, argument, problem) => {
  expect(await envelopeOf('file_edit', { path: 'f', ...args }, context(tree({ f: 'a c' })))).toMatchObject({
    code: 'invalid_args',
    details: { argument, problem },
  });
});

test('a character that the encoding of the file does not have is named by its edit', async () => {
  const cwd = tree({ f: Buffer.from([...Buffer.from('caf'), 0xe9, ...Buffer.from(' one two\n')]) });
  const edits = [edit('one', '1'), edit('two', '→')];
  expect(await envelopeOf('file_edit', { path: 'f', edits }, context(cwd, {}))).toMatchObject({
    code: 'execution_failed',
    error: expect.stringContaining('cannot encode a character of new_string of edit 2') as string,
  });
});

test('a file that changed elsewhere is edited where each text is in one place, and refused otherwise', async () => {
  const cwd = tree({ f: 'one\ntwo\n3\n4\n5\n6\n7\nend\n' });
  const tools = registry();
  const seen = await call('file_read', { path: 'f' }, context(cwd), tools);
  const knownFiles = new Map(seen.files?.map(({ path, sha256 }) => [path, sha256]));
  await call('file_edit', { path: 'f', old_string: 'end', new_string: 'END' }, context(cwd), tools);
  const edits = [edit('one', 'first'), edit('two', 'second')];
  const outcome = await call('file_edit', { path: 'f', edits }, context(cwd, { knownFiles }), tools);
  expect(outcome.envelope).toMatchObject({ count: 2, changed_since_read: expect.stringContaining('+END') as string });
  const later = { path: 'f', edits: [edit('3', 'three'), edit('three', '3rd')] };
  expect((await call('file_edit', later, context(cwd, { knownFiles }), tools)).envelope).toMatchObject({
    code: 'execution_failed',
    details: { reason: 'changed' },
  });
});

test('a prompt can show what the edits change together, before they are made', async () => {
  const cwd = tree({ f: 'one\ntwo\n3\n4\n5\n6\n7\n8\n9\nten\n' });
  const around = async (edits: readonly unknown[]) =>
    await registry().get('file_edit')?.surroundingsOf?.({ path: 'f', edits }, { cwd });
  const shown = await around([edit('one', '1'), edit('1', 'first'), edit('ten', '10')]);
  expect(shown?.diff).toContain('-one\n+first\n');
  expect(shown?.diff).toContain('-ten\n+10\n');
  expect(await around([edit('one', '1'), edit('none', 'x')])).toBeNull();
});

test('a list of edits gives the text that one edit after the other gives', () => {
  const word = fc.constantFrom('a', 'b', 'a\n', '\r\n', 'ab', 'c');
  const texts = fc.array(word, { minLength: 1, maxLength: 12 }).map((words) => words.join(''));
  const edits = fc.array(
    fc
      .record({ old_string: word, new_string: word, replace_all: fc.boolean() })
      .filter(({ old_string, new_string }) => old_string.replaceAll('\r', '') !== new_string.replaceAll('\r', '')),
    { minLength: 1, maxLength: 4 },
  );
  return fc.assert(
    fc.asyncProperty(texts, edits, async (before, list) => {
      const cwd = tree({ one: before, all: before });
      const eachOne = async (): Promise<boolean> => {
        for (const single of list)
          if ('error' in (await envelopeOf('file_edit', { path: 'one', ...single }, context(cwd)))) return false;
        return true;
      };
      const each = await eachOne();
      const together = await envelopeOf('file_edit', { path: 'all', edits: list }, context(cwd));
      expect('error' in together).toBe(!each);
      const plain = (name: string): string => text(cwd, name).replaceAll('\r', '');
      // A file that has lost its last CRLF gets LF from the next call, but not from the next edit of the same call.
      expect(each ? plain('all') : text(cwd, 'all')).toBe(each ? plain('one') : before);
    }),
    { numRuns: propertyRuns(60) },
  );
});
