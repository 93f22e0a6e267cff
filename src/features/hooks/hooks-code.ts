// The code of this feature. It is loaded with the first use.
export { checkHooks, hooks, listHooks, showHooks } from './list-hooks.js';
export { openHooks } from './open-hooks.js';
export * from './hook-readers.js';
