// The code that serves other programs over standard input and output. It is loaded with the first use.
export { serveEditors } from './acp/serve-editors.js';
export { serveMcp } from './mcp-server/serve-mcp.js';
