import { cpSync, existsSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Repl } from '../../../src/kernel/console/command.js';
import { slashCommands } from '../../../src/kernel/console/registration.js';
import { table } from '../../../src/commands/table.js';
import { project } from '../../../src/kernel/core/projection.js';
import type { SessionRow } from '../../../src/kernel/core/store.js';
import type { CommandContext } from '../../../src/kernel/console/slash-command.js';
import { undoRig, type UndoRig } from './undo-rig.js';

interface Screen {
  readonly context: CommandContext;
  readonly said: string[];
  readonly drafts: string[];
  readonly offered: string[][];
}

/** A screen on which each list is answered with the item whose label starts with the next of `choices`. */
function screen(choices: readonly string[] = []): Screen {
  const said: string[] = [];
  const drafts: string[] = [];
  const offered: string[][] = [];
  const left = [...choices];
  const context: CommandContext = {
    openEditor: () => Promise.resolve(null),
    detach: () => Promise.resolve(null),
    signal: new AbortController().signal,
    copy: async () => null,
    setTheme: () => false,
    keyOf: () => 'Esc',
    print: (text) => {
      said.push(text);
    },
    box: async () => null,
    hidden: () => Promise.resolve(null),
    ask: () => Promise.resolve(null),
    notice: (level, message) => {
      said.push(`${level}: ${message}`);
    },
    pick: ({ items }) => {
      offered.push(items.map((item) => item.label));
      const choice = left.shift();
      return Promise.resolve(
        items.find((item) => choice !== undefined && item.label.startsWith(choice))?.value ?? null,
      );
    },
    page: () => Promise.resolve(null),
    send: () => undefined,
    setDraft: (text) => {
      drafts.push(text);
    },
    attach: () => undefined,
    refresh: () => undefined,
    exit: () => undefined,
  };
  return { context, said, drafts, offered };
}

const command = (rig: UndoRig, name: string, row: Partial<SessionRow> = {}) => {
  const sessions = {
    current: () => ({ session: rig.session, row: row as SessionRow }),
    rename: () => Promise.resolve(),
    title: () => null,
    open: () => Promise.reject(new Error('not here')),
  };
  return slashCommands(table, { sessions, settings: { env: process.env } } as unknown as Repl).find(
    (item) => item.name === name,
  )!;
};
const readOrNull = (path: string): string | null => (existsSync(path) ? readFileSync(path, 'utf8') : null);
const own = (rig: UndoRig) =>
  project(rig.session.events()).messages.flatMap((message) => (message.role === 'user' ? [message.content] : []));

test('/undo shows the list, asks, and does nothing without a yes; /redo takes it back', async () => {
  const rig = await undoRig({ 'a.txt': 'a\n' });
  await rig.run([['file_edit', { path: 'a.txt', old_string: 'a', new_string: 'b' }]]);
  const file = (): string => readFileSync(join(rig.root, 'a.txt'), 'utf8');
  const no = screen(['Leave']);
  await command(rig, 'undo').run('', no.context);
  expect([file(), no.said.at(-1), no.offered]).toEqual([
    'b\n',
    'info: Nothing was changed.',
    [['Undo the changes in 1 file', 'Change nothing']],
  ]);
  expect(no.said[0]).toMatch(/^Undo event \d+, file_edit\(.*\):\n {2}write {3}a\.txt$/);
  const yes = screen(['Undo']);
  await command(rig, 'undo').run('', yes.context);
  expect([file(), yes.said.at(-1)]).toEqual(['a\n', 'info: Reverted 1 file. /redo reapplies the change.']);
  const again = screen(['Redo']);
  await command(rig, 'redo').run('', again.context);
  expect(file()).toBe('b\n');
});

test('/undo and /redo look for files where their directory is now, and not at its old path', async () => {
  const rig = await undoRig({ 'a.txt': 'a\n' });
  await rig.run([['file_edit', { path: 'a.txt', old_string: 'a', new_string: 'b' }]]);
  const moved = `${rig.root}-moved`;
  renameSync(rig.root, moved);
  cpSync(moved, rig.root, { recursive: true });
  await rig.store.update('s1', { directoryId: 'here' });
  await rig.store.relocate('here', rig.root, moved);
  const row = (await rig.store.session('s1')) ?? undefined;
  const both = (): readonly string[] => [rig.root, moved].map((root) => readFileSync(join(root, 'a.txt'), 'utf8'));
  await command(rig, 'undo', row).run('', screen(['Undo']).context);
  expect(both()).toEqual(['b\n', 'a\n']);
  await command(rig, 'redo', row).run('', screen(['Redo']).context);
  expect(both()).toEqual(['b\n', 'b\n']);
});

