import type { RootOptions } from '../../cli/options.js';
import { columns, print, printJson } from '../../cli/print.js';
import { CliError, exit } from '../cli-error.js';
import { printCsv } from './csv.js';
import { oneLine, withRecords } from './record-opening.js';

type Options = RootOptions & { readonly json?: boolean; readonly csv?: boolean };

/** `agent sql "<select>"`: a question to the record in SQL; nothing can be changed by it. */
export async function querySql(sql: string, options: Options): Promise<number> {
  return await withRecords(options, async (records) => {
    try {
      const { columns: names, rows } = records.ask(sql);
      if (options.csv) {
        printCsv(names);
        for (const row of rows) printCsv(row.map(shownValue));
      } else if (options.json) {
        const all = [...rows].map((row) =>
          Object.fromEntries(names.map((name, index) => [name, shownValue(row[index])])),
        );
        printJson(all, 2);
      } else {
        const lines = columns([
          names,
          ...[...rows].map((row) => row.map((value) => oneLine(String(shownValue(value) ?? 'NULL')))),
        ]);
        print(lines.map((line) => `${line}\n`).join(''));
      }
      return exit.done;
    } catch (error) {
      throw new CliError(
        exit.usage,
        `SQL: ${error instanceof Error ? error.message : String(error)}`,
        'One SELECT, over v_tool_calls, v_requests, v_sessions, v_files, sessions and events; docs/record.md describes them.',
      );
    }
  });
}

/** Bytes as hexadecimal text; everything else is what it is. */
function shownValue(value: unknown): string | number | null {
  if (Buffer.isBuffer(value)) return value.toString('hex');
  return typeof value === 'string' || typeof value === 'number' ? value : null;
}
