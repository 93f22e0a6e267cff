import { provided } from '../app/features.js';
import { openSharedRecord } from '../kernel/console/shared-record-port.js';
import type { Command } from 'commander';
import { parseJson } from '../kernel/core/json.js';
import { largestOf, smallestOf } from '../kernel/core/lists.js';
import { hash } from 'node:crypto';
import { dirname } from 'node:path';
import { isRecord } from '../kernel/core/json.js';
import type { Rule } from '../kernel/core/policy.js';
import type { CallFilter, ChainBreak, ChainReport, RecordedCall, Records, Store } from '../kernel/core/store.js';
import { createProtectedPaths, createSecretPaths } from '../kernel/permissions/guarded-paths.js';
import { actsOnAnything } from '../kernel/permissions/suggested-rules.js';
import { compileRules, refusedAllow } from '../kernel/permissions/rules.js';
import { needsRule } from '../kernel/permissions/shell/invocation.js';
import type { ShellAnalysis } from '../kernel/permissions/shell/verdict.js';
import { counted } from '../kernel/tools/define-tool.js';
import { CliError, type CommandLine, exit, type CommandHandler, type Printer } from '../kernel/console/command.js';
import type { Settings } from '../kernel/console/run-settings.js';
import {
  asksTeam,
  columns,
  countOption,
  localTime,
  oneLine,
  pointInTime,
  printCsv,
  printJson,
  printJsonArray,
  printListing,
  progressOn,
} from '../kernel/console/line-output.js';
import { findSession } from '../kernel/console/stored-session.js';
import { whileAsking, whileReading } from '../kernel/console/waiting-line.js';
import { loadVerdict } from '../kernel/permissions/shell/load-verdict.js';

interface Options {
  readonly session?: string;
  readonly tool?: string;
  readonly since?: string;
  readonly status?: string;
  readonly errors?: boolean;
  readonly limit?: string;
  readonly page?: string;
  readonly all?: boolean;
  readonly json?: boolean;
  readonly csv?: boolean;
  readonly team?: boolean;
  readonly person?: string;
  readonly hashArgs?: boolean;
}

const fields = [
  'created_at',
  'session_id',
  'seq',
  'tool',
  'args_sha256',
  'duration_ms',
  'status',
  'decision',
  'decided_by',
  'risk',
  'summary',
  'error',
] as const;

export const auditCalls: CommandHandler = {
  line: {
    example: 'agent audit --since 2h --errors',
    options: (command) =>
      withFilters(command)
        .option('--page <n>', 'the second, third, … so many, going back in time')
        .option('--all', 'all of them, oldest first')
        .option('--team', 'of everybody that you may read, in the database of `store.url`')
        .option('--person <role>', 'the same, of this person')
        .option('--json', 'one JSON array')
        .option('--csv', 'comma-separated values'),
    run: async (line, _args, options: Options) => {
      if (options.json && options.csv) throw new CliError(exit.usage, '--json and --csv cannot both be', 'Choose one.');
      return asksTeam(options)
        ? await (await openSharedRecord(provided)).audit(line, options)
        : await audit(line, options);
    },
  },
};

function withFilters(command: Command): Command {
  return command
    .option('--session <session>', 'of this session')
    .option('--tool <name>', 'of this tool')
    .option('--since <time>', 'from then on: 2h, 3d, 2w or a date')
    .option('--status <status>', 'ok, failed, open or an error code')
    .option('--errors', 'only what did not end well')
    .option('--limit <n>', 'the newest so many (a listing: 50; JSON, CSV and an export: all)');
}

/** The fields in words of a call and its result. They may contain content of the user's files. */
const wordy: readonly string[] = ['arguments', 'summary', 'error'];

