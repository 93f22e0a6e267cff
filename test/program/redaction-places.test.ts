import { appendFileSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';
import { expect, test } from 'vitest';
import type { Task } from '../../src/features/scheduled-tasks/tasks.js';
import { openSqliteStore } from '../../src/kernel/store/sqlite-store.js';
import type { Place } from '../e2e/program.js';
import { png } from '../features/attachments/samples.js';
import { agent, lines, place, repl, script } from './inside.js';
import { taskTableSet } from '../../src/features/scheduled-tasks/task-tables.js';

const secret = 'flamingo-77-quartz';
const text = `The launch of ${secret} is on the ninth of May,\nand "nobody" may know it before.`;
const line = text.replaceAll('\n', ' ');
const words = [secret, 'on the ninth of May', 'quartz'];

function wordsIn(shown: string): readonly string[] {
  return words.filter((word) => shown.toLowerCase().includes(word.toLowerCase()));
}

function holding(at: Place): readonly string[] {
  return readdirSync(at.home, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(join(at.home, name)).isFile())
    .filter((name) => wordsIn(readFileSync(join(at.home, name), 'latin1')).length > 0);
}

interface Listed {
  readonly id: string;
  readonly seq: number;
  readonly kind: string;
  readonly content: string | null;
}

async function json<T>(at: Place, args: readonly string[]): Promise<T> {
  return JSON.parse((await agent(at, [...args, '--json'])).stdout) as T;
}

async function ask(at: Place, question: string): Promise<readonly (readonly unknown[])[]> {
  const rows = await json<readonly object[]>(at, ['sql', question]);
  return rows.map((row) => Object.values(row));
}

/** Defines an agent that plays these turns. */
function withAgent(at: Place, name: string, turns: readonly unknown[]): void {
  const file = join(at.home, `.agent/agents/${name}.md`);
  mkdirSync(dirname(file), { recursive: true });
  const fields = `name: ${name}\ndescription: Helps.\ntools: Read, Grep\nmodel: ${script(at, turns)}`;
  writeFileSync(file, `---\n${fields}\n---\nYou help.\n`);
}

const called = (...calls: readonly (readonly [string, object])[]): object => ({
  calls: calls.map(([name, args]) => ({ name, arguments: args })),
});

/** A picture whose metadata has a text. */
function pictureWith(comment: string): Buffer {
  const plain = png(8, 4);
  const body = Buffer.from(`tEXtComment\0${comment}`, 'latin1');
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(body.length - 4);
  sum.writeUInt32BE(crc32(body));
  const end = plain.length - 12;
  return Buffer.concat([plain.subarray(0, end), length, body, sum, plain.subarray(end)]);
}

const task: Task = {
  id: 'launch',
  type: 'agent_task',
  description: `Remember: ${line}`,
  scheduleType: 'recurring',
  schedule: { cron: '0 * * * *', tz: 'UTC', source: `every 1h, since ${line}` },
  execution: { prompt: `Prepare this: ${text}` },
  enabled: true,
  createdAt: Date.now(),
  lastRun: null,
  nextRun: Date.now() + 3_600_000,
  tz: 'UTC',
  cwd: '/',
  missed: 'run_once',
  maxCostUsd: null,
  grants: [`bash echo ${line}`],
  expiresAt: null,
  failures: 0,
  madeInSession: null,
};

/** A conversation with sub-agents, a compaction, a fork and pictures. Returns its id. */
async function converse(at: Place): Promise<string> {
  withAgent(at, 'taker', [{ text: 'Noted.' }]);
  withAgent(at, 'teller', [called(['grep', { pattern: secret }]), { text: `The plan says: ${line}` }]);
  writeFileSync(join(at.work, 'shot.png'), pictureWith(line));
  const order = (name: string, prompt: string): readonly [string, object] => [
    'agent',
    { agent: name, prompt, description: `look at ${secret}` },
  ];
  const turns = [
    called(order('taker', `Keep this: ${text}`), order('teller', 'What is the plan?')),
    called(['file_read', { path: 'shot.png' }]),
    { text: `I know: ${line}` },
    { text: `<summary>The user said: "${line}"</summary>` },
    { text: 'Next.' },
    { text: 'Last.' },
  ];
  const model = script(at, turns);
  const { stdout, code } = await agent(at, ['-p', '-m', model, '--output-format', 'stream-json', `${text} @shot.png`]);
  expect(code).toBe(0);
  const id = String(lines(stdout)[0]?.['session_id']);
  await agent(at, ['-p', '-m', model, '-r', id, '--fork', 'what next?']);
  await repl(
    at,
    ['-m', model, '-r', id],
    [
      ['/compact', 'ompacted'],
      ['and then?', 'I know'],
    ],
  );
  return id;
}

/** Puts the text where no conversation brings it within a test: messages that wait, tasks and their runs, notes, the log. */
async function plant(at: Place, id: string): Promise<void> {
  await agent(at, ['memory', 'add', `Know that ${line}`]);
  const opened = await openSqliteStore({ file: join(at.home, '.agent/agent.db'), now: Date.now });
  await opened.store.setQueue(id, [{ text: `tell them: ${text}`, when: 'after' }]);
  await (await opened.tables(taskTableSet)).add({ ...task, cwd: at.work });
  await opened.store.close();
  const ran = await agent(at, ['tasks', 'run', 'launch', '--set', `model=${script(at, [{ text: `Done: ${line}` }])}`]);
  expect(ran.code).toBe(0);
  appendFileSync(join(at.home, '.agent/agent.log'), `${JSON.stringify({ at: 'x', message: text, error: line })}\n`);
}

test('a redacted text is gone from compactions, agents, notes, tasks, messages that wait, the log and pictures', async () => {
  const at = place();
  const id = await converse(at);
  await plant(at, id);
  const sessions = await ask(at, 'SELECT id FROM sessions');
  expect(sessions.length).toBe(7);
  expect(await ask(at, "SELECT count(*) FROM events WHERE kind = 'compaction'")).toEqual([[1]]);
  expect(await ask(at, 'SELECT DISTINCT name FROM v_attachments')).toHaveLength(1);
  expect(holding(at)).toEqual(['.agent/agent.db', '.agent/agent.log']);

  const events = await json<readonly Listed[]>(at, ['sessions', 'show', id]);
  const seq = events.find(({ kind, content }) => kind === 'user' && content?.includes(secret))?.seq;
  const { code, stdout } = await agent(at, ['redact', id, String(seq)]);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/Redacted quotations of it: \d+ further events/)]);
  expect(holding(at)).toEqual([]);
  expect(await ask(at, 'SELECT count(*) FROM blobs')).toEqual([[0]]);
  expect((await agent(at, ['audit', 'verify'])).code).toBe(0);
  for (const [session] of sessions) {
    const body = await agent(at, ['sessions', 'show', String(session), '--as', 'openai-chat', '--prompt', 'x']);
    expect([body.code, wordsIn(body.stdout)]).toEqual([0, []]);
    expect(problemsOf(JSON.parse(body.stdout))).toEqual([]);
  }
  const goesOn = await agent(at, ['-p', '-m', script(at, [{ text: 'ok' }], { loop: true }), '-r', id, 'still there?']);
  expect(goesOn).toMatchObject({ code: 0, stderr: '' });
  expect((await agent(at, ['tasks', 'show', 'launch'])).code).toBe(0);
  expect((await agent(at, ['memory', 'list'])).stdout).toContain('[redacted by the user]');
  expect(holding(at)).toEqual([]);
});

