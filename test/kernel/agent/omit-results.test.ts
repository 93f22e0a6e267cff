import { expect, test } from 'vitest';
import type { Event } from '../../../src/kernel/core/event.js';
import { project } from '../../../src/kernel/core/projection.js';
import type { ModelChunk, Price } from '../../../src/kernel/core/provider.js';
import type { Tool, ToolOutcome } from '../../../src/kernel/core/tool.js';
import { openMemoryStore } from '../../../src/kernel/store/memory-store.js';
import { calls, end, noteTool, reader, rig, scripted, text } from './harness.js';

const say = (value: string): readonly ModelChunk[] => [text(value), end()];
const used = (input: number): ModelChunk => ({
  type: 'usage',
  usage: { input, cacheRead: 0, cacheWrite: 0, output: 10 },
  costUsd: 0,
});
const overflow: readonly ModelChunk[] = [
  { type: 'fault', fault: { code: 'context_overflow', message: 'prompt is too long' } },
];
const note = (n: number, input = 100): readonly ModelChunk[] => [used(input), ...calls(['note', `{"text":"${n}"}`])];
const price: Price = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };
const bytes = 3000;

/** Each call gives a long output that names it. */
function longTool(more: Partial<Tool> = {}, extra: Partial<ToolOutcome> & { readonly keep?: string } = {}): Tool {
  const { keep, ...outcome } = extra;
  const tool = noteTool((args) =>
    Promise.resolve({
      envelope: { output: `<${String(args.text)}>`.padEnd(bytes, '.'), ...(keep === undefined ? {} : { keep }) },
      summary: 'ok',
      ...outcome,
    }),
  );
  return { ...tool, ...more };
}

const opening = [
  { kind: 'system', content: 'S', data: null },
  { kind: 'tools', content: '', data: { tools: [reader], settings: { model_output_size: 20_000 } } },
] as const;

const limits = { maxToolTurns: 50, maxToolCalls: 100, loopLimit: 6, maxOutputBytes: 1_048_576 };
const rules = (atShare: number | null, keepTokens: number | null = null) => ({
  limits: { ...limits, compaction: { atShare, keepTokens, assumedWindow: null } },
});

/** Says of each result in the next request whether it is there (its number) or left out. */
function shown(events: readonly Event[]): string {
  return project(events)
    .messages.flatMap((message) => (message.role === 'assistant' ? message.calls : []))
    .map(
      ({ result }) => /<(\d+)>/.exec(result.output)?.[1] ?? /omitted; (file_read path=.*?)\]/.exec(result.output)?.[1],
    )
    .join(' ')
    .replaceAll('\\', '')
    .replaceAll('"', '');
}

const omissions = (events: readonly Event[]): readonly unknown[] =>
  events.filter(({ kind }) => kind === 'results_omitted').map(({ data }) => data);

test('near the end of the window old results are left out before anything else, without a request', async () => {
  const provider = scripted([note(1), note(2), note(3), note(4, 5200), say('Done.')]);
  const at = rig({ provider, opening, tools: [longTool()], contextWindow: () => 6000, price: () => price });
  expect(await at.session.submit('go')).toMatchObject({ status: 'completed', text: 'Done.' });
  expect(provider.requests).toHaveLength(5);
  const events = at.session.events();
  expect(shown(events)).toBe('file_read path=event:7 file_read path=event:11 file_read path=event:15 4');
  expect(JSON.stringify(provider.requests[4]?.conversation)).not.toContain('<1>');
  expect(provider.requests[4]?.conversation.messages.at(-1)).toMatchObject({
    calls: [{ result: { output: expect.stringContaining('<4>') as string } }],
  });
  expect(omissions(events)).toEqual([
    {
      seqs: [7, 11, 15],
      trigger: 'auto',
      tokens_before: expect.any(Number) as number,
      tokens_after: expect.any(Number) as number,
      usd_before: expect.any(Number) as number,
      usd_after: expect.any(Number) as number,
    },
  ]);
  const [said] = at.seen.flatMap((event) =>
    event.type === 'notice' && event.code === 'results_omitted' ? [event.message] : [],
  );
  expect(said).toMatch(
    /^Requests have no output of 3 old tool results any more: about \d+ tokens instead of \d+, and the input of a request about \$0\.\d+ instead of \$0\.\d+\. The next request is not cached and costs \$0\.\d+\. The model can read them by their event\. \/uncompact restores them\.$/,
  );
  expect(events.some(({ kind }) => kind === 'compaction')).toBe(false);
});

