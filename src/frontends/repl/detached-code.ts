// What is needed once a session continues without its terminal. It is loaded together.
export { detachHere, handOver, leaveHere } from './detach.js';
export { runInBackground } from './start-detached.js';
