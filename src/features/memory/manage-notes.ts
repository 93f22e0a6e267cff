import { cleanNote, maxNoteChars, type Note, type NoteChange, type Notes, type NoteSaved } from './notes.js';
import {
  CliError,
  type CommandLine,
  exit,
  type CommandStore,
  type CommandHandler,
} from '../../kernel/console/command.js';
import { age, columns, localTime, oneLine, printJson, printListing } from '../../kernel/console/line-output.js';
import { projectOf } from '../../kernel/disk/directory-id.js';
import { instructionRows, openInstructionFile } from './instruction-commands.js';
import { openNotes } from './note-tables.js';

interface Options {
  readonly json?: boolean;
  readonly all?: boolean;
  readonly archived?: boolean;
  readonly global?: boolean;
  readonly pin?: boolean;
  readonly off?: boolean;
  readonly tag?: readonly string[];
}

/** All notes. `project`: what those of this directory belong to. */
interface ProjectNotes {
  readonly notes: Notes;
  readonly project: string;
}

async function projectNotes({ tables, settings }: Pick<CommandStore, 'tables' | 'settings'>): Promise<ProjectNotes> {
  return { notes: await openNotes(tables, settings), project: projectOf(settings.cwd) };
}

/** `agent memory` holds other verbs; `/memory` lists the notes and takes the same words behind it. */
export const memory: CommandHandler = {
  line: { example: 'agent memory list' },
  slash: async (argument, repl) => {
    const [, word = 'list', rest = ''] = /^\s*(\S+)?\s*([^]*)$/.exec(argument) ?? [];
    if (word === 'open') {
      await openInstructionFile(rest.trim(), repl);
      return;
    }
    const place = await projectNotes(repl);
    if (word === 'list') repl.screen.print([...(await noteRows(place, {})), ...instructionRows(repl)].join('\n'));
    else if (word === 'show') repl.screen.print(noteDetails(await findNote(place, rest)).join('\n'));
    else repl.screen.notice('info', await runMemoryCommand(place, word, rest));
  },
};

/** Runs `/memory <word> <rest>` and returns a sentence about it. */
async function runMemoryCommand(place: ProjectNotes, word: string, rest: string): Promise<string> {
  const [id = '', text = ''] = rest.split(/\s+(.*)/s);
  if (word === 'add') {
    const until = place.notes.passing ? ` until the program exits: ${whyPassing}` : '';
    return `${noteTitle(await add(place, rest, {}))} is saved${until}.`;
  }
  if (word === 'edit') return `${noteTitle(await edit(place, id, text))} is changed.`;
  const change = changes.find((each) => each.word === word);
  if (!change)
    throw new CliError(
      exit.usage,
      `/memory has no \`${word}\``,
      `It has list, open, show, add, edit, ${changes.map((each) => each.word).join(', ')}.`,
    );
  return await changed(place, change, id);
}

export const listNotes: CommandHandler = {
  line: {
    example: 'agent memory list --json',
    options: (command) =>
      command
        .option('--all', 'notes of every directory')
        .option('--archived', 'archived or replaced notes')
        .option('--json', 'one JSON array'),
    run: (line, _args, options: Options) =>
      withNotes(line, async (place) => {
        const notes = await place.notes.list(filterOf(place, options));
        const lines = options.json ? [] : await noteRows(place, options);
        printListing(line.out, options.json, notes.map(asJson), () => lines);
      }),
  },
};

export const showNote: CommandHandler = {
  line: {
    example: 'agent memory show 3',
    options: (command) => command.option('--json', 'as JSON'),
    run: (line, [id = ''], { json }: Options) =>
      withNotes(line, async (place) => {
        const note = await findNote(place, id);
        if (json) printJson(line.out, asJson(note), 2);
        else line.out.print(`${noteDetails(note).join('\n')}\n`);
      }),
  },
};

export const addNote: CommandHandler = {
  line: {
    example: 'agent memory add "Tests need the database on port 5433" --tag tests',
    options: (command) =>
      command
        .option('--tag <tag...>', 'tags to find it by')
        .option('--global', 'for every directory')
        .option('--pin', 'always in the prompt of new sessions')
        .option('--json', 'the note as JSON'),
    run: (line, words, options: Options) =>
      withNotes(line, async (place) => {
        const note = await add(place, words.join(' '), options);
        if (options.json) printJson(line.out, asJson(note), 2);
        else line.out.print(`${noteTitle(note)} is saved.\n`);
      }),
  },
};

export const editNote: CommandHandler = {
  line: {
    example: 'agent memory edit 3 "The port is 5434"',
    run: (line, [id = '', ...words]) =>
      withNotes(line, async (place) => {
        line.out.print(`${noteTitle(await edit(place, id, words.join(' ')))} is changed.\n`);
      }),
  },
};

interface Change {
  readonly word: string;
  /** Null: it is removed for good. */
  readonly change: NoteChange | null;
  readonly said: string;
}

const changes: readonly Change[] = [
  { word: 'pin', change: { pinned: true, approved: true }, said: 'is always in the prompt of new sessions.' },
  { word: 'unpin', change: { pinned: false }, said: 'is no longer pinned.' },
  { word: 'approve', change: { approved: true }, said: 'may be in the prompt of new sessions.' },
  { word: 'restore', change: { archived: false }, said: 'is back from the archive.' },
  { word: 'rm', change: null, said: 'is removed. The call that saved it stays in the log of its session.' },
];

export const pinNote = changing('pin', 'agent memory pin 3');
export const unpinNote = changing('unpin', 'agent memory unpin 3');
export const approveNote = changing('approve', 'agent memory approve 3 4');
export const restoreNote = changing('restore', 'agent memory restore 3');
export const removeNote = changing('rm', 'agent memory rm 3');

