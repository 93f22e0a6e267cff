import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { projects } from '../../src/app/project-files.js';
import { openTrustFile } from '../../src/kernel/config/trust-file.js';
import { table } from '../../src/commands/table.js';
import { agentPaths } from '../../src/kernel/config/settings-file.js';
import { readFrontMatter } from '../../src/kernel/config/front-matter.js';
import { agent, lines, place, repl, script } from './inside.js';

type At = ReturnType<typeof place>;

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

const answer = [{ text: 'Done.' }];

function own(at: At, name: string, text: string): void {
  write(join(at.home, '.claude/commands', name), text);
}

/** The events of the only session. */
async function events(
  at: At,
): Promise<readonly { readonly kind: string; readonly content: string; readonly data: unknown }[]> {
  const listed = await agent(at, ['sessions', 'list', '--json']);
  const [{ id }] = JSON.parse(listed.stdout) as [{ readonly id: string }];
  return lines((await agent(at, ['sessions', 'export', id, '--format', 'jsonl'])).stdout)
    .filter((line) => line.type === 'event')
    .map((line) => line as never);
}

test('a folder that a message names goes with the list of its files; what is not a folder stays as it is', async () => {
  const at = place();
  write(join(at.work, 'src/deep/a.txt'), '');
  write(join(at.work, 'src/b.txt'), '');
  write(join(at.work, 'my dir/c.txt'), '');
  const text = 'Look at @src/ and @"my dir/", not @none/';
  expect(await agent(at, ['-p', '-m', script(at, answer), text])).toMatchObject({ code: 0, stdout: 'Done.\n' });
  const [sent] = (await events(at)).filter(({ kind }) => kind === 'user');
  expect(sent?.content).toBe(`${text}\n\nFiles in src/:\nsrc/b.txt\nsrc/deep/a.txt\n\nFiles in my dir/:\nmy dir/c.txt`);
  expect(sent?.data).toEqual({ typed: text, source: 'terminal' });
});

test('lines that a message names go with it, in both forms, headless and in the REPL', async () => {
  const at = place();
  const numbers = Array.from({ length: 12 }, (_, index) => `line ${index + 1}`);
  write(join(at.work, 'src/a.ts'), `${numbers.join('\n')}\n`);
  write(join(at.work, 'my file.ts'), 'one\ntwo\n');
  write(join(at.work, 'odd:3'), 'a file with such a name\n');
  const added = async (text: string): Promise<unknown> => {
    const ran = await agent(at, [
      '-p',
      '--ephemeral',
      '--output-format',
      'stream-json',
      '-m',
      script(at, answer),
      text,
    ]);
    const calls = lines(ran.stdout).filter(({ type }) => type === 'tool_call');
    return [ran.code, calls.map(({ name, arguments: args }) => `${String(name)} ${String(args)}`)];
  };
  const read = (path: string, offset: number, limit: number) => `file_read ${JSON.stringify({ path, offset, limit })}`;
  const cases: readonly (readonly [string, readonly string[]])[] = [
    ['explain @src/a.ts#L3-9', [read('src/a.ts', 3, 7)]],
    ['explain @src/a.ts#L3-L9.', [read('src/a.ts', 3, 7)]],
    ['explain (@src/a.ts:3-9), please', [read('src/a.ts', 3, 7)]],
    ['@src/a.ts:4 and @src/a.ts#L4', [read('src/a.ts', 4, 1)]],
    ['@src/a.ts:9-3', [read('src/a.ts', 3, 7)]],
    ['@"my file.ts#L2" and @"my file.ts":1-2', [read('my file.ts', 2, 1), read('my file.ts', 1, 2)]],
    ['@odd:3, @none.ts:3-9, @src/a.ts, @src/a.ts:0, me@src/a.ts:3', []],
    ['@src/ with @src/a.ts:1', ['glob {"pattern":"**/*","path":"src/"}', read('src/a.ts', 1, 1)]],
  ];
  for (const [text, calls] of cases) expect([text, await added(text)]).toEqual([text, [0, calls]]);

  const text = 'What do @src/a.ts#L3-5 and @src/a.ts:11-99 say?';
  const shown = 'Lines 3-5 of src/a.ts:\nline 3\nline 4\nline 5\n\nLines 11-99 of src/a.ts:\nline 11\nline 12';
  await repl(at, ['-m', script(at, answer)], [[text, 'Done.']]);
  const [sent] = (await events(at)).filter(({ kind }) => kind === 'user');
  expect(sent).toMatchObject({ content: `${text}\n\n${shown}`, data: { typed: text } });
});

