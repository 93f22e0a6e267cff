export { EditChecks } from './check-edits.js';
export { serverParts } from './trusted-servers.js';
export { showDiagnostics } from './show-diagnostics.js';
