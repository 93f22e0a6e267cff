import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { RunHost } from '../../kernel/console/feature.js';
import { givenOptions, optionWords, type rootOptions } from '../../kernel/console/options.js';
import { programFolder } from '../../kernel/console/program-folder.js';
import type { Store } from '../../kernel/core/store.js';
import { loadStartChild } from '../../kernel/tools/process/load-start-child.js';
import { StoreError } from '../../kernel/store/errors.js';
import { pushLease } from './sync-rows.js';
import type { SyncRows } from './team.js';

/** The options that change settings. */
const ofSettings: ReadonlySet<string> = new Set<keyof typeof rootOptions>(['settings', 'set', 'bare']);

/** Starts a process that sends what is left, unless one is doing so already. It outlives this process. */
export async function pushInBackground(
  { settings, options }: Pick<RunHost, 'settings' | 'options'>,
  rows: Pick<SyncRows, 'isPushing'>,
): Promise<void> {
  const { config, cwd, env, log } = settings;
  // A program that uses this one as a library may have its sessions in another file, which a new process does not know.
  if (config.files.database !== join(config.files.data, 'agent.db') || (await rows.isPushing())) return;
  const kept = givenOptions(options).filter(({ key }) => ofSettings.has(key));
  const words = kept.flatMap((option) => option.values.flatMap((value) => optionWords(option, value)));
  const program = join(programFolder(), 'bin', 'agent.js');
  const given = Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
  const { startLasting } = await loadStartChild();
  const pid = startLasting({
    file: process.execPath,
    args: [...process.execArgv, program, ...words, 'db', 'push', '--unless-running'],
    cwd,
    env: { ...Object.fromEntries(given), AGENT_STORE_URL: config.store.url ?? '' },
  });
  log({ at: 'sync', message: 'the rest is sent in the background', pid: pid ?? 0 });
}

/** Calls `push` until no new events came meanwhile, as the only process that does so. Resolves to null if another one
 * does: it sends what is here now, too. */
export async function pushAlone<T>(
  store: Pick<Store, 'acquire'>,
  rows: Pick<SyncRows, 'pending'>,
  push: () => Promise<readonly T[]>,
): Promise<readonly T[] | null> {
  const outcomes: T[] = [];
  for (let known = await pendingEnds(rows), isFirst = true; ; isFirst = false) {
    const lease = await store.acquire(pushLease);
    if (!lease.held) return isFirst ? null : outcomes;
    try {
      for (const outcome of await againWhileBusy(push)) outcomes.push(outcome);
    } finally {
      await lease.release();
    }
    // A run that found the lease taken relies on this look, which comes after the release.
    const now = await pendingEnds(rows);
    if ([...now].every((end) => known.has(end))) return outcomes;
    known = now;
  }
}

/** The pauses before the next attempts where the database is locked, or the server takes too long. */
const pausesMs = [1_000, 5_000, 20_000];

async function againWhileBusy<T>(work: () => Promise<T>): Promise<T> {
  for (const pauseMs of pausesMs) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StoreError) || (error.code !== 'busy' && error.code !== 'slow')) throw error;
    }
    await wait(pauseMs);
  }
  return await work();
}

const listed = 500;

/** Returns the sessions with something to push, each with the number of its last event. */
async function pendingEnds(rows: Pick<SyncRows, 'pending'>): Promise<ReadonlySet<string>> {
  const ends = new Set<string>();
  for (let after = '', isWhole = false; !isWhole;) {
    const page = await rows.pending(after, listed);
    for (const { row, end } of page) ends.add(`${row.id} ${end.seq}`);
    after = page.at(-1)?.row.id ?? after;
    isWhole = page.length < listed;
  }
  return ends;
}
