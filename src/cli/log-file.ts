import { appendFileSync, chmodSync } from 'node:fs';
import { dirname } from 'node:path';
import { ensurePrivateDirectory } from '../config/locations.js';
import type { Log } from '../core/session.js';

/** Appends JSON lines to the log file (0600, its folder 0700), made with its first entry. A log that cannot be written
 * never stops the program; without a path nothing is kept. */
export function createLogFile(
  path: string | null,
  mask: (text: string) => string,
  mirror: ((line: string) => void) | null,
): Log {
  let ready = false;
  return ({ detail, ...entry }) => {
    if (detail && mirror === null) return;
    const line = mask(JSON.stringify({ time: new Date().toISOString(), ...entry }));
    mirror?.(line);
    if (path === null) return;
    try {
      if (!ready) {
        ensurePrivateDirectory(dirname(path));
        appendFileSync(path, '', { mode: 0o600 });
        chmodSync(path, 0o600);
        ready = true;
      }
      appendFileSync(path, `${line}\n`);
    } catch {
      /* nowhere to say so: the log is the place for such things */
    }
  };
}
