// The code of the feature. It is loaded together, with the first `!command`.
export { runCommand } from './run-on-terminal.js';
export { terminalNeed } from './terminal-need.js';
