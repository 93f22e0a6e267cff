import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { agent, place, script } from './inside.js';
import type { Place } from '../e2e/program.js';

const call = (name: string, args: unknown) => ({ calls: [{ name, arguments: args }] });

const write = (path: string, content: string) => call('file_write', { path, content });

const edit = (path: string, old_string: string, new_string: string) =>
  call('file_edit', { path, old_string, new_string });

const bash = (command: string) => call('bash', { command });

/** Every file and link below the workspace, by mode, target and hash. */
function tree(at: Place): Readonly<Record<string, string>> {
  return Object.fromEntries(
    readdirSync(at.work, { recursive: true, encoding: 'utf8' })
      .sort()
      .map((name) => {
        const path = join(at.work, name);
        const stats = lstatSync(path);
        if (stats.isDirectory()) return [name, 'folder'];
        return [
          name,
          stats.isSymbolicLink()
            ? `-> ${readlinkSync(path)}`
            : `${stats.mode.toString(8)} ${createHash('sha256').update(readFileSync(path)).digest('hex')}`,
        ];
      }),
  );
}

function events(
  at: Place,
): readonly { readonly seq: number; readonly kind: string; readonly data_json: string | null }[] {
  const db = new Database(join(at.home, '.agent/agent.db'), { readonly: true });
  try {
    return db
      .prepare('SELECT seq, kind, data_json FROM events WHERE session_id = (SELECT max(id) FROM sessions) ORDER BY seq')
      .all() as never;
  } finally {
    db.close();
  }
}

const files = {
  'src/a.ts': 'alpha\n',
  'src/b.ts': 'beta\n',
  'old.txt': 'old\n',
  'run.sh': 'echo hi\n',
  'win.txt': 'one\r\ntwo\r\n',
};

const steps = [
  write('new.txt', 'one\n'),
  edit('src/a.ts', 'alpha', 'ALPHA'),
  bash('echo two >> new.txt'),
  bash("sed -i 's/beta/BETA/' src/b.ts"),
  write('deep/er/c.txt', 'c\n'),
  bash('mv src/b.ts src/moved.ts'),
  edit('src/moved.ts', 'BETA', 'Beta'),
  bash('chmod +x run.sh'),
  bash('rm old.txt'),
  write('old.txt', 'again\n'),
  bash('mkdir -p made/by && echo x > made/by/x.txt'),
  bash('ln -s ../src/a.ts made/link'),
  edit('run.sh', 'echo hi', 'echo ho'),
  bash('cp src/a.ts copy.ts'),
  edit('copy.ts', 'ALPHA', 'copy'),
  edit('win.txt', 'two', 'zwei'),
  bash('rm -r deep'),
  write('deep/new.txt', 'new\n'),
  bash('for i in 1 2 3; do echo $i > n$i.txt; done'),
  bash('cat n1.txt n2.txt > n3.txt && rm n1.txt'),
  edit('n3.txt', '2', '22'),
  bash('echo > n2.txt'),
  write('src/a.ts', 'all new\n'),
  bash('ln -sfn run.sh made/link'),
  edit('src/a.ts', 'all', 'ALL'),
  bash('printf "\\001\\002" > bin.dat'),
  write('name with space.txt', 'ß\n'),
  bash('mv "name with space.txt" plain.txt'),
  bash('chmod 600 run.sh'),
  write('last.txt', 'end\n'),
];

