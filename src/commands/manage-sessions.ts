import { addAll } from '../kernel/core/lists.js';
import type { Later } from '../kernel/console/slash-command.js';
import { counted } from '../kernel/tools/define-tool.js';
import type { Session } from '../kernel/agent/session.js';
import type { Event } from '../kernel/core/event.js';
import { eventSourceText } from '../kernel/core/message-source.js';
import { project } from '../kernel/core/projection.js';
import type { SessionRow, SessionSummary } from '../kernel/core/store.js';
import { didYouMean, escapedJson } from '../kernel/core/text.js';
import { defaultWire, isWireName, wireNames } from '../kernel/providers/wires/known-wires.js';
import {
  CliError,
  type CommandLine,
  exit,
  type CommandStore,
  type Repl,
  type CommandHandler,
} from '../kernel/console/command.js';
import type { Settings } from '../kernel/console/run-settings.js';
import {
  age,
  asksTeam,
  columns,
  countOption,
  distinctTitles,
  oneLine,
  pointInTime,
  printJsonArray,
  printListing,
  progressOn,
} from '../kernel/console/line-output.js';
import { findSession, goToSession, type PagedSession, storedPages } from '../kernel/console/stored-session.js';
import { features, provided } from '../app/features.js';
import { openSharedRecord } from '../kernel/console/shared-record-port.js';

interface ListOptions {
  readonly json?: boolean;
  readonly here?: boolean;
  readonly all?: boolean;
  readonly limit?: string;
  readonly page?: string;
  readonly team?: boolean;
  readonly person?: string;
}

const defaultLimit = 50;

/** `agent sessions` holds other verbs; `/sessions` resumes another session. */
export const sessions: CommandHandler = {
  line: { example: 'agent sessions list' },
  slash: resume,
};

export const listSessions: CommandHandler = {
  line: {
    example: 'agent sessions list --here --json',
    options: (command) =>
      command
        .option('--here', 'only those of this directory and its worktrees')
        .option('--all', 'those of agents, too')
        .option('--limit <n>', 'at most this many (default 50, with --json all)')
        .option('--team', 'of everybody that you may read, in the database of `store.url`')
        .option('--person <role>', 'the same, of this person')
        .option('--page <n>', 'the second, third, … so many')
        .option('--json', 'one JSON array'),
    run: async (line, _args, options: ListOptions) =>
      asksTeam(options)
        ? await (await openSharedRecord(provided)).listSessions(line, options)
        : await list(line, options),
  },
};

/** Lists a page of the sessions, newest first; with `--json` all of them unless less is asked for. Says on stderr how
 * many were left out. */
async function list({ out, withStore }: CommandLine, options: ListOptions): Promise<number> {
  const whole = options.json === true && options.limit === undefined && options.page === undefined;
  const limit = whole ? Infinity : countOption(options.limit, '--limit', defaultLimit);
  const page = countOption(options.page, '--page', 1);
  return await withStore(async ({ store, settings }) => {
    const places = options.here ? await placesOf(settings) : [undefined];
    const skipped = whole ? 0 : limit * (page - 1);
    const found = await Promise.all(places.map((cwd) => store.list(limit * page, cwd, options.all)));
    const newest = found.flat().toSorted((a, b) => b.updatedAt - a.updatedAt);
    const rows = newest.slice(skipped, limit * page);
    printListing(out, options.json, rows.map(listedAsJson), () =>
      rows.length === 0 && skipped === 0
        ? [options.here ? `No sessions of ${settings.cwd}.` : 'No sessions yet.']
        : lines(rows, places.length === 1 && options.here === true),
    );
    const counts = whole ? [] : await Promise.all(places.map((cwd) => store.count(cwd, options.all)));
    const total = whole ? rows.length : counts.reduce((sum, count) => sum + count, 0);
    const left = total - skipped - rows.length;
    if (left > 0)
      out.error(`${left} more of ${total} sessions: --page ${page + 1} shows more, --limit ${total} all.\n`);
    else if (rows.length === 0 && skipped > 0)
      out.error(`There are ${total} sessions; page ${page} is past the last one.\n`);
    return exit.done;
  });
}

/** Returns this directory and those that belong to it, such as its worktrees. */
async function placesOf({ cwd, env }: Settings): Promise<readonly string[]> {
  const related = await Promise.all(
    features.map(async (feature) => (await feature.relatedFolders?.({ cwd, env })) ?? []),
  );
  return [cwd, ...related.flat()];
}

