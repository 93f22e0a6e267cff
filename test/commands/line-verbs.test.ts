import { expect, test } from 'vitest';
import type { Event } from '../../src/kernel/core/event.js';
import type { SessionRow } from '../../src/kernel/core/store.js';
import { event, sessionRow, usage } from '../kernel/store/samples.js';
import { lineRig, type LineRig } from './line-rig.js';

const dayMs = 86_400_000;

async function put({ store }: LineRig, change: Partial<SessionRow>, ...texts: readonly string[]): Promise<SessionRow> {
  const row = sessionRow(change);
  await store.createSession(row);
  for (const [index, content] of texts.entries()) await store.append(row.id, event(index + 1, { content }));
  return row;
}

const ids = (json: string): readonly string[] => (JSON.parse(json) as { id: string }[]).map(({ id }) => id);

test('sessions list shows a page of this directory or of all, and says what it left out', async () => {
  const rig = await lineRig();
  expect((await rig.run('sessions', 'list')).out).toBe('No sessions yet.\n');
  const rows = [];
  for (const day of [1, 2, 3])
    rows.push(await put(rig, { createdAt: day * dayMs, updatedAt: day * dayMs, title: `t${day}` }, 'hello'));
  await put(rig, { cwd: '/elsewhere', title: 'other' }, 'hello');
  const paged = await rig.run('sessions', 'list', '--limit', '1', '--page', '2', '--here');
  expect([paged.code, paged.err]).toEqual([0, '1 more of 3 sessions: --page 3 shows more, --limit 3 all.\n']);
  expect(paged.out).toContain('t2');
  expect((await rig.run('sessions', 'list', '--page', '9', '--here')).err).toBe(
    'There are 3 sessions; page 9 is past the last one.\n',
  );
  const all = await rig.run('sessions', 'list', '--json', '--here');
  expect([ids(all.out), all.err]).toEqual([rows.toReversed().map(({ id }) => id), '']);
  expect(await rig.run('sessions', 'list', '--limit', '0')).toMatchObject({ code: 2 });
});

test('a session is named by its id, a unique start of it or its title; what is meant otherwise is said', async () => {
  const rig = await lineRig();
  const row = await put(rig, { title: 'parser' }, 'hello');
  expect(await rig.run('sessions', 'rename', row.id, 'lexer', 'rewrite')).toEqual({ code: 0, out: '', err: '' });
  expect((await rig.store.session(row.id))?.title).toBe('lexer rewrite');
  expect((await rig.run('sessions', 'show', 'lexer rewrite')).out).toContain('hello');
  expect(await rig.run('sessions', 'show', 'nothing')).toEqual({
    code: 7,
    out: '',
    err: 'there is no session `nothing`\nagent sessions list shows them.\n',
  });
  expect((await rig.run('sessions', 'rename', row.id, ' ')).err).toMatch(/^a title needs at least one character\n/);
  expect(await rig.run('sessions', 'show', row.id, '--as', 'openai-chatt')).toMatchObject({
    code: 2,
    err: expect.stringContaining('Did you mean openai-chat?') as string,
  });
});

test('prune lists old sessions and deletes them with --yes; those in use and younger ones stay', async () => {
  const rig = await lineRig();
  const day = Date.now() - 40 * dayMs;
  const old = await put(rig, { createdAt: day, updatedAt: day, title: 'old' });
  const used = await put(rig, { createdAt: day, updatedAt: day, title: 'used' });
  const young = await put(rig, { createdAt: Date.now(), updatedAt: Date.now(), title: 'young' });
  const listed = await rig.run('sessions', 'prune', '--older-than', '30d');
  expect(listed.out).toMatch(/2 sessions\. Nothing was deleted; --yes deletes them with all their events\.\n$/);
  expect(await rig.store.count()).toBe(3);
  const { acquire } = rig.store;
  rig.store.acquire = (id) =>
    id === used.id ? Promise.resolve({ held: false, holder: { pid: 7, host: 'h', since: 0 } }) : acquire(id);
  const pruned = await rig.run('sessions', 'prune', '--older-than', '30d', '--yes');
  expect(pruned.err).toBe(`agent: ${used.id} is in use by process 7 and stays\n`);
  expect(pruned.out).toMatch(/Removed 1 session\.\n$/);
  expect([await rig.store.session(old.id), (await rig.store.list(9)).map(({ id }) => id)]).toEqual([
    null,
    expect.arrayContaining([used.id, young.id]),
  ]);
  expect(await rig.run('sessions', 'rm', used.id)).toMatchObject({
    code: 7,
    err: `session ${used.id} is in use by process 7 on h\nEnd that one first.\n`,
  });
  expect((await rig.run('sessions', 'rm', young.id)).out).toBe(`Removed ${young.id} (0 messages).\n`);
  expect(await rig.store.session(young.id)).toBeNull();
});

