/** Loads the code that connects, with the SDK: a start names the tools of servers and reaches none. */
export const loadConnecting = () => import('./connecting.js');
