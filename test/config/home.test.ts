import { userInfo } from 'node:os';
import { expect, test } from 'vitest';
import { homeOf } from '../../src/config/settings-file.js';

test('a home that is empty, relative or missing is that of the account', () => {
  const own = userInfo().homedir;
  expect([{ HOME: '/x' }, { HOME: '' }, { HOME: 'x' }, {}].map((env) => homeOf(env))).toEqual(['/x', own, own, own]);
});
