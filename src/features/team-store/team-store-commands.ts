// The commands of this feature. They are loaded together, with the first that is used.
export { pullSessions, pushSessions, syncSessions } from './exchange-sessions.js';
export { database, databaseStatus, initDatabase } from './manage-database.js';
