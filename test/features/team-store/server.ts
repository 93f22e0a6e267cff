import { existsSync } from 'node:fs';
import { afterAll, beforeAll } from 'vitest';
import {
  type Pooler,
  poolerProgram,
  postgresFolder,
  startPooler,
  startServer,
  type TestServer,
} from './start-server.js';

export { address, freePort, openAs, password, type TestServer } from './start-server.js';

/** The server of a test file. Where PostgreSQL is not installed it says how many cases are skipped. */
export function serverOfFile(cases: number): { readonly installed: boolean; readonly server: () => TestServer } {
  const installed = postgresFolder() !== null;
  let server: TestServer | null = null;
  if (!installed) console.log(`PostgreSQL is not installed: ${cases} cases skipped`);
  beforeAll(async () => {
    if (installed) server = await startServer();
  });
  afterAll(async () => await server?.stop());
  return {
    installed,
    server: () => {
      if (server === null) throw new Error('the server was not started');
      return server;
    },
  };
}

/** A pooler before the server of a test file. */
export function poolerOfFile(
  server: () => TestServer,
  hasServer: boolean,
  cases: number,
): { readonly installed: boolean; readonly pooler: () => Pooler } {
  const installed = hasServer && existsSync(poolerProgram);
  let pooler: Pooler | null = null;
  if (hasServer && !installed) console.log(`pgbouncer is not installed: ${cases} cases skipped`);
  beforeAll(async () => {
    if (installed) pooler = await startPooler(server());
  });
  afterAll(async () => await pooler?.stop());
  return {
    installed,
    pooler: () => {
      if (pooler === null) throw new Error('the pooler was not started');
      return pooler;
    },
  };
}
