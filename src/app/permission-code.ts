// The code of permissions. A session without calls does not need it.
export { createPolicy } from '../kernel/permissions/permission-policy.js';
export { compileRules, unheededAllow } from '../kernel/permissions/rules.js';
