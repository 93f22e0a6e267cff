import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** The built program is what is driven here: built once, before the first file. AGENT_BUILT: it is built already. */
export function setup(): void {
  if (process.env['AGENT_BUILT'] !== undefined) return;
  execFileSync(process.execPath, [fileURLToPath(new URL('../../config/build.mjs', import.meta.url))], {
    stdio: 'inherit',
  });
}
