import { appendFileSync, chmodSync } from 'node:fs';
import { dirname } from 'node:path';
import { ensurePrivateDirectory } from '../config/paths.js';
import type { Log } from '../core/log.js';

/** Appends JSON lines to the log file (0600, its folder 0700), made with its first entry. A log that cannot be written never stops the program. */
export function createLogFile(path: string, secrets: readonly string[], mirror: ((line: string) => void) | null): Log {
  let ready = false;
  return (entry) => {
    const line = mask(JSON.stringify({ time: new Date().toISOString(), ...entry }), secrets);
    mirror?.(line);
    try {
      if (!ready) {
        ensurePrivateDirectory(dirname(path));
        appendFileSync(path, '', { mode: 0o600 });
        chmodSync(path, 0o600);
        ready = true;
      }
      appendFileSync(path, `${line}\n`);
    } catch { /* nowhere to say so: the log is the place for such things */ }
  };
}

/** `text` with every secret replaced. Values under 8 characters are left: they would hit ordinary words. */
export function mask(text: string, secrets: readonly string[]): string {
  return secrets.reduce((masked, secret) => (secret.length >= 8 ? masked.replaceAll(secret, '[key]') : masked), text);
}