/** `agent audit export`: every tool call as a line of JSON, oldest first, for another program. */
export const exportCalls: CommandHandler = {
  line: {
    example: 'agent audit export --hash-args --since 2w > calls.jsonl',
    options: (command) =>
      withFilters(command)
        .option('--hash-args', 'leave out arguments, summaries and errors; the SHA-256 of the arguments stays')
        .option('--csv', 'comma-separated values'),
    run: async ({ out, withStore }, _args, options: Options) =>
      await withStore(async ({ records, store }) => {
        const kept = [...fields, 'arguments' as const].filter((name) => !options.hashArgs || !wordy.includes(name));
        if (options.csv) printCsv(out, kept);
        const filter = await filterOf(options, store);
        const batches =
          filter.limit === undefined
            ? whileReading(records.eachCall(filter))
            : [await whileAsking(() => records.calls(filter))];
        for await (const calls of batches)
          for (const call of calls) {
            const row = { ...rowOf(call), arguments: call.arguments };
            if (options.csv)
              printCsv(
                out,
                kept.map((name) => row[name]),
              );
            else printJson(out, Object.fromEntries(kept.map((name) => [name, row[name]])));
          }
        return exit.done;
      }),
  },
};

const callsOnPage = 50;

/** One line per tool call, oldest first: the newest page unless all are asked for. */
async function audit({ out, withStore }: CommandLine, options: Options): Promise<number> {
  return await withStore(async ({ records, store }) => {
    const filter = await filterOf(options, store);
    const isForPrograms = options.json === true || options.csv === true;
    if (options.page === undefined && (options.all || (isForPrograms && options.limit === undefined)))
      await printCalls(out, options, rowBatches(whileReading(records.eachCall(filter))));
    else await printCallPage(out, options, { records, filter });
    return exit.done;
  });
}

async function* rowBatches(batches: AsyncIterable<readonly RecordedCall[]>): AsyncGenerator<readonly Row[]> {
  for await (const calls of batches) yield calls.map(rowOf);
}

async function printCallPage(
  out: Printer,
  options: Options,
  { records, filter }: { readonly records: Records; readonly filter: CallFilter },
): Promise<void> {
  const [size, page] = [filter.limit ?? callsOnPage, countOption(options.page, '--page', 1)];
  const newest = await whileAsking(() => records.calls({ ...filter, limit: size * page + 1 }));
  const isMore = newest.length > size * page;
  const end = newest.length - size * (page - 1);
  const rows = newest.slice(isMore ? 1 : 0, Math.max(0, end)).map(rowOf);
  await printCalls(
    out,
    options,
    (async function* () {
      yield rows;
    })(),
  );
  if (isMore && filter.limit === undefined)
    out.error(`There are older calls: --page ${page + 1} shows more, --all all.\n`);
}

/** Prints rows while they are read. */
async function printCalls(out: Printer, options: Options, batches: AsyncIterable<readonly Row[]>): Promise<void> {
  if (options.json) {
    await printJsonArray(out, batches);
    return;
  }
  if (options.csv) printCsv(out, fields);
  const widths: number[] = [];
  let count = 0;
  for await (const rows of batches) {
    if (options.csv)
      for (const row of rows)
        printCsv(
          out,
          fields.map((field) => row[field]),
        );
    else if (rows.length > 0) out.print(`${lines(rows, widths, count === 0).join('\n')}\n`);
    count += rows.length;
  }
  if (count === 0 && !options.csv) out.print('No tool calls.\n');
}

type Row = Readonly<Record<'created_at' | 'seq', number>> &
  Readonly<Record<'session_id' | 'args_sha256' | 'status', string>> &
  Readonly<Record<'tool' | 'decision' | 'decided_by' | 'risk' | 'summary' | 'error', string | null>> & {
    readonly duration_ms: number | null;
  };

function rowOf(call: RecordedCall): Row {
  return {
    created_at: call.createdAt,
    session_id: call.sessionId,
    seq: call.seq,
    tool: call.tool,
    args_sha256: hash('sha256', call.arguments ?? '', 'hex'),
    duration_ms: call.durationMs,
    status: call.status,
    decision: call.decision,
    decided_by: call.decidedBy,
    risk: call.risk,
    summary: call.summary,
    error: call.error,
  };
}

const heads = ['time', 'session', 'seq', 'tool', 'args sha256', 'ms', 'status', 'decision', 'call'];

