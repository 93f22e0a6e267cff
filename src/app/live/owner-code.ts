// The code that serves the clients of a session. It is loaded with the first client.
export { MessageDelivery } from './message-delivery.js';
export { OwnerServer } from './owner-server.js';
