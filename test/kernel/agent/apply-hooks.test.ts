import { expect, test } from 'vitest';
import type { HookAnswer, HookEvent, Hooks, Occasion } from '../../../src/kernel/core/hooks.js';
import { calls, end, envelopes, kinds, noteTool, rig, scripted, text } from './harness.js';

const nothing: HookAnswer = {
  runs: [],
  decision: 'none',
  reason: '',
  args: null,
  headers: {},
  form: null,
  worktree: null,
  output: null,
  context: [],
  stop: null,
  messages: [],
};

/** Hooks of one event, which answer in turn and then say nothing. */
function hooksOn(event: HookEvent, ...answers: readonly Partial<HookAnswer>[]): Hooks & { readonly asked: Occasion[] } {
  const asked: Occasion[] = [];
  return {
    asked,
    source: 'startup',
    listens: (one) => one === event,
    ask: (occasion) => Promise.resolve({ ...nothing, ...answers[asked.push(occasion) - 1] }),
  };
}

test.each([
  ['Run the tests.', 'Run the tests.'],
  [' ', 'A hook wants you to continue.'],
])('a hook that denies the end of a turn keeps it going with a note for the model', async (reason, content) => {
  const provider = scripted([[text('Done.'), end()]]);
  const hooks = hooksOn('Stop', { decision: 'deny', reason });
  const { session, rows } = rig({ provider, hooks });
  await session.submit('go');
  expect(hooks.asked).toEqual([
    { event: 'Stop', again: false, text: 'Done.' },
    { event: 'Stop', again: true, text: 'Done.' },
  ]);
  const users = (await rows()).filter(({ kind }) => kind === 'user');
  expect(users).toMatchObject([{ content: 'go' }, { content, data: { note: true } }]);
  expect(provider.requests).toHaveLength(2);
});

test('a hook keeps a turn going eight times in a row at most, and that is said', async () => {
  const provider = scripted([[text('Done.'), end()]]);
  const hooks = hooksOn('Stop', ...Array.from({ length: 20 }, () => ({ decision: 'deny' as const })));
  const { session, seen } = rig({ provider, hooks });
  await session.submit('go');
  expect(provider.requests).toHaveLength(9);
  expect(seen.filter(({ type }) => type === 'notice')).toMatchObject([
    {
      level: 'warn',
      code: 'hook',
      message: 'A hook on Stop extended the turn 8 times in a row; the turn ends here.',
    },
  ]);
});

test('a hook that ends the turn is stronger than one that keeps it going', async () => {
  const provider = scripted([[text('Done.'), end()]]);
  const { session } = rig({ provider, hooks: hooksOn('Stop', { decision: 'deny', stop: 'enough' }) });
  await session.submit('go');
  expect(provider.requests).toHaveLength(1);
});

test('a message that a hook denies is not sent; what a hook adds to one is a note beside it', async () => {
  const provider = scripted([[text('Hello.'), end()]]);
  const hooks = hooksOn('UserPromptSubmit', { decision: 'deny', reason: ' no names ' }, { context: ['It is Monday.'] });
  const { session, rows, seen } = rig({ provider, hooks });
  await session.submit('I am Ann');
  expect(provider.requests).toEqual([]);
  expect(JSON.stringify(seen)).toContain('A hook blocked the message: no names');
  await session.submit('hi');
  const users = (await rows()).filter(({ kind }) => kind === 'user');
  expect(users.map(({ content, data }) => [content, data])).toContainEqual(['It is Monday.', { note: true }]);
  expect(users.map(({ content }) => content)).not.toContain('I am Ann');
});

test('a call that a hook denies is not run; another one runs with the arguments that a hook gives', async () => {
  const note = noteTool();
  const provider = scripted([calls(['note', '{"text":"a"}'], ['note', '{"text":"b"}']), [text('Done.'), end()]]);
  const hooks = hooksOn('PreToolUse', { decision: 'deny', reason: 'not a' }, { args: { text: 'c' } });
  const { session, rows } = rig({ provider, hooks, tools: [note] });
  await session.submit('go');
  expect(note.ran).toEqual(['c']);
  expect(envelopes(await rows())).toMatchObject([
    { code: 'permission_denied', error: 'Denied by a hook: not a' },
    { output: 'noted c' },
  ]);
});

test('a hook replaces the output of a call and adds a message; one on failures hears of an error', async () => {
  const provider = scripted([calls(['note', '{"text":"a"}']), [text('Done.'), end()]]);
  const hooks = hooksOn('PostToolUse', {
    output: 'hidden',
    context: ['Format it.'],
    decision: 'deny',
    reason: 'Too long.',
  });
  const { session, rows } = rig({ provider, hooks, tools: [noteTool()] });
  await session.submit('go');
  const events = await rows();
  expect(envelopes(events)).toEqual([{ output: 'hidden', hook_message: 'Too long.\nFormat it.' }]);
  expect(kinds(events)).not.toContain('hook');

  const failing = noteTool(() => Promise.reject(new Error('broken')));
  const failures = hooksOn('PostToolUseFailure', { output: 'hidden' });
  const other = rig({
    provider: scripted([calls(['note', '{"text":"a"}']), [end()]]),
    hooks: failures,
    tools: [failing],
  });
  await other.session.submit('go');
  expect(failures.asked).toMatchObject([{ event: 'PostToolUseFailure', call: { tool: 'note', args: { text: 'a' } } }]);
  expect(envelopes(await other.rows())[0]).not.toMatchObject({ output: 'hidden' });
});

test('a run that decided is in the log before anything follows it, with its reason', async () => {
  const run = {
    event: 'Stop',
    command: 'check.sh\nmore',
    decision: 'deny',
    reason: 'red\nvery',
  } as HookAnswer['runs'][number];
  const provider = scripted([[text('Done.'), end()]]);
  const { session, rows } = rig({ provider, hooks: hooksOn('Stop', { decision: 'deny', reason: 'red', runs: [run] }) });
  await session.submit('go');
  expect((await rows()).filter(({ kind }) => kind === 'hook')).toMatchObject([
    { content: expect.stringMatching(/^Stop check\.sh.*: deny \(red.*\)$/) as string, data: run },
  ]);
});
