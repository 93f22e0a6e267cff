import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type DatabaseConstructor from 'better-sqlite3';
import { isBusy, StoreError } from './errors.js';

export type Driver = typeof DatabaseConstructor;
export type Database = DatabaseConstructor.Database;

/** The first SQLite whose write-ahead log cannot be corrupted by a reset race,
 * and the two older lines the fix was carried back to. */
const safeVersions: readonly (readonly [number, number, number])[] = [
  [3, 44, 6],
  [3, 50, 7],
  [3, 51, 3],
];

/** Loads better-sqlite3 when a store is needed. Throws a StoreError `driver`
 * when its native part is missing or was built for another Node. */
export async function loadDriver(): Promise<Driver> {
  try {
    const { default: driver } = await import('better-sqlite3');
    new driver(':memory:').close();
    return driver;
  } catch (error) {
    throw driverError(error);
  }
}

/** The version of the SQLite library in use, `3.53.2`. Throws as `loadDriver` does. */
export async function sqliteVersion(): Promise<string> {
  const driver = await loadDriver();
  const db = new driver(':memory:');
  try {
    return db.prepare<[], string>('SELECT sqlite_version()').pluck().get() ?? 'unknown';
  } finally {
    db.close();
  }
}

/** Throws a StoreError `sqlite_version` for a SQLite that can corrupt a
 * database in WAL mode. Source: sqlite.org, "WAL-reset bug", fixed in 3.51.3,
 * carried back to 3.44.6 and 3.50.7. */
export function checkSqliteVersion(version: string): void {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  const newest = safeVersions.at(-1) ?? [0, 0, 0];
  const carriedBack = safeVersions.some((safe) => safe[0] === major && safe[1] === minor && patch >= safe[2]);
  if (carriedBack || major > newest[0] || (major === newest[0] && minor > newest[1])) return;
  throw new StoreError(
    'sqlite_version',
    `SQLite ${version} can corrupt a database in WAL mode; 3.51.3 or newer is needed`,
    'Run: npm install better-sqlite3@latest-12',
  );
}

/** Explains an error that was thrown while better-sqlite3 was loaded, and says
 * what to do. */
export function driverError(error: unknown): StoreError {
  const text = error instanceof Error ? error.message : String(error);
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
  const rebuild = `Run: ${nodeHeaders()}npm rebuild better-sqlite3`;
  if (/NODE_MODULE_VERSION|different Node\.js version/.test(text)) {
    return new StoreError(
      'driver',
      `The SQLite module was built for another version of Node than this one (${process.version})`,
      rebuild,
      error,
    );
  }
  if (code === 'ERR_DLOPEN_FAILED' || text.includes('Could not locate the bindings file')) {
    return new StoreError(
      'driver',
      `The native part of better-sqlite3 is missing or does not load under Node ${process.version}`,
      rebuild,
      error,
    );
  }
  return new StoreError(
    'driver',
    `better-sqlite3 cannot be loaded (${text.split('\n')[0] ?? ''})`,
    'Run: npm install',
    error,
  );
}

/** The headers beside this Node. Without them the compiler would fetch them
 * from the network. */
function nodeHeaders(): string {
  const prefix = dirname(dirname(process.execPath));
  return existsSync(join(prefix, 'include/node/node.h')) ? `npm_config_nodedir=${prefix} ` : '';
}

const firstDelayMs = 5;
const longestDelayMs = 200;

/** Runs `work` until it does not meet another process's lock. Waits longer and
 * longer between tries, without blocking the thread. Throws SQLite's own busy
 * error after `maxBusyMs`, and every other error at once. */
export async function retryWhileBusy<T>(work: () => T, maxBusyMs: number): Promise<T> {
  const deadline = performance.now() + maxBusyMs;
  for (let delayMs = firstDelayMs; ; delayMs = Math.min(delayMs * 2, longestDelayMs)) {
    try {
      return work();
    } catch (error) {
      const leftMs = deadline - performance.now();
      if (!isBusy(error) || leftMs <= 0) throw error;
      await wait(Math.min(leftMs, delayMs * (0.5 + Math.random())));
    }
  }
}
