import { existsSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { agentPaths } from '../config/paths.js';
import { keepCompiledFiles } from './compiled-files.js';
import { version } from './version.js';

/** Keeps what Node compiles of this program, so that the next start need not compile it again. The cache of another version goes. Never throws.
 *  `nodeModule` is `node:module`, which has `enableCompileCache` since Node 22.1; before that we keep it ourselves. Source: nodejs.org, "Module compile cache". */
export function keepCompiled(argv: readonly string[], env: NodeJS.ProcessEnv, nodeModule: object): void {
  if (argv.includes('--ephemeral') || env.NODE_DISABLE_COMPILE_CACHE !== undefined) return;
  try {
    const folder = join(agentPaths(env, homedir()).cache, 'compiled', version);
    if (!existsSync(folder)) rmSync(dirname(folder), { recursive: true, force: true });
    const enable: unknown = Reflect.get(nodeModule, 'enableCompileCache');
    if (typeof enable === 'function') enable(folder);
    else keepCompiledFiles(folder);
  } catch { /* without a home, or where nothing can be written, it goes without */ }
}
