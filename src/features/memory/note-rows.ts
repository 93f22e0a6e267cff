import { parseJson } from '../../kernel/core/json.js';
import {
  maxNotes,
  type Note,
  type NoteChange,
  type NoteDraft,
  type NoteFilter,
  type Notes,
  type NoteSaved,
  type NoteTrust,
  searchedWords,
} from './notes.js';
import type { Connection } from '../../kernel/store/connection.js';
import { sqliteCode } from '../../kernel/store/errors.js';
import { noteTables } from '../../kernel/store/migrations.js';

interface NoteRow {
  readonly id: number;
  readonly scope: 'project' | 'global';
  readonly directory_id: string | null;
  readonly content: string;
  readonly tags: string;
  readonly trust: NoteTrust;
  readonly approved: number;
  readonly pinned: number;
  readonly archived: number;
  readonly session: string | null;
  readonly seq: number | null;
  readonly created_at: number;
  readonly updated_at: number;
}

/** The access of a store to its database. */
interface NoteAccess {
  readonly read: <T>(work: (connection: Connection) => T) => Promise<T>;
  readonly write: <T>(work: (connection: Connection) => T) => Promise<T>;
  /** Unix ms. */
  readonly now: () => number;
}

/** The notes in the database of the sessions. */
export function createNoteRows({ read, write, now }: NoteAccess): Notes {
  const change = <T>(work: (connection: Connection) => T): Promise<T> =>
    write((connection) =>
      connection.db
        .transaction(() => {
          connection.db.exec(noteTables);
          return work(connection);
        })
        .immediate(),
    );
  return {
    passing: false,
    save: (draft) => change((connection) => saveNote(connection, draft, now())),
    change: (id, wanted) => change((connection) => changeNote(connection, id, wanted, now())),
    remove: (id) => change((connection) => removeNote(connection, id)),
    note: (id) => read((connection) => (hasNotes(connection) ? noteById(connection, id) : null)),
    list: (filter = {}) => read((connection) => (hasNotes(connection) ? listNotes(connection, filter) : [])),
    search: (text, limit, project) =>
      write((connection) => {
        const match = searchedWords(text)
          .map((word) => `"${word}"`)
          .join(' OR ');
        if (match === '' || !hasNotes(connection)) return [];
        return withSoundIndex(connection, () => findNotes(connection, { match, limit, project }));
      }),
  };
}

function hasNotes({ sql }: Connection): boolean {
  return sql("SELECT 1 FROM sqlite_schema WHERE name = 'notes'").get() !== undefined;
}

function saveNote(connection: Connection, draft: NoteDraft, at: number): NoteSaved {
  const { project, replaces } = draft;
  const replaced = replaces === undefined ? null : noteById(connection, replaces);
  if (replaces !== undefined && (replaced === null || replaced.archived)) return { saved: false, why: 'unknown' };
  const isRoomMade = replaced !== null && replaced.project === project;
  if (countOf(connection, project) - (isRoomMade ? 1 : 0) >= maxNotes) return { saved: false, why: 'full' };
  if (replaced) archive(connection, replaced, at);
  return reindexed(connection, insertNote(connection, draft, at));
}

/** Returns the id that the note got. */
function insertNote({ sql }: Connection, draft: NoteDraft, at: number): number {
  const { project, content, tags, trust, approved, pinned = false, sessionId = null, seq = null } = draft;
  const { lastInsertRowid } = sql(
    `INSERT INTO notes (scope, directory_id, content, tags, trust, approved, pinned, archived, session, seq,
       created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?)`,
  ).run(
    project === null ? 'global' : 'project',
    project,
    content,
    JSON.stringify(tags),
    trust,
    Number(approved),
    Number(pinned),
    sessionId,
    seq,
    at,
    at,
  );
  return Number(lastInsertRowid);
}

function changeNote(connection: Connection, id: number, change: NoteChange, at: number): NoteSaved {
  const note = noteById(connection, id);
  if (note === null) return { saved: false, why: 'unknown' };
  if (change.archived === false && note.archived && countOf(connection, note.project) >= maxNotes)
    return { saved: false, why: 'full' };
  const changed = { ...note, ...change };
  if (change.archived === true) archive(connection, changed, at);
  else updateNote(connection, changed, at);
  return reindexed(connection, id);
}

