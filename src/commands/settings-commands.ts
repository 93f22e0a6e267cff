// The commands of settings-table.ts. They are loaded together, with the first that is used.
export * from './use-tools.js';
export * from './about.js';
export * from './complete-shell.js';
export * from './config-dialog/config-command.js';
export * from './configure.js';
export * from './doctor.js';
export * from './import-files-of-others.js';
export * from './list-models.js';
export * from './list-permissions.js';
export * from './log-in.js';
export * from './serve-programs.js';
export * from './trust-project.js';
export * from './upgrade.js';
export { countFiles } from '../app/importing.js';
