import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const names = ['everything', 'filesystem', 'memory'] as const;

/** The reference servers of the protocol, and where they are: in `AGENT_REFERENCE_SERVERS`, or in a folder among the
 * temporary files. */
export function referenceServers() {
  const folder = process.env['AGENT_REFERENCE_SERVERS'] ?? join(tmpdir(), 'agent-reference-servers');
  const start = (name: (typeof names)[number]): string =>
    join(folder, 'node_modules', '@modelcontextprotocol', `server-${name}`, 'dist', 'index.js');
  return {
    folder,
    packages: names.map((name) => `@modelcontextprotocol/server-${name}`),
    start,
    found: () => names.every((name) => existsSync(start(name))),
  };
}