test('lines that may not be read are not sent: what holds for the tool that reads files holds here', async () => {
  const at = place();
  write(join(at.work, '.env'), 'KEY=hidden-value\n');
  const ran = await agent(at, ['-p', '-m', script(at, answer), 'see @.env#L1-2']);
  expect(ran).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining('The message was not sent') as string,
  });
  const past = await agent(at, ['-p', '-m', script(at, answer), 'see @.env:900']);
  expect(past.code).toBe(1);
  write(join(at.work, 'a.txt'), 'one\n');
  const behind = await agent(at, ['-p', '-m', script(at, answer), 'see @a.txt:900']);
  expect(behind).toMatchObject({ code: 0, stdout: 'Done.\n' });
});

test('a command in a file names lines in the same way', async () => {
  const at = place();
  write(join(at.work, 'a.txt'), 'one\ntwo\nthree\n');
  own(at, 'say.md', 'Say @a.txt#L2-3 and @$1.\n');
  expect((await agent(at, ['-p', '-m', script(at, answer), '/say a.txt:1'])).code).toBe(0);
  const [sent] = (await events(at)).filter(({ kind }) => kind === 'user');
  expect(sent?.content).toBe(
    'Say @a.txt#L2-3 and @a.txt:1.\n\nLines 2-3 of a.txt:\ntwo\nthree\n\nLine 1 of a.txt:\none',
  );
});

test('a command stands for its text; its calls are on the record, and are no part of the conversation', async () => {
  const at = place();
  write(join(at.work, 'a.txt'), 'hello\n');
  own(at, 'git/say.md', '---\ndescription: says: it\n---\nSay $1 of @a.txt: !`echo $2`\n');
  const done = await agent(at, ['-p', '-m', script(at, answer), "/git:say 'x y' 'a;b' "]);
  expect(done).toMatchObject({ code: 0, stdout: 'Done.\n', stderr: '' });
  const log = await events(at);
  expect(log.slice(2).map(({ kind, content }) => `${kind} ${content ?? ''}`)).toEqual([
    `tool_call bash(command="echo 'a;b'")`,
    'tool_started ',
    'tool_result exit 0',
    'tool_call file_read(path="a.txt")',
    'tool_started ',
    'tool_result 1 line',
    'user Say x y of @a.txt: a;b\n\nContents of a.txt:\nhello',
    'usage ',
    'assistant Done.',
  ]);
  expect(log[8]?.data).toEqual({
    command: { name: 'git:say', args: "'x y' 'a;b'", sha256: expect.stringMatching(/^\w{64}$/) as string },
    source: 'terminal',
  });
  const [{ id }] = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as [{ readonly id: string }];
  const request = await agent(at, ['sessions', 'show', id, '--as', 'request', '--wire', 'anthropic-messages']);
  expect(request.stdout).not.toContain('tool_use');
  expect((await agent(at, ['sessions', 'list'])).stdout).toContain("/git:say 'x y' 'a;b'");
});

test('a command that fails is told, and its errors are sent; a refusal ends it and nothing is sent', async () => {
  const at = place();
  own(at, 'fails.md', 'Look: !`ls nowhere`\n');
  own(at, 'asks.md', 'Look: !`curl http://127.0.0.1:9/x | sh`\n');
  own(at, 'odd.md', 'Look: !`echo "$(echo $1)"`\n');
  const go = (text: string): ReturnType<typeof agent> => agent(at, ['-p', '-m', script(at, answer), text]);
  const failed = await go('/fails');
  expect(failed).toMatchObject({ code: 0, stdout: 'Done.\n' });
  expect(failed.stderr).toContain('bash(command="ls nowhere") ended with 2. The message contains its output.');
  const [{ id }] = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as [{ readonly id: string }];
  expect((await agent(at, ['sessions', 'show', id])).stdout).toMatch(/Look: ls: .*nowhere.* \[exit code 2\]/);
  const refused = await go('/asks');
  expect(refused.stdout).toBe('');
  expect(refused.stderr).toContain('needs approval, and this run cannot ask');
  expect((await go('/odd x')).stderr).toContain('/odd was not sent: an argument cannot be quoted');
});

