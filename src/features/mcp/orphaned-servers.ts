import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../../kernel/core/runtime.js';
import { readBoundedText } from '../../kernel/disk/bounded-file.js';
import { processesMarked } from '../../kernel/tools/process/watchdog.js';

/** The mark that all processes of a run have in their environment. */
export interface Mark {
  readonly name: string;
  readonly value: string;
}

const runName = /^[\w-]{1,64}$/;

/** Notes that this run starts servers; the function that is returned takes that back, once all of them have ended. */
export function noteRun(folder: string, { value }: Mark): () => void {
  const file = join(folder, value);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(file, String(process.pid), { mode: 0o600 });
  } catch {
    return () => undefined; // Without a note nothing is swept; a watchdog ends the servers as well.
  }
  return () => {
    rmSync(file, { force: true });
  };
}

/** Kills what runs that were killed have left behind: processes with their mark, also those that left their group.
 * `inside`: the mark that we have ourselves, where we were started by a run. */
export async function sweepRuns(
  folder: string,
  { name, inside }: { readonly name: string; readonly inside: string | undefined },
  log: Log,
): Promise<void> {
  const left = namesIn(folder).filter(
    (value) => runName.test(value) && value !== inside && !isAlive(join(folder, value)),
  );
  if (left.length === 0) return;
  for (const value of left) {
    const found = processesMarked(`${name}=${value}`);
    found.forEach(kill);
    if (found.length > 0) log({ at: 'mcp', message: 'processes of a run that was killed', count: found.length });
    rmSync(join(folder, value), { force: true });
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function isAlive(file: string): boolean {
  try {
    const text = readBoundedText(file, { maxBytes: 64, longer: 'refuse', links: 'refuse' });
    process.kill(Number.parseInt(text ?? '', 10), 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

function kill(id: number): void {
  try {
    process.kill(id, 'SIGKILL');
  } catch {
    /* ended meanwhile */
  }
}
