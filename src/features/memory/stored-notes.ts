import type { TablePlace } from '../../kernel/store/tables.js';
import { createMemoryNotes } from './memory-notes.js';
import { createNoteRows } from './note-rows.js';
import type { Notes } from './notes.js';

/** Opens the notes of a place. */
export function notesAt(place: TablePlace): Notes {
  return place.kind === 'sqlite' ? createNoteRows(place) : createMemoryNotes(place.now);
}
