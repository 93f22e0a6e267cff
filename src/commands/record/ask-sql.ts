import type { Answer } from '../../core/store.js';
import { CliError, exit, type Printer, type Verb } from '../command.js';
import { columns, oneLine, printCsv, printJson } from '../line-output.js';

interface Options {
  readonly json?: boolean;
  readonly csv?: boolean;
}

/** Asks the record in SQL; nothing can be changed by it. */
export const askSql: Verb = {
  line: {
    example: 'agent sql "SELECT tool, count(*) FROM v_tool_calls GROUP BY tool"',
    options: (command) => command.option('--json', 'one JSON array').option('--csv', 'comma-separated values'),
    run: async ({ out, withStore }, [question = ''], options: Options) =>
      await withStore(async ({ records }) => {
        if (!records.ask)
          throw new CliError(exit.failed, 'this store does not speak SQL', 'agent audit, stats and search read it.');
        try {
          await printAnswer(out, await records.ask(question), options);
          return exit.done;
        } catch (error) {
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

/** Rows of CSV are printed as they come; a table and JSON need all of them. */
async function printAnswer(out: Printer, { columns: names, rows }: Answer, options: Options): Promise<void> {
  if (options.csv) {
    printCsv(out, names);
    for await (const row of rows) printCsv(out, row.map(shownValue));
    return;
  }
  const all: (readonly (string | number | null)[])[] = [];
  for await (const row of rows) all.push(row.map(shownValue));
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