test('a session of thirty writes, edits and commands is undone and redone, the tree the same by hash', async () => {
  const at = place(files);
  const before = tree(at);
  const run = await agent(at, ['-p', '--approval', 'never', '-m', script(at, [...steps, { text: 'Done.' }]), 'go']);
  expect(run).toMatchObject({ code: 0, stderr: '' });
  const after = tree(at);
  const results = events(at)
    .filter((event) => event.kind === 'tool_result')
    .map(
      (event) => JSON.parse(event.data_json ?? '') as { success: boolean; changes?: readonly { captured: boolean }[] },
    );
  expect(
    results.filter((result) => result.success && (result.changes?.every((change) => change.captured) ?? false)),
  ).toHaveLength(30);

  expect((await agent(at, ['undo', 'abc'])).code).toBe(2);
  const listed = await agent(at, ['undo', 'all']);
  expect(listed.stdout).toMatch(/Nothing was changed. Add --yes to run without asking\.\n$/);
  expect(tree(at)).toEqual(after);
  expect((await agent(at, ['undo', 'all', '--yes'])).stdout).not.toContain('leave');
  expect(tree(at)).toEqual(before);
  expect((await agent(at, ['redo', 'all', '--yes'])).stdout).not.toContain('leave');
  expect(tree(at)).toEqual(after);
  expect((await agent(at, ['undo', 'all', '--yes'])).code).toBe(0);
  expect(tree(at)).toEqual(before);
});

test('files of a directory that was moved are undone where they are now; what stands at the old path is left', async () => {
  const at = place({ 'a.txt': 'v0\n', 'b.txt': 'b0\n' });
  const first = [
    write('a.txt', 'v1\n'),
    write('deep/new.txt', 'n\n'),
    bash('echo b1 > b.txt; echo out > ../outside.txt'),
    { text: 'Done.' },
  ];
  await agent(at, ['-p', '--approval', 'never', '-m', script(at, first), 'go']);
  const second = { ...at, work: `${at.work}-second` };
  const third = { ...at, work: `${at.work}-third` };
  renameSync(at.work, second.work);
  cpSync(second.work, at.work, { recursive: true });
  const listed = await agent(second, ['undo']);
  expect(listed).toMatchObject({ code: 0, stdout: expect.stringMatching(/write {3}b\.txt/) });
  const more = script(at, [write('a.txt', 'v2\n'), { text: 'Done.' }], { loop: true });
  await agent(second, ['-c', '-p', '--approval', 'never', '-m', more, 'on']);
  expect(readFileSync(join(second.work, 'a.txt'), 'utf8')).toBe('v2\n');
  renameSync(second.work, third.work);
  mkdirSync(second.work);
  writeFileSync(join(second.work, 'a.txt'), 'v2\n');
  writeFileSync(join(third.work, 'b.txt'), 'mine\n');
  const foreign = [tree(at), tree(second)];
  const undone = await agent(third, ['undo', 'all', '--yes']);
  expect(undone).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/skip {4}b\.txt: another program has changed it since/),
  });
  expect(Object.keys(tree(third))).toEqual(['a.txt', 'b.txt']);
  expect(['a.txt', 'b.txt'].map((name) => readFileSync(join(third.work, name), 'utf8'))).toEqual(['v0\n', 'mine\n']);
  expect([tree(at), tree(second)]).toEqual(foreign);
  expect((await agent(third, ['redo', 'all', '--yes'])).code).toBe(0);
  expect(readFileSync(join(third.work, 'a.txt'), 'utf8')).toBe('v2\n');
  const [result] = events(at).filter((event) => event.kind === 'tool_result');
  expect((await agent(third, ['restore', `a.txt@${result?.seq ?? 0}`, '--yes'])).code).toBe(0);
  expect(readFileSync(join(third.work, 'a.txt'), 'utf8')).toBe('v1\n');
  expect([tree(at), tree(second)]).toEqual(foreign);
});

