import { existsSync, mkdirSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';

/** The absolute paths of the program's own files. Each is made when it is needed. Source: contracts 2, "Where files
 * live". */
export interface AgentPaths {
  readonly config: string;
  /** The trusted directories; beside `config`. */
  readonly trust: string;
  readonly database: string;
  readonly log: string;
  readonly history: string;
  /** Directory of `database`. */
  readonly data: string;
  /** Directory of files that can be made again at any time. */
  readonly cache: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** `$AGENT_HOME` for everything, else the XDG base directories (a relative one is ignored, as their specification
 * asks). */
export function agentPaths(env: Environment, home: string): AgentPaths {
  const own = env.AGENT_HOME;
  if (own) return paths(resolve(own), resolve(own), resolve(own), resolve(own));
  const base = (name: string, fallback: string): string => {
    const value = env[name];
    return join(value && isAbsolute(value) ? value : join(home, fallback), 'agent');
  };
  return paths(
    base('XDG_CONFIG_HOME', '.config'),
    base('XDG_DATA_HOME', '.local/share'),
    base('XDG_STATE_HOME', '.local/state'),
    base('XDG_CACHE_HOME', '.cache'),
  );
}

/** Makes a directory and its parents, 0700 whatever the umask. An existing one stays as it is. Throws the system's
 * error. Does not use `mkdir`'s `recursive`: Node 20 never returns from that when a parent refuses new names with
 * ENOENT (`/proc`). */
export function ensurePrivateDirectory(path: string): void {
  if (existsSync(path)) return;
  if (dirname(path) !== path) ensurePrivateDirectory(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (!existsSync(path)) throw error;
  }
}

function paths(config: string, data: string, state: string, cache: string): AgentPaths {
  return {
    config: join(config, 'config.json'),
    trust: join(config, 'trust.json'),
    database: join(data, 'agent.db'),
    log: join(state, 'agent.log'),
    history: join(state, 'history'),
    data,
    cache,
  };
}