function listedAsJson(row: SessionSummary): object {
  return {
    id: row.id,
    parent_id: row.parentId,
    kind: row.parentCallId === undefined ? (row.door ?? null) : 'agent',
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
      counted(row.events, 'event'),
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
  await goToSession(repl, { continueNewest: false, resume: chosen, fork: false });
}

/** Sessions that are on the screen at once; the others are read while it shows them. */
const pickedAtOnce = 500;

async function pickSession({ sessions: open, store, settings, screen }: Repl): Promise<string | null> {
  const { id } = open.current().session;
  const { cwd } = settings;
  const { count, pages } = await store.browse();
  const here = await store.list(pickedAtOnce, cwd);
  const newest: SessionSummary[] = [...here];
  const shown = new Set([id, ...here.map((row) => row.id)]);
  const unseen = (page: readonly SessionSummary[]): readonly SessionSummary[] =>
    page.filter((row) => !shown.has(row.id));
  const reader = pages[Symbol.asyncIterator]();
  const first = await reader.next();
  if (first.done !== true) addAll(newest, unseen(first.value));
  const rows = newest.filter((row) => row.id !== id && row.events > 0);
  if (rows.length === 0) {
    screen.notice('info', 'There are no other sessions yet.');
    return null;
  }
  for (const row of rows) shown.add(row.id);
  const isMore = first.done !== true && count > first.value.length;
  return await screen.pick({
    title: 'Resume',
    items: pickItems(rows, cwd),
    ...(isMore ? { more: { said: 'Reading older sessions …', found: olderSessions(reader, unseen, cwd) } } : {}),
  });
}

/** Never rejects. */
async function olderSessions(
  reader: AsyncIterator<readonly SessionSummary[]>,
  unseen: (page: readonly SessionSummary[]) => readonly SessionSummary[],
  cwd: string,
): Promise<Later<string>> {
  const rows: SessionSummary[] = [];
  try {
    for (let page = await reader.next(); page.done !== true; page = await reader.next())
      addAll(rows, unseen(page.value));
  } catch (error) {
    return { items: [], marked: [], said: `Older sessions were not read: ${String(error)}` };
  }
  return {
    items: pickItems(
      rows.filter(({ events }) => events > 0),
      cwd,
    ),
    marked: [],
    said: '',
  };
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
    counted(row.events, 'event'),
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

export const showSession: CommandHandler = {
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
    if (wire !== undefined) {
      const events = (await store.history?.recent(row.id))?.events ?? (await store.load(row.id));
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
    const { pages } = storedPages(store, row);
    for await (const text of options.json ? jsonPieces(pages) : shownPieces(row, pages)) {
      if (options.json) out.data(escapedJson(text));
      else out.print(text);
      await out.drained();
    }
    return exit.done;
  });
}

/** Writes the events as one JSON array. */
async function* jsonPieces(pages: PagedSession['pages']): AsyncGenerator<string> {
  let before = '[';
  for await (const events of pages)
    for (const { seq, kind, content, data, createdAt } of events) {
      const event = JSON.stringify({ seq, kind, content, data, created_at: createdAt }, null, 2);
      yield `${before}\n  ${event.replaceAll('\n', '\n  ')}`;
      before = ',';
    }
  yield before === '[' ? '[]\n' : '\n]\n';
}

async function* shownPieces(row: SessionRow, pages: PagedSession['pages']): AsyncGenerator<string> {
  const about = [
    row.id,
    row.cwd,
    `${row.provider ?? '?'}/${row.model ?? '?'}`,
    row.baseUrl ?? '',
    oneLine(row.title ?? ''),
  ];
  const lines = (cells: readonly (readonly string[])[]): string =>
    columns(cells)
      .map((line) => `${line}\n`)
      .join('');
  yield lines([about.filter((cell) => cell !== '')]);
  for await (const events of pages) yield lines(events.map(eventLine));
}

function eventLine(event: Event): readonly string[] {
  const from = eventSourceText(event);
  const text = oneLine(event.content ?? '') + (from === null ? '' : `  (${from})`);
  return [String(event.seq), new Date(event.createdAt).toISOString(), event.kind, text];
}

/** `agent sessions rename`, and `/rename` for the session on the screen. */
export const renameSession: CommandHandler = {
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
    const title = argument.trim() || (await askedTitle(sessions.current().session));
    if (title === '') {
      screen.notice('warn', 'The model gave no title. Give one: /rename parser rewrite');
      return;
    }
    await sessions.rename(title);
    screen.notice('info', `This session is now called ${sessions.title() ?? title}.`);
  },
};

