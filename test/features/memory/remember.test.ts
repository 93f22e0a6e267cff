import { expect, test } from 'vitest';
import type { Event } from '../../../src/kernel/core/event.js';
import { type Notes } from '../../../src/features/memory/notes.js';
import type { SearchHit } from '../../../src/kernel/core/store.js';
import type { SessionView } from '../../../src/kernel/core/tool.js';
import { createMemoryNotes } from '../../../src/features/memory/memory-notes.js';
import { historyTools } from '../../../src/features/memory/history.js';
import { memoryTools } from '../../../src/features/memory/remember.js';
import { tickingClock } from '../../kernel/store/samples.js';
import { context, envelopeOf } from '../../kernel/tools/workbench.js';
import { registryOf } from '../registered.js';

interface Said {
  readonly kind: string;
  readonly untrusted?: boolean;
}

/** A session of these events, in order. */
function session(...said: readonly Said[]): SessionView {
  const events = said.map(({ kind, untrusted = false }, index): Event => {
    const output = JSON.stringify({ output: 'x', ...(untrusted ? { untrusted: true } : {}) });
    const data = {
      tool_result: { tool_call_id: 'c', name: 't', output, success: true, duration_ms: 0 },
      assistant: { response_id: 'r', provider: 'p', api: 'a', model: 'm', stop: 'stop' },
      usage: { response_id: 'r' },
    }[kind];
    return { seq: index + 1, kind, content: 'x', data: data ?? null, createdAt: 0 };
  });
  return { id: 's', events: () => events, recent: () => events };
}

const user = { kind: 'user' };
const assistant = { kind: 'assistant' };
const usage = { kind: 'usage' };
const result = { kind: 'tool_result' };
const page = { kind: 'tool_result', untrusted: true };

interface Rig {
  readonly notes?: Notes;
  readonly save?: 'ask' | 'auto' | 'off';
  readonly view?: SessionView;
  readonly hits?: readonly Partial<SearchHit>[];
  readonly searched?: string[];
}

function rig({
  notes = { ...createMemoryNotes(tickingClock()), passing: false },
  save = 'auto',
  view = session(user),
  ...more
}: Rig) {
  const history = {
    search: (text: string, limit: number) => {
      more.searched?.push(text);
      const hits = (more.hits ?? []).map((hit, index): SearchHit => ({
        sessionId: 'old',
        seq: index + 1,
        kind: 'user',
        createdAt: 0,
        cwd: '/here',
        title: null,
        snippet: `hit ${index + 1}`,
        matches: [],
        ...hit,
      }));
      return Promise.resolve(hits.filter(({ snippet }) => snippet.includes(text.split(' ')[0] ?? '')).slice(0, limit));
    },
    redact: (text: string) => text.replaceAll('hunter2', '***'),
  };
  const tools = memoryTools({ ...history, notes: () => Promise.resolve(notes), project: (cwd) => cwd, save });
  const registry = registryOf([...tools, ...historyTools(history)]);
  const ctx = context('/here', { session: view });
  return {
    notes,
    names: tools.map(({ name }) => name),
    call: (name: string, args: object) => envelopeOf(name, args, ctx, registry),
    judge: (name: string, args: object) => registry.get(name)?.judge?.({ ...args }, { cwd: '/here', session: view }),
    bytes: JSON.stringify(tools.map(({ name, description, input_schema }) => ({ name, description, input_schema })))
      .length,
  };
}

test('a note is saved for this project or for all, found, replaced and forgotten', async () => {
  const { notes, call, bytes } = rig({ view: session(user, assistant) });
  expect(bytes).toBeLessThanOrEqual(720);
  expect(await call('save_note', { content: ' The port is 8080.\u202e ', tags: ['net work', ''] })).toEqual({
    output: 'Saved as note 1.',
    id: 1,
  });
  expect(await notes.note(1)).toMatchObject({
    project: '/here',
    content: 'The port is 8080.',
    tags: ['net work'],
    trust: 'model',
    approved: true,
    sessionId: 's',
    seq: 2,
  });
  await call('save_note', { content: 'Ports are numbers.', scope: 'global' });
  expect(await call('search_memory', { query: 'port' })).toEqual({
    output: 'note 2: Ports are numbers.\nnote 1: The port is 8080. #net work',
    count: 2,
  });
  expect(await call('save_note', { content: 'The port is 9090.', replaces: 1 })).toMatchObject({ id: 3 });
  expect(await call('forget_note', { id: 1 })).toMatchObject({ code: 'not_found' });
  expect(await call('forget_note', { id: 2 })).toEqual({ output: 'Note 2 is archived.' });
  expect((await notes.list()).map(({ id }) => id)).toEqual([3]);
});

test('notes of another project are neither found nor changed', async () => {
  const { notes, call } = rig({});
  await notes.save({ project: '/there', content: 'secret plans', tags: [], trust: 'user', approved: true });
  expect(await call('search_memory', { query: 'plans' })).toEqual({ output: 'Nothing was found.', count: 0 });
  expect(await call('forget_note', { id: 1 })).toMatchObject({ code: 'not_found' });
  expect(await call('save_note', { content: 'x', replaces: 1 })).toMatchObject({ code: 'not_found' });
  expect(await notes.note(1)).toMatchObject({ archived: false });
});

