import { expect, test } from 'vitest';
import type { PromptStash, StashedPrompt } from '../../../src/kernel/console/prompt-stash-port.js';
import { openRepl, shown } from '../repl-harness.js';

const ctrlS = '\x13';

/** A stack as the store of a project keeps it. */
function stack(prompts: StashedPrompt[] = []): PromptStash & { readonly texts: () => readonly string[] } {
  let last = prompts.length;
  return {
    push: async (text) => {
      last += 1;
      prompts.unshift({ id: last, text, savedAt: new Date() });
      return prompts.length;
    },
    list: async () => [...prompts],
    remove: async (id) => {
      const at = prompts.findIndex((prompt) => prompt.id === id);
      if (at >= 0) prompts.splice(at, 1);
      return at >= 0;
    },
    texts: () => prompts.map(({ text }) => text),
  };
}

test('Ctrl-S stashes the input, and on the empty input lists the stack and gives a prompt back', async () => {
  const stash = stack();
  const harness = openRepl({ stash });
  await harness.settle();
  harness.type('first\nline two'.replace('\n', '\x0a'));
  harness.type(ctrlS);
  harness.type('second');
  harness.type(ctrlS);
  await harness.settle();
  expect(stash.texts()).toEqual(['second', 'first\nline two']);
  expect(shown(harness.terminal).join('\n')).toContain('Ctrl-S on the empty input lists the 2 stashed prompts');
  expect(shown(harness.terminal).at(-1)).toBe('❯');
  harness.type(ctrlS);
  await harness.settle();
  expect(shown(harness.terminal).join('\n')).toMatch(/Stashed prompts of this project\n.*second[^]*first…/);
  harness.type('\x1b[B\r');
  await harness.settle();
  expect(shown(harness.terminal).slice(-2)).toEqual(['❯ first', '  line two']);
  expect(stash.texts()).toEqual(['second']);
  expect(harness.session.submitted).toEqual([]);
});

test('a text that cannot be saved comes back, before what was typed since', async () => {
  let fail: (error: Error) => void = () => undefined;
  const push = (): Promise<number> =>
    new Promise((_resolve, reject) => {
      fail = reject;
    });
  const drafts: string[] = [];
  const history = {
    load: async () => [],
    append: async () => undefined,
    saveDraft: async (text: string) => {
      drafts.push(text);
    },
  };
  const harness = openRepl({ stash: { ...stack(), push }, history });
  await harness.settle();
  harness.type(`long text${ctrlS}since`);
  harness.tick(500);
  expect(drafts.at(-1)).toBe('long text\n\nsince');
  fail(new Error('the store is locked.'));
  await harness.settle();
  expect(shown(harness.terminal).join('\n')).toContain('Not stashed: the store is locked. The text is back');
  expect(shown(harness.terminal).slice(-3)).toEqual(['❯ long text', '', '  since']);
});

test('a prompt that another terminal has taken is not given twice', async () => {
  const prompts = [{ id: 1, text: 'shared', savedAt: new Date() }];
  const harness = openRepl({ stash: stack(prompts) });
  await harness.settle();
  harness.type(ctrlS);
  await harness.settle();
  prompts.length = 0;
  harness.type('\r');
  await harness.settle();
  expect(shown(harness.terminal).join('\n')).toContain('Another terminal has taken this prompt.');
  expect(shown(harness.terminal).at(-1)).toBe('❯');
});