test('/undo says what it cannot do', async () => {
  const rig = await undoRig();
  for (const [argument, answer] of [
    ['', 'info: there is no change of files to undo in this session'],
    ['soon', 'info: `soon` is not the number of an event; give one, or nothing for the last change, or all'],
    ['7', 'info: event 7 is not of a call that changed files'],
  ] as const) {
    const shown = screen();
    await command(rig, 'undo').run(argument, shown.context);
    expect(shown.said).toEqual([answer]);
  }
});

test('/rewind offers earlier messages, newest first, and makes the chosen one the draft', async () => {
  const rig = await undoRig();
  await rig.session.submit('first');
  await rig.session.submit('second');
  const shown = screen(['second']);
  await command(rig, 'rewind').run('', shown.context);
  expect([shown.offered, shown.drafts, own(rig)]).toEqual([[['second', 'first']], ['second'], ['first']]);
  await rig.session.submit('third');
  expect(own(rig)).toEqual(['first', 'third']);
  const back = screen(['Undo the last rewind', 'Undo the rewind']);
  await command(rig, 'rewind').run('', back.context);
  expect([own(rig), back.drafts]).toEqual([['first', 'second'], []]);
});

test('/rewind to an event goes to right after it, and says which files stay changed', async () => {
  const rig = await undoRig();
  await rig.run([['file_write', { path: 'a.txt', content: 'a' }]]);
  const shown = screen(['Conversation only']);
  await command(rig, 'rewind').run('1', shown.context);
  expect(own(rig)).toEqual([]);
  expect(shown.said.at(-1)).toBe(
    'info: Rewound to event 1. Files were not touched: /undo reverts 1 later change. /rewind undo takes this back.',
  );
  await command(rig, 'rewind').run('99', shown.context);
  expect(shown.said.at(-1)).toBe('error: This session has no event 99.');
});

test('/rewind undoes later changes of files where that is chosen, with the conversation or without it', async () => {
  const notes = [expect.stringContaining('bash'), expect.stringContaining('file_write')] as unknown as string[];
  const offered = ['Conversation only', 'Conversation and files', 'Files only'];
  for (const [choice, messages, isBack, answer] of [
    [
      'Conversation and files',
      ['first'],
      true,
      'info: Rewound to event 4. Reverted 2 files. /rewind undo takes this back.',
    ],
    [
      'Files only',
      ['first', 'go', ...notes],
      true,
      'info: The conversation is unchanged. Reverted 2 files. /rewind undo takes this back.',
    ],
    ['nothing', ['first', 'go'], false, 'info: Nothing was changed.'],
  ] as const) {
    const rig = await undoRig({ 'a.txt': 'a\n' });
    await rig.session.submit('first');
    const last = rig.session.events().length;
    await rig.run([
      ['file_write', { path: 'b.txt', content: 'b' }],
      ['bash', { command: 'echo A > a.txt' }],
    ]);
    const shown = screen([choice]);
    await command(rig, 'rewind').run(String(last), shown.context);
    expect([shown.offered, own(rig), shown.said.at(-1)]).toEqual([
      [offered],
      messages,
      answer.replace('event 4', `event ${last}`),
    ]);
    expect(shown.said[0]).toMatch(
      /^Undo event \d+, bash.*\n {2}write {3}a\.txt\nUndo event \d+, file_write.*\n {2}remove {2}b\.txt$/,
    );
    const text = (name: string): string | null => readOrNull(join(rig.root, name));
    expect([text('a.txt'), text('b.txt')]).toEqual(isBack ? ['a\n', null] : ['A\n', 'b']);
    if (!isBack) continue;
    await command(rig, 'redo').run('all', screen(['Redo']).context);
    expect([text('a.txt'), text('b.txt')]).toEqual(['A\n', 'b']);
  }
});

