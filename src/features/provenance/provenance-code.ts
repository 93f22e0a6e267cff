// The commands of this feature. They are loaded together, with the first that is used.
export { blame } from './blame.js';
export { checkTrace, exportTrace, trace, writeNotes } from './trace.js';
export { addTrailer, traceHook } from './trace-hook.js';
export { why } from './why.js';
