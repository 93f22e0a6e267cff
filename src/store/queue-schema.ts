/** What waits in a session to be sent. It is no part of the record: it goes once it is sent or taken back. */
export const queueSchema = `
CREATE TABLE queue(
  session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, position INTEGER NOT NULL,
  text TEXT NOT NULL, when_ TEXT NOT NULL CHECK (when_ IN ('steer', 'after')), PRIMARY KEY (session_id, position)) WITHOUT ROWID;`;
