import { afterEach } from 'vitest';
import { onPostgres } from '../../../src/features/team-store/open-remote.js';
import type { OpenedStore } from '../../../src/kernel/store/sqlite-store.js';
import { clock } from '../../kernel/store/samples.js';
import { address, poolerOfFile, serverOfFile, type TestServer } from './server.js';

type Opening<T> = readonly [name: string, open: () => Promise<T>];

/** Opens the store of a database for one of the people. */
export function remoteStore(
  server: Pick<TestServer, 'url'>,
  database: string,
  role: string,
  options: Partial<Parameters<typeof onPostgres.open>[0]> = {},
): OpenedStore {
  return onPostgres.open({
    ...address(server.url(database, role)),
    team: null,
    machine: null,
    now: clock,
    notify: () => undefined,
    seal: null,
    ...options,
  });
}

/** Stores on a PostgreSQL of the test file, directly and through a pooler, each in a database of its own that alice
 * works in. Where these are not installed it says how many cases of the file are skipped. */
export function remoteStores<T>(cases: number, of: (opened: OpenedStore) => T | Promise<T>): readonly Opening<T>[] {
  const direct = serverOfFile(2 * cases);
  const pooled = poolerOfFile(direct.server, direct.installed, cases);
  const opened: OpenedStore[] = [];
  let template: string | null = null;
  let copies = 0;
  afterEach(async () => {
    await Promise.all(opened.splice(0).map(({ store }) => store.close()));
  });
  const open = async (by: Pick<TestServer, 'url'>): Promise<T> => {
    const server = direct.server();
    template ??= await server.database();
    const database = `copy${++copies}`;
    await server.sql('postgres', `CREATE DATABASE ${database} TEMPLATE ${template}`);
    const store = remoteStore(by, database, 'alice');
    opened.push(store);
    return await of(store);
  };
  return [
    ...(direct.installed ? [['PostgreSQL', () => open(direct.server())] as const] : []),
    ...(pooled.installed ? [['pooled PostgreSQL', () => open(pooled.pooler())] as const] : []),
  ];
}
