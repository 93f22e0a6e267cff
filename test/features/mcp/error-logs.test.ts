import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createErrorLogs } from '../../../src/features/mcp/error-logs.js';
import { tree } from '../../kernel/tools/workbench.js';

function opened() {
  const folder = join(tree(), 'mcp');
  let time = 0;
  const keep = createErrorLogs({
    folder,
    mask: (text) => text.replaceAll('secret', '[hidden]'),
    now: () => time,
    log: () => {},
  });
  return {
    keep: (text: string | null) => {
      keep('tried', text === null ? null : Buffer.from(text));
    },
    file: join(folder, 'tried.log'),
    minutes: (count: number) => {
      time += count * 60_000;
    },
  };
}

test('lines are kept whole, masked and without what nobody sees, however they come', () => {
  const { keep, file } = opened();
  keep('one\ntwo se');
  expect(readFileSync(file, 'utf8')).toBe('one\n');
  keep('cret\u001b[2J\n\nthree');
  keep(null);
  expect(readFileSync(file, 'utf8')).toBe('one\ntwo [hidden][2J\n\nthree\n');
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test('a file has at most 1 MiB, the one before it is kept, and a flood is cut off', () => {
  const { keep, file, minutes } = opened();
  const line = `${'x'.repeat(1023)}\n`;
  for (let count = 0; count < 3000; count++) keep(line);
  expect(readFileSync(file, 'utf8')).toContain('[more than 1 MiB in a minute; the rest is dropped]');
  minutes(1);
  for (let count = 0; count < 3000; count++) keep(line);
  expect([statSync(file).size, statSync(`${file}.1`).size].every((size) => size <= 1_048_576 + 1024)).toBe(true);
});
