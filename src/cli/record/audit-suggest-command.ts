import { dirname } from 'node:path';
import { isRecord } from '../../core/json.js';
import { createProtectedPaths } from '../../policy/protected-paths.js';
import { compileRules } from '../../policy/rules.js';
import { createSecretPaths } from '../../policy/secret-paths.js';
import { classifyShell } from '../../policy/shell/shell-classify.js';
import { suggestRules, type Analyse, type AskedCall, type Suggestions } from './audit-suggest.js';
import { exit } from '../cli-error.js';
import { printListing } from '../print.js';
import type { RootOptions } from '../options.js';
import { localTime, oneLine, withRecords } from './record-opening.js';
import type { Setup } from '../setup.js';

interface AskedRow {
  readonly tool: string | null;
  readonly arguments: string | null;
  readonly cwd: string;
  readonly session_id: string;
  readonly created_at: number;
  readonly decision: string;
}

const minimum = 3;

/** `agent audit suggest-rules`: allow rules for what the person has allowed again and again. Changes nothing. */
export async function suggestAllowRules(options: RootOptions & { readonly json?: boolean }): Promise<number> {
  return await withRecords(options, async (records, _store, setup) => {
    // Forks and imports hold copies of the same call.
    const rows = records.rows(
      "SELECT tool, arguments, cwd, min(session_id) AS session_id, created_at, decision FROM v_tool_calls WHERE decided_by = 'user' GROUP BY call_id, created_at, arguments ORDER BY created_at",
    ) as readonly AskedRow[];
    const { proposed, left } = suggestRules(rows.flatMap(askedCall), await createAnalysis(setup), minimum);
    const isRuled = compileRules(setup.config.policy.rules.allow, setup.home, 'allow');
    const fresh = proposed.filter(
      ({ rule }) => isRuled({ tool: rule.tool ?? '', argv: rule.argv ?? [], paths: [] }) === null,
    );
    printListing(
      options.json,
      fresh.map(({ rule, allowed, sessions, firstAt, lastAt, example }) => ({
        rule,
        allowed,
        sessions,
        first_at: firstAt,
        last_at: lastAt,
        example,
      })),
      () => report({ proposed: fresh, left }, setup.config.files.config),
    );
    return exit.done;
  });
}

function report({ proposed, left }: Suggestions, configFile: string): readonly string[] {
  const leftOut = left.map(
    ({ reason, allowed }) => `Not proposed, though allowed ${allowed} times: ${oneLine(reason)}.`,
  );
  if (proposed.length === 0)
    return [
      `No command was allowed ${minimum} times by you, and never denied, that a rule could stand for.`,
      ...leftOut,
    ];
  return [
    `Commands you allowed at least ${minimum} times and never denied. Nothing was changed; to be asked no more, put those you want into rules.allow of ${configFile}:`,
    ...proposed.flatMap(({ rule, allowed, sessions, lastAt, example }) => [
      '',
      `  ${JSON.stringify(rule)}`,
      `    allowed ${allowed} times in ${sessions} session${sessions === 1 ? '' : 's'}, last ${localTime(lastAt)}: ${oneLine(example)}`,
    ]),
    ...(leftOut.length > 0 ? ['', ...leftOut] : []),
  ];
}

function askedCall(row: AskedRow): readonly AskedCall[] {
  const command = commandOf(row.arguments);
  return row.tool === null || command === null
    ? []
    : [
        {
          tool: row.tool,
          command,
          cwd: row.cwd,
          sessionId: row.session_id,
          createdAt: row.created_at,
          allowed: row.decision === 'allow',
        },
      ];
}

function commandOf(text: string | null): string | null {
  try {
    const args: unknown = JSON.parse(text ?? '');
    return isRecord(args) && typeof args['command'] === 'string' ? args['command'] : null;
  } catch {
    return null;
  }
}

async function createAnalysis({ config, home }: Setup): Promise<Analyse> {
  const { parse } = await import('unbash');
  const { files } = config;
  const secrets = createSecretPaths(config.fs.deny, home);
  const ownPaths = [...new Set([dirname(files.config), files.data, dirname(files.log)])];
  return (command, cwd) =>
    classifyShell(
      command,
      {
        home,
        cwd,
        workspace: cwd,
        plainGit: true,
        steered: new Set(),
        secrets,
        isProtected: createProtectedPaths({ home, workspace: cwd, ownPaths }),
      },
      parse,
    );
}
