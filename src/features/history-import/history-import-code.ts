// The code of this feature. It is loaded with the first use.
export { checkHistories } from './check-histories.js';
export { forClaudeCode, forCodex } from './for-other-programs.js';
export { importSession } from './import-sessions.js';
export { sessionImporter } from './plan-session-import.js';
