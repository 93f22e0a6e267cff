// Imports servers of other programs. This code loads with the first import.
export { importServers } from './import-servers.js';
export { serverImporter } from './plan-server-import.js';