function lines(rows: readonly Row[], widths: number[], isFirst: boolean): readonly string[] {
  const cells = [
    ...(isFirst ? [heads] : []),
    ...rows.map((row) => [
      localTime(row.created_at),
      row.session_id.slice(0, 13),
      String(row.seq),
      oneLine(row.tool ?? '?', 30),
      row.args_sha256.slice(0, 12),
      String(row.duration_ms ?? ''),
      row.status,
      row.decision === null ? '-' : `${row.decision} (${row.decided_by ?? '?'})`,
      oneLine(row.summary ?? '', 80),
    ]),
  ];
  return columns(cells, widths);
}

async function filterOf(options: Options, store: Store): Promise<CallFilter> {
  const { session, tool, since, status, limit } = options;
  return {
    ...(session === undefined ? {} : { sessionId: (await findSession(store, session)).id }),
    ...(tool === undefined ? {} : { tool }),
    ...(since === undefined ? {} : { since: pointInTime(since, '--since', Date.now()) }),
    ...(status === undefined ? {} : { status }),
    ...(options.errors ? { exceptOk: true } : {}),
    ...(limit === undefined ? {} : { limit: countOption(limit, '--limit', 1) }),
  };
}

const meanings: Readonly<Record<ChainBreak['kind'], string>> = {
  content: 'was changed after it was written',
  chain: 'is not what followed the event before it: an event was put in, taken out or written anew',
  missing: 'does not follow the event before it: events between them are gone',
  unhashed: 'has no hash: it was not written by this program',
};

const limits =
  'This shows damage and tampering, it does not prevent them: one who can write the database can write all of it ' +
  'anew, or take events away at the end of a session. Keep the heads (--json) elsewhere to notice that too.';

/** Names the first break of each session. Exit 0 where every chain is whole, else 1. */
export const verifyRecord: CommandHandler = {
  line: {
    example: 'agent audit verify',
    options: (command) => command.option('--json', 'one JSON object'),
    run: async ({ out, withStore }, [session], options: { readonly json?: boolean }) =>
      await withStore(async ({ records, store }) => {
        const id = session === undefined ? null : (await findSession(store, session)).id;
        const report = await records.verify(id, progressOn(out, 'Following the chains'));
        const isWhole = id === null && report.breaks.length === 0;
        const corrected = isWhole ? await records.checkTotals?.(progressOn(out, 'Comparing the totals')) : [];
        const totals = corrected ?? [];
        if (options.json) printJson(out, { ...json(report), totals_corrected: totals }, 2);
        else out.print(text(report));
        if (totals.length > 0 && !options.json) out.print(`${correctedTotals(totals)}\n`);
        return report.breaks.length === 0 ? exit.done : exit.failed;
      }),
  },
};

function correctedTotals(ids: readonly string[]): string {
  const [some, more] = [ids.slice(0, 5).join(', '), ids.length > 5 ? ', …' : ''];
  return `The totals of ${counted(ids.length, 'session')} did not match the events and were added up again: ${some}${more}.`;
}

function json({ sessions, events, redacted, breaks, heads }: ChainReport): object {
  return {
    ok: breaks.length === 0,
    sessions,
    events,
    redacted,
    breaks: breaks.map(({ sessionId, seq, kind, createdAt }) => ({
      session_id: sessionId,
      seq,
      kind,
      created_at: createdAt,
      message: `event ${seq} ${meanings[kind]}`,
    })),
    heads: heads.map(({ sessionId, seq, hash }) => ({ session_id: sessionId, seq, hash })),
  };
}

function text({ sessions, events, redacted, breaks, heads }: ChainReport): string {
  const [only] = heads;
  const lines = breaks.map(
    (found) =>
      `Session ${found.sessionId}: event ${found.seq} (${localTime(found.createdAt)}) ${meanings[found.kind]}.`,
  );
  if (sessions === 1 && only) lines.push(`Head: event ${only.seq}, ${only.hash}`);
  const broken = `${counted(breaks.length, 'session')} ${breaks.length === 1 ? 'is' : 'are'} broken`;
  const left = redacted > 0 ? `, ${redacted} of them redacted` : '';
  const looked = `${events} events of ${counted(sessions, 'session')} looked at${left}`;
  lines.push(`${looked}: ${breaks.length === 0 ? 'every chain is whole' : broken}.`, limits);
  return lines.map((line) => `${line}\n`).join('');
}

