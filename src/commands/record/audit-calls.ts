import { hash } from 'node:crypto';
import { findSession } from '../../cli/session/find-session.js';
import type { RootOptions } from '../../cli/options.js';
import { columns, printListing } from '../../cli/print.js';
import { CliError, exit } from '../cli-error.js';
import { printCsv } from './csv.js';
import { countOption, localTime, oneLine, pointInTime, withRecords } from './record-opening.js';

type Options = RootOptions & {
  readonly session?: string;
  readonly tool?: string;
  readonly since?: string;
  readonly status?: string;
  readonly errors?: boolean;
  readonly limit?: string;
  readonly json?: boolean;
  readonly csv?: boolean;
};

interface CallRow {
  readonly session_id: string;
  readonly seq: number;
  readonly created_at: number;
  readonly tool: string | null;
  readonly arguments: string | null;
  readonly summary: string | null;
  readonly duration_ms: number | null;
  readonly status: string;
  readonly decision: string | null;
  readonly decided_by: string | null;
  readonly risk: string | null;
  readonly error: string | null;
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

/** `agent audit`: one line per tool call, oldest first. */
export async function auditCalls(options: Options): Promise<number> {
  if (options.json && options.csv) throw new CliError(exit.usage, '--json and --csv cannot both be', 'Choose one.');
  return await withRecords(options, async (records, store) => {
    const session = options.session === undefined ? null : (await findSession(store, options.session)).id;
    const conditions: readonly (readonly [string, unknown] | null)[] = [
      session === null ? null : ['session_id = ?', session],
      options.tool === undefined ? null : ['tool = ?', options.tool],
      options.since === undefined ? null : ['created_at >= ?', pointInTime(options.since, '--since', Date.now())],
      options.status === undefined
        ? null
        : options.status === 'failed'
          ? ["(status NOT IN ('ok', 'open') OR status = ?)", 'failed']
          : ['status = ?', options.status],
      options.errors ? ['status <> ?', 'ok'] : null,
    ];
    const chosen = conditions.filter((condition) => condition !== null);
    const where = chosen.length === 0 ? '' : `WHERE ${chosen.map(([sql]) => sql).join(' AND ')}`;
    const limit = options.limit === undefined ? -1 : countOption(options.limit, '--limit', 1);
    const found = records.rows(
      `SELECT * FROM (SELECT * FROM v_tool_calls ${where} ORDER BY created_at DESC, session_id DESC, seq DESC LIMIT ?) ORDER BY created_at, session_id, seq`,
      [...chosen.map(([, value]) => value), limit],
    ) as readonly CallRow[];
    const rows = found.map((row) => ({
      created_at: row.created_at,
      session_id: row.session_id,
      seq: row.seq,
      tool: row.tool,
      args_sha256: hash('sha256', row.arguments ?? '', 'hex'),
      duration_ms: row.duration_ms,
      status: row.status,
      decision: row.decision,
      decided_by: row.decided_by,
      risk: row.risk,
      summary: row.summary,
      error: row.error,
    }));
    if (options.csv)
      for (const line of [fields, ...rows.map((row) => fields.map((field) => row[field]))]) printCsv(line);
    else
      printListing(options.json, rows, () =>
        rows.length === 0
          ? ['No tool calls.']
          : columns([
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
            ]),
      );
    return exit.done;
  });
}
