import type { SecretSource } from '../../kernel/secrets/known-secrets.js';
import type { Tables, TableSet } from '../../kernel/store/tables.js';
import { guardedNotes } from './guarded-notes.js';
import type { Notes } from './notes.js';
import { notesAt } from './stored-notes.js';

/** The notes of a store. A server keeps none: there they end with the process. */
export const noteTableSet: TableSet<Notes> = {
  name: 'notes',
  open: (place) => Promise.resolve(notesAt(place)),
};

/** Opens the notes of a store. A note that holds a secret is refused. */
export async function openNotes(tables: Tables, source: Pick<SecretSource, 'env' | 'secrets'>): Promise<Notes> {
  return guardedNotes(await tables(noteTableSet), source);
}
