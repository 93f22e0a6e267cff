// The code of this feature. It is loaded with the first use.
export { chooseStyle } from './choose-style.js';
export { listStyles, showStyle } from './list-styles.js';
export { findStyles, partsOfStyles, styleNamed } from './read-styles.js';
