// The code of jobs. It is loaded together, with the first of them.
export { createJobs } from './background.js';
export { endNote, lostNote, recordedJobs } from './jobs-tool.js';