test('what the user changed meanwhile is left, and restore brings one file to any event', async () => {
  const at = place({ 'a.txt': 'v0\n', 'b.txt': 'b\n' });
  await agent(at, [
    '-p',
    '--approval',
    'never',
    '-m',
    script(at, [write('a.txt', 'v1\n'), bash('echo v2 > a.txt; echo B > b.txt'), { text: 'Done.' }]),
    'go',
  ]);
  writeFileSync(join(at.work, 'b.txt'), 'mine\n');
  chmodSync(join(at.work, 'a.txt'), 0o600);
  const undone = await agent(at, ['undo', '--yes']);
  expect(undone.stdout).toMatch(/skip {4}b\.txt: another program has changed it since/);
  expect([readFileSync(join(at.work, 'a.txt'), 'utf8'), readFileSync(join(at.work, 'b.txt'), 'utf8')]).toEqual([
    'v1\n',
    'mine\n',
  ]);
  expect((await agent(at, ['restore', 'a.txt@3', '--yes'])).code).toBe(0);
  expect(readFileSync(join(at.work, 'a.txt'), 'utf8')).toBe('v0\n');
  expect(await agent(at, ['restore', 'a.txt', '--yes'])).toMatchObject({ code: 2 });
  expect((await agent(at, ['restore', 'b.txt@99', '--yes'])).code).toBe(1);
});

test('commands that only read leave no trace of looking at the tree', async () => {
  const at = place({ 'a.txt': 'a\n' });
  await agent(at, ['-p', '-m', script(at, [bash('echo hello'), bash('cat a.txt'), { text: 'Done.' }]), 'go']);
  const results = events(at).filter((event) => event.kind === 'tool_result');
  expect(results.map((event) => Object.keys(JSON.parse(event.data_json ?? '') as object).includes('changes'))).toEqual([
    false,
    false,
  ]);
});

test('--at goes on from an event, by a rewind or in a fork, and the model is sent that much', async () => {
  const at = place();
  const say = (prompt: string, ...options: string[]) =>
    agent(at, ['-p', ...options, '-m', script(at, [{ text: 'one' }, { text: 'two' }, { text: 'three' }]), prompt]);
  await say('first');
  await say('second', '-c');
  const id =
    (JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as readonly { id: string }[])[0]?.id ?? '';
  const shown = async (session: string) =>
    (
      JSON.parse((await agent(at, ['sessions', 'show', session, '--as', 'openai-chat'])).stdout) as {
        messages: readonly { role: string; content: string }[];
      }
    ).messages
      .filter((message) => message.role === 'user')
      .map((message) => message.content);
  const firstEnd = events(at).find((event) => event.kind === 'assistant')?.seq ?? 0;
  expect((await say('third', '-r', id, '--fork', '--at', String(firstEnd))).code).toBe(0);
  const fork =
    (JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as readonly { id: string }[])[0]?.id ?? '';
  expect(await shown(fork)).toEqual(['first', 'third']);
  expect(await shown(id)).toEqual(['first', 'second']);
  expect((await say('fourth', '-r', id, '--at', String(firstEnd))).code).toBe(0);
  expect(await shown(id)).toEqual(['first', 'fourth']);
  expect((await say('x', '-r', id, '--at', '999')).code).toBe(2);
  expect((await say('x', '--at', '3')).code).toBe(2);
  expect((await say('x', '-r', id, '--at', 'soon')).code).toBe(2);
});

test('a conversation near the end of the window is compacted in headless mode too, and nothing is lost', async () => {
  const at = place();
  const model = script(at, [
    { text: 'x'.repeat(400), usage: { input_tokens: 950, output_tokens: 5 } },
    { text: 'SUMMARY OR ANSWER', usage: { input_tokens: 10, output_tokens: 5 } },
  ]);
  const window = ['--set', `models=${JSON.stringify({ [model]: { context_window: 1000 } })}`];
  await agent(at, ['-p', ...window, '-m', model, 'remember this word for word']);
  const { code, stdout } = await agent(at, [
    '-p',
    '-c',
    '--output-format',
    'stream-json',
    ...window,
    '-m',
    model,
    'and now?',
  ]);
  expect(code).toBe(0);
  expect(stdout).toContain('"code":"compacted"');
  expect(events(at).map((event) => event.kind)).toEqual([
    'system',
    'tools',
    'user',
    'usage',
    'assistant',
    'user',
    'usage',
    'compaction',
    'usage',
    'assistant',
  ]);
});
