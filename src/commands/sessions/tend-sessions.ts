import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Event } from '../../core/event.js';
import { project } from '../../core/projection.js';
import { isSessionId, type SessionSummary, ulid } from '../../core/store.js';
import { didYouMean, escapedJson } from '../../core/text.js';
import { defaultWire, isWireName, wireNames } from '../../providers/wires/known-wires.js';
import { StoreError } from '../../store/errors.js';
import { CliError, type CommandLine, exit, type OpenedStore, type Repl, type Verb } from '../command.js';
import { age, columns, countOption, distinctTitles, oneLine, pointInTime, printListing } from '../line-output.js';
import { type ExportedSession, findSession, readJsonl } from './stored-session.js';

interface ListOptions {
  readonly json?: boolean;
  readonly here?: boolean;
  readonly all?: boolean;
  readonly limit?: string;
  readonly page?: string;
}

const defaultLimit = 50;

/** `agent sessions` holds other verbs; `/sessions` goes on with another session. */
export const sessions: Verb = {
  line: { example: 'agent sessions list' },
  slash: resume,
};

export const listSessions: Verb = {
  line: {
    example: 'agent sessions list --here --json',
    options: (command) =>
      command
        .option('--here', 'only those of this directory')
        .option('--all', 'those of agents, too')
        .option('--limit <n>', 'at most so many (default 50, with --json all)')
        .option('--page <n>', 'the second, third, … so many')
        .option('--json', 'one JSON array'),
    run: (line, _args, options: ListOptions) => list(line, options),
  },
};

/** Lists a page of the sessions, newest first; with `--json` all of them unless less is asked for. Says on stderr how
 * many were left out. */
async function list({ out, withStore }: CommandLine, options: ListOptions): Promise<number> {
  const whole = options.json === true && options.limit === undefined && options.page === undefined;
  const limit = whole ? Infinity : countOption(options.limit, '--limit', defaultLimit);
  const page = countOption(options.page, '--page', 1);
  return await withStore(async ({ store, settings }) => {
    const cwd = options.here ? settings.cwd : undefined;
    const skipped = whole ? 0 : limit * (page - 1);
    const rows = (await store.list(limit * page, cwd, options.all)).slice(skipped);
    printListing(out, options.json, rows.map(listedAsJson), () =>
      rows.length === 0 && skipped === 0
        ? [options.here ? `No sessions of ${settings.cwd}.` : 'No sessions yet.']
        : lines(rows, options.here === true),
    );
    const total = whole ? rows.length : await store.count(cwd, options.all);
    const left = total - skipped - rows.length;
    if (left > 0)
      out.error(`${left} more of ${total} sessions: --page ${page + 1} goes on, --limit ${total} lists all.\n`);
    else if (rows.length === 0 && skipped > 0)
      out.error(`There are ${total} sessions; page ${page} is behind the last one.\n`);
    return exit.done;
  });
}

function listedAsJson(row: SessionSummary): object {
  return {
    id: row.id,
    parent_id: row.parentId,
    kind: row.parentCallId === undefined ? null : 'agent',
    parent_call_id: row.parentCallId ?? null,
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
  };
}

function lines(rows: readonly SessionSummary[], here: boolean): readonly string[] {
  const titles = distinctTitles(rows);
  return columns(
    rows.map((row, index) => [
      row.id,
      age(Date.now() - row.updatedAt),
      `${row.events} events`,
      `${row.provider ?? '?'}/${row.model ?? '?'}`,
      row.costUsd === null ? '' : `$${row.costUsd.toFixed(4)}`,
      ...(here ? [] : [row.cwd]),
      titles[index] ?? '',
    ]),
  );
}

async function resume(argument: string, repl: Repl): Promise<void> {
  const chosen = argument.trim() === '' ? await pickSession(repl) : argument.trim();
  if (chosen === null) return;
  if (chosen === repl.sessions.current().session.id) {
    repl.screen.notice('info', 'That is this session.');
    return;
  }
  repl.screen.attach(await repl.sessions.open({ continueNewest: false, resume: chosen, fork: false }));
}

async function pickSession({ sessions: open, store, settings, screen }: Repl): Promise<string | null> {
  const { id } = open.current().session;
  const rows = (await store.list(Infinity)).filter((row) => row.id !== id && row.events > 0);
  if (rows.length === 0) {
    screen.notice('info', 'There are no other sessions yet.');
    return null;
  }
  return await screen.pick({
    title: 'Go on with',
    items: pickItems(sortedHereFirst(rows, settings.cwd), settings.cwd),
  });
}

function sortedHereFirst(rows: readonly SessionSummary[], cwd: string): readonly SessionSummary[] {
  return [...rows.filter((row) => row.cwd === cwd), ...rows.filter((row) => row.cwd !== cwd)];
}

interface PickRow {
  readonly label: string;
  readonly detail: string;
  readonly value: string;
}

function pickItems(rows: readonly SessionSummary[], cwd: string): readonly PickRow[] {
  const titles = distinctTitles(rows, 70);
  return rows.map((row, index) => pickItem(row, titles[index] || row.id, cwd));
}

function pickItem(row: SessionSummary, label: string, cwd: string): PickRow {
  const cost = row.costUsd === null || row.costUsd === 0 ? '' : `$${row.costUsd.toFixed(2)}`;
  const detail = [
    `${age(Date.now() - row.updatedAt)} ago`,
    row.model ?? '',
    `${row.events} events`,
    cost,
    row.cwd === cwd ? '' : row.cwd,
  ].filter((part) => part !== '');
  return { label, detail: detail.join(' · '), value: row.id };
}