/** Writes what can change of a note. */
function updateNote({ sql }: Connection, note: Note, at: number): void {
  sql(
    'UPDATE notes SET content = ?, tags = ?, approved = ?, pinned = ?, archived = ?, updated_at = ? WHERE id = ?',
  ).run(
    note.content,
    JSON.stringify(note.tags),
    Number(note.approved),
    Number(note.pinned),
    Number(note.archived),
    at,
    note.id,
  );
}

/** Of the archived notes the newest stay. */
function archive(connection: Connection, note: Note, at: number): void {
  updateNote(connection, { ...note, archived: true, pinned: false }, at);
  const old = connection
    .sql<{ readonly id: number }>(
      'SELECT id FROM notes WHERE directory_id IS ? AND archived ORDER BY updated_at DESC, id DESC LIMIT -1 OFFSET ?',
    )
    .all(note.project, maxNotes);
  for (const { id } of old) removeNote(connection, id);
}

function removeNote(connection: Connection, id: number): boolean {
  withSoundIndex(connection, () => connection.sql('DELETE FROM notes_fts WHERE rowid = ?').run(id));
  return connection.sql('DELETE FROM notes WHERE id = ?').run(id).changes > 0;
}

function reindexed(connection: Connection, id: number): NoteSaved {
  const note = noteById(connection, id);
  if (note === null) return { saved: false, why: 'unknown' };
  withSoundIndex(connection, () => {
    connection.sql('DELETE FROM notes_fts WHERE rowid = ?').run(id);
    connection.sql('INSERT INTO notes_fts (rowid, text) VALUES (?, ?)').run(id, indexedText(note));
  });
  return { saved: true, note };
}

/** Runs work. Rebuilds a damaged index once and tries again. */
function withSoundIndex<T>(connection: Connection, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (sqliteCode(error) !== 'SQLITE_CORRUPT_VTAB') throw error;
    connection.sql("INSERT INTO notes_fts (notes_fts) VALUES ('delete-all')").run();
    const insert = connection.sql('INSERT INTO notes_fts (rowid, text) VALUES (?, ?)');
    for (const row of connection.sql<NoteRow>('SELECT * FROM notes').all())
      insert.run(row.id, indexedText(noteOf(row)));
    return work();
  }
}

function indexedText({ content, tags }: Note): string {
  return `${content} ${tags.join(' ')}`;
}

function countOf({ sql }: Connection, project: string | null): number {
  return (
    sql<{ readonly count: number }>('SELECT count(*) AS count FROM notes WHERE directory_id IS ? AND NOT archived').get(
      project,
    )?.count ?? 0
  );
}

function noteById({ sql }: Connection, id: number): Note | null {
  const row = sql<NoteRow>('SELECT * FROM notes WHERE id = ?').get(id);
  return row === undefined ? null : noteOf(row);
}

function listNotes({ sql }: Connection, { project, archived = false }: NoteFilter): readonly Note[] {
  return sql<NoteRow>(
    `SELECT * FROM notes WHERE archived = ? AND (? IS NULL OR directory_id IS NULL OR directory_id = ?)
     ORDER BY pinned DESC, id DESC`,
  )
    .all(Number(archived), project ?? null, project ?? null)
    .map(noteOf);
}

interface NoteSearch {
  readonly match: string;
  readonly limit: number;
  readonly project: string;
}

function findNotes({ sql }: Connection, { match, limit, project }: NoteSearch): readonly Note[] {
  return sql<NoteRow>(
    `SELECT n.* FROM notes_fts f CROSS JOIN notes n ON n.id = f.rowid
     WHERE notes_fts MATCH ? AND NOT n.archived AND (n.directory_id IS NULL OR n.directory_id = ?)
     ORDER BY bm25(notes_fts), n.id DESC LIMIT ?`,
  )
    .all(match, project, limit)
    .map(noteOf);
}

function noteOf(row: NoteRow): Note {
  return {
    id: row.id,
    project: row.scope === 'global' ? null : row.directory_id,
    content: row.content,
    tags: tagsIn(row.tags),
    trust: row.trust,
    approved: row.approved === 1,
    pinned: row.pinned === 1,
    archived: row.archived === 1,
    sessionId: row.session,
    seq: row.seq,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

function tagsIn(text: string): readonly string[] {
  const tags: unknown = parseJson(text);
  return Array.isArray(tags) ? tags.filter((tag) => typeof tag === 'string') : [];
}
