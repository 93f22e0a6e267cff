import { expect, test } from 'vitest';
import { createKeyCommands } from '../../../src/kernel/secrets/key-commands.js';

const command = { command: 'print-key', ttlMs: 300_000 };

test('a key is used until its time is over, and two readers start the command once', async () => {
  let at = 0;
  let runs = 0;
  const masked: string[] = [];
  const keys = createKeyCommands({
    run: () => Promise.resolve({ key: `key-${++runs}` }),
    onKey: (_provider, key) => masked.push(key),
    now: () => at,
  });
  const read = async (): Promise<unknown> => await keys.read('openai', command);
  expect(await Promise.all([read(), read()])).toEqual([{ key: 'key-1' }, { key: 'key-1' }]);
  at = 299_999;
  expect(await read()).toEqual({ key: 'key-1' });
  at = 300_000;
  expect(await read()).toEqual({ key: 'key-2' });
  keys.forget('openai');
  expect([await read(), await keys.read('openai', { ...command, command: 'other' })]).toEqual([
    { key: 'key-3' },
    { key: 'key-4' },
  ]);
  expect(masked).toEqual(['key-1', 'key-2', 'key-3', 'key-4']);
});

test('a failure is not kept: the next request runs the command again', async () => {
  const printed = [{ failure: 'it printed nothing' }, { key: 'key' }];
  const keys = createKeyCommands({
    run: () => Promise.resolve(printed.shift() ?? { key: 'none' }),
    onKey: () => undefined,
    now: () => 0,
  });
  expect([await keys.read('openai', command), await keys.read('openai', command)]).toEqual([
    { failure: 'it printed nothing' },
    { key: 'key' },
  ]);
});