test('where that is not enough, a summary is made, of a conversation that has all results', async () => {
  const long = 'word '.repeat(3000);
  const provider = scripted([note(1), [used(100), ...say(long)], note(2, 5200), say('SUMMARY'), say('Done.')]);
  const at = rig({ provider, opening, tools: [longTool()], contextWindow: () => 6000 });
  await at.session.submit('one');
  expect(await at.session.submit('two')).toMatchObject({ status: 'completed', text: 'Done.' });
  expect(omissions(at.session.events())).toEqual([]);
  expect(JSON.stringify(provider.requests[3]?.conversation)).toContain('<1>');
  expect(at.session.events().some(({ kind }) => kind === 'compaction')).toBe(true);
});

test('the share of the window can be set, and off means never', async () => {
  const script = [note(1), note(2), note(3), note(4, 3300), say('Done.')];
  const asked = async (options: object) => {
    const at = rig({ provider: scripted(script), opening, tools: [longTool()], contextWindow: () => 6000, ...options });
    await at.session.submit('go');
    return omissions(at.session.events()).length;
  };
  expect([await asked({}), await asked(rules(0.5)), await asked(rules(0.95)), await asked(rules(null))]).toEqual([
    0, 1, 0, 0,
  ]);
  const off = rig({
    provider: scripted([note(1), note(2), note(3), note(4, 5900), say('Done.')]),
    opening,
    tools: [longTool()],
    contextWindow: () => 6000,
    ...rules(null),
  });
  await off.session.submit('go');
  expect(omissions(off.session.events())).toEqual([]);
});

test('the newest messages stay as far as the settings say', async () => {
  const script = [note(1), note(2), note(3), note(4, 5200), say('Done.')];
  const at = rig({
    provider: scripted(script),
    opening,
    tools: [longTool()],
    contextWindow: () => 6000,
    ...rules(0.85, 2000),
  });
  await at.session.submit('go');
  expect(shown(at.session.events())).toBe('file_read path=event:7 file_read path=event:11 3 4');
});

test('after a refusal results are left out first, and a summary follows where that was not enough', async () => {
  const provider = scripted([note(1), note(2), note(3), note(4), overflow, overflow, say('SUMMARY'), say('Done.')]);
  const at = rig({ provider, opening, tools: [longTool()], contextWindow: () => 100_000 });
  expect(await at.session.submit('go')).toMatchObject({ status: 'completed', text: 'Done.' });
  const kinds = at.session.events().flatMap(({ kind }) => (/omitted|compaction/.test(kind) ? [kind] : []));
  expect(kinds).toEqual(['results_omitted', 'compaction']);
  const enough = rig({
    provider: scripted([note(1), note(2), note(3), note(4), overflow, say('Done.')]),
    opening,
    tools: [longTool()],
  });
  expect(await enough.session.submit('go')).toMatchObject({ status: 'completed', text: 'Done.' });
});

test('with compaction off a refusal ends the turn, says so, and /compact makes room although its request is refused too', async () => {
  const provider = scripted([say('word '.repeat(3000)), overflow, overflow, say('SUMMARY'), say('On.')]);
  const { session } = rig({ provider, opening, ...rules(null) });
  await session.submit('one');
  const { fault } = await session.submit('two');
  expect(fault).toMatchObject({
    code: 'context_overflow',
    message: 'prompt is too long. Automatic compaction is off (compaction.at_percent).',
    hint: expect.stringContaining('/compact') as string,
  });
  expect(provider.requests).toHaveLength(2);
  expect(await session.compact('')).toMatchObject({ done: true, summarised: true });
  expect(await session.submit('three')).toMatchObject({ status: 'completed', text: 'On.' });
});

