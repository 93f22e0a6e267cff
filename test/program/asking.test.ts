import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, lines, place, repl, script } from './inside.js';

const questions = [{ question: 'Which colour?', options: [{ label: 'Red' }, { label: 'Green' }] }];
const write = { calls: [{ name: 'file_write', arguments: { path: 'new.txt', content: 'made\n' } }] };
const propose = { calls: [{ name: 'propose_plan', arguments: { plan: 'Write new.txt.' } }] };

test('a question of the model is answered in the REPL; the answer approves no call', async () => {
  const at = place();
  const model = script(at, [
    { calls: [{ name: 'ask_user', arguments: { questions } }] },
    write,
    { text: 'Thank you.' },
  ]);
  await repl(
    at,
    ['-m', model, '--tools', '+ask'],
    [
      ['/plan', 'Plan mode'],
      ['go', 'Which colour?'],
      ['', 'your own answer: '],
      ['yes, go ahead and write it', 'Thank you.'],
    ],
  );
  expect(existsSync(join(at.work, 'new.txt'))).toBe(false);
});

test('a plan is carried out once the user agrees, and not before', async () => {
  const at = place();
  const model = script(at, [propose, write, propose, write, { text: 'All done.' }]);
  const { stdout } = await repl(
    at,
    ['-m', model, '--tools', '+ask'],
    [
      ['/plan make the file', 'your own answer, or nothing for keep: '],
      ['in smaller steps', /plan mode is read-only[^]*your own answer, or nothing for keep: /],
      ['1', 'All done.'],
    ],
  );
  expect(stdout).toContain('The model asks (Plan)\n  Write new.txt.\n  \n  Run this plan?');
  expect(existsSync(join(at.work, 'new.txt'))).toBe(true);
});

test('without a person nothing is offered that asks one', async () => {
  const at = place();
  const model = script(at, [{ calls: [{ name: 'ask_user', arguments: { questions } }] }, { text: 'Then not.' }]);
  const run = await agent(at, ['-p', '-m', model, '--tools', '+ask', '--output-format', 'stream-json', 'hi']);
  const events = lines(run.stdout);
  expect(events.find(({ type }) => type === 'tool_result')).toMatchObject({ success: false });
  expect(run.stdout).toContain('unknown_tool');
});
