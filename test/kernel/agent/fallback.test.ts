import { expect, test } from 'vitest';
import type { Fault, ModelChunk } from '../../../src/kernel/core/provider.js';
import type { ModelRef } from '../../../src/kernel/core/projection.js';
import { calls, end, kinds, noteTool, ref, rig, scripted, text } from './harness.js';

const other: ModelRef = { provider: 'spare', api: 'openai-chat', model: 's' };
const broken = (fault: Partial<Fault>): readonly ModelChunk[] => [
  { type: 'fault', fault: { code: 'network', message: 'The server answered 529.', ...fault } },
];

/** A session whose own model plays `own`, and whose fallback plays `spare`. */
function withSpare(own: Parameters<typeof scripted>[0], spare: Parameters<typeof scripted>[0]) {
  const [provider, stepsIn] = [scripted(own), scripted(spare)];
  const opened: string[] = [];
  const at = rig({
    provider,
    tools: [noteTool()],
    fallbacks: (now) => Promise.resolve(now.provider === other.provider ? [] : [other]),
    connect: (next) => {
      opened.push(next.provider);
      return Promise.resolve(next.provider === other.provider ? stepsIn : provider);
    },
  });
  const notices = (): readonly string[] =>
    at.seen.flatMap((event) => (event.type === 'notice' && event.code === 'fallback_model' ? [event.message] : []));
  return { ...at, provider, stepsIn, opened, notices };
}

test('another model goes on with the turn, says so, is on record, and the own one is back for the next', async () => {
  const at = withSpare(
    [broken({ status: 529 }), [text('Back.'), end()]],
    [calls(['note', '{"text":"a"}']), [text('Done by the spare.'), end()]],
  );
  expect(await at.session.submit('go')).toMatchObject({ status: 'completed', text: 'Done by the spare.' });
  expect(at.notices()).toEqual(['scripted/m cannot answer: The server answered 529. spare/s continues this turn.']);
  expect([at.provider.requests.length, at.stepsIn.requests.length, at.session.ref()]).toEqual([1, 2, ref]);
  const models = at.session.events().filter(({ kind }) => kind === 'model');
  expect(models.map(({ content }) => content)).toEqual(['spare/s', 'scripted/m']);
  expect(kinds(at.session.events())).toBe('system tools user model tool_call tool_started tool_result assistant model');
  expect((await at.session.submit('again')).text).toBe('Back.');
});

test.each([
  ['a wrong key', { code: 'auth', status: 401 }],
  ['a bad request', { code: 'bad_request', status: 400 }],
  ['no credit', { code: 'quota', status: 402 }],
] as const)('%s is no reason to ask another model', async (_name, fault) => {
  const at = withSpare([broken(fault)], [[text('never'), end()]]);
  expect((await at.session.submit('go')).fault?.code).toBe(fault.code);
  expect([at.opened, at.notices()]).toEqual([[], []]);
});

test.each([
  ['overload', { code: 'rate_limited', status: 429 }],
  ['a network that is down', { code: 'network' }],
  ['a model that is gone', { code: 'bad_request', status: 404 }],
] as const)('%s is one', async (_name, fault) => {
  const at = withSpare([broken(fault)], [[text('Here.'), end()]]);
  expect(await at.session.submit('go')).toMatchObject({ status: 'completed', text: 'Here.' });
});

test('where the other one fails too, the turn fails once and the own model is back', async () => {
  const at = withSpare([broken({})], [broken({ message: 'Down as well.' })]);
  expect((await at.session.submit('go')).fault?.message).toBe('Down as well.');
  expect([at.provider.requests.length, at.stepsIn.requests.length, at.session.ref()]).toEqual([1, 1, ref]);
});

test('a fallback that cannot be opened is named, and the fault of the own model stands', async () => {
  const provider = scripted([broken({})]);
  const at = rig({
    provider,
    fallbacks: () => Promise.resolve([other]),
    connect: () => Promise.reject(new Error('no key for Spare')),
  });
  expect((await at.session.submit('go')).fault?.message).toBe('The server answered 529.');
  const said = at.seen.flatMap((event) => (event.type === 'notice' ? [event.message] : []));
  expect(said).toEqual([
    'scripted/m cannot answer: The server answered 529. spare/s cannot replace it: no key for Spare',
  ]);
});

test('a model that the person chooses meanwhile stays', async () => {
  const chosen: ModelRef = { provider: 'chosen', api: 'openai-chat', model: 'c' };
  const at = withSpare(
    [broken({})],
    [
      async function* () {
        await at.session.switchModel(chosen);
        yield text('Here.');
        yield end();
      },
    ],
  );
  await at.session.submit('go');
  expect(at.session.ref()).toEqual(chosen);
});

test('several models are tried in order, the session keeps its own, and a later failure goes on behind the last one', async () => {
  const last: ModelRef = { provider: 'last', api: 'openai-chat', model: 'l' };
  const order = [other, last];
  const asked: (readonly [string, string])[] = [];
  const providers = new Map([
    ['scripted', scripted([broken({ status: 529 })])],
    ['spare', scripted([broken({}), [text('never'), end()]])],
    ['last', scripted([calls(['note', '{"text":"a"}']), broken({ message: 'Down as well.' })])],
  ]);
  const at = rig({
    provider: providers.get('scripted') ?? scripted([]),
    tools: [noteTool()],
    fallbacks: (now, own) => {
      asked.push([now.provider, own.provider]);
      return Promise.resolve(order.slice(order.findIndex(({ provider }) => provider === now.provider) + 1));
    },
    connect: (next) => Promise.resolve(providers.get(next.provider) ?? scripted([])),
  });
  expect((await at.session.submit('go')).fault?.message).toBe('Down as well.');
  expect(asked).toEqual([
    ['scripted', 'scripted'],
    ['last', 'scripted'],
  ]);
  const models = at.session.events().filter(({ kind }) => kind === 'model');
  expect(models.map(({ content }) => content)).toEqual(['spare/s', 'last/l', 'scripted/m']);
  expect(at.session.ref()).toEqual(ref);
});
