import { accessSync, constants, existsSync, rmSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { agentPaths, ensurePrivateDirectory } from '../config/paths.js';
import { keepCompiledFiles } from './compiled-files.js';
import { version } from './version.js';

/** Keeps what Node compiles of this program, so that the next start need not compile it again. The cache of another version goes. Never throws.
 *  `nodeModule` is `node:module`, which has `enableCompileCache` since Node 22.1; before that we keep it ourselves. Source: nodejs.org, "Module compile cache". */
export function keepCompiled(argv: readonly string[], env: NodeJS.ProcessEnv, nodeModule: object): void {
  if (argv.includes('--ephemeral') || env.NODE_DISABLE_COMPILE_CACHE !== undefined) return;
  try {
    const folder = (env.AGENT_HOME ? null : besideProgram()) ?? inCache(env);
    const enable: unknown = Reflect.get(nodeModule, 'enableCompileCache');
    if (typeof enable === 'function') enable(folder);
    else keepCompiledFiles(folder);
  } catch { /* without a home, or where nothing can be written, it goes without */ }
}

/** Where the program's own folder may be written, it is kept there, goes with it, and serves every home. */
function besideProgram(): string | null {
  const folder = join(dirname(import.meta.url), '..', 'compiled'); // in the built program, and there alone, `import.meta.url` is the path of this file
  try {
    if (!isAbsolute(folder)) return null;
    ensurePrivateDirectory(folder);
    accessSync(folder, constants.W_OK);
    return statSync(folder).isDirectory() ? folder : null;
  } catch {
    return null;
  }
}

function inCache(env: NodeJS.ProcessEnv): string {
  const folder = join(agentPaths(env, homedir()).cache, 'compiled', version);
  if (!existsSync(folder)) rmSync(dirname(folder), { recursive: true, force: true });
  return folder;
}
