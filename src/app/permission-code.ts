// The code of permissions. A session without calls does not need it.
export { readClaudeRule } from './claude-rules.js';
export { createPolicy } from '../kernel/permissions/permission-policy.js';
export { compileRules, unheededAllow } from '../kernel/permissions/rules.js';
export { withRunRules } from './allowed-tools.js';
export { keepRules } from './own-rules.js';
