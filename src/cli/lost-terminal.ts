import { closeSync } from 'node:fs';
import { isatty } from 'node:tty';

/** At the end of the process: lets go of terminals that are gone. Node restores the modes of every terminal it was started on as its last act, and
 *  aborts where that fails with anything but EPERM; descriptors that are closed are passed over. Source: Node 20, `node::ResetStdio`. */
export function letGoOfLostTerminals(): void {
  for (const stream of [process.stdin, process.stdout, process.stderr]) {
    if (!stream.isTTY || isatty(stream.fd)) continue;
    try {
      closeSync(stream.fd);
    } catch { /* closed already */ }
  }
}
