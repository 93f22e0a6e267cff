// What imports the servers of other programs. It is loaded with the first import.
export { importServers } from './import-servers.js';
export { serverImporter } from './plan-server-import.js';