const longestTitleMs = 30_000;

/** Asks the model for a title; '' where there is nothing to name yet, or no model. */
async function askedTitle(session: Session): Promise<string> {
  const isUnconnected = session.ref().provider === 'offline' && session.ref().model === 'offline';
  if (isUnconnected || session.recent().length === 0) return '';
  return await session.suggestTitle(AbortSignal.timeout(longestTitleMs));
}

interface RemoveOptions {
  readonly remote?: boolean;
}

interface PruneOptions {
  readonly olderThan?: string;
  readonly yes?: boolean;
  readonly all?: boolean;
  readonly json?: boolean;
}

export const removeSessions: CommandHandler = {
  line: {
    example: 'agent sessions rm 0198',
    options: (command) => command.option('--remote', "from the team's database, too"),
    run: async ({ out, withStore }, ids, { remote }: RemoveOptions) => {
      return await withStore(async ({ store, records, settings }) => {
        const rows = new Map<string, SessionRow>();
        for (const id of ids) {
          const row = await findSession(store, id);
          rows.set(row.id, row);
        }
        for (const row of rows.values()) {
          const lease = await store.acquire(row.id);
          if (!lease.held)
            throw new CliError(
              exit.session,
              `session ${row.id} is in use by process ${lease.holder.pid} on ${lease.holder.host}`,
              'End that one first.',
            );
          const messages = project(await store.load(row.id)).messages.length;
          if (remote) await (await openSharedRecord(provided)).remove(settings, row.id);
          await store.remove(row.id);
          out.print(`Removed ${row.id} (${counted(messages, 'message')}).\n`);
        }
        await records.compact().catch(() => undefined);
        return exit.done;
      });
    },
  },
};

export const pruneSessions: CommandHandler = {
  line: {
    example: 'agent sessions prune --older-than 30d',
    options: (command) =>
      command
        .requiredOption('--older-than <time>', 'not written to since: 45m, 12h, 30d, 8w or a date')
        .option('--yes', 'delete them and all their events')
        .option('--all', 'list all of them, not only the newest 50')
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
    const { count: found, pages } = await store.browse({ before });
    const listed = options.yes ? await allOf(pages) : null;
    const source = listed === null ? pages : inOnePage(listed);
    if (options.json) await printJsonArray(out, mapped(source, removedAsJson));
    else await printPages(out, source, options.all ? Infinity : defaultLimit);
    const count = listed === null ? 0 : await removeAll(listed, store, out);
    if (!options.json) {
      if (!options.all && found > defaultLimit) out.print(`… and ${found - defaultLimit} more; --all lists them.\n`);
      out.print(summary(found, options.yes ? count : null));
    }
    if (count > 0) await records.compact();
    return exit.done;
  });
}

async function allOf(pages: AsyncIterable<readonly SessionSummary[]>): Promise<readonly SessionSummary[]> {
  const rows: SessionSummary[] = [];
  for await (const page of pages) addAll(rows, page);
  return rows;
}

async function* inOnePage(rows: readonly SessionSummary[]): AsyncGenerator<readonly SessionSummary[]> {
  yield rows;
}

async function* mapped<T, U>(pages: AsyncIterable<readonly T[]>, change: (row: T) => U): AsyncGenerator<readonly U[]> {
  for await (const page of pages) yield page.map(change);
}

async function printPages(
  out: CommandLine['out'],
  pages: AsyncIterable<readonly SessionSummary[]>,
  limit: number,
): Promise<void> {
  const widths: number[] = [];
  let left = limit;
  for await (const page of pages) {
    const rows = page.slice(0, left);
    out.print(
      columns(rows.map(cells), widths)
        .map((line) => `${line}\n`)
        .join(''),
    );
    left -= rows.length;
    if (left === 0) return;
  }
}

/** Removes those that nobody has open; returns how many. */
async function removeAll(
  rows: readonly SessionSummary[],
  store: CommandStore['store'],
  out: CommandLine['out'],
): Promise<number> {
  const progress = progressOn(out, 'Removing sessions');
  let count = 0;
  for (const [index, row] of rows.entries()) {
    progress(index / rows.length);
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
    counted(row.events, 'event'),
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
