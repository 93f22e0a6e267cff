import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { methods } from '@agentclientprotocol/sdk';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { EditorProcess } from './editor-client.js';
import { binary, place, script, type Place } from './program.js';
import { openScreen } from './terminal.js';

const idle = /❯ Ask anything/;

/** The columns that the queries below name. */
interface Row {
  readonly kind: string;
  readonly content: string;
  readonly data: string | null;
  readonly pid: number;
}

function read(at: Place, sql: string): readonly Row[] {
  const db = new Database(join(at.home, '.agent/agent.db'), { readonly: true });
  try {
    return db.prepare<[], Row>(sql).all();
  } finally {
    db.close();
  }
}

const events = (at: Place): readonly Row[] =>
  read(at, 'SELECT kind, content, data_json AS data FROM events ORDER BY session_id, seq');
/** The messages of users, each with its source. */
const messages = (at: Place): readonly unknown[] =>
  events(at)
    .map(({ kind, content, data }) => ({
      kind,
      content,
      ...(JSON.parse(data ?? '{}') as { source?: string; note?: true }),
    }))
    .filter(({ kind, note }) => kind === 'user' && note !== true)
    .map(({ content, source }) => [content, source]);

function ownerOf(at: Place, id: string): number {
  return read(at, `SELECT pid FROM leases WHERE session_id = '${id}'`)[0]?.pid ?? 0;
}

/** Starts a session in the background and returns its id and its process. */
function detached(at: Place, turns: readonly object[], ...args: readonly string[]): readonly [string, number] {
  const all = [binary, '--bg', '-m', script(at, turns), ...args];
  const { stdout, stderr } = spawnSync(process.execPath, all, { cwd: at.work, env: at.env, encoding: 'utf8' });
  expect(stderr).toBe('');
  const id = stdout.trim();
  const pid = ownerOf(at, id);
  onTestFinished(() => {
    spawnSync('kill', ['-9', String(pid)]);
  });
  return [id, pid];
}

const run = (command: string) => ({ calls: [{ name: 'bash', arguments: { command } }] });
/** A command that says that it runs, and ends once there is a file `go`. */
const held = run('echo x >> count.txt; echo started; while [ ! -e go ]; do sleep 0.05; done');
const seesCall = (editor: EditorProcess): boolean => JSON.stringify(editor.updates).includes('started\\n');
const isRunning = (editor: EditorProcess): boolean => JSON.stringify(editor.updates).includes('"in_progress"');
const notices = (editor: EditorProcess): string => editor.texts('agent_thought_chunk').join('');

test('an editor joins the session of a terminal: history, live updates both ways, one log', async () => {
  const at = place();
  const turns = [{ text: 'Begun.' }, { text: 'For the editor.' }, { text: 'For the terminal.' }];
  const terminal = openScreen(at, ['-m', script(at, turns)]);
  await terminal.until(idle);
  terminal.type('begin\r');
  await terminal.until(/Begun\./);
  const editor = await EditorProcess.start(at);
  const listed = await editor.agent.request(methods.agent.session.list, { cwd: at.work });
  expect(listed.sessions).toMatchObject([{ title: 'begin (running: idle)', _meta: { agent: { state: 'idle' } } }]);
  const id = listed.sessions[0]?.sessionId ?? '';
  await editor.load(id, at.work);
  expect(editor.updates.slice(0, 2)).toMatchObject([
    { sessionUpdate: 'user_message_chunk', content: { text: 'begin' } },
    { sessionUpdate: 'agent_message_chunk', content: { text: 'Begun.' } },
  ]);
  expect(await editor.prompt(id, 'from the editor')).toEqual({ stopReason: 'end_turn' });
  expect(editor.said()).toBe('Begun.For the editor.');
  await terminal.until(/from the editor[^]*For the editor\./);
  terminal.type('and from here\r');
  await editor.until(() => editor.said().endsWith('For the terminal.'));
  expect(editor.texts('user_message_chunk')).toEqual(['begin', 'and from here']);
  expect(messages(at)).toEqual([
    ['begin', 'terminal'],
    ['from the editor', 'editor'],
    ['and from here', 'terminal'],
  ]);
  const refused = editor.agent.request(methods.agent.session.setMode, { sessionId: id, modeId: 'never' });
  await expect(refused).rejects.toThrow(/set in the process that runs it/);
});

