// The commands of this feature. They are loaded together, with the first that is used.
export { approveRun, printTimer, runDueTasks, runTask, taskDaemon, tasks } from './fire-tasks.js';
export { listRuns, listTasks, pauseTask, removeTask, resumeTask, showTask, taskInbox } from './manage-tasks.js';
