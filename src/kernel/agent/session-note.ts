import type { Session } from './session.js';

/** Adds a note for the model. Between turns it appears in the log and on the screen at once. */
export function addNote(session: Session, note: string): void {
  if (session.busy()) session.tell(note);
  else void session.append({ kind: 'user', content: note, data: { note: true } });
}
