// The code of this feature. It is loaded with the first use.
export { planMode } from './plan-mode.js';
export { askTools } from './put-questions.js';