test('a question is answered in either place, once, and the other one closes it', async () => {
  const at = place({ 'old/x': '', 'other/x': '' });
  const turns = [run('rm -rf old'), run('rm -rf other'), { text: 'Removed both.' }];
  const terminal = openScreen(at, ['-m', script(at, turns)]);
  await terminal.until(idle);
  terminal.type('clean up\r');
  await terminal.until(/Run this command\?/);
  const editor = await EditorProcess.start(at);
  const { sessions } = await editor.agent.request(methods.agent.session.list, { cwd: at.work });
  const id = sessions[0]?.sessionId ?? '';
  expect(sessions[0]?.title).toBe('clean up (running: waiting for approval)');
  await editor.load(id, at.work);
  await editor.until(({ questions }) => questions.length === 1);
  const [first] = editor.questions;
  expect(first?.params.toolCall).toMatchObject({ title: 'bash: rm -rf old', kind: 'execute' });
  expect(JSON.stringify(first?.params.toolCall.content)).toContain('Run this command');
  first?.answer('once');
  await editor.until(({ questions }) => questions.length === 2);
  expect([existsSync(join(at.work, 'old')), existsSync(join(at.work, 'other'))]).toEqual([false, true]);
  await terminal.until(/rm -rf other[^]*Arrows and Enter only/);
  terminal.type('\x1b[A');
  await terminal.until(/❯ Preview/);
  terminal.type('\x1b[A');
  await terminal.until(/❯ Yes, once/);
  terminal.type('\r');
  await editor.until(({ questions }) => questions[1]?.isOver === true);
  await editor.until(() => editor.said() === 'Removed both.');
  expect(existsSync(join(at.work, 'other'))).toBe(false);
  const approvals = events(at).filter(({ kind }) => kind === 'approval');
  expect(approvals.map(({ data }) => (JSON.parse(data ?? '') as { source?: string }).source)).toEqual([
    'editor',
    undefined,
  ]);
});

test('questions of the model are answered in the editor or in the terminal, and the other one closes them', async () => {
  const at = place();
  const questions = [{ question: 'Which colour?', options: [{ label: 'Red' }, { label: 'Blue' }] }];
  const asking = { calls: [{ name: 'ask_user', arguments: { questions } }] };
  const terminal = openScreen(at, ['-m', script(at, [asking, asking, { text: 'Thank you.' }])]);
  await terminal.until(idle);
  terminal.type('paint\r');
  await terminal.until(/Which colour\?/);
  const editor = await EditorProcess.start(at);
  const { sessions } = await editor.agent.request(methods.agent.session.list, { cwd: at.work });
  await editor.load(sessions[0]?.sessionId ?? '', at.work);
  await editor.until(({ forms }) => forms.length === 1);
  editor.forms[0]?.fill({ q0: 'Blue' });
  await editor.until(({ forms }) => forms.length === 2);
  expect(editor.forms[1]?.isOver).toBe(false);
  await terminal.until(/result:[^]*Blue[^]*❯ 1\. Red/);
  terminal.type('1');
  await editor.until(({ forms }) => forms[1]?.isOver === true);
  await editor.until(() => editor.said() === 'Thank you.');
  const results = events(at).filter(({ kind }) => kind === 'tool_result');
  const sources = results.map(({ data }) => (JSON.parse(data ?? '') as { answer_source?: string }).answer_source);
  expect(sources).toEqual(['editor', undefined]);
});

test('a cancel interrupts the turn; a prompt that waits for its turn is taken back', async () => {
  const at = place();
  const [id] = detached(at, [held, held, { text: 'Last.' }], 'go on');
  const editor = await EditorProcess.start(at);
  await editor.load(id, at.work);
  await editor.until(isRunning);
  const waiting = editor.prompt(id, 'never mind');
  await editor.cancel(id);
  expect(await waiting).toEqual({ stopReason: 'cancelled' });
  editor.updates.length = 0;
  const running = editor.prompt(id, 'once more');
  await editor.until(isRunning);
  await editor.cancel(id);
  expect(await running).toEqual({ stopReason: 'cancelled' });
  expect(await editor.prompt(id, 'the end')).toEqual({ stopReason: 'end_turn' });
  expect(messages(at)).toEqual([
    ['go on', 'terminal'],
    ['once more', 'editor'],
    ['the end', 'editor'],
  ]);
  expect(read(at, 'SELECT * FROM kept_messages')).toEqual([]);
});

test('the process is killed in the turn of a prompt: the editor says so, and continues the session', async () => {
  const at = place();
  const [id, pid] = detached(at, [{ text: 'Ready.' }, held, { text: 'Continued.' }], 'begin');
  const editor = await EditorProcess.start(at, ['-m', script(at, [{ text: 'Ready.' }, held, { text: 'Continued.' }])]);
  await editor.load(id, at.work);
  await editor.until(() => editor.said() === 'Ready.');
  const lost = editor.prompt(id, 'run it');
  await editor.until(seesCall);
  process.kill(pid, 'SIGKILL');
  await expect(lost).rejects.toThrow(/has ended in the middle of the turn.*your next message continues the session/i);
  expect(notices(editor)).toContain('The process that ran this session has ended.');
  expect(await editor.prompt(id, 'and now?')).toEqual({ stopReason: 'end_turn' });
  expect(editor.said()).toBe('Ready.Continued.');
  expect(ownerOf(at, id)).toBe(editor.child.pid);
  expect(messages(at)).toEqual([
    ['begin', 'terminal'],
    ['run it', 'editor'],
    ['and now?', 'editor'],
  ]);
  expect(readFileSync(join(at.work, 'count.txt'), 'utf8')).toBe('x\n');
  const last = editor.updates.findLast(({ sessionUpdate }) => sessionUpdate === 'tool_call_update');
  expect(JSON.stringify(last)).toContain('It may or may not');
});

