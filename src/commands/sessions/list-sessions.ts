import type { SessionSummary } from '../../core/store.js';
import { type CommandLine, exit, type Repl, type Verb } from '../command.js';
import { age, columns, countOption, distinctTitles, printListing } from '../line-output.js';

interface ListOptions {
  readonly json?: boolean;
  readonly here?: boolean;
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
    const rows = (await store.list(limit * page, cwd)).slice(skipped);
    printListing(out, options.json, rows.map(listedAsJson), () =>
      rows.length === 0 && skipped === 0
        ? [options.here ? `No sessions of ${settings.cwd}.` : 'No sessions yet.']
        : lines(rows, options.here === true),
    );
    const total = whole ? rows.length : await store.count(cwd);
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