const minimum = 3;

/** Proposes allow rules for commands that the user allowed again and again. Changes nothing. */
export const suggestAllowRules: CommandHandler = {
  line: {
    example: 'agent audit suggest-rules',
    options: (command) => command.option('--json', 'one JSON array'),
    run: (line, _args, { json }: { readonly json?: boolean }) => suggest(line, json === true),
  },
};

async function suggest({ out, withStore }: CommandLine, json: boolean): Promise<number> {
  return await withStore(async ({ records, settings }) => {
    const asked = await whileAsking(() => records.calls({ decidedBy: 'user' }));
    const { proposed, left } = suggestRules(asked.flatMap(askedCall), await createAnalysis(settings), minimum);
    const isRuled = compileRules(settings.config.policy.rules.allow, settings.home, 'allow');
    const fresh = proposed.filter(
      ({ rule }) => isRuled({ tool: rule.tool ?? '', argv: rule.argv ?? [], paths: [] }) === null,
    );
    printListing(
      out,
      json,
      fresh.map(({ rule, allowed, sessions, firstAt, lastAt, example }) => ({
        rule,
        allowed,
        sessions,
        first_at: firstAt,
        last_at: lastAt,
        example,
      })),
      () => report({ proposed: fresh, left }, settings.config.files.config),
    );
    return exit.done;
  });
}

function report({ proposed, left }: Suggestions, configFile: string): readonly string[] {
  const leftOut = left.map(
    ({ reason, allowed }) => `Not proposed, though allowed ${allowed} times: ${oneLine(reason)}.`,
  );
  if (proposed.length === 0)
    return [`No command was allowed ${minimum} times by you, and never denied, that a rule could cover.`, ...leftOut];
  return [
    `Commands you allowed at least ${minimum} times and never denied. Nothing was changed; ` +
      `to be asked no more, put those you want into rules.allow of ${configFile}:`,
    ...proposed.flatMap(({ rule, allowed, sessions, lastAt, example }) => [
      '',
      `  ${JSON.stringify(rule)}`,
      `    allowed ${allowed} times in ${counted(sessions, 'session')}, last ${localTime(lastAt)}: ${oneLine(example)}`,
    ]),
    ...(leftOut.length > 0 ? ['', ...leftOut] : []),
  ];
}

function askedCall(row: RecordedCall): readonly AskedCall[] {
  const command = commandOf(row.arguments);
  return row.tool === null || command === null
    ? []
    : [
        {
          tool: row.tool,
          command,
          cwd: row.cwd,
          sessionId: row.sessionId,
          createdAt: row.createdAt,
          allowed: row.decision === 'allow',
        },
      ];
}

function commandOf(text: string | null): string | null {
  try {
    const args: unknown = parseJson(text ?? '');
    return isRecord(args) && typeof args['command'] === 'string' ? args['command'] : null;
  } catch {
    return null;
  }
}

async function createAnalysis({ config, home }: Settings): Promise<Analyse> {
  const { classifyShell } = await loadVerdict();
  const { files } = config;
  const secrets = createSecretPaths(config.fs.deny, home);
  const ownPaths = [...new Set([dirname(files.config), files.data, dirname(files.log)])];
  return (command, cwd) =>
    classifyShell(command, {
      home,
      cwd,
      workspace: cwd,
      secrets,
      isProtected: createProtectedPaths({ home, workspace: cwd, ownPaths }),
    });
}

/** A command line that the user was asked about. */
export interface AskedCall {
  readonly tool: string;
  readonly command: string;
  readonly cwd: string;
  readonly sessionId: string;
  readonly createdAt: number;
  readonly allowed: boolean;
}

/** An allow rule and the calls that it is based on. Times are unix ms. */
export interface Suggestion {
  readonly rule: Rule;
  readonly allowed: number;
  readonly sessions: number;
  readonly firstAt: number;
  readonly lastAt: number;
  readonly example: string;
}

export interface Suggestions {
  readonly proposed: readonly Suggestion[];
  /** Commands that were allowed often enough and are not proposed: the reason, and how often they were allowed. */
  readonly left: readonly { readonly reason: string; readonly allowed: number }[];
}

