import type { RootOptions } from '../../cli/options.js';
import { age, columns, print, printError, printListing } from '../../cli/print.js';
import { CliError, exit } from '../cli-error.js';
import { oneLine, pointInTime, withRecords } from '../record/record-opening.js';

type Options = RootOptions & { readonly olderThan?: string; readonly yes?: boolean; readonly json?: boolean };

const maxListed = 1_000_000;

/** `agent sessions prune --older-than 30d`: lists the sessions of all directories that were not written to since then;
 * `--yes` deletes them. */
export async function pruneSessions(options: Options): Promise<number> {
  if (options.olderThan === undefined)
    throw new CliError(exit.usage, '--older-than is missing', 'For example agent sessions prune --older-than 30d.');
  const before = pointInTime(options.olderThan, '--older-than', Date.now());
  return await withRecords(options, async (records, store) => {
    const old = (await store.list(maxListed)).filter((row) => row.updatedAt < before);
    printListing(
      options.json,
      old.map((row) => ({
        id: row.id,
        cwd: row.cwd,
        title: row.title,
        updated_at: row.updatedAt,
        events: row.events,
        prompt: row.prompt,
      })),
      () =>
        columns(
          old.map((row) => [
            row.id,
            age(Date.now() - row.updatedAt),
            `${row.events} events`,
            row.cwd,
            oneLine(row.title ?? row.prompt ?? ''),
          ]),
        ),
    );
    let count = 0;
    for (const row of options.yes ? old : []) {
      const lease = await store.acquire(row.id);
      if (!lease.held) {
        printError(`agent: ${row.id} is in use by process ${lease.holder.pid} and stays\n`);
        continue;
      }
      await store.remove(row.id);
      await lease.release();
      count++;
    }
    if (!options.json) print(summary(old.length, options.yes ? count : null));
    if (count > 0) await records.compact();
    return exit.done;
  });
}

function summary(found: number, removed: number | null): string {
  if (found === 0) return 'No session is that old.\n';
  const sessions = (count: number): string => `${count} session${count === 1 ? '' : 's'}`;
  return removed === null
    ? `${sessions(found)}. Nothing was deleted; --yes deletes them with all their events.\n`
    : `Removed ${sessions(removed)}.\n`;
}
