/** Loads the code of roles, which a run without sub-agents does not need. */
export const loadRoles = () => import('./roles.js');
