import { expect } from 'vitest';
import type { Harness } from '../ui/repl-harness.js';

/** The rows of the terminal as a reader sees them, the cursor as `▏`. Compared with a file beside this test; look at it
 * before you accept it. */
export async function expectScreen(harness: Harness, name: string): Promise<void> {
  await harness.settle();
  const cursor = harness.terminal.cursor();
  const rows = harness.terminal.screen().map((row, index) => {
    if (index !== cursor.row) return row.trimEnd();
    const cells = row.padEnd(cursor.column);
    return `${cells.slice(0, cursor.column)}▏${cells.slice(cursor.column)}`.trimEnd();
  });
  const last = rows.findLastIndex((row) => row !== '');
  await expect(`${rows.slice(0, last + 1).join('\n')}\n`).toMatchFileSnapshot(`./${name}.txt`);
}
