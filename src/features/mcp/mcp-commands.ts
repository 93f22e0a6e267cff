// The commands of this feature. They are loaded together, with the first that is used.
export { importServers } from './import-servers.js';
export { signIn, signOut } from './sign-in-to-server.js';
export { addServer, listServers, mcp, removeServer, serveTools, showServer, testServer } from './use-servers.js';
