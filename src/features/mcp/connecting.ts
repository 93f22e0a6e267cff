// The code that connects to servers. It is loaded together, with the first connection.
export { logInHere } from './access/login.js';
export { createLink } from './server-link.js';
