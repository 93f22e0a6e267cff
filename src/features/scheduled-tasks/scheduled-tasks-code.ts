// The code of this feature. It is loaded with the first use.
export { approveRun, printTimer, runDueTasks, runTask, schedule, taskDaemon, tasks } from './fire-tasks.js';
export { listRuns, listTasks, pauseTask, removeTask, resumeTask, showTask, taskInbox } from './manage-tasks.js';
export { openFiring } from './open-scheduler.js';
export { scheduleTools } from './schedule-tools.js';
