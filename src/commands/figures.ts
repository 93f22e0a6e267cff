import { provided } from '../app/features.js';
import { openSharedRecord } from '../kernel/console/shared-record-port.js';
import type {
  CallTotal,
  Records,
  RecordTotals,
  RequestTotal,
  Spent,
  SqlAnswer,
  TurnTotal,
} from '../kernel/core/store.js';
import { CliError, type CommandLine, exit, type Printer, type CommandHandler } from '../kernel/console/command.js';
import {
  asksTeam,
  columns,
  localDay,
  oneLine,
  pointInTime,
  printCsv,
  printJson,
  progressOn,
} from '../kernel/console/line-output.js';
import type { Settings } from '../kernel/console/run-settings.js';
import { whileAsking, whileReading } from '../kernel/console/waiting-line.js';

interface Options {
  readonly json?: boolean;
  readonly since?: string;
  readonly here?: boolean;
  readonly team?: boolean;
  readonly person?: string;
  readonly by?: string;
}

interface ToolStats {
  readonly tool: string;
  readonly calls: number;
  readonly ok: number;
  readonly failed: number;
  readonly denied: number;
  readonly open: number;
  /** The rate among calls that have ended; null where none has. */
  readonly success_rate: number | null;
  readonly p50_ms: number;
  readonly p95_ms: number;
}

/** Shows how often and how well tools ran, how deep turns went, and how much was spent on what. */
export const statistics: CommandHandler = {
  line: {
    example: 'agent stats --since 7d',
    options: (command) =>
      command
        .option('--since <time>', 'from then on: 2h, 3d, 2w or a date')
        .option('--here', 'of this directory only')
        .option('--team', 'what everybody spent whose sessions you may read, in the database of `store.url`')
        .option('--person <role>', 'the same, of this person')
        .option('--by <what>', 'the same by person (as it is), project, model or day; your own by role')
        .option('--json', 'one JSON array: a row each, with the name of its table'),
    run: async (line, _args, options: Options) =>
      asksTeam(options) && !asksRoles(options)
        ? await (await openSharedRecord(provided)).statistics(line, options)
        : await show(line, options),
  },
};

/** The database of a team has no roles, so that this is about the user's own sessions. */
function asksRoles({ by, team, person }: Options): boolean {
  if (by !== 'role') return false;
  if (team === true || person !== undefined)
    throw new CliError(exit.usage, '--by role does not work for a team', 'Leave out --team and --person.');
  return true;
}

async function show({ out, withStore }: CommandLine, options: Options): Promise<number> {
  const since = options.since === undefined ? 0 : pointInTime(options.since, '--since', Date.now());
  return await withStore(async ({ records, settings }) => {
    const scope = { since, ...(options.here ? { cwd: settings.cwd } : {}) };
    const totals = await records.totals(scope, progressOn(out, 'Adding up the record'));
    const tools = toolStats(totals.calls);
    const turns = turnStats(totals, localDay);
    if (options.json)
      printJson(
        out,
        tableRows(tools, turns).filter(({ table }) => options.by === undefined || table === options.by),
        2,
      );
    else if (options.by !== undefined) out.print(`${roleTable(turns).join('\n')}\n`);
    else out.print(text(tools, turns));
    return exit.done;
  });
}

/** Returns the rows of all tables in one array, each with the name of its table. */
function tableRows(
  tools: readonly ToolStats[],
  { with_tools, without_tools, depth, per_day, per_model, per_role, per_project }: TurnStats,
): readonly { readonly table: string }[] {
  const tables = {
    tool: tools,
    with_tools: [with_tools],
    without_tools: [without_tools],
    depth: [depth],
    day: per_day,
    model: per_model,
    role: per_role,
    project: per_project,
  };
  return Object.entries(tables).flatMap(([table, rows]) => rows.map((row) => ({ table, ...row })));
}

function toolStats(totals: readonly CallTotal[]): readonly ToolStats[] {
  const byTool = new Map<string, CallTotal[]>();
  for (const total of totals) {
    const others = byTool.get(total.tool ?? '?');
    if (others) others.push(total);
    else byTool.set(total.tool ?? '?', [total]);
  }
  return [...byTool]
    .map(([tool, found]): ToolStats => {
      const count = (isCounted: (status: string) => boolean): number =>
        found.reduce((sum, { status, calls }) => sum + (isCounted(status) ? calls : 0), 0);
      const [calls, ok, open] = [
        count(() => true),
        count((status) => status === 'ok'),
        count((status) => status === 'open'),
      ];
      const times = Float64Array.from(found.flatMap(({ durations }) => durations)).sort();
      return {
        tool,
        calls,
        ok,
        open,
        failed: calls - ok - open,
        denied: count((status) => status === 'permission_denied' || status === 'denied_by_user'),
        success_rate: calls === open ? null : ok / (calls - open),
        p50_ms: percentile(times, 0.5),
        p95_ms: percentile(times, 0.95),
      };
    })
    .sort((one, other) => other.calls - one.calls);
}