test('search shows as many places as are asked for, and that there are more', async () => {
  const rig = await lineRig();
  const row = await put(rig, { title: 'parser' }, 'the needle one', 'the needle two', 'hay');
  await put(rig, { cwd: '/elsewhere' }, 'a needle elsewhere');
  const found = await rig.run('search', 'needle', '--here', '--limit', '1');
  expect([found.code, found.err]).toEqual([0, 'There are more than these 1: --limit 2 shows some of them.\n']);
  expect(found.out).toMatch(new RegExp(`^${row.id} {2}#2 {2}user .* ago {2}/work/project {2}parser\n {4}.*needle two`));
  expect((await rig.run('search', 'absent', 'word')).out).toBe('Nothing contains absent word.\n');
  expect(await rig.run('search', '...')).toMatchObject({ code: 2 });
});

test('redact takes the texts of one event off the record, and says why it cannot', async () => {
  const rig = await lineRig();
  const row = await put(rig, {}, 'my secret', 'next');
  await rig.store.append(row.id, usage(3, 1));
  expect((await rig.run('redact', row.id, '1')).out).toBe(
    `Redacted event 1 of ${row.id}.\n` +
      'The text is too short to be looked for elsewhere: only copies of the event are redacted.\n',
  );
  expect((await rig.store.load(row.id)).map(({ content }) => content)).toEqual([
    '[redacted by the user]',
    'next',
    null,
  ]);
  expect(await rig.run('redact', row.id, '3')).toMatchObject({
    code: 2,
    err: expect.stringContaining('event 3 is of kind usage, which is not redacted') as string,
  });
  expect(await rig.run('redact', row.id, '9')).toMatchObject({ code: 2 });
  expect(await rig.run('redact', row.id, 'first')).toMatchObject({ code: 2 });
});

test('an export masks what looks like a key unless told not to, and knows its formats', async () => {
  const rig = await lineRig();
  const row = await put(rig, { title: `key ${['sk', 'ant', 'a1B2'.repeat(12)].join('-')}` }, 'hello');
  const lines = await rig.run('sessions', 'export', row.id, '--format', 'jsonl');
  expect([lines.out.includes('sk-ant-'), lines.err]).toEqual([
    false,
    'agent: 1 value that looked like keys was masked; use --no-redact to export them\n',
  ]);
  expect((await rig.run('sessions', 'export', row.id, '--format', 'jsonl', '--no-redact')).out).toContain('sk-ant-');
  expect(await rig.run('sessions', 'export', row.id, '--format', 'pdf')).toMatchObject({
    code: 2,
    err: expect.stringContaining('Known: md, jsonl, html, script') as string,
  });
});

test('audit filters calls, and a CSV begins with the names of its columns', async () => {
  const rig = await lineRig();
  expect((await rig.run('audit')).out).toBe('No tool calls.\n');
  expect(await rig.run('audit', '--json', '--csv')).toMatchObject({ code: 2 });
  expect((await rig.run('audit', '--csv')).out).toMatch(
    /^created_at,session_id,seq,tool,args_sha256,duration_ms,status,/,
  );
  expect(await rig.run('audit', '--since', 'soon')).toMatchObject({
    code: 2,
    err: '--since: `soon` is not a time\nFor example 45m, 2h, 3d, 2w or 2026-03-01.\n',
  });
  expect(await rig.run('sql', 'SELECT 1')).toMatchObject({ code: 1 });
});

