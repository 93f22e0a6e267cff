/** One line of CSV (RFC 4180): a field with a comma, a quote or a line break in quotes. A text a spreadsheet would take for a formula starts with `'`. */
export function csvLine(values: readonly (string | number | null)[]): string {
  return `${values.map(field).join(',')}\r\n`;
}

function field(value: string | number | null): string {
  if (value === null) return '';
  const text = typeof value === 'string' ? value.replace(/^([=+@\t\r]|-(?!\d))/, "'$1") : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
