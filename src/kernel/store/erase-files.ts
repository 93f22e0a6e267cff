import { readdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { TextTrace } from '../core/text-trace.js';
import { readBounded } from '../disk/bounded-file.js';

const maxFileBytes = 64 * 1024 * 1024;
/** The database itself. */
const databaseFiles = /^agent\.db(?:-wal|-shm|\.lock|\.marks)?$/;
/** Texts of lines, which may change: past inputs, drafts, and the log. */
const lineFiles = /^(?:history|agent\.log)/;

/** Removes the texts from histories, drafts and logs in a folder. Returns how many files were changed, and those of other
 * kinds that hold a text, such as a damaged database that was kept. */
export function eraseInFiles(
  folder: string,
  trace: TextTrace,
): { readonly cleaned: number; readonly remaining: readonly string[] } {
  let cleaned = 0;
  const remaining: string[] = [];
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const path = join(folder, name);
    if (databaseFiles.test(name)) continue;
    const found = readBounded(path, { maxBytes: maxFileBytes, longer: 'refuse', links: 'refuse' });
    if (found.kind !== 'read') continue;
    const text = found.bytes.toString('utf8');
    const next = trace.text(text);
    if (next === text) continue;
    if (!lineFiles.test(basename(name))) {
      remaining.push(path);
      continue;
    }
    const lines = text.split('\n').map((line) => trace.deep(line));
    writeFileSync(path, lines.join('\n'), { mode: 0o600 });
    cleaned++;
  }
  return { cleaned, remaining };
}