test('by hand only what is worth it is left out; taken back, the conversation is what it was; read from the store too', async () => {
  const store = openMemoryStore({ now: () => 1 });
  const provider = scripted([note(1), note(2), say('Done.')]);
  const { session } = rig({ provider, opening, store, tools: [longTool()], contextWindow: () => 10_000 });
  expect(await session.omitResults()).toMatchObject({
    done: false,
    reason: expect.stringContaining('no old') as string,
  });
  await session.submit('go');
  const before = project(session.events());
  const plan = await session.omissionPlan();
  expect(plan?.seqs).toEqual([7]);
  const done = await session.omitResults();
  expect(done).toMatchObject({ done: true, summarised: false });
  expect(shown(session.events())).toBe('file_read path=event:7 2');
  expect(project(await store.load('s1'))).toEqual(project(session.events()));
  expect(await session.omitResults()).toMatchObject({ done: false });
  await session.append({
    kind: 'compaction_undone',
    content: null,
    data: { compaction_seq: done.done ? done.seq : 0 },
  });
  expect(project(session.events())).toEqual(before);
});

test.each([
  ['an answer of the user', longTool({ asksUser: true }), {}],
  ['instructions', longTool({}, { keep: 'skill:x' }), {}],
  [
    'everything, where the model could not read it',
    longTool(),
    { opening: [opening[0], { ...opening[1], data: { tools: [], settings: { model_output_size: 20_000 } } }] },
  ],
])('%s stays', async (_name, tool, more) => {
  const provider = scripted([note(1), note(2), note(3), say('Done.')]);
  const { session } = rig({ provider, opening, tools: [tool], contextWindow: () => 6000, ...more });
  await session.submit('go');
  expect(await session.omissionPlan()).toBeNull();
});

test('a failed call keeps its error and its code, without the output so far', async () => {
  const failing = noteTool((args) =>
    Promise.resolve({
      envelope: {
        error: 'it ended with 1',
        code: 'execution_failed',
        details: { output: `<${String(args.text)}>`.padEnd(bytes, '.'), exit_code: 1 },
      },
      summary: 'failed',
    }),
  );
  const provider = scripted([note(1), note(2), note(3), say('Done.')]);
  const { session } = rig({ provider, opening, tools: [failing], contextWindow: () => 6000 });
  await session.submit('go');
  await session.omitResults();
  const [first] = project(session.events()).messages.flatMap((message) =>
    message.role === 'assistant' ? message.calls : [],
  );
  expect(JSON.parse(first?.result.output ?? '')).toEqual({
    error: 'it ended with 1',
    code: 'execution_failed',
    details: { output: '[… 3000 bytes omitted; file_read path="event:7"]', exit_code: 1 },
  });
});

test('a summary says tokens and money before and after, and what it cost itself', async () => {
  const provider = scripted([
    [used(100), ...say('word '.repeat(3000))],
    [{ ...used(4000), costUsd: 0.0123 } as ModelChunk, ...say('SUMMARY')],
  ]);
  const { session } = rig({ provider, opening, price: () => price });
  await session.submit('one');
  const done = await session.compact('');
  expect(done).toMatchObject({
    done: true,
    message: expect.stringMatching(
      /about \d+ tokens instead of \d+, and the input of a request about \$0\.\d+ instead of \$0\.\d+\. The next request is not cached and costs \$0\.\d+\. The summary cost \$0\.0123\. \/uncompact/,
    ) as string,
  });
  const { data } = session.events().at(-1) ?? {};
  const { tokens_before: before, usd_before: usd } = data as { tokens_before: number; usd_before: number };
  expect(usd).toBeCloseTo((before * 0.3) / 1e6, 9);
});