test('undo without a session, an event that is none and a restore of nothing are said', async () => {
  const rig = await lineRig();
  expect(await rig.run('undo')).toMatchObject({
    code: 7,
    err: expect.stringMatching(/^there is no session in \/work\/project\n/) as string,
  });
  await put(rig, {}, 'hello');
  expect(await rig.run('undo', 'x')).toMatchObject({ code: 2 });
  expect(await rig.run('undo')).toMatchObject({
    code: 1,
    err: expect.stringMatching(/^there is no change of files to undo in this session\n/) as string,
  });
  expect(await rig.run('restore', 'a.txt')).toMatchObject({ code: 2 });
  expect(await rig.run('restore', 'a.txt@1')).toMatchObject({
    code: 1,
    err: expect.stringMatching(/^this session did not change \/work\/project\/a\.txt/) as string,
  });
});

/** A call that ended after `durationMs`, with an error where there is a code. */
function called(seq: number, tool: string, durationMs: unknown, code: string | null): readonly Event[] {
  const id = `c${seq}`;
  const output = JSON.stringify(code === null ? { output: 'done' } : { error: 'no', code });
  return [
    event(seq, {
      kind: 'tool_call',
      content: `${tool}()`,
      data: { id, type: 'function', function: { name: tool, arguments: '{}' }, response_id: 'r1' },
    }),
    event(seq + 1, { kind: 'tool_started', content: null, data: { tool_call_id: id } }),
    event(seq + 2, {
      kind: 'tool_result',
      content: 'done',
      data: { tool_call_id: id, name: tool, output, success: code === null, duration_ms: durationMs },
    }),
  ];
}

test.each([[undefined], [null], ['soon'], [-1]])(
  'of a result that says it took %j no time is told',
  async (durationMs) => {
    const rig = await lineRig();
    const { id } = await put(rig, {}, 'go');
    for (const call of [...called(2, 'bash', durationMs, null), ...called(5, 'glob', 3_000, null)])
      await rig.store.append(id, call);
    const out = async (...args: readonly string[]): Promise<string> => (await rig.run(...args)).out;
    expect((await out('replay', id)).match(/^✔.*$/gm)).toEqual(['✔ bash · done', '✔ glob · done · 3.0s']);
    const markdown = await out('sessions', 'export', id, '--format', 'md');
    expect(markdown.match(/✔ done.*$/gm)).toEqual(['✔ done', '✔ done (3000 ms)']);
    const page = await out('sessions', 'export', id, '--format', 'html');
    expect(page.match(/✔ done.*?(?=<\/summary>)/gm)).toEqual([
      '✔ done</span>',
      '✔ done</span><span class="state">3000 ms</span>',
    ]);
    const calls = JSON.parse(await out('audit', '--json')) as readonly { readonly duration_ms: unknown }[];
    expect(calls.map((call) => call.duration_ms)).toEqual([null, 3_000]);
  },
);

test('audit and stats tell of the calls that are asked for', async () => {
  const rig = await lineRig();
  const row = await put(rig, {}, 'go');
  const calls = [
    ...called(2, 'bash', 10, null),
    ...called(5, 'bash', 30, 'execution_failed'),
    ...called(8, 'glob', 5, null),
  ];
  for (const call of calls) await rig.store.append(row.id, call);
  const seqs = async (...args: readonly string[]): Promise<readonly number[]> =>
    (JSON.parse((await rig.run('audit', '--json', ...args)).out) as { seq: number }[]).map(({ seq }) => seq);
  expect(await seqs()).toEqual([2, 5, 8]);
  expect(await seqs('--tool', 'bash')).toEqual([2, 5]);
  expect(await seqs('--errors')).toEqual([5]);
  expect(await seqs('--status', 'failed')).toEqual([5]);
  expect(await seqs('--status', 'ok', '--session', row.id)).toEqual([2, 8]);
  expect(await seqs('--limit', '1')).toEqual([8]);
  const tables = JSON.parse((await rig.run('stats', '--json')).out) as readonly Record<string, unknown>[];
  expect(tables.filter(({ table }) => table === 'tool')).toEqual([
    {
      table: 'tool',
      tool: 'bash',
      calls: 2,
      ok: 1,
      open: 0,
      failed: 1,
      denied: 0,
      success_rate: 0.5,
      p50_ms: 10,
      p95_ms: 30,
    },
    expect.objectContaining({ tool: 'glob', calls: 1, success_rate: 1 }) as Record<string, unknown>,
  ]);
  expect((await rig.run('audit', 'verify')).code).toBe(0);
});
