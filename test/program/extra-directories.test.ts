import { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, lines, place, repl, script } from './inside.js';

type Place = ReturnType<typeof place>;

/** A directory beside the working directory. */
function beside(at: Place, name: string): string {
  const path = join(dirname(at.work), name);
  mkdirSync(path);
  return realpathSync(path);
}

const write = (path: string) => ({ calls: [{ name: 'file_write', arguments: { path, content: 'new\n' } }] });
const command = (text: string) => ({ calls: [{ name: 'bash', arguments: { command: text } }] });
const done = { text: 'Done.' };

test('file tools and commands work in an added directory, in one that is only read they do not', async () => {
  const at = place();
  const [open, kept] = [beside(at, 'open'), beside(at, 'kept')];
  writeFileSync(join(kept, 'a.txt'), 'old\n');
  const model = script(at, [
    write(join(open, 'made.txt')),
    write(join(kept, 'made.txt')),
    command(`rm ${join(open, 'made.txt')}; touch ${join(open, 'touched')}`),
    command(`rm ${join(kept, 'a.txt')}`),
    done,
  ]);
  const ran = await agent(at, [
    ...['-p', '-m', model, '--output-format', 'stream-json'],
    ...['--add-dir', '../open', '--add-dir', `${kept}:ro`, 'go'],
  ]);
  const results = lines(ran.stdout).filter(({ type }) => type === 'tool_result');
  expect(results.map(({ success }) => success)).toEqual([true, false, true, false]);
  expect(String(results[1]?.['output'])).toContain('is in a directory that was added read-only');
  expect([existsSync(join(open, 'made.txt')), existsSync(join(open, 'touched'))]).toEqual([false, true]);
  expect([existsSync(join(kept, 'made.txt')), readFileSync(join(kept, 'a.txt'), 'utf8')]).toEqual([false, 'old\n']);
  const told = lines(ran.stdout).filter(({ type }) => type === 'session' || type === 'result');
  expect(told.map(({ directories }) => directories)).toEqual([
    [open, `${kept}:ro`],
    [open, `${kept}:ro`],
  ]);
});

test('what a command changed in an added directory is undone with the rest', async () => {
  const at = place();
  const open = beside(at, 'open');
  writeFileSync(join(open, 'a.txt'), 'old\n');
  await agent(at, ['-p', '-m', script(at, [command(`cd ${open} && for f in *; do echo new >$f; done`), done]), 'go'], {
    env: { AGENT_APPROVAL: 'never' },
  });
  expect(readFileSync(join(open, 'a.txt'), 'utf8')).toBe('new\n');
  writeFileSync(join(open, 'a.txt'), 'old\n');
  await agent(at, [
    ...['-p', '-m', script(at, [command(`cd ${open} && for f in *; do echo new >$f; done`), done])],
    ...['--approval', 'never', '--add-dir', open, 'go'],
  ]);
  const undone = await agent(at, ['undo', '--yes']);
  expect([undone.code, readFileSync(join(open, 'a.txt'), 'utf8')]).toEqual([0, 'old\n']);
});

test('the model is told once which directories it has, and again when they change', async () => {
  const at = place();
  const [one, two] = [beside(at, 'one'), beside(at, 'two')];
  const asked = ['-p', '-m', script(at, [done])];
  await agent(at, [...asked, '--add-dir', one, 'first']);
  await agent(at, [...asked, '-c', '--add-dir', one, 'second']);
  await agent(at, [...asked, '-c', '--add-dir', one, '--add-dir', `${two}:ro`, 'third']);
  const [session] = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as { id: string }[];
  const shown = (await agent(at, ['sessions', 'show', session?.id ?? '', '--json'])).stdout;
  const said = (JSON.parse(shown) as { kind: string; content: string }[]).filter(({ kind }) => kind === 'user');
  expect(said.map(({ content }) => content)).toEqual([
    `[Note: you may also work in ${one}.]`,
    'first',
    'second',
    `[Note: you may also work in ${one}, ${two} (only to read).]`,
    'third',
  ]);
});

test('a resumed session names the directories that it had and does not open them', async () => {
  const at = place();
  const open = beside(at, 'open');
  await agent(at, ['-p', '-m', script(at, [done]), '--add-dir', open, 'go']);
  const model = script(at, [write(join(open, 'made.txt')), done]);
  const again = await agent(at, ['-p', '-c', '-m', model, '--sandbox', 'workspace', 'go on']);
  expect(again.stderr).toContain(`This session also worked in ${open}. --add-dir ${open} or /add-dir opens it again.`);
  expect(existsSync(join(open, 'made.txt'))).toBe(false);
});

test('settings name directories; one that is missing is left out with a notice, a missing one of --add-dir is an error', async () => {
  const at = place();
  const open = beside(at, 'open');
  const call = JSON.stringify({ path: join(open, 'a.txt'), content: '' });
  const check = ['tools', 'check', 'file_write', call, '--sandbox', 'workspace'];
  const named = `workspace.directories=${JSON.stringify([open, '/not/there'])}`;
  const ran = await agent(at, ['--set', named, ...check]);
  expect(lines(ran.stdout)[0]?.['decision']).toBe('allow');
  const told = await agent(at, ['--set', named, '-p', '-m', script(at, [done]), 'go']);
  expect(told.stderr).toContain('workspace.directories: there is no directory /not/there');
  const refused = await agent(at, ['--add-dir', '/not/there', '-p', 'go']);
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('there is no directory /not/there')]);
});

test('/add-dir lists, adds and refuses; the innermost directory decides', async () => {
  const at = place();
  const open = beside(at, 'open');
  mkdirSync(join(open, 'vendor'));
  const model = script(at, [write(join(open, 'vendor', 'a.txt')), write(join(open, 'a.txt')), done]);
  await repl(
    at,
    ['-m', model],
    [
      ['/add-dir', 'only. /add-dir <dir> adds a directory.'],
      ['/add-dir /not/there', 'Nothing was added: there is no directory /not/there.'],
      [`/add-dir ${open}`, open],
      [`/add-dir ${join(open, 'vendor')}:ro`, 'vendor:ro'],
      ['go', 'Done.'],
    ],
  );
  expect([existsSync(join(open, 'vendor', 'a.txt')), existsSync(join(open, 'a.txt'))]).toEqual([false, true]);
});