test('commands of the program win, paths go to the model, and other names with a slash are refused', async () => {
  const at = place();
  own(at, 'init.md', 'Not this.\n');
  own(at, 'help.md', 'Nor this.\n');
  own(at, 'bad name.md', 'Nor this.\n');
  for (const [text, code] of [
    ['/init the tests', 0],
    ['/help', 0],
    ['/theme', 2],
    ['/etc/hosts is odd', 0],
    ['/unknown', 2],
  ] as const)
    expect(await agent(at, ['-p', '-m', script(at, answer), text])).toMatchObject({ code });
  const listed = await agent(at, ['sessions', 'list', '--json']);
  const prompts = (JSON.parse(listed.stdout) as { readonly prompt: string }[]).map(({ prompt }) => prompt);
  expect(prompts).toEqual(['/etc/hosts is odd', '/init the tests']);
  const found = await agent(at, ['search', 'The user adds: the tests']);
  expect(found.stdout).toContain('Write `AGENTS.md` at the root of this repository');
});

test('a name may have dots and begin with a digit; a file of such a name stays a message', async () => {
  const at = place();
  own(at, 'speckit.plan.md', '---\ndescription: Plans.\n---\nPlan $ARGUMENTS.\n');
  own(at, '2fa.md', 'Set up $1.\n');
  for (const text of ['/speckit.plan the login', '/notes.txt is odd', '/2 or 3'])
    expect(await agent(at, ['-p', '-m', script(at, answer), text])).toMatchObject({ code: 0 });
  await repl(
    at,
    ['-m', script(at, [...answer, { text: 'Set.' }, { text: 'Read.' }])],
    [
      ['/speckit.plan twice', 'Done.'],
      ['/2fa keys', 'Set.'],
      ['/notes.txt again', 'Read.'],
    ],
  );
  const sent = async (words: string): Promise<string> => (await agent(at, ['search', words])).stdout;
  for (const text of ['Plan the login.', '/notes.txt is odd', 'Plan twice.', 'Set up keys.', '/notes.txt again'])
    expect(await sent(`"${text}"`)).toContain(text);
});

test('the REPL offers them, and shows what was typed', async () => {
  const at = place();
  own(at, 'greet.md', '---\ndescription: greets somebody\nargument-hint: <name>\n---\nGreet $1 warmly.\n');
  const finished = await repl(
    at,
    ['-m', script(at, answer)],
    [
      ['/help', '/greet <name>'],
      ['/greet Ada', 'Done.'],
    ],
  );
  expect(finished.stdout).toContain('greets somebody (claude-code)');
  expect((await events(at)).find(({ kind }) => kind === 'user')?.content).toBe('Greet Ada warmly.');
});

test('/review tells the model of the changes', async () => {
  const at = place();
  const git = (...args: string[]): unknown =>
    execFileSync('git', ['-c', 'user.name=x', '-c', 'user.email=x@x', ...args], { cwd: at.work });
  git('init', '-q');
  write(join(at.work, 'a.txt'), 'one\n');
  git('add', '.');
  git('commit', '-qm', 'first');
  write(join(at.work, 'a.txt'), 'one\ntwo\n');
  expect(await agent(at, ['-p', '-m', script(at, answer), '/review'])).toMatchObject({ code: 0, stderr: '' });
  const said = (await events(at)).find(({ kind }) => kind === 'user')?.content;
  expect(said).toContain('+two');
  expect(said).toContain(' a.txt | 1 +');
});

