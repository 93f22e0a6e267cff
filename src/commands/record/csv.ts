import { outputIsTerminal, printData } from '../../cli/print.js';
import { sanitize } from '../../terminal/sanitize.js';

/** One line of CSV (RFC 4180): a field with a comma, a quote or a line break in quotes. A text a spreadsheet would take
 * for a formula starts with `'`. */
export function csvLine(values: readonly (string | number | null)[]): string {
  return `${values.map(field).join(',')}\r\n`;
}

function field(value: string | number | null): string {
  if (value === null) return '';
  const text = typeof value === 'string' ? value.replace(/^([=+@\t\r]|-(?!\d))/, "'$1") : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** One line of CSV on stdout. On a terminal each field is made safe by itself, so that what one holds does not swallow
 * the next. */
export function printCsv(values: readonly (string | number | null)[]): void {
  const safe = outputIsTerminal()
    ? values.map((value) => (typeof value === 'string' ? sanitize(value) : value))
    : values;
  printData(csvLine(safe));
}
