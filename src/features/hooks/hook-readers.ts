// The code of hooks. It is loaded together, with the first file of hooks that is found.
export { readHookFile } from './listed-hooks.js';
export {
  insideOf,
  noHooks,
  partsOfClaude,
  partsOfHooks,
  readPluginHooks,
  readProjectHooks,
  readSettings,
  withoutCopies,
} from './project-hooks.js';