function text(tools: readonly ToolStats[], turns: TurnStats): string {
  if (turns.with_tools.turns + turns.without_tools.turns === 0 && tools.length === 0)
    return 'There are no sessions yet.\n';
  const blocks = [
    columns([
      ['tool', 'calls', 'ok', 'failed', 'denied', 'success', 'p50 ms', 'p95 ms'],
      ...tools.map((row) => [
        oneLine(row.tool, 30),
        String(row.calls),
        String(row.ok),
        String(row.failed),
        String(row.denied),
        row.success_rate === null ? '-' : `${(row.success_rate * 100).toFixed(1)} %`,
        String(row.p50_ms),
        String(row.p95_ms),
      ]),
    ]),
    [
      `Turns with tools: ${turns.with_tools.turns}, responses that asked for tools in one: ` +
        `p50 ${turns.depth.p50}, p95 ${turns.depth.p95}, most ${turns.depth.most}.`,
    ],
    columns([
      ['turns', 'turns', ...spendingHead],
      ['with tools', String(turns.with_tools.turns), ...spendingCells(turns.with_tools)],
      ['without', String(turns.without_tools.turns), ...spendingCells(turns.without_tools)],
    ]),
    columns([['day', ...spendingHead], ...turns.per_day.map((row) => [row.day, ...spendingCells(row)])]),
    columns([
      ['model', ...spendingHead],
      ...turns.per_model.map((row) => [oneLine(row.model, 60), ...spendingCells(row)]),
    ]),
    roleTable(turns),
    columns([
      ['project', ...spendingHead],
      ...turns.per_project.map((row) => [oneLine(row.cwd, 80), ...spendingCells(row)]),
    ]),
  ];
  return `${blocks.map((lines) => lines.join('\n')).join('\n\n')}\n`;
}

function roleTable({ per_role }: TurnStats): readonly string[] {
  return columns([['role', ...spendingHead], ...per_role.map((row) => [row.role, ...spendingCells(row)])]);
}

const spendingHead = ['requests', 'input', 'output', 'cost'] as const;

function spendingCells(row: SpendingFigures): readonly string[] {
  const cost =
    row.unpriced === row.requests
      ? 'unknown'
      : `$${row.cost_usd.toFixed(4)}${row.unpriced > 0 ? ` (+${row.unpriced} unpriced)` : ''}`;
  return [String(row.requests), String(row.input_tokens), String(row.output_tokens), row.requests === 0 ? '-' : cost];
}

/** Tokens and cost of some requests; `cost_usd` counts what is known, `unpriced` how many requests have no known
 * price. */
export interface SpendingFigures {
  readonly requests: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cost_usd: number;
  readonly unpriced: number;
}

export interface TurnStats {
  /** User turns, and those with at least one response that asked for tools. */
  readonly with_tools: SpendingFigures & { readonly turns: number };
  readonly without_tools: SpendingFigures & { readonly turns: number };
  /** Responses that asked for tools, in a user turn that had any. */
  readonly depth: { readonly p50: number; readonly p95: number; readonly most: number };
  readonly per_day: readonly (SpendingFigures & { readonly day: string })[];
  readonly per_model: readonly (SpendingFigures & { readonly model: string })[];
  /** By the kind of work: turns of sessions (`main`), in plan mode, of sub-agents, summaries, titles, … */
  readonly per_role: readonly (SpendingFigures & { readonly role: string })[];
  readonly per_project: readonly (SpendingFigures & { readonly cwd: string })[];
}

const nothing: SpendingFigures = { requests: 0, input_tokens: 0, output_tokens: 0, cost_usd: 0, unpriced: 0 };

/** Folds totals. A user turn is a user event and everything up to the next one. */
export function turnStats(
  { requests, turns }: Omit<RecordTotals, 'calls'>,
  dayOf: (unixMs: number) => string,
): TurnStats {
  const withTools = turns.filter(({ responses }) => responses > 0);
  const days = new Map<number, string>();
  const day = (unixMs: number): string => {
    const known = days.get(unixMs) ?? dayOf(unixMs);
    days.set(unixMs, known);
    return known;
  };
  return {
    with_tools: sum(withTools),
    without_tools: sum(turns.filter(({ responses }) => responses === 0)),
    depth: depthOf(withTools),
    per_day: grouped(requests, (row) => day(row.at))
      .map(([name, spent]) => ({ day: name, ...spent }))
      .sort((one, other) => one.day.localeCompare(other.day)),
    per_model: byRequests(
      grouped(requests, (row) => `${row.provider ?? '?'}/${row.model ?? '?'}`).map(([model, spent]) => ({
        model,
        ...spent,
      })),
    ),
    per_role: byRequests(grouped(requests, (row) => row.role ?? '?').map(([role, spent]) => ({ role, ...spent }))),
    per_project: byRequests(grouped(requests, (row) => row.cwd).map(([cwd, spent]) => ({ cwd, ...spent }))),
  };
}