test('arguments that cannot be meant are refused, and so is one note too many', async () => {
  const { notes, call } = rig({});
  const refused: readonly (readonly [string, object, string])[] = [
    ['save_note', { content: ' \u200b ' }, 'content'],
    ['save_note', { content: 'x'.repeat(4001) }, 'content'],
    ['save_note', { content: 'x', tags: Array.from({ length: 9 }, () => 't') }, 'tags'],
    ['save_note', { content: 'x', tags: ['t'.repeat(41)] }, 'tags'],
    ['save_note', { content: 'x', scope: 'everywhere' }, 'scope'],
    ['forget_note', {}, 'id'],
    ['search_memory', { query: 'x', limit: 0 }, 'limit'],
    ['search_memory', { query: 'x', limit: 21 }, 'limit'],
  ];
  for (const [name, args, argument] of refused)
    expect(await call(name, args), JSON.stringify(args)).toMatchObject({
      code: 'invalid_args',
      error: expect.stringContaining(argument),
    });
  for (let n = 0; n < 500; n++)
    await notes.save({ project: '/here', content: 'x', tags: [], trust: 'user', approved: true });
  expect(await call('save_note', { content: 'x' })).toMatchObject({ code: 'limit_reached' });
});

test('a turn that has read untrusted text is asked about, and its note waits for approval', async () => {
  const cases: readonly (readonly [string, SessionView, boolean])[] = [
    ['a page in this turn', session(user, assistant, page), true],
    ['a page, then another result', session(user, page, assistant, result), true],
    ['a message that came during the turn', session(user, page, user, assistant), true],
    ['a turn that was interrupted after the page', session(user, page, user), true],
    ['a page in an earlier turn', session(user, page, assistant, usage, user, assistant, result), false],
    ['other results', session(user, result), false],
    ['no session', session(), false],
  ];
  for (const [what, view, isAsked] of cases) {
    const { notes, call, judge } = rig({ view });
    expect(await judge('save_note', { content: 'x' }), what).toMatchObject(
      isAsked ? { risk: 'mutating', everyMode: true } : { risk: 'mutating' },
    );
    expect(Object.keys((await judge('forget_note', { id: 1 })) ?? {}).includes('everyMode'), what).toBe(isAsked);
    await call('save_note', { content: 'noted' });
    expect(await notes.note(1), what).toMatchObject(
      isAsked ? { trust: 'tool', approved: false } : { trust: 'model', approved: true },
    );
    const found = await call('search_memory', { query: 'noted' });
    expect('untrusted' in found, what).toBe(isAsked);
  }
});

test('memory.save says whether notes are saved at all, and whether a yes is needed', async () => {
  expect(rig({ save: 'off' }).names).toEqual(['search_memory']);
  expect(await rig({ save: 'ask' }).judge('save_note', { content: 'x' })).toEqual({
    risk: 'mutating',
    everyMode: true,
    reasons: ['it changes saved notes (memory.save is ask)'],
  });
  expect(await rig({ save: 'ask' }).judge('search_memory', { query: 'x' })).toEqual({ risk: 'read-only', reasons: [] });
});

test('past events come after notes, without secrets, with fewer words where all are too many', async () => {
  const searched: string[] = [];
  const { notes, call } = rig({ searched, hits: [{ snippet: 'harbour hunter2\nopens', seq: 7 }] });
  expect(await call('search_memory', { query: 'when does the harbour open' })).toEqual({
    output: '1970-01-01 user (session old, event 7): harbour *** opens',
    count: 1,
  });
  expect(searched).toEqual(['when does the harbour open', 'when does harbour open', 'harbour', 'when', 'does']);
  await notes.save({ project: '/here', content: 'The harbour.', tags: [], trust: 'user', approved: true });
  expect(await call('search_memory', { query: 'harbour', limit: 1 })).toEqual({
    output: 'note 1: The harbour.',
    count: 1,
  });
});

test('what a program or a page wrote is marked, and what the model still sees is left out', async () => {
  const view = session(user, assistant);
  const compacted: SessionView = {
    ...view,
    recent: () => [
      ...view.events(),
      {
        seq: 3,
        kind: 'compaction',
        content: 'x',
        data: { from_seq: 1, to_seq: 1, trigger: 'manual', tokens_before: 2, tokens_after: 1 },
        createdAt: 0,
      },
    ],
  };
  const own = [1, 2].map((seq) => ({ sessionId: 's', seq, snippet: `own ${seq}` }));
  expect(await rig({ view, hits: own }).call('history_search', { query: 'own' })).toMatchObject({ count: 0 });
  expect(await rig({ view: compacted, hits: own }).call('history_search', { query: 'own' })).toMatchObject({
    count: 1,
  });
  expect(await rig({ hits: [{ kind: 'tool_result' }] }).call('history_search', { query: 'hit' })).toMatchObject({
    output: '1970-01-01 result (session old, event 1): hit 1',
    untrusted: true,
  });
  const echoes = [
    { kind: 'tool_call', snippet: 'search_memory {"query":"hit"}' },
    { kind: 'tool_result', snippet: '1 event found 2026-11-22 user (session 01M81, event 3): hit' },
    { kind: 'tool_call', snippet: 'bash {"command":"hit"}' },
  ];
  expect(await rig({ hits: echoes }).call('history_search', { query: 'hit' })).toMatchObject({ count: 1 });
  const many = Array.from({ length: 40 }, (_item, index) => ({ sessionId: index < 30 ? 's' : 'old', seq: 90 - index }));
  expect(await rig({ view, hits: many }).call('history_search', { query: 'hit', limit: 5 })).toMatchObject({
    count: 5,
  });
});
