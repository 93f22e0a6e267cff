import { PartKey } from '../../kernel/console/parts.js';
import type { Servers } from './servers.js';
import type { OpenedServers } from './start-servers.js';

/** The servers of a run; opened with the first use. Null where there are none. */
export const runningServers = new PartKey<() => Promise<OpenedServers | null>>('running mcp servers');

/** The servers whose tools a run offers; null where there are none. */
export const openedServers = new PartKey<() => Promise<Servers | null>>('mcp servers');
