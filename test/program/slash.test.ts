import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, lines, place, repl, script } from './inside.js';

const reads = [
  { calls: [{ name: 'file_read', arguments: { path: 'a.md' } }] },
  { text: 'Read it.\n\n```js\nconst one = 1;\n```\n' },
];
const writes = [
  { calls: [{ name: 'file_write', arguments: { path: 'new.txt', content: 'made\n' } }] },
  { text: 'Written.' },
  { text: 'Second answer.' },
  { text: 'Third answer.' },
];

test('commands show and change what they are for', async () => {
  const at = place({ 'a.md': '# A\n' });
  const { code } = await repl(
    at,
    ['-m', script(at, reads)],
    [
      ['read it', 'const one = 1;'],
      ['/cost', /requests +input +cache read[^]*2 +0 +0/],
      ['/context', /system prompt +\d+\n[^]*all +\d+\n[^]*is not known/],
      ['/budget', 'there is no limit'],
      ['/budget 1', '$0.00 of $1.00 is spent; $1.00 is left'],
      ['/budget +2', '$0.00 of $3.00 is spent; $3.00 is left'],
      ['/budget lots', 'Give an amount in US dollars'],
      ['/budget off', 'there is no limit'],
      ['/copy', 'no clipboard'],
      ['/diff', 'No file was written or edited'],
      ['/approval mutating', 'Approval mode mutating: edits and commands ask'],
      ['/approval never', /❯ /],
      ['/approval perhaps', 'perhaps'],
      ['/rename', 'This session is now called The script asks for tools here'],
      ['/rename thing', 'This session is now called thing'],
      ['/theme', /1\. dark[^]*3\. none[^]*number: /],
      ['2', 'This terminal is shown no colours'],
      ['/theme purple', 'There is no theme purple. Known: '],
      ['/config', /Settings[^]*\d+\. max_tool_turns +50 · default[^]*number: /],
      ['', /❯ /],
      ['/tools', /file_read[^]*grep/],
      ['/show 1', 'You are agent'],
      ['/show 999', '999'],
      ['/export out.md', 'out.md'],
      ['/export out.md', 'out.md was not written: it exists; give another name'],
      ['/export out.json', 'out.json was not written: end the name in .md, .html or .jsonl'],
      ['/frobnicate', '/frobnicate'],
    ],
  );
  expect(code).toBe(0);
  expect(readFileSync(join(at.work, 'out.md'), 'utf8')).toContain('const one = 1;');
});

test('a setting that is kept holds at the next start, and one that is not does not', async () => {
  const at = place();
  const model = script(at, [{ text: '' }]);
  await repl(
    at,
    ['-m', model],
    [
      ['/approval always --keep', 'Saved to '],
      ['/budget 4', '$4.00 is left'],
    ],
  );
  const { stdout } = await agent(at, ['config', 'get', 'approval']);
  expect(stdout.trim()).toMatch(/^"?always"?/);
  expect((await agent(at, ['config', 'get', 'max_cost_usd'])).stdout.trim()).toBe('');
});

test('what a call wrote is undone and done again, and the conversation goes back to an earlier message', async () => {
  const at = place();
  const model = script(at, writes);
  await repl(
    at,
    ['-m', model, '--approval', 'never'],
    [
      ['write it', 'Written.'],
      ['/diff', 'new.txt'],
      ['and then', 'Second answer.'],
    ],
  );
  expect(existsSync(join(at.work, 'new.txt'))).toBe(true);
  const undone = await repl(
    at,
    ['-c', '-m', model],
    [
      ['/undo', /remove +new\.txt[^]*number: /],
      ['1', 'Reverted 1 file'],
    ],
  );
  expect([undone.code, existsSync(join(at.work, 'new.txt'))]).toEqual([0, false]);
  await repl(
    at,
    ['-c', '-m', model],
    [
      ['/redo', /new\.txt[^]*number: /],
      ['1', /1 file/],
    ],
  );
  expect(readFileSync(join(at.work, 'new.txt'), 'utf8')).toBe('made\n');
  await repl(
    at,
    ['-c', '-m', model],
    [
      ['/rewind', /1\. and then[^]*2\. write it[^]*number: /],
      ['1', 'Rewound to before'],
    ],
  );
  const [session] = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as readonly { id: string }[];
  const body = (await agent(at, ['sessions', 'show', session?.id ?? '', '--as', 'openai-chat'])).stdout;
  expect([body.includes('write it'), body.includes('Second answer')]).toEqual([true, false]);
});

test('sessions are left, found, forked and gone back to', async () => {
  const at = place({ 'a.md': '# A\n' });
  const { code, stdout } = await repl(
    at,
    ['-m', script(at, [...reads, { text: 'After the fork.' }, { text: 'More.' }])],
    [
      ['read it', 'const one = 1;'],
      ['/rename first', 'This session is now called first'],
      ['/clear', 'New session'],
      ['/sessions', /1\. .*first[^]*number: /],
      ['1', 'const one = 1;'],
      ['/search Read', /1\. [^]*number: /],
      ['1', 'Read it.'],
      ['/fork', '❯ '],
      ['!echo own-command', 'own-command'],
      ['/sessions nothing-like-it', 'nothing-like-it'],
    ],
  );
  expect([code, stdout]).toEqual([0, expect.stringContaining('Resume with: agent -r')]);
  const listed = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as readonly unknown[];
  expect(listed).toHaveLength(2);
});

test('a model that cannot be used is refused, one that can be is said', async () => {
  const at = place();
  const other = script(at, [{ text: 'unused' }]);
  const { code } = await repl(
    at,
    ['-m', script(at, [{ text: 'From the first.' }])],
    [
      ['hello', 'From the first.'],
      ['/model openai/gpt-5.2', 'OPENAI_API_KEY'],
      [`/model ${other}`, '❯ '],
      ['again', 'End of script.'],
      ['/compact --dry-run', '❯ '],
      ['/uncompact', '❯ '],
      ['/doctor', /node[^]*sandbox/],
    ],
  );
  expect(code).toBe(0);
  const events = lines((await agent(at, ['-p', '-c', '--output-format', 'stream-json', '-m', other, 'x'])).stdout);
  expect(events.at(-1)).toMatchObject({ type: 'result' });
});
