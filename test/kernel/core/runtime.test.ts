import { expect, test } from 'vitest';
import { loadOnce } from '../../../src/kernel/core/runtime.js';

test('a part is loaded once, also for callers that come during the load', async () => {
  let count = 0;
  const part = loadOnce(() => Promise.resolve(++count));
  expect(part.started()).toBe(null);
  expect(await Promise.all([part.get(), part.get()])).toEqual([1, 1]);
  expect([await part.get(), await part.started()]).toEqual([1, 1]);
});

test('a load that failed is tried again at the next call', async () => {
  let count = 0;
  const part = loadOnce(() => (++count === 1 ? Promise.reject(new Error('not there yet')) : Promise.resolve(count)));
  await expect(part.get()).rejects.toThrow('not there yet');
  expect(part.started()).toBe(null);
  expect(await part.get()).toBe(2);
});
