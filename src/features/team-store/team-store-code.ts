// The code of this feature. It is loaded with the first use.
export { pullSessions, pushSessions, syncSessions } from './exchange-sessions.js';
export { database, databaseStatus, initDatabase } from './manage-database.js';
export { onPostgres } from './open-remote.js';
export { checkServer, openSyncPart } from './open-team.js';
export { recordOnServer } from './shared-record.js';
