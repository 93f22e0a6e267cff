// The code for a session that continues without its terminal.
export { detachHere, handOver, leaveHere } from './detach.js';
export { runInBackground, startDetached } from './start-detached.js';
