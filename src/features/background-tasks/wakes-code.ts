// The code of jobs that few runs need: `/jobs`, terminals, and what wakes the model.
export { onTerminal } from './job-screen.js';
export { showJobs } from './show-jobs.js';
export { createWaker } from './wake-session.js';
