/** A listing on stdout: one JSON array with `--json`, else lines of text. */
export function printListing(json: boolean | undefined, rows: readonly unknown[], lines: () => readonly string[]): void {
  process.stdout.write(json ? `${JSON.stringify(rows, null, 2)}\n` : lines().map((line) => `${line}\n`).join(''));
}

/** Columns padded to their widest cell; the last one is left as it is. */
export function columns(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = rows.reduce<number[]>((most, row) => row.map((cell, index) => Math.max(most[index] ?? 0, cell.length)), []);
  return rows.map((row) => row.map((cell, index) => (index === row.length - 1 ? cell : cell.padEnd(widths[index] ?? 0))).join('  ').trimEnd());
}

/** `3m`, `5h`, `2d`: how long ago. */
export function age(ms: number): string {
  const minutes = Math.max(0, Math.floor(ms / 60_000));
  if (minutes < 60) return `${minutes}m`;
  return minutes < 60 * 48 ? `${Math.floor(minutes / 60)}h` : `${Math.floor(minutes / 1440)}d`;
}
