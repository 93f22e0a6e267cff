import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, place, repl, script } from './inside.js';

const write = {
  calls: [{ name: 'file_write', arguments: { path: 'new.txt', content: 'made\n' } }],
};
const turns = [{ text: 'Begun.' }, write, { text: 'Tried.' }];

type Place = ReturnType<typeof place>;

/** Says whether a resume writes, and what it says. */
async function resumed(at: Place, model: string, more: readonly string[] = [], resume: readonly string[] = ['-c']) {
  const { code, stderr } = await agent(at, ['-p', '-m', model, ...resume, ...more, 'go on']);
  return { code, stderr, wrote: existsSync(join(at.work, 'new.txt')) };
}

test.each([
  ['--approval mutating', ['--approval', 'mutating'], 6, /Approval mode mutating, as before in this session/],
  ['--approval always', ['--approval', 'always'], 6, /Approval mode always, as before in this session/],
  ['--no-tools', ['--no-tools'], 0, /^/],
  ['--tools file_read', ['--tools', 'file_read'], 0, /^/],
])('a resume is not looser than a session with %s, nor is a fork', async (_name, options, code, notice) => {
  for (const resume of [['-c'], ['-c', '--fork']]) {
    const at = place();
    const model = script(at, turns);
    await agent(at, ['-p', '-m', model, ...options, 'begin']);
    const found = await resumed(at, model, [], resume);
    expect(found).toMatchObject({ code, wrote: false });
    expect(found.stderr).toMatch(notice);
    // It also holds for the resume after that.
    expect(await resumed(at, script(at, [write, { text: 'Tried.' }]))).toMatchObject({ wrote: false });
  }
});

test('what the command line says counts, and what it loosens is named', async () => {
  const at = place();
  const model = script(at, turns);
  await agent(at, ['-p', '-m', model, '--approval', 'mutating', 'begin']);
  const found = await resumed(at, model, ['--approval', 'dangerous']);
  expect(found).toMatchObject({ code: 0, wrote: true });
  expect(found.stderr).toMatch(/The approval mode is now dangerous; this session had mutating/);
});

test('a cost limit is kept, unless the resume has a smaller one', async () => {
  const at = place();
  const model = script(at, [{ text: 'One.' }, { text: 'Two.' }, { text: 'Three.' }]);
  await agent(at, ['-p', '-m', model, '--max-cost', '2', 'begin']);
  expect((await resumed(at, model)).stderr).toMatch(/Cost limit \$2, as before in this session/);
  expect((await resumed(at, model, ['--max-cost', '1'])).stderr).not.toMatch(/Cost limit|cost limit/);
});

test('plan mode and a mode that was switched survive the end of the program, also where no message followed', async () => {
  const at = place();
  const model = script(at, turns);
  await repl(
    at,
    ['-m', model],
    [
      ['begin', 'Begun.'],
      ['/approval mutating', 'edits and commands ask'],
      ['/plan', 'Plan mode'],
    ],
  );
  const found = await resumed(at, model);
  expect(found.wrote).toBe(false);
  expect(found.stderr).toMatch(/Plan mode is on, as before in this session/);
  expect(found.stderr).toMatch(/Approval mode mutating, as before in this session/);
});

test('a session that is resumed inside the REPL keeps its mode', async () => {
  const at = place();
  const model = script(at, turns);
  await agent(at, ['-p', '-m', model, '--approval', 'mutating', 'begin']);
  const { stdout } = await agent(at, ['sessions', 'list', '--json']);
  const id = (JSON.parse(stdout) as { id: string }[])[0]?.id ?? '';
  await repl(at, ['-m', model], [[`/sessions ${id}`, /Approval mode mutating, as before in this session/]]);
});
