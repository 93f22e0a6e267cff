// Screens and pages that show sessions of other processes.
export { servePages } from './serve-page.js';
export { watchSession } from './watch-session.js';
