import { appendFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { aider } from '../../../src/features/history-import/aider.js';
import { opencode } from '../../../src/features/history-import/opencode.js';
import { opencodeOpener } from '../../../src/features/history-import/opencode-rows.js';
import { type Conversation, dropped, homeWith, makeDatabase, readAll as readWith, told } from './recorded-home.js';

const share = '.local/share/opencode';

async function readAll(home: string): Promise<readonly Conversation[]> {
  return readWith(opencode(await opencodeOpener()), home);
}

interface Message {
  readonly id: string;
  readonly data: object;
  readonly parts: readonly object[];
}

const time = (at: number): object => ({ time: { created: at } });
const typed = (id: string, at: number, text: string, ...more: readonly object[]): Message => ({
  id,
  data: { role: 'user', ...time(at) },
  parts: [{ type: 'text', text }, ...more],
});
const answered = (id: string, at: number, parts: readonly object[], more: object = {}): Message => ({
  id,
  data: { role: 'assistant', providerID: 'anthropic', modelID: 'sonnet', ...time(at), ...more },
  parts,
});
const tool = (callID: string, state: object): object => ({ type: 'tool', callID, tool: 'bash', state });

/** Files as before 1.2. */
function stored(session: string, messages: readonly Message[], more: object = {}): Record<string, string> {
  const info = {
    id: session,
    directory: '/home/ann/shop',
    title: 'Two',
    version: '1.1.0',
    time: { created: 5, updated: 9 },
  };
  const files: Record<string, string> = {
    [`${share}/storage/session/p/${session}.json`]: JSON.stringify({ ...info, ...more }),
  };
  for (const { id, data, parts } of messages) {
    files[`${share}/storage/message/${session}/${id}.json`] = JSON.stringify({ id, sessionID: session, ...data });
    for (const [at, part] of parts.entries())
      files[`${share}/storage/part/${id}/prt_${at}.json`] = JSON.stringify({ id: `prt_${at}`, messageID: id, ...part });
  }
  return files;
}

const tables = `
  CREATE TABLE session (id TEXT, parent_id TEXT, directory TEXT, title TEXT, version TEXT, revert TEXT,
    time_created INTEGER, time_updated INTEGER);
  CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT);
  CREATE TABLE part (id TEXT, message_id TEXT, data TEXT);`;

function rows(session: string, messages: readonly Message[], parent: string | null = null): string {
  const text = (value: string | null): string => (value === null ? 'NULL' : `'${value.replaceAll("'", "''")}'`);
  const made = [
    `INSERT INTO session VALUES ('${session}', ${text(parent)}, '/home/ann/shop', 'Two', '1.18.0', NULL, 5, 9);`,
  ];
  for (const { id, data, parts } of messages) {
    made.push(`INSERT INTO message VALUES ('${id}', '${session}', 5, ${text(JSON.stringify(data))});`);
    for (const [at, part] of parts.entries())
      made.push(`INSERT INTO part VALUES ('prt_${at}', '${id}', ${text(JSON.stringify(part))});`);
  }
  return made.join('\n');
}

const conversation = [
  typed(
    'msg_1',
    1,
    'Look',
    { type: 'text', text: 'Called the Read tool', synthetic: true },
    { type: 'file', url: 'data:' },
  ),
  answered('msg_2', 2, [
    { type: 'step-start' },
    { type: 'reasoning', text: 'Hm' },
    { type: 'text', text: 'I look.' },
    tool('c1', { status: 'completed', input: { command: 'make' }, output: 'no rule', metadata: { exit: 2 } }),
    tool('c2', { status: 'error', input: {}, error: 'not allowed' }),
    tool('c3', { status: 'running', input: {} }),
    { type: 'step-finish', cost: 0.25, tokens: { input: 10, output: 7, reasoning: 5, cache: { read: 60, write: 3 } } },
  ]),
  typed('msg_3', 3, 'And?'),
  answered('msg_4', 4, [{ type: 'text', text: 'Done.' }], { error: { name: 'MessageAbortedError' } }),
];
const expected = [
  'Look',
  [
    'I look.',
    'bash: {"output":"no rule","exit_code":2}',
    expect.stringContaining('"not allowed"'),
    expect.stringContaining('"code":"interrupted"'),
  ],
  'And?',
  ['Done.'],
];

test('a conversation of opencode is the same in files, in the database, and half in each', async () => {
  const whole = homeWith({ ...stored('ses_1', conversation) });
  const inRows = homeWith({ [`${share}/x`]: '' });
  makeDatabase(join(inRows, share, 'opencode.db'), tables + rows('ses_1', conversation));
  const half = homeWith({ ...stored('ses_1', conversation.slice(2)), ...stored('ses_2', conversation) });
  makeDatabase(join(half, share, 'opencode.db'), tables + rows('ses_1', conversation.slice(0, 2)));
  for (const home of [whole, inRows]) {
    const all = await readAll(home);
    expect(all.map(told)).toEqual([expected]);
    expect(all.map(({ found }) => [found.model, found.cwd, found.startedAt])).toEqual([
      ['sonnet', '/home/ann/shop', 5],
    ]);
  }
  expect((await readAll(half)).map(told)).toEqual([expected, expected]);
  const [read] = await readAll(whole);
  expect(read && dropped(read)).toEqual({ meta: 1, files: 1, reasoning: 1, errors: 1 });
  expect(read?.events.find(({ kind }) => kind === 'usage')?.data).toMatchObject({
    input_tokens: 10,
    output_tokens: 12,
    cache_read_tokens: 60,
    cache_write_tokens: 3,
    cost_usd: 0.25,
  });
});

test('reading a database of opencode leaves nothing beside it', async () => {
  const home = homeWith({ [`${share}/x`]: '' });
  makeDatabase(join(home, share, 'opencode.db'), `PRAGMA journal_mode = WAL;${tables}${rows('ses_1', conversation)}`);
  const before = readdirSync(join(home, share));
  expect((await readAll(home)).map(told)).toEqual([expected]);
  expect(readdirSync(join(home, share))).toEqual(before);
});

test('what opencode has not moved from its log into its database yet is read, too', async () => {
  const home = homeWith({ [`${share}/x`]: '' });
  const writer = new Database(join(home, share, 'opencode.db'));
  writer.exec(`PRAGMA journal_mode = WAL;${tables}PRAGMA wal_checkpoint;${rows('ses_1', conversation)}`);
  expect((await readAll(home)).map(told)).toEqual([expected]);
  writer.close();
});

test('messages of opencode stand in the order of their times; a session without a title has none', async () => {
  const later = [typed('msg_2', 1, 'First'), answered('msg_1', 2, [{ type: 'text', text: 'Second.' }])];
  const title = 'New session - 2026-11-22T21:05:34.014Z';
  const [read] = await readAll(homeWith(stored('ses_1', later, { title })));
  expect(read && told(read)).toEqual(['First', ['Second.']]);
  expect(read?.found.title).toBeNull();
});

test('sessions of helpers, other databases and damaged files are no conversations of opencode', async () => {
  const home = homeWith({
    ...stored('ses_3', conversation, { parentID: 'ses_1' }),
    [`${share}/storage/session/p/ses_4.json`]: '{"id":',
    [`${share}/opencode-dev.db`]: 'no database',
  });
  makeDatabase(join(home, share, 'opencode.db'), tables + rows('ses_2', conversation, 'ses_1'));
  makeDatabase(join(home, share, 'opencode-local.db'), 'CREATE TABLE session (id TEXT);');
  expect(await readAll(home)).toEqual([]);
});

test('what was taken back in opencode is left out', async () => {
  const at = async (revert: object): Promise<readonly unknown[]> =>
    (await readAll(homeWith(stored('ses_1', conversation, { revert })))).flatMap(told);
  expect(await at({ messageID: 'msg_3' })).toEqual(expected.slice(0, 2));
  expect(await at({ messageID: 'msg_2', partID: 'prt_3' })).toEqual(['Look', ['I look.']]);
});

test('a summary of opencode stands for what came before it; each step of an older message is a response', async () => {
  const steps = answered('msg_6', 6, [
    { type: 'text', text: 'First.' },
    { type: 'step-finish', tokens: { input: 1, output: 1 } },
    { type: 'text', text: 'Second.' },
    { type: 'step-finish', tokens: { input: 2, output: 1 } },
  ]);
  const summary = answered('msg_5', 5, [{ type: 'text', text: 'They looked.' }], { summary: true });
  const [read] = await readAll(homeWith(stored('ses_1', [...conversation, summary, steps])));
  expect(read && told(read)).toEqual([expect.stringContaining('They looked.'), ['First.'], ['Second.']]);
  expect(read?.events.filter(({ kind }) => kind === 'usage')).toHaveLength(3);
});

const history = [
  '',
  '# aider chat started at 2026-11-21 18:04:11',
  '',
  '> Aider v0.86.1  ',
  '> Main model: gpt-5.2 with diff edit format  ',
  '',
  '#### Say it  ',
  '#### in one line.  ',
  '',
  '# A heading',
  '',
  '```sh',
  '> a quote',
  '#not a person',
  '```',
  '> Tokens: 2.4k sent, 31 received.  ',
  '',
  'More.',
  '',
  '#### <blank>  ',
  '',
].join('\n');

test('in a file of aider the person, the program and the model are told apart', () => {
  const home = homeWith({ 'shop/.aider.chat.history.md': history });
  const [read] = readWith(aider, home);
  expect(read && told(read)).toEqual([
    'Say it\nin one line.',
    ['# A heading\n\n```sh\n> a quote\n#not a person\n```\n\nMore.'],
  ]);
  expect(read && dropped(read)).toEqual({ notices: 2 });
  expect(read?.found).toMatchObject({
    cwd: join(home, 'shop'),
    startedAt: new Date('2026-11-21T18:04:11').getTime(),
    prompt: 'Say it',
    version: '0.86.1',
    model: 'gpt-5.2',
  });
});

test('a later conversation in the file of aider changes nothing of an earlier one', () => {
  const home = homeWith({ 'shop/.aider.chat.history.md': history });
  const file = join(home, 'shop/.aider.chat.history.md');
  const idsOf = (): readonly unknown[] => readWith(aider, home).map(({ found }) => [found.id, aider.sha256?.(found)]);
  const before = idsOf();
  appendFileSync(file, '\n# aider chat started at 2026-11-22 09:00:00\n\n#### Again  \n');
  expect(idsOf()).toEqual([...before, [`${file}:${history.length + 1}`, expect.any(String)]]);
  const named = readWith(aider, homeWith({ 'other/h.md': history }), { AIDER_CHAT_HISTORY_FILE: '/nowhere' });
  expect(named).toEqual([]);
});
