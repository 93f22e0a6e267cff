import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import type { Place } from '../e2e/program.js';
import { agent, place, repl, script } from './inside.js';

const secret = 'flamingo-77-quartz';
const text = `The launch of ${secret} is on the ninth of May,\nand "nobody" may know it before.`;
const words = [secret, 'on the ninth of May', 'quartz'];

/** The files below the home directory that hold one of the words. */
function holding(at: Place): readonly string[] {
  return readdirSync(at.home, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(join(at.home, name)).isFile())
    .filter((name) => {
      const bytes = readFileSync(join(at.home, name)).toString('latin1').toLowerCase();
      return words.some((word) => bytes.includes(word.toLowerCase()));
    });
}

interface Listed {
  readonly id: string;
  readonly kind: string | null;
}

async function json<T>(at: Place, args: readonly string[]): Promise<T> {
  return JSON.parse((await agent(at, [...args, '--json'])).stdout) as T;
}

test('a redacted text is gone from every copy, and the chain stays whole', async () => {
  const at = place({ 'plan.txt': 'nothing yet\n' });
  const model = script(at, [
    { calls: [{ name: 'bash', arguments: { command: `echo '${text.replaceAll('\n', ' ')}'` } }] },
    { calls: [{ name: 'file_write', arguments: { path: 'plan.txt', content: `${text}\n` } }] },
    { calls: [{ name: 'file_write', arguments: { path: 'plan.txt', content: 'gone\n' } }] },
    { text: `I know: ${text.replaceAll(/\s+/g, '   ')}` },
    { text: `Again ${text.slice(0, 50)}…` },
  ]);
  await agent(at, ['-p', '--model', model, text]);
  const [first] = await json<readonly Listed[]>(at, ['sessions', 'list']);
  const id = first?.id ?? '';
  await agent(at, ['-p', '--model', model, '-c', '--fork', 'go on']);
  await agent(at, ['sessions', 'rename', id, `About ${secret}`]);
  await repl(at, ['--model', model], [[`say ${text.replaceAll('\n', ' ')}`, '❯']]);
  await agent(at, ['search', 'flamingo']);
  writeFileSync(join(at.home, '.agent/history.draft'), JSON.stringify(text), { mode: 0o600 });
  writeFileSync(join(at.home, '.agent/agent.db.corrupt-1'), `rest ${text}`);
  expect(holding(at)).toEqual(expect.arrayContaining(['.agent/agent.db', '.agent/history.draft']));

  const events = await json<readonly { seq: number; kind: string; content: string | null }[]>(at, [
    'sessions',
    'show',
    id,
  ]);
  const seq = events.find(({ kind, content }) => kind === 'user' && content === text)?.seq;
  const { code, stdout } = await agent(at, ['redact', id, String(seq)]);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/Redacted event .*1 of its copies in forks/)]);
  expect(stdout).toMatch(/Redacted quotations of it: \d+ further events in 3 sessions/);
  expect(stdout).toContain('agent.db.corrupt-1. Delete the file');
  expect(holding(at)).toEqual(['.agent/agent.db.corrupt-1']);

  expect((await agent(at, ['audit', 'verify'])).code).toBe(0);
  const next = await agent(at, ['sessions', 'show', id, '--as', 'openai-chat', '--prompt', 'x']);
  expect([next.code, words.filter((word) => next.stdout.includes(word))]).toEqual([0, []]);
  expect((await json<readonly unknown[]>(at, ['search', 'flamingo'])).length).toBe(0);
  const db = new Database(join(at.home, '.agent/agent.db'), { readonly: true });
  expect(db.prepare('SELECT title FROM sessions WHERE id = ?').pluck().get(id)).toBe('About [redacted by the user]');
  db.close();
});

test('a short text is not looked for in other events', async () => {
  const at = place();
  const model = script(at, [{ text: 'ok then' }]);
  await agent(at, ['-p', '--model', model, 'ok']);
  const [first] = await json<readonly Listed[]>(at, ['sessions', 'list']);
  const events = await json<readonly { seq: number; kind: string }[]>(at, ['sessions', 'show', first?.id ?? '']);
  const seq = events.find(({ kind }) => kind === 'user')?.seq;
  const { stdout } = await agent(at, ['redact', first?.id ?? '', String(seq)]);
  expect(stdout).toContain('too short to be looked for elsewhere');
  const left = await json<readonly { content: string | null }[]>(at, ['sessions', 'show', first?.id ?? '']);
  expect(left.map(({ content }) => content)).toContain('ok then');
});
