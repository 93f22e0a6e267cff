import { maxNotes, type Note, type NoteDraft, type NoteFilter, type Notes, searchedWords } from './notes.js';

/** Notes that end with the process. */
export function createMemoryNotes(now: () => number): Notes {
  const notes = new Map<number, Note>();
  let last = 0;
  const put = (note: Note): Note => {
    notes.set(note.id, note);
    return note;
  };
  const countOf = (project: string | null, archived: boolean): number =>
    [...notes.values()].filter((note) => note.project === project && note.archived === archived).length;
  const archive = (note: Note): void => {
    put({ ...note, archived: true, pinned: false, updatedAt: now() });
    const old = [...notes.values()]
      .filter((other) => other.project === note.project && other.archived)
      .sort((a, b) => b.updatedAt - a.updatedAt || b.id - a.id);
    for (const { id } of old.slice(maxNotes)) notes.delete(id);
  };
  return {
    passing: true,
    save: async (draft) => {
      const replaced = draft.replaces === undefined ? null : (notes.get(draft.replaces) ?? null);
      if (draft.replaces !== undefined && (replaced === null || replaced.archived))
        return { saved: false, why: 'unknown' };
      const isRoomMade = replaced?.project === draft.project;
      if (countOf(draft.project, false) - (isRoomMade ? 1 : 0) >= maxNotes) return { saved: false, why: 'full' };
      if (replaced) archive(replaced);
      return { saved: true, note: put(noteOf(++last, draft, now())) };
    },
    change: async (id, { archived, ...change }) => {
      const note = notes.get(id);
      if (!note) return { saved: false, why: 'unknown' };
      if (archived === false && note.archived && countOf(note.project, false) >= maxNotes)
        return { saved: false, why: 'full' };
      const changed = { ...note, ...change, archived: archived ?? note.archived, updatedAt: now() };
      if (archived === true) archive(changed);
      else put(changed);
      return { saved: true, note: notes.get(id) ?? changed };
    },
    remove: async (id) => notes.delete(id),
    note: async (id) => notes.get(id) ?? null,
    list: async (filter = {}) => filterNotes([...notes.values()], filter),
    search: async (text, limit, project) => {
      const words = searchedWords(text).map(stem);
      return filterNotes([...notes.values()], { project })
        .map((note) => ({ note, score: matching(note, words) }))
        .filter(({ score }) => score > 0)
        .sort((a, b) => b.score - a.score || b.note.id - a.note.id)
        .slice(0, limit)
        .map(({ note }) => note);
    },
  };
}

function noteOf(id: number, { replaces: _replaced, pinned = false, ...draft }: NoteDraft, at: number): Note {
  return {
    ...draft,
    id,
    pinned,
    archived: false,
    sessionId: draft.sessionId ?? null,
    seq: draft.seq ?? null,
    createdAt: at,
    updatedAt: at,
  };
}

function filterNotes(notes: readonly Note[], { project, archived = false }: NoteFilter): readonly Note[] {
  return notes
    .filter((note) => note.archived === archived)
    .filter((note) => project === undefined || note.project === null || note.project === project)
    .sort((a, b) => Number(b.pinned) - Number(a.pinned) || b.id - a.id);
}

function matching({ content, tags }: Note, words: readonly string[]): number {
  const held = new Set((`${content} ${tags.join(' ')}`.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).map(stem));
  return words.filter((word) => held.has(word)).length;
}

/** Takes accents and the usual English endings away: less than the tokenizer of
 * the database does, and enough for notes that end with the process. */
function stem(word: string): string {
  const plain = word.normalize('NFD').replace(/\p{M}/gu, '');
  return plain.length < 4 ? plain : plain.replace(/(?:(?<=ss)es|ing|ed|(?<!s)s)$/, '').replace(/e$/, '');
}
