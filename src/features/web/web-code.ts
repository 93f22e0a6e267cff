// The tools of this feature and its check.
export { checkWeb } from './check-web.js';
export { imageCalls } from './image-tool.js';
export { searchTools } from './open-search.js';
export { webTools } from './open-web.js';
