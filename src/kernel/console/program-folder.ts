import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Returns the folder of the program: the nearest above this file that has its executable, `bin/agent.js`. */
export function programFolder(): string {
  let at = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(at, 'bin', 'agent.js')) && dirname(at) !== at) at = dirname(at);
  return realpathSync(at);
}
