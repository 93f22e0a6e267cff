import { counted } from '../../kernel/tools/define-tool.js';
import { type SpentBy, spentBy, type TeamCall, type TeamSpending, type TeamSummary } from './team.js';
import { hostname } from 'node:os';
import { CliError, exit } from '../../kernel/console/command.js';
import { scopeOf, type SharedRecord, type SharedSession } from '../../kernel/console/shared-record-port.js';
import {
  age,
  columns,
  countOption,
  localTime,
  oneLine,
  printCsv,
  printListing,
} from '../../kernel/console/line-output.js';
import { openTeam, withTeam } from './open-team.js';
import { syncTableSet } from './sync-tables.js';
import { idOnServer } from './id-on-server.js';

/** The record of a team on its server. */
export const recordOnServer: SharedRecord = {
  listSessions: listTeamSessions,
  audit: auditTeam,
  statistics: teamStatistics,
  search: async (server, { words, limit, scope, filters }, onUnreadable) =>
    await withTeam(server, ({ team }) => team.record.search(words, limit, scope, filters, onUnreadable)),
  ask: async (server, question) => await withTeam(server, ({ team }) => team.record.ask(question)),
  load: async (server, sessionId) => await withTeam(server, ({ team }) => team.watch.load(sessionId)),
  remove: async (server, sessionId) => {
    await withTeam(server, ({ team }) => team.log.remove(sessionId));
  },
  find: sessionOnServer,
  writtenElsewhere,
};

/** The time between two questions where the server cannot notify of what is new. */
const betweenQuestionsMs = 2000;

async function sessionOnServer(
  server: Parameters<SharedRecord['find']>[0],
  name: string,
): Promise<(SharedSession & { readonly machine: string | null }) | null> {
  const { team } = await openTeam(server);
  const id = await idOnServer(team.log, name);
  const row = id === null ? null : await team.log.session(id);
  if (row === null) return null;
  const { watch } = team;
  const bell = { everyMs: betweenQuestionsMs, listen: async (ring: () => void) => await watch.listen(row.id, ring) };
  return { row, log: watch, bell, machine: row.machine };
}

/** Returns the session if another machine writes it. Null as well if the server cannot be asked about one of the user's
 * sessions. */
async function writtenElsewhere(
  ...[server, tables, id]: Parameters<SharedRecord['writtenElsewhere']>
): Promise<SharedSession | null> {
  const local = (await (await tables(syncTableSet))?.session(id)) ?? null;
  if (local === null || local === 'removed' || local.state === null) return null;
  if (local.state.owner !== null) return await sessionOnServer(server, id);
  // Events that the server lacks are written here.
  if (local.end.seq > local.state.pushed.seq) return null;
  const found = await sessionOnServer(server, id).catch(() => null);
  return found === null || found.machine === null || found.machine === hostname() ? null : found;
}

const shown = 50;

/** `agent sessions list --team`: those of everybody that this role may read. */
async function listTeamSessions(
  ...[{ out, withStore }, options]: Parameters<SharedRecord['listSessions']>
): Promise<number> {
  const local = options.all ? '--all' : '--page';
  if (options.all || options.page !== undefined)
    throw new CliError(exit.usage, `${local} does not work with --team`, 'Use --person, --here and --limit.');
  const limit = countOption(options.limit, '--limit', shown);
  return await withStore((opened) =>
    withTeam(opened.settings, async ({ team }) => {
      const found = await team.record.sessions(limit + 1, scopeOf(options, opened.settings));
      const rows = found.slice(0, limit);
      printListing(out, options.json, rows.map(sessionAsJson), () =>
        rows.length === 0 ? ['No sessions that you may read.'] : columns(rows.map(sessionCells)),
      );
      if (found.length > limit)
        out.error(`There are more than these ${limit}: --limit ${limit * 2} shows some of them.\n`);
      return exit.done;
    }),
  );
}

function sessionAsJson(row: TeamSummary): object {
  return {
    id: row.id,
    owner: row.owner,
    team: row.team,
    machine: row.machine,
    parent_id: row.parentId,
    cwd: row.cwd,
    title: row.title,
    provider: row.provider,
    model: row.model,
    created_at: row.createdAt,
    updated_at: row.updatedAt,
    prompt: row.prompt,
    events: row.events,
    cost_usd: row.costUsd,
  };
}

