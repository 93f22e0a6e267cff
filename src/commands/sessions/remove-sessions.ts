import { project } from '../../core/projection.js';
import type { SessionSummary } from '../../core/store.js';
import { CliError, type CommandLine, exit, type OpenedStore, type Verb } from '../command.js';
import { age, columns, oneLine, pointInTime, printListing } from '../line-output.js';
import { findSession } from './stored-session.js';

interface PruneOptions {
  readonly olderThan?: string;
  readonly yes?: boolean;
  readonly json?: boolean;
}

const maxListed = 1_000_000;

export const removeSessions: Verb = {
  line: {
    example: 'agent sessions rm 0198',
    run: async ({ out, withStore }, ids) => {
      return await withStore(async ({ store, records }) => {
        const rows = [];
        for (const id of ids) rows.push(await findSession(store, id));
        for (const row of rows) {
          const lease = await store.acquire(row.id);
          if (!lease.held)
            throw new CliError(
              exit.session,
              `session ${row.id} is in use by process ${lease.holder.pid} on ${lease.holder.host}`,
              'End that one first.',
            );
          const messages = project(await store.load(row.id)).messages.length;
          await store.remove(row.id);
          out.print(`Removed ${row.id} (${messages} messages).\n`);
        }
        await records.compact().catch(() => undefined);
        return exit.done;
      });
    },
  },
};

export const pruneSessions: Verb = {
  line: {
    example: 'agent sessions prune --older-than 30d',
    options: (command) =>
      command
        .requiredOption('--older-than <time>', 'not written to since: 45m, 12h, 30d, 8w or a date')
        .option('--yes', 'delete them and all their events')
        .option('--json', 'one JSON array'),
    run: (line, _args, options: PruneOptions) => prune(line, options),
  },
};

/** Lists the sessions of all directories that were not written to since then; `--yes` deletes them. */
async function prune({ out, withStore }: CommandLine, options: PruneOptions): Promise<number> {
  if (options.olderThan === undefined)
    throw new CliError(exit.usage, '--older-than is missing', 'For example agent sessions prune --older-than 30d.');
  const before = pointInTime(options.olderThan, '--older-than', Date.now());
  return await withStore(async ({ store, records }) => {
    const old = (await store.list(maxListed)).filter((row) => row.updatedAt < before);
    printListing(out, options.json, old.map(removedAsJson), () => columns(old.map(cells)));
    const count = options.yes ? await removeAll(old, store, out) : 0;
    if (!options.json) out.print(summary(old.length, options.yes ? count : null));
    if (count > 0) await records.compact();
    return exit.done;
  });
}

/** Removes those that nobody has open; returns how many. */
async function removeAll(
  rows: readonly SessionSummary[],
  store: OpenedStore['store'],
  out: CommandLine['out'],
): Promise<number> {
  let count = 0;
  for (const row of rows) {
    const lease = await store.acquire(row.id);
    if (!lease.held) {
      out.error(`agent: ${row.id} is in use by process ${lease.holder.pid} and stays\n`);
      continue;
    }
    await store.remove(row.id);
    await lease.release();
    count++;
  }
  return count;
}

function removedAsJson(row: SessionSummary): object {
  return {
    id: row.id,
    cwd: row.cwd,
    title: row.title,
    updated_at: row.updatedAt,
    events: row.events,
    prompt: row.prompt,
  };
}

function cells(row: SessionSummary): readonly string[] {
  return [
    row.id,
    age(Date.now() - row.updatedAt),
    `${row.events} events`,
    row.cwd,
    oneLine(row.title ?? row.prompt ?? ''),
  ];
}

function summary(found: number, removed: number | null): string {
  if (found === 0) return 'No session is that old.\n';
  const sessions = (count: number): string => `${count} session${count === 1 ? '' : 's'}`;
  return removed === null
    ? `${sessions(found)}. Nothing was deleted; --yes deletes them with all their events.\n`
    : `Removed ${sessions(removed)}.\n`;
}
