// The code of evaluations. It is loaded with the first use.
export { newTask } from './new-task.js';
export { runTasks } from './run-tasks.js';
export { compareRuns, evaluate, listRuns, removeRun, reportRun } from './show-run.js';
