import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isRecord } from '../../src/kernel/core/json.js';
import type { Place } from '../e2e/program.js';
import { bringHome } from '../features/history-import/recorded-home.js';
import { agent, place } from './inside.js';

type Fields = Readonly<Record<string, unknown>>;

const conversation = { prompts: 2, answers: 4, calls: 6 };

/** For each folder of fixtures/histories its program, and what its conversations have. */
const recordings = [
  { folder: 'claude-code', from: 'claude-code', expected: [conversation, { prompts: 3, answers: 3, calls: 1 }] },
  { folder: 'codex', from: 'codex', expected: [conversation, { prompts: 2, answers: 2, calls: 1 }] },
  { folder: 'pi', from: 'pi', expected: [conversation, { prompts: 4, answers: 3, calls: 1 }] },
  { folder: 'gemini', from: 'gemini', expected: [conversation] },
  { folder: 'gemini-0.30', from: 'gemini', expected: [conversation] },
  { folder: 'opencode', from: 'opencode', expected: [conversation] },
  { folder: 'opencode-1.1', from: 'opencode', expected: [conversation] },
  { folder: 'qwen', from: 'qwen', expected: [conversation] },
  {
    folder: 'aider',
    from: 'aider',
    expected: [
      { prompts: 3, answers: 2, calls: 0 },
      { prompts: 1, answers: 1, calls: 0 },
    ],
  },
];

function homeOf(folder: string, change?: (text: string, path: string) => string): Place {
  const at = place();
  bringHome(folder, at.home, change);
  if (folder === 'aider') at.env['AIDER_CHAT_HISTORY_FILE'] = join(at.home, 'shop/.aider.chat.history.md');
  return at;
}

async function importAll(at: Place, from: string): Promise<readonly Fields[]> {
  const { stdout, stderr } = await agent(at, ['sessions', 'import', '--from', from, '--all', '--json']);
  expect(stderr).toBe('');
  return JSON.parse(stdout) as readonly Fields[];
}

/** Every object in a JSON value. */
function objectsIn(value: unknown): readonly Fields[] {
  if (Array.isArray(value)) return value.flatMap(objectsIn);
  return isRecord(value) ? [value, ...Object.values(value).flatMap(objectsIn)] : [];
}

/** The ids of calls and those of results in a request, of any wire. */
function joined(body: unknown): { readonly calls: readonly unknown[]; readonly results: readonly unknown[] } {
  const objects = objectsIn(body);
  const ids = (type: string, field: string): readonly unknown[] =>
    objects.flatMap((object) => (object['type'] === type ? [object[field]] : []));
  return {
    calls: [...ids('function', 'id'), ...ids('function_call', 'call_id'), ...ids('tool_use', 'id')].filter(Boolean),
    results: [
      ...objects.flatMap((object) => (object['role'] === 'tool' ? [object['tool_call_id']] : [])),
      ...ids('function_call_output', 'call_id'),
      ...ids('tool_result', 'tool_use_id'),
    ],
  };
}

test.each(recordings)('$folder: each conversation is whole, on each wire, and is there once', async (recording) => {
  const { folder, from, expected } = recording;
  const at = homeOf(folder);
  const done = await importAll(at, from);
  expect(done).toMatchObject(expected.map((counts) => ({ ...counts, status: 'imported' })));
  for (const { session, calls } of done)
    for (const wire of ['openai-chat', 'openai-responses', 'anthropic-messages']) {
      const { stdout, stderr } = await agent(at, ['sessions', 'show', String(session), '--as', wire]);
      expect(stderr).toBe('');
      const ids = joined(JSON.parse(stdout));
      expect(ids).toEqual({ calls: ids.results, results: ids.calls });
      // The conversations with one call were compacted behind it.
      expect(ids.calls).toHaveLength(calls === 1 ? 0 : Number(calls));
    }
  expect(await agent(at, ['audit', 'verify'])).toMatchObject({ code: 0, stderr: '' });
  expect(await importAll(at, from)).toMatchObject(done.map(({ session }) => ({ session, status: 'exists' })));
});

const escape = '\u001B[2J\u001B]0;owned\u0007\u202E\u009B31m';
/** What programs tell records apart by, and times. */
const forms = /^(?:type|role|kind|subtype|status|version|timestamp|time|startTime|lastUpdated|\$rewindTo)$/;

function poisoned(value: unknown, name: string): unknown {
  if (typeof value === 'string') return forms.test(name) ? value : value + escape;
  if (Array.isArray(value)) return value.map((one) => poisoned(one, name));
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, poisoned(part, key)]));
}

/** Puts escape sequences into every text of a file. */
function withEscapes(text: string, path: string): string {
  if (path.endsWith('.md')) return text.replaceAll(/^(?!# ).+$/gm, `$&${escape}`);
  if (path.endsWith('.json')) return JSON.stringify(poisoned(JSON.parse(text), ''));
  if (path.endsWith('.jsonl'))
    return text.replaceAll(/^\{.*\}$/gm, (line) => JSON.stringify(poisoned(JSON.parse(line), '')));
  const inRow = text.replaceAll(/'(\{.*?\})'(?=[,)])/gs, (_, data: string) => {
    const json = JSON.stringify(poisoned(JSON.parse(data.replaceAll("''", "'")), ''));
    return `'${json.replaceAll("'", "''")}'`;
  });
  return inRow.replaceAll("'/home/ann/shop'", `'/home/ann/shop${escape}'`);
}

test.each(recordings)(
  '$folder: escape sequences in every text reach no terminal',
  async ({ folder, from, expected }) => {
    const at = homeOf(folder, withEscapes);
    const listed = await agent(at, ['sessions', 'import', '--from', from]);
    const done = await agent(at, ['sessions', 'import', '--from', from, '--all']);
    const again = await importAll(at, from);
    expect(again).toHaveLength(expected.length);
    const shown = await Promise.all(again.map(({ session }) => agent(at, ['sessions', 'show', String(session)])));
    const others = [await agent(at, ['sessions', 'list']), await agent(at, ['search', 'greet'])];
    const printed = [listed, done, ...shown, ...others].map(({ stdout, stderr }) => stdout + stderr).join('');
    expect(printed).toContain('greet');
    const kept = await agent(at, ['sessions', 'show', String(again[0]?.['session']), '--json']);
    expect(kept.stdout).toContain('\\u001b]0;owned');
    expect(printed).not.toMatch(/[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u202E]/);
  },
);
