// The commands of this feature. They are loaded together, with the first that is used.
export { blame } from './blame.js';
export { why } from './why.js';
