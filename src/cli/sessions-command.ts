import type { Event } from '../core/event.js';
import { didYouMean } from '../core/nearest.js';
import { project } from '../core/project.js';
import type { Store } from '../core/store.js';
import { firstLine } from '../core/text.js';
import { openSqliteStore } from '../store/sqlite-store.js';
import { CliError, exit } from './cli-error.js';
import { age, columns, printListing } from './json-output.js';
import type { RootOptions } from './options.js';
import { requestBody, wireNames } from './request-body.js';
import { findSession } from './session-files.js';
import { setUp, type Setup } from './setup.js';

type Options = RootOptions & { readonly json?: boolean; readonly all?: boolean; readonly limit?: string; readonly as?: string; readonly prompt?: string };

/** Opens the store for one listing or change, and closes it again. A store that cannot be opened is an error here: there is nothing to list. */
async function withStore<T>(options: Options, use: (store: Store, setup: Setup) => Promise<T>): Promise<T> {
  const setup = await setUp(options);
  const { store, notices } = await openSqliteStore({ file: setup.config.files.database, now: Date.now });
  for (const notice of notices) process.stderr.write(`agent: ${notice}\n`);
  try {
    return await use(store, setup);
  } finally {
    await store.close();
  }
}

export async function listSessions(options: Options): Promise<number> {
  const limit = Number(options.limit ?? 50);
  if (!Number.isInteger(limit) || limit < 1) throw new CliError(exit.usage, `--limit: \`${options.limit ?? ''}\` is not a number from 1`, 'For example --limit 20.');
  return await withStore(options, async (store, setup) => {
    const rows = await store.list(limit, options.all ? undefined : setup.cwd);
    printListing(options.json, rows.map((row) => ({
      id: row.id, parent_id: row.parentId, cwd: row.cwd, title: row.title, provider: row.provider, model: row.model,
      created_at: row.createdAt, updated_at: row.updatedAt, prompt: row.prompt, events: row.events, cost_usd: row.costUsd,
    })), () => (rows.length === 0
      ? [options.all ? 'No sessions yet.' : `No sessions of ${setup.cwd}. --all shows those of other directories.`]
      : columns(rows.map((row) => [
        row.id, age(Date.now() - row.updatedAt), `${row.events} events`, `${row.provider ?? '?'}/${row.model ?? '?'}`,
        row.costUsd === null ? '' : `$${row.costUsd.toFixed(4)}`, ...(options.all ? [row.cwd] : []), oneLine(row.title ?? row.prompt ?? ''),
      ]))));
    return exit.done;
  });
}

export async function showSession(id: string, options: Options): Promise<number> {
  if (options.as !== undefined && !wireNames.includes(options.as)) {
    throw new CliError(exit.usage, `--as: unknown wire \`${options.as}\``, `${didYouMean(options.as, wireNames)} Known: ${wireNames.join(', ')}`.trim());
  }
  return await withStore(options, async (store, setup) => {
    const row = await findSession(store, id);
    const events = await store.load(row.id);
    if (options.as !== undefined) {
      process.stdout.write(`${await requestBody(setup, { row, events, wire: options.as, prompt: options.prompt ?? null })}\n`);
      return exit.done;
    }
    printListing(options.json, events.map(({ seq, kind, content, data, createdAt }) => ({ seq, kind, content, data, created_at: createdAt })),
      () => [`${row.id}  ${row.cwd}  ${row.provider ?? '?'}/${row.model ?? '?'}${row.title === null ? '' : `  ${oneLine(row.title)}`}`, ...columns(events.map(eventLine))]);
    return exit.done;
  });
}

function eventLine(event: Event): readonly string[] {
  return [String(event.seq), new Date(event.createdAt).toISOString(), event.kind, oneLine(event.content ?? '')];
}

/** Stored text on one line, control characters shown. */
function oneLine(text: string): string {
  return firstLine(text, 120).replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/g, '\u00b7');
}

export async function renameSession(id: string, title: string, options: Options): Promise<number> {
  if (title.trim() === '') throw new CliError(exit.usage, 'a title needs at least one character', 'For example agent sessions rename 0198 "parser rewrite"');
  return await withStore(options, async (store) => {
    const row = await findSession(store, id);
    await store.update(row.id, { title: title.trim() });
    return exit.done;
  });
}

export async function removeSessions(ids: readonly string[], options: Options): Promise<number> {
  return await withStore(options, async (store) => {
    const rows = [];
    for (const id of ids) rows.push(await findSession(store, id));
    for (const row of rows) {
      const lease = await store.acquire(row.id);
      if (!lease.held) throw new CliError(exit.session, `session ${row.id} is in use by process ${lease.holder.pid} on ${lease.holder.host}`, 'End that one first.');
      const events = project(await store.load(row.id)).messages.length;
      await store.remove(row.id);
      process.stdout.write(`Removed ${row.id} (${events} messages).\n`);
    }
    return exit.done;
  });
}