/** The number of responses that asked for tools in a turn, by nearest rank. */
function depthOf(turns: readonly TurnTotal[]): TurnStats['depth'] {
  const sorted = [...turns].sort((one, other) => one.responses - other.responses);
  const all = sorted.reduce((count, total) => count + total.turns, 0);
  const at = (share: number): number => {
    let left = Math.max(1, Math.ceil(share * all));
    return sorted.find((total) => (left -= total.turns) <= 0)?.responses ?? 0;
  };
  return { p50: at(0.5), p95: at(0.95), most: sorted.at(-1)?.responses ?? 0 };
}

function grouped(
  requests: readonly RequestTotal[],
  keyOf: (row: RequestTotal) => string,
): readonly (readonly [string, SpendingFigures])[] {
  const groups = new Map<string, Changing<SpendingFigures>>();
  for (const row of requests) {
    const key = keyOf(row);
    const group = groups.get(key) ?? { ...nothing };
    if (group.requests === 0) groups.set(key, group);
    group.requests += row.requests;
    group.input_tokens += row.inputTokens;
    group.output_tokens += row.outputTokens;
    group.cost_usd += row.costUsd;
    group.unpriced += row.unpriced;
  }
  return [...groups];
}

type Changing<T> = { -readonly [Name in keyof T]: T[Name] };

function byRequests<T extends SpendingFigures>(groups: readonly T[]): readonly T[] {
  return [...groups].sort((one, other) => other.requests - one.requests);
}

/** The value below which `share` of the sorted values lie (nearest rank); 0 where there are none. */
export function percentile(sorted: ArrayLike<number>, share: number): number {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
}

function plus(spent: SpendingFigures, row: Spent): SpendingFigures {
  return {
    requests: spent.requests + row.requests,
    input_tokens: spent.input_tokens + row.inputTokens,
    output_tokens: spent.output_tokens + row.outputTokens,
    cost_usd: spent.cost_usd + row.costUsd,
    unpriced: spent.unpriced + row.unpriced,
  };
}

function sum(totals: readonly TurnTotal[]): SpendingFigures & { readonly turns: number } {
  const turns = totals.reduce((count, total) => count + total.turns, 0);
  return { turns, ...totals.reduce((spent, total) => plus(spent, total), nothing) };
}

interface SqlOptions {
  readonly team?: boolean;
  readonly json?: boolean;
  readonly csv?: boolean;
}

/** Asks the record in SQL; nothing can be changed by it. */
export const askSql: CommandHandler = {
  line: {
    example: 'agent sql "SELECT tool, count(*) FROM v_tool_calls GROUP BY tool"',
    options: (command) =>
      command
        .option('--team', 'to the database of `store.url`, as far as you may read it')
        .option('--json', 'one JSON array')
        .option('--csv', 'comma-separated values'),
    run: async ({ out, withStore }, [question = ''], options: SqlOptions) =>
      await withStore(async ({ records, settings }) => {
        const ask = options.team ? teamAsk(settings) : records.ask;
        if (!ask)
          throw new CliError(exit.failed, 'this store does not speak SQL', 'agent audit, stats and search read it.');
        try {
          await printAnswer(out, await ask(question), options);
          return exit.done;
        } catch (error) {
          if (error instanceof CliError) throw error;
          throw new CliError(
            exit.usage,
            `SQL: ${error instanceof Error ? error.message : String(error)}`,
            'One SELECT, over v_tool_calls, v_requests, v_sessions, v_files, sessions and events; ' +
              'docs/record.md describes them.',
          );
        }
      }),
  },
};

function teamAsk(settings: Settings): NonNullable<Records['ask']> {
  return async (question) => await (await openSharedRecord(provided)).ask(settings, question);
}

/** Rows of CSV are printed as they come; a table and JSON need all of them. */
async function printAnswer(out: Printer, { columns: names, rows }: SqlAnswer, options: SqlOptions): Promise<void> {
  if (options.csv) {
    printCsv(out, names);
    for await (const row of whileReading(rows)) printCsv(out, row.map(shownValue));
    return;
  }
  const all: (readonly (string | number | null)[])[] = [];
  await whileAsking(async () => {
    for await (const row of rows) all.push(row.map(shownValue));
  });
  if (options.json)
    printJson(
      out,
      all.map((row) => Object.fromEntries(names.map((name, index) => [name, row[index]]))),
      2,
    );
  else {
    const lines = columns([names, ...all.map((row) => row.map((value) => oneLine(String(value ?? 'NULL'))))]);
    out.print(lines.map((line) => `${line}\n`).join(''));
  }
}

/** Turns bytes into hexadecimal text and leaves the rest as it is. */
function shownValue(value: unknown): string | number | null {
  if (Buffer.isBuffer(value)) return value.toString('hex');
  return typeof value === 'string' || typeof value === 'number' ? value : null;
}
