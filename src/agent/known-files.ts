import { knownEvent, type Event } from '../core/event.js';

/** What a session knows of files, kept up with its log: the last state each result recorded, and for files it knew
 * already what an undo or redo left of them. */
export function noteFiles(files: Map<string, string | null>, raw: Event): void {
  // Most events say nothing of files.
  const event =
    raw.kind === 'tool_result' || raw.kind === 'undo' || raw.kind === 'redo' || raw.kind === 'restore'
      ? knownEvent(raw)
      : null;
  switch (event?.kind) {
    case 'tool_result':
      if (event.data.success) for (const file of event.data.files ?? []) files.set(file.path, file.sha256);
      return;
    case 'undo':
    case 'redo':
    case 'restore':
      for (const change of event.data.changes) if (files.has(change.path)) files.set(change.path, change.after);
      return;
    default:
  }
}
