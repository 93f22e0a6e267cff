// The code of the feature. It is loaded together, with the first usage limit.
export { keepWait } from './keep-wait.js';
export { waitCommand } from './wait-command.js';
export { waitOutLimit } from './wait-out-limit.js';