interface ShowOptions {
  readonly json?: boolean;
  readonly as?: string;
  readonly prompt?: string;
}

export const showSession: Verb = {
  line: {
    example: `agent sessions show 0198 --as ${defaultWire}`,
    options: (command) =>
      command
        .option('--as <wire>', `the request body: ${wireNames.slice(0, -1).join(', ')} or ${wireNames.at(-1) ?? ''}`)
        .option('--prompt <text>', 'with --as: add this user turn')
        .option('--json', 'one JSON array of events'),
    run: (line, [id = ''], options: ShowOptions) => show(line, id, options),
  },
};

async function show({ out, models, withStore }: CommandLine, id: string, options: ShowOptions): Promise<number> {
  const wire = options.as;
  if (wire !== undefined && !isWireName(wire))
    throw new CliError(
      exit.usage,
      `--as: unknown wire \`${wire}\``,
      `${didYouMean(wire, wireNames)} Known: ${wireNames.join(', ')}`.trim(),
    );
  return await withStore(async ({ store }) => {
    const row = await findSession(store, id);
    const events = await store.load(row.id);
    if (wire !== undefined) {
      const body = await models.requestBody({
        row,
        events,
        wire,
        prompt: options.prompt ?? null,
        blob: (sha256) => store.blob(sha256),
      });
      out.data(`${out.isTerminal ? escapedJson(body) : body}\n`);
      return exit.done;
    }
    const about = [
      row.id,
      row.cwd,
      `${row.provider ?? '?'}/${row.model ?? '?'}`,
      row.baseUrl ?? '',
      oneLine(row.title ?? ''),
    ];
    printListing(
      out,
      options.json,
      events.map(({ seq, kind, content, data, createdAt }) => ({ seq, kind, content, data, created_at: createdAt })),
      () => [...columns([about.filter((cell) => cell !== '')]), ...columns(events.map(eventLine))],
    );
    return exit.done;
  });
}

function eventLine(event: Event): readonly string[] {
  return [String(event.seq), new Date(event.createdAt).toISOString(), event.kind, oneLine(event.content ?? '')];
}

/** `agent sessions rename`, and `/rename` for the session on the screen. */
export const renameSession: Verb = {
  line: {
    example: 'agent sessions rename 0198 "parser rewrite"',
    run: async ({ withStore }, [id = '', ...words]) => {
      const title = words.join(' ').trim();
      if (title === '')
        throw new CliError(
          exit.usage,
          'a title needs at least one character',
          'For example agent sessions rename 0198 "parser rewrite"',
        );
      return await withStore(async ({ store }) => {
        const row = await findSession(store, id);
        await store.update(row.id, { title });
        return exit.done;
      });
    },
  },
  slash: async (argument, { screen, sessions }) => {
    const title = argument.trim();
    if (title === '') {
      screen.notice('warn', 'Give a title: /rename parser rewrite');
      return;
    }
    await sessions.rename(title);
    screen.notice('info', `This session is now called ${title}.`);
  },
};

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

interface ImportOptions {
  readonly asNew?: boolean;
}

export const importSession: Verb = {
  line: {
    example: 'agent sessions import session.jsonl',
    options: (command) => command.option('--as-new', 'under an id of its own'),
    run: (line, [file = ''], options: ImportOptions) => importFile(line, file, options),
  },
};

/** Imports a whole session from JSON Lines or nothing. The session keeps its id unless `--as-new` is given. */
async function importFile(
  { out, guards, withStore }: CommandLine,
  file: string,
  options: ImportOptions,
): Promise<number> {
  return await withStore(async ({ store, settings }) => {
    const read = readSession(resolve(settings.cwd, file), file);
    if (!options.asNew && !isSessionId(read.row.id)) {
      throw new CliError(
        exit.usage,
        `${file}: \`${oneLine(read.row.id)}\` is no session id: it is neither a ULID nor a UUID of version 7`,
        '--as-new imports it under an id of its own.',
      );
    }
    const row = options.asNew ? { ...read.row, id: ulid(Date.now(), randomBytes(16)) } : read.row;
    try {
      const guard = await guards.session(read.events);
      await store.adopt(
        row,
        read.events.map((event) => guard.event(event)),
        read.blobs,
      );
    } catch (error) {
      if (error instanceof StoreError && error.code === 'exists')
        throw new CliError(
          exit.session,
          `session ${row.id} is in the store already`,
          '--as-new imports it under an id of its own.',
        );
      throw error;
    }
    out.print(`${row.id}\n`);
    if (row.provider !== null && row.provider !== 'offline')
      out.error(`agent: ${untrusted(row.provider, read.writtenAddress)}\n`);
    return exit.done;
  });
}

/** A file may name any server: the texts of a session go only where the user's own settings or command line say. */
function untrusted(provider: string, address: string | undefined): string {
  const named =
    address === undefined
      ? 'An imported session has no address'
      : `The address in the file, ${oneLine(address)}, is not trusted`;
  return `${named}: the session goes on where \`${oneLine(provider)}\` is configured to be, or where --base-url says.`;
}

function readSession(path: string, shown: string): ExportedSession {
  try {
    return readJsonl(path === '/dev/stdin' ? readFileSync(0, 'utf8') : readFileSync(path, 'utf8'));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CliError(
      exit.usage,
      `${shown}: ${reason}`,
      'agent sessions export <session> --format jsonl writes what can be imported.',
    );
  }
}
