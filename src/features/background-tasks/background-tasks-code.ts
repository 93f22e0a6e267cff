// The code of jobs. It is loaded together, with the first of them.
export { createJobs } from './background.js';
export { endNote, jobRows, jobsTool, lostNote, recordedJobs } from './jobs-tool.js';
export { showJobs } from './show-jobs.js';