test('the process is killed while a prompt waits: the editor runs it, once', async () => {
  const at = place();
  const turns = [held, { text: 'Both are there.' }];
  const [id, pid] = detached(at, turns, 'first');
  const editor = await EditorProcess.start(at, ['-m', script(at, turns)]);
  await editor.load(id, at.work);
  await editor.until(isRunning);
  const waiting = editor.prompt(id, 'second');
  while (read(at, 'SELECT * FROM kept_messages').length === 0) await new Promise((resolve) => setImmediate(resolve));
  process.kill(pid, 'SIGKILL');
  expect(await waiting).toEqual({ stopReason: 'end_turn' });
  expect(editor.said()).toBe('Both are there.');
  expect(editor.texts('user_message_chunk')).toEqual(['first']);
  expect(messages(at)).toEqual([
    ['first', 'terminal'],
    ['second', 'editor'],
  ]);
  expect(read(at, 'SELECT * FROM kept_messages')).toEqual([]);
});

test('the editor is killed: its prompt runs once, and another editor finds it; then both are killed', async () => {
  const at = place();
  const turns = [{ text: 'Ready.' }, held, { text: 'Done.' }, held, { text: 'Done again.' }];
  const [id, pid] = detached(at, turns, 'begin');
  const first = await EditorProcess.start(at);
  await first.load(id, at.work);
  await first.until(() => first.said() === 'Ready.');
  first.prompt(id, 'one').catch(() => undefined);
  await first.until(seesCall);
  first.kill();
  const second = await EditorProcess.start(at, ['-m', script(at, turns)]);
  await second.load(id, at.work);
  expect(second.texts('user_message_chunk')).toEqual(['begin', 'one']);
  at.file('go', '');
  await second.until(() => second.said() === 'Ready.Done.');
  spawnSync('rm', [join(at.work, 'go')]);
  second.updates.length = 0;
  second.prompt(id, 'two').catch(() => undefined);
  await second.until(seesCall);
  process.kill(pid, 'SIGKILL');
  second.kill();
  const third = await EditorProcess.start(at, ['-m', script(at, turns)]);
  await third.load(id, at.work);
  expect(await third.prompt(id, 'three')).toEqual({ stopReason: 'end_turn' });
  expect(messages(at)).toEqual([
    ['begin', 'terminal'],
    ['one', 'editor'],
    ['two', 'editor'],
    ['three', 'editor'],
  ]);
  expect(readFileSync(join(at.work, 'count.txt'), 'utf8')).toBe('x\nx\n');
});

test('two editors share a session, a message from a terminal reaches it, and the second continues it', async () => {
  const at = place();
  const turns = [{ text: 'One.' }, { text: 'Two.' }, { text: 'Three.' }, held, { text: 'Four.' }];
  const model = ['-m', script(at, turns)];
  const first = await EditorProcess.start(at, model);
  const { sessionId: id } = await first.agent.request(methods.agent.session.new, { cwd: at.work, mcpServers: [] });
  await first.prompt(id, 'first');
  const second = await EditorProcess.start(at, model);
  await second.load(id, at.work);
  expect(await second.prompt(id, 'second')).toEqual({ stopReason: 'end_turn' });
  expect([first.said(), second.said()]).toEqual(['One.Two.', 'One.Two.']);
  expect([first.texts('user_message_chunk'), second.texts('user_message_chunk')]).toEqual([['second'], ['first']]);
  const sent = spawnSync(process.execPath, [binary, 'send', id, 'third'], { env: at.env, encoding: 'utf8' });
  expect(sent.stdout).toBe('delivered\n');
  await second.until(() => second.said() === 'One.Two.Three.');
  first.kill();
  await second.until(() => notices(second).includes('has ended'));
  writeFileSync(join(at.work, 'go'), '');
  expect(await second.prompt(id, 'fourth')).toEqual({ stopReason: 'end_turn' });
  expect(messages(at)).toEqual([
    ['first', 'editor'],
    ['second', 'editor'],
    ['third', 'send'],
    ['fourth', 'editor'],
  ]);
});

test('agent stop ends the session of an editor, and the next prompt opens it again', async () => {
  const at = place();
  const model = ['-m', script(at, [{ text: 'One.' }, held, { text: 'Two.' }])];
  const editor = await EditorProcess.start(at, model);
  const { sessionId: id } = await editor.agent.request(methods.agent.session.new, { cwd: at.work, mcpServers: [] });
  await editor.prompt(id, 'first');
  const running = editor.prompt(id, 'second');
  await editor.until(seesCall);
  const stopped = spawnSync(process.execPath, [binary, 'stop', id], { env: at.env, encoding: 'utf8' });
  expect([stopped.status, stopped.stderr]).toEqual([0, '']);
  expect(await running).toEqual({ stopReason: 'cancelled' });
  expect(notices(editor)).toContain('agent stop has ended the session here.');
  expect(ownerOf(at, id)).toBe(0);
  expect(await editor.prompt(id, 'third')).toEqual({ stopReason: 'end_turn' });
  expect(editor.said()).toBe('One.Two.');
  expect(messages(at).map((message) => (message as readonly string[])[0])).toEqual(['first', 'second', 'third']);
});