test('/review works in a repository without a commit', async () => {
  const at = place({ 'a.txt': 'one\n' });
  execFileSync('git', ['init', '-q'], { cwd: at.work });
  execFileSync('git', ['add', '.'], { cwd: at.work });
  expect(await agent(at, ['-p', '-m', script(at, answer), '/review'])).toMatchObject({ code: 0, stderr: '' });
  expect((await events(at)).find(({ kind }) => kind === 'user')?.content).toContain('+one');
});

test('the commands of the program are described in the table as in their files', () => {
  const described = table.flatMap(({ entries }) => entries.flatMap(({ slash }) => (slash ? [slash.slice(0, 2)] : [])));
  for (const name of ['init', 'review']) {
    const path = fileURLToPath(new URL(`../../config/prompts/${name}.md`, import.meta.url));
    const { fields } = readFrontMatter(readFileSync(path, 'utf8'));
    expect(described).toContainEqual([`${name} ${fields.get('argument-hint')}`, fields.get('description')]);
  }
});

/** Trusts the files of the project as they are now, as a yes in a terminal does. */
async function trust(at: At): Promise<void> {
  const settings = { cwd: at.work, home: at.home, config: { files: agentPaths(at.env, at.home) } };
  const files = await projects.files(settings);
  if (files === null) throw new Error('nothing to trust');
  openTrustFile(settings.config.files.trust).files.record(files, true, 1);
}

test('commands of a project count once they are trusted, exactly as they are', async () => {
  const at = place({ '.git/HEAD': 'ref: refs/heads/main\n' });
  const file = join(at.work, '.claude/commands/deploy.md');
  write(file, 'Ship $1. !`touch ran`\n');
  const model = script(at, answer);
  const said = async (): Promise<unknown> => {
    await agent(at, ['-p', '-m', model, '/deploy now']);
    const listed = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as [{ readonly id: string }];
    return (await agent(at, ['sessions', 'export', listed[0].id, '--format', 'jsonl'])).stdout;
  };
  const before = await agent(at, ['-p', '-m', model, '/deploy now']);
  expect(before.stderr).toContain('not trusted and not used; review them with agent config trust');
  expect(before.code).toBe(2);
  expect(existsSync(join(at.work, 'ran'))).toBe(false);
  await trust(at);
  expect(await said()).toContain('Ship now.');
  expect(existsSync(join(at.work, 'ran'))).toBe(true);
  own(at, 'deploy.md', 'Mine: $1.\n');
  expect(await said()).toContain('Ship now.');
  write(file, 'Ship $1!\n');
  expect(await said()).toContain('Mine: now.');
});

test('links out of a project are left out, and what lies in the home folder is the user’s own', async () => {
  const at = place({ '.git/HEAD': 'ref: refs/heads/main\n' });
  write(join(at.home, 'secret.md'), 'Secret.\n');
  mkdirSync(join(at.work, '.claude/commands'), { recursive: true });
  symlinkSync(join(at.home, 'secret.md'), join(at.work, '.claude/commands/steal.md'));
  symlinkSync(at.home, join(at.work, '.agent'));
  own(at, 'mine.md', 'Mine.\n');
  write(join(at.home, '.git/HEAD'), '');
  const settings = (cwd: string): Parameters<typeof projects.files>[0] => ({
    cwd,
    home: at.home,
    config: { files: agentPaths(at.env, at.home) },
  });
  expect(await projects.files(settings(at.work))).toBeNull();
  expect(await projects.files(settings(at.home))).toBeNull();
});

test('a command and a skill whose files are written while the REPL is open are found by their names', async () => {
  const at = place();
  const turns = [{ text: 'One.' }, { text: 'Two.' }];
  const written = (): void => {
    write(join(at.home, '.claude/commands/fresh.md'), 'Do $1.\n');
    write(join(at.home, '.claude/skills/neu/SKILL.md'), '---\nname: neu\ndescription: new\n---\nNew.\n');
  };
  const { stdout } = await repl(
    at,
    ['-m', script(at, turns)],
    [
      ['/fresh now', 'There is no command /fresh'],
      ['/fresh now', 'One.'],
      ['/skill:neu', 'Two.'],
    ],
    { onStdout: (text) => (text.includes('There is no command /fresh') ? written() : undefined) },
  );
  expect(stdout).toContain('Two.');
});
