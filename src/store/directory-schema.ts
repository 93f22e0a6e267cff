/** What tells a session's directory from others after it was moved; null for sessions from before there was one. */
export const directorySchema = `
ALTER TABLE sessions ADD COLUMN dir_id TEXT;
CREATE INDEX sessions_dir_id ON sessions(dir_id) WHERE dir_id IS NOT NULL;`;
