import { accessSync, constants, existsSync, rmSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { agentPaths, ensurePrivateDirectory } from '../config/locations.js';
import { keepCompiledFiles } from './compiled-files.js';
import { version } from './version.js';

/** V8 forgets what has not run for long, so a run of hours has little left to keep at its end. */
const maxUptimeS = 600;
/** What a run has compiled is kept while it runs, too: it may last for hours, or be killed. */
const keepEveryMs = 60_000;

/** Keeps what Node compiles of this program, so that the next start need not compile it again. The cache of another
 * version goes. Never throws. `nodeModule` is `node:module`, which has `enableCompileCache` since Node 22.1; before
 * that we keep it ourselves. Source: nodejs.org, "Module compile cache". */
export function keepCompiled(argv: readonly string[], env: NodeJS.ProcessEnv, nodeModule: object): void {
  if (argv.includes('--ephemeral') || env.NODE_DISABLE_COMPILE_CACHE !== undefined) return;
  try {
    const folder = (env.AGENT_HOME ? null : besideProgram()) ?? inCache(env);
    const [enable, flush] = ['enableCompileCache', 'flushCompileCache'].map(
      (name) => Reflect.get(nodeModule, name) as unknown,
    );
    if (typeof enable !== 'function') {
      const keep = keepCompiledFiles(folder);
      process.once('exit', () => {
        if (process.uptime() < maxUptimeS) keep();
      });
      keepWhileYoung(keep);
    } else {
      enable(folder);
      if (typeof flush === 'function')
        keepWhileYoung(() => {
          flush();
        });
    }
  } catch {
    /* without a home, or where nothing can be written, it goes without */
  }
}

function keepWhileYoung(keep: () => void): void {
  const timer = setInterval(() => {
    keep();
    if (process.uptime() >= maxUptimeS) clearInterval(timer);
  }, keepEveryMs);
  timer.unref();
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
