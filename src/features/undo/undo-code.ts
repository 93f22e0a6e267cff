// The commands of this feature. They are loaded together, with the first that is used.
export { rewind } from './rewind.js';
export { redo, restore, undo } from './undo.js';
