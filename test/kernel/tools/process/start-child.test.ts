import { expect, test } from 'vitest';
import { runInteractive } from '../../../../src/kernel/tools/process/runner.js';

test.each([
  ['a program that ends well', 'sh', ['-c', 'exit 0'], 0],
  ['one that fails', 'sh', ['-c', 'exit 3'], 3],
  ['one that a signal ends', 'sh', ['-c', 'kill -9 $$'], null],
  ['one that does not exist', '/nowhere/editor', [], null],
] as const)('%s gives its exit code, or none', async (_name, file, args, code) => {
  expect(await runInteractive(file, args, process.cwd())).toBe(code);
});
