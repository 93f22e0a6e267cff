import { copyFileSync, mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import type { Place } from '../e2e/program.js';
import { agent, place, script } from './inside.js';

const session = '6f1c1c1e-0000-4000-8000-000000000001';

/** A line of Claude Code. */
function line(second: number, fields: object): object {
  const timestamp = `2026-11-20T10:00:${String(second).padStart(2, '0')}.000Z`;
  return { isSidechain: false, cwd: '/home/ann/shop', sessionId: session, version: '2.1.197', timestamp, ...fields };
}

function said(second: number, uuid: string, parentUuid: string | null, content: unknown, more: object = {}): object {
  return line(second, { type: 'user', uuid, parentUuid, message: { role: 'user', content }, ...more });
}

function answered(second: number, uuid: string, parentUuid: string, id: string, block: object): object {
  const usage = {
    input_tokens: 10,
    output_tokens: second,
    cache_read_input_tokens: 100,
    cache_creation_input_tokens: 5,
  };
  const message = { id, role: 'assistant', model: 'claude-sonnet-4-5', content: [block], stop_reason: null, usage };
  return line(second, { type: 'assistant', uuid, parentUuid, message });
}

function returned(second: number, uuid: string, parentUuid: string, callId: string, rest: object): object {
  return said(second, uuid, parentUuid, [{ type: 'tool_result', tool_use_id: callId, ...rest }]);
}

const conversation: readonly object[] = [
  { type: 'queue-operation', operation: 'enqueue', timestamp: '2026-11-20T10:00:00.000Z', sessionId: session },
  said(1, 'm0', null, 'Caveat: the messages below', { isMeta: true }),
  said(2, 'u0', 'm0', 'A wording that was taken back'),
  answered(3, 'a0', 'u0', 'msg_0', { type: 'text', text: 'Nobody kept this.' }),
  said(4, 'u1', 'm0', 'Look at both ✨'),
  answered(5, 'a1', 'u1', 'msg_1', { type: 'thinking', thinking: 'pondered', signature: 'c2lnbmVk' }),
  answered(6, 'a2', 'a1', 'msg_1', { type: 'text', text: 'I look.' }),
  answered(7, 'a3', 'a2', 'msg_1', { type: 'tool_use', id: 'toolu_1', name: 'Bash', input: { command: 'make' } }),
  answered(8, 'a4', 'a3', 'msg_1', { type: 'tool_use', id: 'toolu_2', name: 'Read', input: { file_path: 'a' } }),
  // The results hang on two branches, the later call's first.
  returned(9, 'r2', 'a4', 'toolu_2', { content: [{ type: 'text', text: 'contents' }] }),
  returned(10, 'r1', 'a3', 'toolu_1', { content: 'Exit code 2\nno rule', is_error: true }),
  said(11, 's1', null, 'for an agent', { isSidechain: true }),
  answered(12, 'a5', 'r1', 'msg_2', { type: 'text', text: 'One of them failed.' }),
  said(13, 'u2', 'a5', '<command-name>/review</command-name>\n<command-args>all of it</command-args>'),
  answered(14, 'a6', 'u2', 'msg_3', { type: 'tool_use', id: 'toolu_3', name: 'mcp__x y/z', input: {} }),
];

function placeWith(lines: readonly object[], rest = ''): { readonly at: Place; readonly file: string } {
  const at = place();
  const file = join(at.home, '.claude/projects/-home-ann-shop', `${session}.jsonl`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${lines.map((one) => JSON.stringify(one)).join('\n')}\n${rest}`);
  return { at, file };
}

interface Row {
  readonly kind: string;
  readonly content: string | null;
  readonly data: Readonly<Record<string, unknown>> | null;
}

async function importAll(at: Place, ...options: readonly string[]): Promise<readonly Record<string, unknown>[]> {
  const { stdout, stderr } = await agent(at, ['sessions', 'import', '--from', 'claude-code', '--json', ...options]);
  expect(stderr).toBe('');
  return JSON.parse(stdout) as readonly Record<string, unknown>[];
}

async function rowsOf(at: Place, id: unknown): Promise<readonly Row[]> {
  return JSON.parse((await agent(at, ['sessions', 'show', String(id), '--json'])).stdout) as readonly Row[];
}

test('a conversation of Claude Code becomes a session: parts joined, results in the order of the calls', async () => {
  const { at } = placeWith(conversation, '{"type":"user","uuid":"torn');
  const [outcome] = await importAll(at, '--all');
  const { session: id, status, prompts, answers, calls, dropped } = outcome ?? {};
  expect({ status, prompts, answers, calls, dropped }).toEqual({
    status: 'imported',
    prompts: 2,
    answers: 2,
    calls: 3,
    dropped: { meta: 1, left_branches: 2, reasoning: 1, sidechains: 1, torn_lines: 1 },
  });
  const rows = await rowsOf(at, id);
  expect(rows.map(({ kind, content }) => [kind, content]).slice(2)).toEqual([
    ['user', 'Look at both ✨'],
    ['assistant', 'I look.'],
    ['tool_call', 'Bash(command="make")'],
    ['tool_call', 'Read(file_path="a")'],
    ['usage', null],
    ['tool_result', 'Exit code 2…'],
    ['tool_result', 'contents'],
    ['assistant', 'One of them failed.'],
    ['usage', null],
    ['user', '/review all of it'],
    ['tool_call', 'mcp__x_y_z()'],
    ['usage', null],
    ['tool_result', 'interrupted'],
    ['import', 'Imported from Claude Code 2.1.197.'],
    [
      'user',
      'Imported from Claude Code 2.1.197. Bash, Read, mcp__x_y_z are not available here. ' +
        'Use glob, file_read, grep, file_write, file_edit, bash.',
    ],
  ]);
  expect(rows.slice(0, 2).map(({ kind }) => kind)).toEqual(['system', 'tools']);
  expect(rows.flatMap(({ kind, data }) => (kind === 'tool_result' ? [data?.['output']] : []))).toEqual([
    JSON.stringify({ output: 'Exit code 2\nno rule', exit_code: 2 }),
    JSON.stringify({ output: 'contents' }),
    expect.stringContaining('"code":"interrupted"'),
  ]);
  expect(rows[6]?.data).toMatchObject({ response_id: 'msg_1', output_tokens: 8, cost_usd: null });
});

test('a second import says that it exists, and one that went on is taken as a fork when that is asked for', async () => {
  const { at, file } = placeWith(conversation);
  const [first] = await importAll(at, '--all');
  expect(await importAll(at, '--all')).toMatchObject([{ status: 'exists', session: first?.['session'] }]);
  const more = [...conversation, said(20, 'u3', 'a6', 'And then?')];
  writeFileSync(file, more.map((one) => `${JSON.stringify(one)}\n`).join(''));
  expect(await importAll(at, '--all')).toMatchObject([{ status: 'changed' }]);
  const [fork] = await importAll(at, '--all', '--update');
  expect(fork).toMatchObject({ status: 'imported', prompts: 3 });
  expect(await importAll(at, '--all', '--update')).toMatchObject([{ status: 'exists', session: fork?.['session'] }]);
  const list = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as readonly object[];
  expect(list).toMatchObject([
    { id: fork?.['session'], parent_id: first?.['session'] },
    { id: first?.['session'], parent_id: null, cwd: '/home/ann/shop', prompt: 'Look at both ✨' },
  ]);
});

test('nothing is stored by a dry run, for another directory, or without being asked for', async () => {
  const { at } = placeWith(conversation);
  expect(await importAll(at, '--dry-run')).toMatchObject([{ status: 'found', prompts: 2, calls: 3 }]);
  expect(await importAll(at, '--here')).toEqual([]);
  expect(await importAll(at)).toMatchObject([{ id: session, title: 'Look at both ✨', cwd: '/home/ann/shop' }]);
  expect((await agent(at, ['sessions', 'list', '--json'])).stdout).toBe('[]\n');
});

test('an unknown program, a file that is not a conversation and a missing file say what to do', async () => {
  const { at } = placeWith(conversation);
  at.file('notes.txt', 'no conversation\n');
  const failures = [
    ['--from', 'claud-code', '--all'],
    ['--from', 'claude-code', 'notes.txt'],
    ['--from', 'claude-code', 'none.jsonl'],
    [],
  ];
  const said = [];
  for (const args of failures) {
    const { code, stderr } = await agent(at, ['sessions', 'import', ...args]);
    said.push([code, stderr.split('\n')[0]]);
  }
  expect(said).toEqual([
    [2, 'agent: --from: the history format of `claud-code` is unknown'],
    [2, 'agent: notes.txt is not a conversation of Claude Code'],
    [2, 'agent: none.jsonl is not a conversation of Claude Code'],
    [2, 'agent: there is nothing to import'],
  ]);
});

test('a conversation in which no messages is told and not stored', async () => {
  const { at, file } = placeWith([{ type: 'mode', mode: 'normal', sessionId: session }]);
  const other = join(dirname(file), '6f1c1c1e-0000-4000-8000-000000000002.jsonl');
  writeFileSync(other, `${conversation.map((one) => JSON.stringify(one)).join('\n')}\n`);
  expect(await importAll(at, '--all')).toMatchObject([{ status: 'imported' }, { status: 'empty', prompts: 0 }]);
  const list = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as readonly object[];
  expect(list).toMatchObject([{ prompt: 'Look at both ✨' }]);
});

test('a session is exported as a file of another program, which says where it belongs', async () => {
  const { at } = placeWith(conversation);
  const [outcome] = await importAll(at, '--all');
  const id = String(outcome?.['session']);
  const out = await agent(at, ['sessions', 'export', id, '--format', 'codex', '-o', 'out.jsonl']);
  const said = /Copy it to ~\/(\S+); then `codex resume (\S+)` resumes it/.exec(out.stderr);
  const file = join(at.home, said?.[1] ?? '');
  mkdirSync(dirname(file), { recursive: true });
  copyFileSync(join(at.work, 'out.jsonl'), file);
  const { stdout } = await agent(at, ['sessions', 'import', '--from', 'codex', '--all', '--json']);
  expect(JSON.parse(stdout)).toMatchObject([{ id: said?.[2], status: 'imported', prompts: 3, answers: 2, calls: 3 }]);
});

test('it goes on with the model that is configured: our tools, their history, on every wire', async () => {
  const { at } = placeWith(conversation);
  const [outcome] = await importAll(at, '--all');
  const id = String(outcome?.['session']);
  at.file('a.txt', 'contents\n');
  // A script goes on behind the answers of the history.
  const model = script(at, [
    ...[1, 2, 3].map((number) => ({ text: `of the history ${number}` })),
    { calls: [{ name: 'file_read', arguments: { path: 'a.txt' } }] },
    { text: 'It is there.' },
  ]);
  const { code, stdout } = await agent(at, ['-p', '-r', id, '--model', model, 'Go on']);
  expect([code, stdout]).toEqual([0, 'It is there.\n']);
  const wires: Readonly<Record<string, RegExp>> = {
    'openai-chat': /"tool_call_id": "(\w+)"/g,
    'openai-responses': /"type": "function_call_output",\s+"call_id": "(\w+)"/g,
    'anthropic-messages': /"tool_use_id": "(\w+)"/g,
  };
  for (const [wire, answers] of Object.entries(wires)) {
    const body = (await agent(at, ['sessions', 'show', id, '--as', wire])).stdout;
    const ids = [...body.matchAll(answers)].map((match) => match[1]);
    expect([wire, ids.slice(0, 3), ids.length]).toEqual([wire, ['toolu_1', 'toolu_2', 'toolu_3'], 4]);
    expect(body).toContain('Look at both ✨');
    expect(body).toContain('"name": "file_read"');
    expect(body).not.toContain('pondered');
  }
  const { stdout: report } = await agent(at, ['audit', 'verify', id]);
  expect(report).toContain('every chain is whole');
});

test('doctor counts the conversations of other programs, and says nothing where there are none', async () => {
  const { at } = placeWith(conversation);
  const { stdout } = await agent(at, ['doctor', '--json']);
  expect((JSON.parse(stdout) as readonly object[]).at(-1)).toEqual({
    name: 'histories',
    status: 'ok',
    detail: '1 conversation of Claude Code',
    fix: 'agent sessions import --from claude-code --all makes them searchable here.',
  });
  expect((await agent(place(), ['doctor'])).stdout).not.toContain('histories');
});

/** Writes a file below a folder. */
function put(folder: string, name: string, text: string): string {
  const file = join(folder, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

test('what opencode and aider keep is counted, too', async () => {
  const at = place();
  put(at.home, '.local/share/opencode/storage/session/shop/ses_1.json', '{}');
  put(at.work, '.aider.chat.history.md', '# aider chat started at 2026-01-01 00:00:00\n\n#### Hello\n');
  const counts = '1 conversation of opencode, 1 of aider';
  const { stdout } = await agent(at, ['doctor', '--json']);
  expect((JSON.parse(stdout) as readonly object[]).at(-1)).toMatchObject({ detail: counts });
});

test('a conversation of Gemini CLI that is too large in one piece is named, and the others are taken', async () => {
  const at = place();
  const chats = join(at.home, '.gemini/tmp/shop/chats');
  const large = put(chats, 'session-1.json', '{"sessionId":"g","messages":[');
  truncateSync(large, 64 * 1024 * 1024 + 1);
  const message = { id: 'm', type: 'user', timestamp: '2026-01-01T00:00:00.000Z', content: 'Hello' };
  put(chats, 'session-2.json', JSON.stringify({ sessionId: 'h', startTime: message.timestamp, messages: [message] }));
  const { code, stdout, stderr } = await agent(at, ['sessions', 'import', '--from', 'gemini', '--all']);
  expect([code, stderr]).toEqual([1, `agent: ${large}: it has more than 64 MB in one object, or cannot be read\n`]);
  expect(stdout.split('\n').map((row) => row.split(/ +/).slice(0, 3))).toEqual([
    ['', 'imported', 'failed'],
    ['gemini', '1', '1'],
    [''],
  ]);
});
