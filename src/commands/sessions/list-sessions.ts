import { requestBody } from './request-body.js';
import { findSession } from '../../cli/session/find-session.js';
import type { RootOptions } from '../../cli/options.js';
import { age, columns, outputIsTerminal, print, printData, printError, printListing } from '../../cli/print.js';
import type { Event } from '../../core/event.js';
import { project } from '../../core/projection.js';
import { didYouMean, escapedJson } from '../../core/text.js';
import { isWireName, wireNames } from '../../providers/wires/known-wires.js';
import { CliError, exit } from '../cli-error.js';
import { countOption, distinctTitles, oneLine, withRecords, withStore } from '../record/record-opening.js';

type Options = RootOptions & {
  readonly json?: boolean;
  readonly here?: boolean;
  readonly limit?: string;
  readonly page?: string;
  readonly as?: string;
  readonly prompt?: string;
};

const defaultLimit = 50;

/** A page of the sessions, newest first; with `--json` all of them unless less is asked for. What was left out is said
 * on stderr. */
export async function listSessions(options: Options): Promise<number> {
  const whole = options.json === true && options.limit === undefined && options.page === undefined;
  const limit = whole ? Infinity : countOption(options.limit, '--limit', defaultLimit);
  const page = countOption(options.page, '--page', 1);
  return await withStore(options, async (store, setup) => {
    const cwd = options.here ? setup.cwd : undefined;
    const skipped = whole ? 0 : limit * (page - 1);
    const rows = (await store.list(limit * page, cwd)).slice(skipped);
    const titles = distinctTitles(rows);
    printListing(
      options.json,
      rows.map((row) => ({
        id: row.id,
        parent_id: row.parentId,
        cwd: row.cwd,
        title: row.title,
        provider: row.provider,
        model: row.model,
        api: row.api ?? null,
        base_url: row.baseUrl ?? null,
        created_at: row.createdAt,
        updated_at: row.updatedAt,
        prompt: row.prompt,
        events: row.events,
        cost_usd: row.costUsd,
      })),
      () =>
        rows.length === 0 && skipped === 0
          ? [options.here ? `No sessions of ${setup.cwd}.` : 'No sessions yet.']
          : columns(
              rows.map((row, index) => [
                row.id,
                age(Date.now() - row.updatedAt),
                `${row.events} events`,
                `${row.provider ?? '?'}/${row.model ?? '?'}`,
                row.costUsd === null ? '' : `$${row.costUsd.toFixed(4)}`,
                ...(options.here ? [] : [row.cwd]),
                titles[index] ?? '',
              ]),
            ),
    );
    const total = whole ? rows.length : await store.count(cwd);
    const left = total - skipped - rows.length;
    if (left > 0)
      printError(`${left} more of ${total} sessions: --page ${page + 1} goes on, --limit ${total} lists all.\n`);
    else if (rows.length === 0 && skipped > 0)
      printError(`There are ${total} sessions; page ${page} is behind the last one.\n`);
    return exit.done;
  });
}

export async function showSession(id: string, options: Options): Promise<number> {
  const { as: wire } = options;
  if (wire !== undefined && !isWireName(wire)) {
    throw new CliError(
      exit.usage,
      `--as: unknown wire \`${wire}\``,
      `${didYouMean(wire, wireNames)} Known: ${wireNames.join(', ')}`.trim(),
    );
  }
  return await withStore(options, async (store, setup) => {
    const row = await findSession(store, id);
    const events = await store.load(row.id);
    if (wire !== undefined) {
      const body = await requestBody(setup, { row, events, wire, prompt: options.prompt ?? null });
      printData(`${outputIsTerminal() ? escapedJson(body) : body}\n`);
      return exit.done;
    }
    printListing(
      options.json,
      events.map(({ seq, kind, content, data, createdAt }) => ({ seq, kind, content, data, created_at: createdAt })),
      () => [
        ...columns([
          [
            row.id,
            row.cwd,
            `${row.provider ?? '?'}/${row.model ?? '?'}`,
            row.baseUrl ?? '',
            oneLine(row.title ?? ''),
          ].filter((cell) => cell !== ''),
        ]),
        ...columns(events.map(eventLine)),
      ],
    );
    return exit.done;
  });
}

function eventLine(event: Event): readonly string[] {
  return [String(event.seq), new Date(event.createdAt).toISOString(), event.kind, oneLine(event.content ?? '')];
}

export async function renameSession(id: string, title: string, options: Options): Promise<number> {
  if (title.trim() === '')
    throw new CliError(
      exit.usage,
      'a title needs at least one character',
      'For example agent sessions rename 0198 "parser rewrite"',
    );
  return await withStore(options, async (store) => {
    const row = await findSession(store, id);
    await store.update(row.id, { title: title.trim() });
    return exit.done;
  });
}

export async function removeSessions(ids: readonly string[], options: Options): Promise<number> {
  return await withRecords(options, async (records, store) => {
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
      const events = project(await store.load(row.id)).messages.length;
      await store.remove(row.id);
      print(`Removed ${row.id} (${events} messages).\n`);
    }
    await records.compact().catch(() => undefined);
    return exit.done;
  });
}
