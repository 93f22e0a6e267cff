// The tools of the sets of this feature.
export { clockTools } from './clock.js';
export { fileFactTools } from './file-facts.js';
export { keyValueTools } from './key-values.js';
export { mathTools } from './math.js';
