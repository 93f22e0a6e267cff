import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readBounded, type BoundedRead } from '../../../src/kernel/disk/bounded-file.js';
import { makeFifo, tree } from '../tools/workbench.js';

const plain: BoundedRead = { maxBytes: 4, longer: 'refuse', links: 'follow' };

function told(path: string, changed: Partial<BoundedRead> = {}): string {
  const found = readBounded(path, { ...plain, ...changed });
  return found.kind === 'read'
    ? `read ${found.bytes.toString()} of ${found.size}`
    : found.kind === 'refused'
      ? found.reason
      : found.kind;
}

test('a file is read whole, or its start or end, or not at all', () => {
  const root = tree({ small: 'abcd', long: 'abcdef', empty: '' });
  expect(['small', 'long', 'empty', 'none', 'small/x'].map((name) => told(join(root, name)))).toEqual([
    'read abcd of 4',
    'it has 6 bytes, over 4',
    'read  of 0',
    'missing',
    'missing',
  ]);
  expect(told(join(root, 'long'), { longer: 'start' })).toBe('read abcd of 6');
  expect(told(join(root, 'long'), { longer: 'end' })).toBe('read cdef of 6');
});

test('files that would make a reader wait or read without end are refused at once', () => {
  const root = tree({ folder: '' });
  makeFifo(join(root, 'fifo'));
  mkdirSync(join(root, 'directory'));
  writeFileSync(join(root, 'sparse'), '');
  truncateSync(join(root, 'sparse'), 20 * 1024 ** 3);
  symlinkSync('/dev/zero', join(root, 'endless'));
  symlinkSync('folder', join(root, 'link'));
  expect(['fifo', 'directory', 'sparse', 'endless'].map((name) => told(join(root, name)))).toEqual([
    'it is not a regular file',
    'it is not a regular file',
    `it has ${20 * 1024 ** 3} bytes, over 4`,
    'it is not a regular file',
  ]);
  expect(told(join(root, 'link'))).toBe('read  of 0');
  expect(told(join(root, 'link'), { links: 'refuse' })).toBe('it is a link');
});

test.runIf(process.platform === 'linux')(
  'a file of the kernel that says it is empty is read no further than the limit',
  () => {
    expect(told('/proc/self/maps')).toBe('it has more than 4 bytes');
  },
);
