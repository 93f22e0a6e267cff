import { existsSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { version } from './version.js';

/** Has Node keep what it compiles of this program, where it can, so that the next start need not. The cache of another version goes. Never throws.
 *  `nodeModule` is `node:module`, which has `enableCompileCache` since Node 22.1. Source: nodejs.org, "Module compile cache". */
export function keepCompiled(argv: readonly string[], env: NodeJS.ProcessEnv, nodeModule: object): void {
  const enable: unknown = Reflect.get(nodeModule, 'enableCompileCache');
  if (typeof enable !== 'function' || argv.includes('--ephemeral') || env.NODE_DISABLE_COMPILE_CACHE !== undefined) return;
  const folder = join(env.AGENT_HOME || join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'agent'), 'compiled', version);
  try {
    if (!existsSync(folder)) rmSync(dirname(folder), { recursive: true, force: true });
    enable(folder);
  } catch { /* without a home, or where nothing can be written, it goes without */ }
}