function sessionCells(row: TeamSummary): readonly string[] {
  return [
    row.id,
    row.owner,
    age(Date.now() - row.updatedAt),
    counted(row.events, 'event'),
    row.model ?? '?',
    row.costUsd === null ? '' : `$${row.costUsd.toFixed(4)}`,
    row.machine ?? '',
    row.cwd,
    oneLine(row.title ?? row.prompt ?? '', 60),
  ];
}

/** `agent audit --team`. */
async function auditTeam(...[{ out, withStore }, options]: Parameters<SharedRecord['audit']>): Promise<number> {
  const { session, tool, csv } = options;
  const limit = countOption(options.limit, '--limit', shown);
  const status = options.status ?? (options.errors ? 'failed' : undefined);
  return await withStore((opened) =>
    withTeam(opened.settings, async ({ team }) => {
      const sessionId = session === undefined ? undefined : await idOnServer(team.log, session);
      if (sessionId === null)
        throw new CliError(exit.session, `there is no session \`${session}\` on the server`, 'sessions list --team');
      const calls = await team.record.calls(limit, {
        ...scopeOf(options, opened.settings),
        ...(tool === undefined ? {} : { tool }),
        ...(status === undefined ? {} : { status }),
        ...(sessionId === undefined ? {} : { sessionId }),
      });
      const rows = calls.map(callAsJson);
      if (csv)
        for (const line of [callFields, ...rows.map((row) => callFields.map((field) => row[field]))])
          printCsv(out, line);
      else
        printListing(out, options.json, rows, () =>
          calls.length === 0
            ? ['No tool calls that you may read.']
            : columns([['time', 'person', 'session', 'seq', 'tool', 'ms', 'status', 'call'], ...calls.map(callCells)]),
        );
      return exit.done;
    }),
  );
}

const callFields = [
  'created_at',
  'owner',
  'session_id',
  'seq',
  'cwd',
  'tool',
  'duration_ms',
  'status',
  'summary',
] as const;

function callAsJson(call: TeamCall): Readonly<Record<(typeof callFields)[number], string | number | null>> {
  return {
    created_at: call.createdAt,
    owner: call.owner,
    session_id: call.sessionId,
    seq: call.seq,
    cwd: call.cwd,
    tool: call.tool,
    duration_ms: call.durationMs,
    status: call.status,
    summary: call.summary,
  };
}

function callCells(call: TeamCall): readonly string[] {
  return [
    localTime(call.createdAt),
    call.owner,
    call.sessionId,
    String(call.seq),
    oneLine(call.tool ?? '?', 30),
    String(call.durationMs ?? ''),
    call.status,
    oneLine(call.summary ?? '', 80),
  ];
}

/** `agent stats --team`: what requests cost, by person unless another listing
 * is asked for. */
async function teamStatistics(
  ...[{ out, withStore }, options]: Parameters<SharedRecord['statistics']>
): Promise<number> {
  const by = spentBy.find((name) => name === (options.by ?? 'person'));
  if (by === undefined)
    throw new CliError(exit.usage, `--by ${options.by ?? ''} is not a listing`, `Choose one of ${spentBy.join(', ')}.`);
  return await withStore((opened) =>
    withTeam(opened.settings, async ({ team }) => {
      const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
      const rows = await team.record.spent(by, zone, scopeOf(options, opened.settings));
      printListing(
        out,
        options.json,
        rows.map((row) => spendingAsJson(by, row)),
        () =>
          rows.length === 0
            ? ['No requests that you may read.']
            : columns([[by, 'requests', 'input', 'output', 'cost'], ...rows.map(spendingCells)]),
      );
      return exit.done;
    }),
  );
}

function spendingAsJson(by: SpentBy, row: TeamSpending): object {
  return {
    [by]: row.name,
    requests: row.requests,
    input_tokens: row.inputTokens,
    output_tokens: row.outputTokens,
    cost_usd: row.costUsd,
    unpriced: row.unpriced,
  };
}

function spendingCells({
  name,
  requests,
  inputTokens,
  outputTokens,
  costUsd,
  unpriced,
}: TeamSpending): readonly string[] {
  const cost = unpriced === requests ? 'unknown' : `$${costUsd.toFixed(4)}`;
  const more = unpriced > 0 && unpriced < requests ? ` (+${unpriced} unpriced)` : '';
  return [oneLine(name, 60), String(requests), String(inputTokens), String(outputTokens), `${cost}${more}`];
}
