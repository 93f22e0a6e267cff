import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, place, repl, script } from './inside.js';
import type { Place } from '../e2e/program.js';

const call = (name: string, args: unknown) => ({ calls: [{ name, arguments: args }] });
const answers = [
  call('file_write', { path: 'new.txt', content: 'one\ntwo\n' }),
  call('file_edit', { path: 'old.txt', old_string: 'b\nc', new_string: 'B' }),
  { text: 'First answer.' },
  call('bash', { command: 'printf three >> new.txt; rm gone.txt' }),
  { text: 'Second answer.' },
  { text: 'Third answer.' },
];
const files = { 'old.txt': 'a\nb\nc\nd\n', 'gone.txt': 'x\n' };
const turns = [
  ['do it', 'First answer.'],
  ['more', 'Second answer.'],
  ['and talk', 'Third answer.'],
] as const;

const content = (at: Place): readonly (string | null)[] =>
  ['new.txt', 'old.txt', 'gone.txt'].map((name) =>
    existsSync(join(at.work, name)) ? readFileSync(join(at.work, name), 'utf8') : null,
  );

/** The body of the next request. */
async function body(at: Place): Promise<string> {
  const [session] = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as readonly { id: string }[];
  return (await agent(at, ['sessions', 'show', session?.id ?? '', '--as', 'openai-chat'])).stdout;
}

const before = ['one\ntwo\nthree', 'a\nB\nd\n', null];

async function session(): Promise<{ readonly at: Place; readonly args: readonly string[] }> {
  const at = place(files);
  const args = ['-m', script(at, answers), '--approval', 'never'];
  await repl(at, args, turns);
  expect(content(at)).toEqual(before);
  return { at, args: ['-c', ...args] };
}

test('the list says what each message changed, and a rewind of both is undone with its files', async () => {
  const { at, args } = await session();
  const whole = await body(at);
  const { stdout } = await repl(at, args, [
    [
      '/rewind',
      /1\. and talk +event \d+\n *2\. more +2 files, \+1 −1 · event[^]*3\. do it +2 files, \+3 −2 · event[^]*number: /,
    ],
    ['3', /Conversation only[^]*Conversation and files[^]*Files only[^]*number: /],
    ['2', /Rewound to before "do it"\. Reverted \d+ files\. \/rewind undo takes this back\./],
  ]);
  expect(stdout).toContain('remove  new.txt');
  expect(content(at)).toEqual([null, files['old.txt'], 'x\n']);
  expect(await body(at)).not.toContain('First answer.');
  await repl(at, args, [['/rewind undo', /as before the last rewind\. Reapplied \d+ files\./]]);
  expect(content(at)).toEqual(before);
  expect(await body(at)).toBe(whole);
  await repl(at, args, [['/rewind undo', /as before the last rewind\. Reverted \d+ files\./]]);
  expect(content(at)).toEqual([null, files['old.txt'], 'x\n']);
  expect(await body(at)).not.toContain('First answer.');
});

test('a rewind of the files alone keeps the conversation, and is undone', async () => {
  const { at, args } = await session();
  await repl(at, args, [
    ['/rewind', /number: /],
    ['2', /Files only[^]*number: /],
    ['3', /The conversation is unchanged\. Reverted 2 files\. \/rewind undo/],
  ]);
  expect(content(at)).toEqual(['one\ntwo\n', 'a\nB\nd\n', 'x\n']);
  expect(await body(at)).toContain('Third answer.');
  await repl(at, args, [['/rewind undo', 'Reapplied 2 files.']]);
  expect(content(at)).toEqual(before);
});

test('messages sent since a rewind leave the conversation only after a yes', async () => {
  const { at, args } = await session();
  await repl(at, args, [
    ['/rewind', /number: /],
    ['1', 'Rewound to before "and talk"'],
    ['say it instead', 'Third answer.'],
    ['/rewind undo', /1 message sent since[^]*number: /],
    ['2', 'Nothing was changed.'],
  ]);
  expect(await body(at)).toContain('say it instead');
  await repl(at, args, [
    ['/rewind undo', /number: /],
    ['1', 'as before the last rewind'],
  ]);
  expect([(await body(at)).includes('say it instead'), (await body(at)).includes('and talk')]).toEqual([false, true]);
  const fresh = await repl(place(), ['-m', script(at, [])], [['/rewind undo', 'There is no rewind to undo']]);
  expect(fresh.code).toBe(0);
});
