import { type SpentBy, spentBy, type TeamCall, type TeamScope, type TeamSpending, type TeamSummary } from './team.js';
import { CliError, type CommandLine, exit, type CommandStore } from '../../kernel/console/command.js';
import {
  age,
  columns,
  countOption,
  localTime,
  oneLine,
  pointInTime,
  printCsv,
  printListing,
} from '../../kernel/console/line-output.js';
import { withTeam } from './open-team.js';
import { idOnServer } from './id-on-server.js';

/** The options of commands that read the record of the team. */
export interface TeamOptions {
  readonly team?: boolean;
  readonly person?: string;
  readonly since?: string;
  readonly here?: boolean;
  readonly limit?: string;
  readonly json?: boolean;
}

const shown = 50;

/** What `--person`, `--since` and `--here` leave of the record. */
export function scopeOf({ person, since, here }: TeamOptions, { settings }: Pick<CommandStore, 'settings'>): TeamScope {
  return {
    ...(person === undefined ? {} : { owner: person }),
    ...(here ? { cwd: settings.cwd } : {}),
    ...(since === undefined ? {} : { since: pointInTime(since, '--since', Date.now()) }),
  };
}

/** `agent sessions list --team`: those of everybody that this role may read. */
export async function listTeamSessions(
  { out, withStore }: CommandLine,
  options: TeamOptions & { readonly all?: boolean; readonly page?: string },
): Promise<number> {
  const local = options.all ? '--all' : '--page';
  if (options.all || options.page !== undefined)
    throw new CliError(exit.usage, `${local} is not for --team`, 'There are --person, --here and --limit.');
  const limit = countOption(options.limit, '--limit', shown);
  return await withStore((opened) =>
    withTeam(opened.settings, async ({ team }) => {
      const found = await team.record.sessions(limit + 1, scopeOf(options, opened));
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
    `${row.events} events`,
    row.model ?? '?',
    row.costUsd === null ? '' : `$${row.costUsd.toFixed(4)}`,
    row.machine ?? '',
    row.cwd,
    oneLine(row.title ?? row.prompt ?? '', 60),
  ];
}

/** `agent audit --team`. */
export async function auditTeam(
  { out, withStore }: CommandLine,
  options: TeamOptions & {
    readonly session?: string;
    readonly tool?: string;
    readonly status?: string;
    readonly errors?: boolean;
    readonly csv?: boolean;
  },
): Promise<number> {
  const { session, tool, csv } = options;
  const limit = countOption(options.limit, '--limit', shown);
  const status = options.status ?? (options.errors ? 'failed' : undefined);
  return await withStore((opened) =>
    withTeam(opened.settings, async ({ team }) => {
      const sessionId = session === undefined ? undefined : await idOnServer(team.log, session);
      if (sessionId === null)
        throw new CliError(exit.session, `there is no session \`${session}\` on the server`, 'sessions list --team');
      const calls = await team.record.calls(limit, {
        ...scopeOf(options, opened),
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
export async function teamStatistics(
  { out, withStore }: CommandLine,
  options: TeamOptions & { readonly by?: string },
): Promise<number> {
  const by = spentBy.find((name) => name === (options.by ?? 'person'));
  if (by === undefined)
    throw new CliError(exit.usage, `--by ${options.by ?? ''} is no listing`, `Choose one of ${spentBy.join(', ')}.`);
  return await withStore((opened) =>
    withTeam(opened.settings, async ({ team }) => {
      const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
      const rows = await team.record.spent(by, zone, scopeOf(options, opened));
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
