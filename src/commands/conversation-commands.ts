// The commands of conversation-table.ts. They are loaded together, with the first that is used.
export * from './add-directory.js';
export * from './choose-effort.js';
export * from './compact-session.js';
export * from './leave-terminal.js';
export * from './permission-rules.js';
export * from './show-parts.js';
export * from './show-status.js';
export * from './switch-model.js';
