import { expect, test } from 'vitest';
import type { Event } from '../../../src/kernel/core/event.js';
import type { ToolContext } from '../../../src/kernel/core/tool.js';
import { keyValueTools } from '../../../src/features/small-tools/key-values.js';
import { context, envelopeOf } from '../../kernel/tools/workbench.js';
import { registryOf } from '../registered.js';

/** A session to which every call adds its events, as a turn does. */
function keyValueSession() {
  const events: Event[] = [];
  const add = (kind: string, data: unknown): void => {
    events.push({ seq: events.length + 1, kind, content: '', data, createdAt: 0 });
  };
  const tools = registryOf(keyValueTools());
  const ctx: ToolContext = context('/', { session: { id: 's', events: () => events, recent: () => events } });
  const call = async (name: string, args: object) => {
    const id = `c${events.length}`;
    add('tool_call', { id, type: 'function', function: { name, arguments: JSON.stringify(args) }, response_id: 'r' });
    const envelope = await envelopeOf(name, args, ctx, tools);
    const output = JSON.stringify(envelope);
    add('tool_result', { tool_call_id: id, name, output, success: !('error' in envelope), duration_ms: 0 });
    return envelope;
  };
  return {
    events,
    add,
    set: (k: string, v: string) => call('kv_set', { k, v }),
    get: (k: string) => call('kv_get', { k }),
  };
}

test('a value is there until it is set anew; a key without one names those that have one', async () => {
  const { set, get } = keyValueSession();
  expect(await get('name')).toMatchObject({ code: 'not_found', error: expect.stringContaining('Nothing is set yet') });
  expect(await set('name', 'Erik')).toEqual({ output: 'ok', ok: true });
  await set('empty', '');
  expect([await get('name'), await get('empty')]).toEqual([{ output: 'Erik' }, { output: '' }]);
  await set('name', 'Erika');
  expect(await get('name')).toEqual({ output: 'Erika' });
  expect(await get('nam')).toMatchObject({ code: 'not_found', details: { keys: ['empty', 'name'] } });
});

test('a rewind takes values back, and another brings them again', async () => {
  const { add, events, set, get } = keyValueSession();
  await set('a', '1');
  const first = events.length;
  await set('a', '2');
  const second = events.length;
  add('rewind', { to_seq: first });
  expect(await get('a')).toEqual({ output: '1' });
  add('rewind', { to_seq: second });
  expect(await get('a')).toEqual({ output: '2' });
});

test('values are small and few, and what is refused changes nothing', async () => {
  const { set, get } = keyValueSession();
  expect(await set('k'.repeat(128), 'x'.repeat(8192))).toMatchObject({ ok: true });
  expect(await set('k'.repeat(129), 'x')).toMatchObject({ code: 'limit_reached' });
  expect(await set('long', 'é'.repeat(4097))).toMatchObject({ code: 'limit_reached' });
  expect(await get('long')).toMatchObject({ code: 'not_found' });
  for (let n = 2; n <= 100; n++) expect(await set(`k${n}`, 'x'.repeat(100))).toMatchObject({ ok: true });
  expect(await set('one more', '')).toMatchObject({ code: 'limit_reached' });
  expect(await set('k7', 'again')).toMatchObject({ ok: true });
});

test('all values together have at most 256 KB', async () => {
  const { set } = keyValueSession();
  for (let n = 10; n < 41; n++) expect(await set(`k${n}`, 'x'.repeat(8192))).toMatchObject({ ok: true });
  expect(await set('more', 'x'.repeat(8192))).toMatchObject({ code: 'limit_reached' });
  expect(await set('more', 'x'.repeat(8000))).toMatchObject({ ok: true });
});
