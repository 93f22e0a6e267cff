export { expandCommand } from './expand-command.js';
export { readLoginShell } from './read-login-shell.js';
