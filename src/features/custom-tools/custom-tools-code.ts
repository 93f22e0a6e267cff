// The code of this feature. It is loaded with the first use.
export { askForChangedTools, openToolFiles } from './allowed-files.js';
export { addTools, removeTools } from './manage-files.js';
export { openCustom } from './open-custom.js';
