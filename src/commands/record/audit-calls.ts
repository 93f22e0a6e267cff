import { hash } from 'node:crypto';
import type { CallFilter, RecordedCall, Store } from '../../core/store.js';
import { CliError, type CommandLine, exit, type Verb } from '../command.js';
import { columns, countOption, localTime, oneLine, pointInTime, printCsv, printListing } from '../line-output.js';
import { findSession } from '../sessions/stored-session.js';

interface Options {
  readonly session?: string;
  readonly tool?: string;
  readonly since?: string;
  readonly status?: string;
  readonly errors?: boolean;
  readonly limit?: string;
  readonly json?: boolean;
  readonly csv?: boolean;
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

export const auditCalls: Verb = {
  line: {
    example: 'agent audit --since 2h --errors',
    options: (command) =>
      command
        .option('--session <session>', 'of this session')
        .option('--tool <name>', 'of this tool')
        .option('--since <time>', 'from then on: 2h, 3d, 2w or a date')
        .option('--status <status>', 'ok, failed, open or an error code')
        .option('--errors', 'only what did not end well')
        .option('--limit <n>', 'the newest so many')
        .option('--json', 'one JSON array')
        .option('--csv', 'comma-separated values'),
    run: (line, _args, options: Options) => audit(line, options),
  },
};

/** One line per tool call, oldest first. */
async function audit({ out, withStore }: CommandLine, options: Options): Promise<number> {
  if (options.json && options.csv) throw new CliError(exit.usage, '--json and --csv cannot both be', 'Choose one.');
  return await withStore(async ({ records, store }) => {
    const rows = (await records.calls(await filterOf(options, store))).map(rowOf);
    if (options.csv)
      for (const line of [fields, ...rows.map((row) => fields.map((field) => row[field]))]) printCsv(out, line);
    else printListing(out, options.json, rows, () => (rows.length === 0 ? ['No tool calls.'] : lines(rows)));
    return exit.done;
  });
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

function lines(rows: readonly Row[]): readonly string[] {
  return columns([
    ['time', 'session', 'seq', 'tool', 'args sha256', 'ms', 'status', 'decision', 'call'],
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
  ]);
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