test('/undo names what it could not capture or watch, and does not say that nothing changed', async () => {
  const rig = await undoRig({ 'a.txt': 'a\n', 'key.pem': 'k\n' }, { isSecret: (path) => path.endsWith('.pem') });
  const [result] = await rig.run([['bash', { command: 'rm key.pem' }]]);
  const shown = screen();
  await command(rig, 'undo').run('', shown.context);
  expect(shown.said).toEqual([
    'info: no change of files can be undone in this session:\n' +
      `Event ${result?.seq}, bash(command="rm key.pem"): its changes were seen but not saved; they cannot be undone.\n` +
      `  skip    ${join(rig.root, 'key.pem')}: it was deleted; not captured: it may contain secrets`,
  ]);
  const large = await undoRig({ 'd/e/f.txt': 'f' }, { limits: { maxEntries: 0 } });
  const [unwatched] = await large.run([['bash', { command: 'sh -c "exit 0"; true > /dev/null; touch /dev/null' }]]);
  const said = screen();
  await command(large, 'undo').run('all', said.context);
  expect(said.said[0]).toBe(
    'info: no change of files can be undone in this session:\n' +
      `Event ${unwatched?.seq}, bash(command="sh -c \\"exit 0\\"; true > /dev/null; touch /dev/null"): ` +
      'there may be changes that were not watched: the tree is large: only its first 0 files were watched.',
  );
});

test('/compact --dry-run shows the result and asks nobody; /compact does it, /uncompact takes it back', async () => {
  const rig = await undoRig();
  await rig.session.submit('first goal');
  const { provider, api, model } = rig.session.ref();
  await rig.session.append({
    kind: 'assistant',
    content: 'word '.repeat(400),
    data: { response_id: 'r9', provider, api, model, stop: 'stop' },
  });
  const before = rig.session.events().length;
  const dry = screen();
  await command(rig, 'compact').run('--dry-run', dry.context);
  expect(rig.session.events()).toHaveLength(before);
  expect(dry.said[0]).toContain('(event 2) first goal');
  expect(dry.said[1]).toMatch(
    /^info: Compacting would replace 3 messages \(events 2 to 4\), without the summary: about \d+ tokens instead of \d+\. .*Nothing was changed\.$/,
  );
  const original = project(rig.session.events());
  await command(rig, 'compact').run('the goal', screen().context);
  expect(own(rig)[0]).toContain('## Summary\nDone.');
  const back = screen();
  await command(rig, 'uncompact').run('', back.context);
  expect(project(rig.session.events())).toEqual(original);
  await command(rig, 'uncompact').run('', back.context);
  expect(back.said.at(-1)).toBe('info: There is no compaction to undo.');
});

test('after a rewind to before a compaction there is none to take back, and /rewind names what it stood for', async () => {
  const rig = await undoRig();
  await rig.session.submit('first goal');
  const { provider, api, model } = rig.session.ref();
  const data = { response_id: 'r9', provider, api, model, stop: 'stop' as const };
  await rig.session.append({ kind: 'assistant', content: 'word '.repeat(400), data });
  await rig.session.submit('second goal');
  await command(rig, 'compact').run('', screen().context);
  const shown = screen(['second']);
  await command(rig, 'rewind').run('', shown.context);
  expect([shown.offered, shown.drafts, own(rig)]).toEqual([
    [['second goal', 'first goal']],
    ['second goal'],
    ['first goal'],
  ]);
  const back = screen();
  await command(rig, 'uncompact').run('', back.context);
  expect(back.said).toEqual(['info: There is no compaction to undo.']);
});

test('/rewind to a note of the program goes to right after it, and makes no draft of it', async () => {
  const rig = await undoRig();
  await rig.session.append({ kind: 'user', content: 'first of my own', data: null });
  const note = await rig.session.append({
    kind: 'user',
    content: '[Note: today is another day]',
    data: { note: true },
  });
  await rig.session.append({ kind: 'user', content: 'second of my own', data: null });
  const shown = screen();
  await command(rig, 'rewind').run('', shown.context);
  expect(shown.offered).toEqual([['second of my own', 'first of my own']]);
  await command(rig, 'rewind').run(String(note.seq), shown.context);
  expect([shown.drafts, own(rig)]).toEqual([[], ['first of my own', '[Note: today is another day]']]);
});