function changing(word: string, example: string): CommandHandler {
  return {
    line: {
      example,
      run: (line, ids) =>
        withNotes(line, async (place) => {
          for (const change of changes.filter((each) => each.word === word))
            for (const id of ids) line.out.print(`${await changed(place, change, id)}\n`);
        }),
    },
  };
}

const whyPassing = 'notes are not available on a server (store.mode is remote) or with --ephemeral';

/** Throws a `CliError` where notes end with a process: those of this one would begin and end here. */
async function withNotes({ withStore }: CommandLine, use: (place: ProjectNotes) => Promise<void>): Promise<number> {
  return await withStore(async (opened) => {
    const place = await projectNotes(opened);
    if (place.notes.passing)
      throw new CliError(
        exit.usage,
        'there are no notes here: a server does not store notes (store.mode is remote)',
        'Put the fact in an instructions file such as AGENTS.md, or use AGENT_STORE_MODE=local.',
      );
    await use(place);
    return exit.done;
  });
}

async function changed({ notes }: ProjectNotes, { change, said }: Change, text: string): Promise<string> {
  const note = await findNote({ notes }, text);
  if (change === null) await notes.remove(note.id);
  else savedNote(await notes.change(note.id, change));
  return `${noteTitle(note)} ${said}`;
}

async function add({ notes, project }: ProjectNotes, text: string, options: Options): Promise<Note> {
  return savedNote(
    await notes.save({
      project: options.global ? null : project,
      content: contentOf(text),
      tags: (options.tag ?? []).map((tag) => cleanNote(tag).replace(/\s+/g, ' ')).filter((tag) => tag !== ''),
      trust: 'user',
      approved: true,
      pinned: options.pin ?? false,
    }),
  );
}

/** Changes the text of a note. A text that the user wrote needs no approval. */
async function edit(place: ProjectNotes, id: string, text: string): Promise<Note> {
  const { id: known } = await findNote(place, id);
  return savedNote(await place.notes.change(known, { content: contentOf(text), approved: true }));
}

function contentOf(text: string): string {
  const content = cleanNote(text);
  if (content === '') throw new CliError(exit.usage, 'there is nothing to save', 'Write the fact after it.');
  if (content.length > maxNoteChars)
    throw new CliError(
      exit.usage,
      `a note has at most ${maxNoteChars} characters, and this one has ${content.length}`,
      'Put the rest in a file and its name in the note.',
    );
  return content;
}

function savedNote(done: NoteSaved): Note {
  if (done.saved) return done.note;
  switch (done.why) {
    case 'secret':
      throw new CliError(exit.failed, 'A note must not contain a secret.', 'Note where to find it instead.');
    case 'full':
      throw new CliError(exit.failed, 'there are too many notes', 'Remove some: agent memory rm <note>.');
    case 'unknown':
      throw new CliError(exit.usage, 'there is no such note', 'agent memory list shows them.');
    default:
      return done.why satisfies never;
  }
}

async function findNote({ notes }: Pick<ProjectNotes, 'notes'>, text: string): Promise<Note> {
  const note = /^\d+$/.test(text.trim()) ? await notes.note(Number(text)) : null;
  if (note === null)
    throw new CliError(exit.usage, `there is no note \`${text.trim()}\``, 'agent memory list shows their numbers.');
  return note;
}

function filterOf({ project }: ProjectNotes, { all, archived }: Options) {
  return { ...(all ? {} : { project }), ...(archived ? { archived } : {}) };
}

async function noteRows(place: ProjectNotes, options: Options): Promise<readonly string[]> {
  const notes = await place.notes.list(filterOf(place, options));
  if (notes.length === 0) return [options.archived ? 'No note is archived.' : 'There are no notes.'];
  const waiting = notes.filter(({ approved }) => !approved);
  return [
    ...columns(
      notes.map((note) => [
        String(note.id),
        note.approved ? (note.pinned ? 'pinned' : '') : 'waits',
        note.project === null ? 'global' : '',
        `${age(Date.now() - note.updatedAt)} ago`,
        oneLine([note.content, ...note.tags.map((tag) => `#${tag}`)].join(' ')),
      ]),
    ),
    ...(waiting.length === 0 || options.archived
      ? []
      : [`Untrusted text may have asked for the waiting notes: memory approve <note>, or memory rm <note>.`]),
  ];
}

function noteDetails(note: Note): readonly string[] {
  const facts: readonly (readonly [string, string])[] = [
    ['note', `${note.id}${note.archived ? ', archived' : ''}${note.pinned ? ', pinned' : ''}`],
    ['for', note.project === null ? 'every directory' : 'this directory'],
    ['by', { user: 'you', model: 'the model', tool: 'the model, in a turn that read untrusted text' }[note.trust]],
    ['approved', note.approved ? 'yes' : 'no'],
    ['tags', note.tags.join(', ')],
    ['session', note.sessionId === null ? '' : `${note.sessionId}, event ${note.seq}`],
    ['kept', localTime(note.createdAt)],
    ['changed', note.updatedAt === note.createdAt ? '' : localTime(note.updatedAt)],
  ];
  return [...columns(facts.filter(([, value]) => value !== '')), '', note.content];
}

function noteTitle({ id, content }: Note): string {
  return `Note ${id} (${oneLine(content, 60)})`;
}

function asJson(note: Note): object {
  return {
    id: note.id,
    scope: note.project === null ? 'global' : 'project',
    directory_id: note.project,
    content: note.content,
    tags: note.tags,
    trust: note.trust,
    approved: note.approved,
    pinned: note.pinned,
    archived: note.archived,
    session_id: note.sessionId,
    seq: note.seq,
    created_at: note.createdAt,
    updated_at: note.updatedAt,
  };
}
