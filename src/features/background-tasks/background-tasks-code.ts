// The code of jobs, which every run that offers them loads.
export { createJobs } from './background.js';
export { endNote } from './job-state.js';
export { jobRows, jobsTool, lostNote, recordedJobs } from './jobs-tool.js';
