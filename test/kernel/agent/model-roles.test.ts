import { expect, test } from 'vitest';
import type { ReadyModel } from '../../../src/kernel/agent/dependencies.js';
import type { Event } from '../../../src/kernel/core/event.js';
import type { ModelChunk } from '../../../src/kernel/core/provider.js';
import { calls, end, noteTool, ref, rig, scripted, text } from './harness.js';

const used: ModelChunk = { type: 'usage', usage: { input: 30, cacheRead: 0, cacheWrite: 0, output: 4 }, costUsd: 0 };
const say = (value: string): readonly ModelChunk[] => [used, text(value), end()];
const down: readonly ModelChunk[] = [{ type: 'fault', fault: { code: 'network', message: 'It is down.' } }];
const long = 'word '.repeat(600);

function other(provider: ReturnType<typeof scripted>, more: Partial<ReadyModel> = {}): ReadyModel {
  return { provider, ref: { provider: 'other', api: 'openai-chat', model: 'o' }, ...more };
}

const spent = (events: readonly Event[]): readonly unknown[] =>
  events.flatMap(({ kind, data }) => {
    if (kind !== 'usage') return [];
    const { provider, role, purpose } = data as Record<string, unknown>;
    return [[provider, role, purpose]];
  });
const said = (at: ReturnType<typeof rig>): readonly string[] =>
  at.seen.flatMap((event) => (event.type === 'notice' && event.code === 'model_role' ? [event.message] : []));

test('a summary and a title are asked of the models of their roles, with their effort, and the usage says so', async () => {
  const [own, summaries, titles] = [scripted([say(long)]), scripted([say('SUMMARY')]), scripted([say('A title')])];
  const roles = {
    compaction: other(summaries, { effort: 'low' }),
    title: other(titles),
    plan: null,
  };
  const at = rig({ provider: own, forRole: (role) => Promise.resolve(roles[role]) });
  await at.session.submit('one');
  expect(await at.session.suggestTitle(new AbortController().signal)).toBe('A title');
  expect(await at.session.compact('')).toMatchObject({ done: true });
  expect([own.requests.length, summaries.requests.length, titles.requests.length]).toEqual([1, 1, 1]);
  expect(summaries.requests[0]?.conversation.settings.effort).toBe('low');
  expect(summaries.requests[0]?.ref.provider).toBe('other');
  expect(spent(at.session.events())).toEqual([
    ['scripted', 'main', undefined],
    ['other', 'title', 'title'],
    ['other', 'compaction', 'compaction'],
  ]);
  await at.session.submit('two');
  expect([own.requests.length, at.session.ref()]).toEqual([2, ref]);
});

test.each([
  ['sends no answer', down, undefined, 'other/o (models.roles.compaction) sent no answer: It is down.'],
  ['has too small a window', say('never'), 100, 'other/o (models.roles.compaction) has a window of 100 tokens'],
])(
  'where the model of a role %s, that of the session is asked, and a notice says why',
  async (_name, answer, window, why) => {
    const [own, summaries] = [scripted([say(long), say('SUMMARY')]), scripted([answer])];
    const at = rig({
      provider: own,
      forRole: (role) => Promise.resolve(role === 'compaction' ? other(summaries) : null),
      contextWindow: (asked) => (asked.provider === 'other' ? (window ?? 100_000) : 100_000),
    });
    await at.session.submit('one');
    expect(await at.session.compact('')).toMatchObject({ done: true });
    expect(own.requests).toHaveLength(2);
    expect(said(at)).toEqual([expect.stringContaining(why)]);
    expect(said(at)[0]).toContain('scripted/m is asked instead.');
  },
);

test('plan mode has its model, from the next request on, and the own one is back once it ends', async () => {
  let isPlanning = true;
  const leave = noteTool(() => {
    isPlanning = false;
    return Promise.resolve({ envelope: { output: 'left' }, summary: 'left' });
  });
  const [own, planner] = [scripted([say('Done.')]), scripted([[used, ...calls(['note', '{"text":"a"}'])]])];
  const at = rig({
    provider: own,
    tools: [leave],
    planning: () => isPlanning,
    forRole: (role) => Promise.resolve(role === 'plan' ? other(planner) : null),
  });
  expect(await at.session.submit('go')).toMatchObject({ text: 'Done.' });
  expect(spent(at.session.events())).toEqual([
    ['other', 'plan', undefined],
    ['scripted', 'main', undefined],
  ]);
  expect(said(at)).toEqual(['Plan mode uses other/o (models.roles.plan).']);
  expect([at.session.ref(), at.session.events().some(({ kind }) => kind === 'model')]).toEqual([ref, false]);
});

test('where the model of plan mode cannot answer, the own one takes the turn, and the next turn tries it again', async () => {
  const [own, planner] = [scripted([say('Mine.')]), scripted([down, say('Planned.')])];
  const at = rig({
    provider: own,
    planning: () => true,
    forRole: (role) => Promise.resolve(role === 'plan' ? other(planner) : null),
  });
  expect(await at.session.submit('go')).toMatchObject({ status: 'completed', text: 'Mine.' });
  expect(await at.session.submit('again')).toMatchObject({ status: 'completed', text: 'Planned.' });
  const stepped = at.seen.flatMap((event) =>
    event.type === 'notice' && event.code === 'fallback_model' ? [event.message] : [],
  );
  expect(stepped).toEqual(['other/o cannot answer: It is down. scripted/m continues this turn.']);
  expect(at.session.ref()).toEqual(ref);
});

test('requests of a sub-agent have its role, whatever the mode of its session', async () => {
  const at = rig({ provider: scripted([say('Found.')]), ofAgent: true, planning: () => true });
  await at.session.submit('find');
  expect(spent(at.session.events())).toEqual([['scripted', 'subagent', undefined]]);
});
