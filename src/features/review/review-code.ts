// The code of reviews. It is loaded with the first use.
export { reviewChange } from './review-change.js';
