// The commands of record-table.ts. They are loaded together, with the first that is used.
export * from './audit.js';
export * from './export-session.js';
export * from './figures.js';
export * from './manage-sessions.js';
export * from './redact-texts.js';
export * from './search-record.js';
export * from './serve-programs.js';
export * from './replay.js';
export * from './running-sessions.js';
