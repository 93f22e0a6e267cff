// The code of this feature. It is loaded with the first use.
export { signIn, signOut } from './sign-in-to-server.js';
export { addServer, listServers, mcp, removeServer, serveTools, showServer, testServer } from './use-servers.js';
export * from './start-servers.js';
