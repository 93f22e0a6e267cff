// What is needed once a session continues without its terminal. It is loaded together.
export { detachHere, handOver, leaveHere } from './detach.js';
export { runInBackground, startDetached } from './start-detached.js';