/** Judges a command in the directory where it was asked for. */
export type Analyse = (command: string, cwd: string) => ShellAnalysis;

interface Use {
  readonly call: AskedCall;
  readonly argv: readonly string[];
}

/** Proposes rules for commands that were allowed at least `minimum` times and never denied, with as many leading words
 * as possible. Leaves out programs that run what follows them, and those that would destroy or disclose any file named
 * after the words of the rule. */
export function suggestRules(calls: readonly AskedCall[], analyse: Analyse, minimum: number): Suggestions {
  const uses = calls.flatMap((call) => usesOf(call, analyse));
  const denied = uses.filter(({ call }) => !call.allowed);
  const groups = new Map<string, Use[]>();
  for (const use of uses.filter(({ call }) => call.allowed))
    for (const key of leadingWords(use)) groups.set(key, [...(groups.get(key) ?? []), use]);
  const longestFirst = [...groups]
    .map(([key, found]) => ({ rule: ruleOf(key), found }))
    .toSorted((a, b) => words(b.rule) - words(a.rule) || b.found.length - a.found.length);
  const covered = new Set<Use>();
  const proposed: Suggestion[] = [];
  const left = new Map<string, number>();
  for (const { rule, found } of longestFirst) {
    const uncovered = found.filter((use) => !covered.has(use));
    if (distinctCalls(uncovered) < minimum || denied.some((use) => startsWith(use, rule))) continue;
    const reason = whyNot(rule, found, analyse);
    if (reason === null) proposed.push(suggestion(rule, found));
    else left.set(reason, (left.get(reason) ?? 0) + distinctCalls(uncovered));
    for (const use of uncovered) covered.add(use);
  }
  return {
    proposed: proposed.toSorted((a, b) => b.allowed - a.allowed),
    left: [...left].map(([reason, allowed]) => ({ reason, allowed })),
  };
}

/** Returns the commands of a line that the user was asked about. Those of an allowed line count only where rules for
 * all of them would have allowed it. */
function usesOf(call: AskedCall, analyse: Analyse): readonly Use[] {
  const analysis = analyse(call.command, call.cwd);
  const active = call.allowed ? analysis.commands.filter(needsRule) : analysis.commands;
  const beyondRules =
    analysis.loose.length > 0 ||
    analysis.redirects ||
    analysis.findings.some((finding) => finding.fixed === true) ||
    active.some((command) => !command.exact);
  if (call.allowed && beyondRules) return [];
  const refused = call.allowed ? active.filter(({ argv }) => refusedAllow({ tool: call.tool, argv }) !== null) : [];
  return (refused.length > 0 ? refused : active).map(({ argv }) => ({ call, argv }));
}

function leadingWords({ call, argv }: Use): readonly string[] {
  return argv.map((_word, index) => JSON.stringify([call.tool, ...argv.slice(0, index + 1)]));
}

function ruleOf(key: string): Rule {
  const [tool = '', ...argv] = parseJson(key) as readonly string[];
  return { tool, argv };
}

function words(rule: Rule): number {
  return rule.argv?.length ?? 0;
}

function startsWith({ call, argv }: Use, rule: Rule): boolean {
  return call.tool === rule.tool && (rule.argv ?? []).every((word, index) => argv[index] === word);
}

function distinctCalls(uses: readonly Use[]): number {
  return new Set(uses.map(({ call }) => call)).size;
}

function whyNot(rule: Rule, [use]: readonly Use[], analyse: Analyse): string | null {
  const refused = refusedAllow(rule);
  if (refused !== null || !use || !rule.argv) return refused;
  const reaches = actsOnAnything(rule.argv, (line) => analyse(line, use.call.cwd));
  return reaches ? `${rule.argv[0] ?? ''} acts on whatever file is named after these words` : null;
}

function suggestion(rule: Rule, found: readonly Use[]): Suggestion {
  const times = found.map(({ call }) => call.createdAt);
  return {
    rule,
    allowed: distinctCalls(found),
    sessions: new Set(found.map(({ call }) => call.sessionId)).size,
    firstAt: smallestOf(times),
    lastAt: largestOf(times),
    example: found.at(-1)?.call.command ?? '',
  };
}