test('an image of a redacted message is gone wherever the same picture was attached', async () => {
  const at = place({ 'note.txt': 'one\n' });
  writeFileSync(join(at.work, 'shot.png'), png(8, 4));
  withAgent(at, 'taker', [called(['file_read', { path: 'shot.png' }]), { text: 'Seen.' }]);
  const model = script(at, [
    called(['file_read', { path: 'shot.png' }]),
    called(['agent', { agent: 'taker', prompt: 'look at shot.png', description: 'look' }]),
    called(['file_write', { path: 'note.txt', content: 'two\n' }]),
    { text: 'Blue.' },
    { text: 'Still blue.' },
  ]);
  const { stdout } = await agent(at, ['-p', '-m', model, '--output-format', 'stream-json', 'see @shot.png']);
  const id = String(lines(stdout)[0]?.['session_id']);
  await agent(at, ['-p', '-m', model, '-r', id, '--fork', 'again?']);
  expect(await ask(at, 'SELECT count(*) FROM v_attachments a JOIN blobs USING (sha256)')).toEqual([[5]]);

  const events = await json<readonly Listed[]>(at, ['sessions', 'show', id]);
  const seq = events.find(({ kind, content }) => kind === 'user' && content?.includes('shot.png'))?.seq;
  const redacted = await agent(at, ['redact', id, String(seq)]);
  expect([redacted.code, redacted.stdout]).toEqual([0, expect.stringContaining('1 file content kept for undo or as')]);
  expect(await ask(at, 'SELECT count(*) FROM v_attachments a JOIN blobs USING (sha256)')).toEqual([[0]]);
  const body = await agent(at, ['sessions', 'show', id, '--as', 'openai-chat', '--prompt', 'x']);
  expect([body.code, body.stdout.includes('data:image')]).toEqual([0, false]);
  expect(problemsOf(JSON.parse(body.stdout))).toEqual([]);
  expect((await agent(at, ['audit', 'verify'])).code).toBe(0);
  expect((await agent(at, ['undo', '-r', id, '--yes'])).code).toBe(0);
  expect(readFileSync(join(at.work, 'note.txt'), 'utf8')).toBe('one\n');
});

interface ChatMessage {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_call_id?: string;
  readonly tool_calls?: readonly { readonly id: string; readonly function: { readonly arguments: string } }[];
}

/** Says why an OpenAI server would refuse a conversation: arguments that are no JSON, calls without their results. */
function problemsOf({ messages }: { readonly messages: readonly ChatMessage[] }): readonly string[] {
  const open = new Set<string>();
  const problems: string[] = [];
  for (const { role, content, tool_calls: calls = [], tool_call_id: answers = '' } of messages) {
    if (role === 'tool') {
      if (!open.delete(answers)) problems.push(`result of no call: ${answers}`);
    } else if (open.size > 0) problems.push(`calls without a result before a message of ${role}`);
    if (role !== 'assistant' && (content === '' || content === null || content === undefined))
      problems.push(`an empty message of ${role}`);
    for (const call of calls) {
      open.add(call.id);
      JSON.parse(call.function.arguments);
    }
  }
  return [...problems, ...[...open].map((id) => `call without a result: ${id}`)];
}
