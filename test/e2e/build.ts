import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** The built program is what is driven here: built once, before the first file. */
export function setup(): void {
  execFileSync(process.execPath, [fileURLToPath(new URL('../../config/build.mjs', import.meta.url))], {
    stdio: 'inherit',
  });
}
