// The code that serves other programs, pages and screens. It is loaded with the first use.
export { answerInJson } from './headless/answer-in-json.js';
export { serveEditors } from './acp/serve-editors.js';
export { serveMcp } from './mcp-server/serve-mcp.js';
export { servePages } from './viewers/serve-page.js';
export { watchSession } from './viewers/watch-session.js';
