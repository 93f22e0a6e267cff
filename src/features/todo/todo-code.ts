// The code of the feature. It is loaded together, with the first use.
export { showTodos } from './show-todos.js';
export { todoTools } from './step-list.js';
