import { PartKey } from './parts.js';

/** Returns the MCP servers of a run and their states, for `/status`; an empty list without servers. */
export const serverStatus = new PartKey<() => Promise<readonly { readonly name: string; readonly state: string }[]>>(
  'server status',
);
