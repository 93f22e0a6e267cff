import type { QueuedMessage } from '../core/session.js';
import { wellFormed } from '../core/text.js';
import type { Connection } from './connection.js';

/** Puts `messages` in the place of what waited, in one commit. A session that is not stored has no queue. */
export function writeQueue({ db, sql }: Connection, sessionId: string, messages: readonly QueuedMessage[]): void {
  db.transaction(() => {
    sql('DELETE FROM queue WHERE session_id = ?').run(sessionId);
    for (const [position, { text, when }] of messages.entries()) {
      sql('INSERT INTO queue (session_id, position, text, when_) SELECT id, ?, ?, ? FROM sessions WHERE id = ?').run(
        position,
        wellFormed(text),
        when,
        sessionId,
      );
    }
  }).immediate();
}

/** Oldest first. */
export function readQueue({ sql }: Connection, sessionId: string): readonly QueuedMessage[] {
  return sql<{ readonly text: string; readonly when_: 'steer' | 'after' }>(
    'SELECT text, when_ FROM queue WHERE session_id = ? ORDER BY position',
  )
    .all(sessionId)
    .map((row) => ({ text: row.text, when: row.when_ }));
}
