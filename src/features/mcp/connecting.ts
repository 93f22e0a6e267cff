// The code that connects to servers. It is loaded together, with the first connection.
export { logIn, logInHere, portsOf } from './access/login.js';
export { createLink } from './server-link.js';
