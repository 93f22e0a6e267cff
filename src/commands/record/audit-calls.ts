import { hash } from 'node:crypto';
import { findSession } from '../../cli/session/find-session.js';
import type { RootOptions } from '../../cli/options.js';
import { columns, printListing } from '../../cli/print.js';
import type { CallFilter, Store } from '../../core/store.js';
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
    const found = await records.calls(await filterOf(options, store));
    const rows = found.map((row) => ({
      created_at: row.createdAt,
      session_id: row.sessionId,
      seq: row.seq,
      tool: row.tool,
      args_sha256: hash('sha256', row.arguments ?? '', 'hex'),
      duration_ms: row.durationMs,
      status: row.status,
      decision: row.decision,
      decided_by: row.decidedBy,
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
