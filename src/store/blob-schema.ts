/** File contents by their hash, each once, and which session's events refer to which. The references are made from the
 * events themselves, so that forks, imports and repairs have them too; contents nobody refers to any more go with the
 * last session that did. */
export const blobSchema = `
CREATE TABLE blobs(sha256 TEXT PRIMARY KEY, size INTEGER NOT NULL, encoding TEXT NOT NULL CHECK (encoding IN ('raw', 'deflate')), bytes BLOB NOT NULL);
CREATE TABLE blob_refs(
  session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, sha256 TEXT NOT NULL, PRIMARY KEY (session_id, sha256)) WITHOUT ROWID;
CREATE INDEX blob_refs_sha256 ON blob_refs(sha256);
CREATE TRIGGER blob_refs_made AFTER INSERT ON events WHEN new.kind IN ('tool_result', 'undo', 'redo', 'restore') AND json_type(new.data_json, '$.changes') = 'array' BEGIN
  INSERT OR IGNORE INTO blob_refs SELECT new.session_id, json_extract(value, '$.before') FROM json_each(new.data_json, '$.changes') WHERE json_type(value, '$.before') = 'text';
  INSERT OR IGNORE INTO blob_refs SELECT new.session_id, json_extract(value, '$.after') FROM json_each(new.data_json, '$.changes') WHERE json_type(value, '$.after') = 'text';
END;
CREATE TRIGGER blob_refs_gone AFTER DELETE ON blob_refs WHEN NOT EXISTS (SELECT 1 FROM blob_refs WHERE sha256 = old.sha256) BEGIN
  DELETE FROM blobs WHERE sha256 = old.sha256;
END;`;
