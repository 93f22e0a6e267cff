import { createProcessRunner } from './runner.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** The output of git. `exitCode` is null where it could not be started, with the reason in `errors`. */
export interface GitResult {
  readonly exitCode: number | null;
  readonly output: string;
  /** The output byte for byte. */
  readonly bytes: Buffer;
  readonly errors: string;
}

/** A checkout of a large repository takes its time. */
const longestMs = 300_000;
const maxBytes = 16 * 1024 * 1024;
/** The variables that git gets: no keys, and nothing that points it at another repository. */
const passed = ['PATH', 'HOME', 'LANG', 'XDG_CONFIG_HOME', 'TMPDIR', 'USER', 'LOGNAME', 'SSH_AUTH_SOCK'];
/** A repository may have come from others: none of its programs is run. */
const harmless = ['-c', 'core.hooksPath=/dev/null', '-c', 'core.fsmonitor=false', '-c', 'protocol.ext.allow=never'];

/** Runs git without a terminal, hooks and keys, until `signal`. `more`: variables that git gets besides. Never rejects. */
export async function runGit(
  cwd: string,
  env: Environment,
  args: readonly string[],
  more: Readonly<Record<string, string>> = {},
  signal = new AbortController().signal,
): Promise<GitResult> {
  const processes = createProcessRunner({ marker: { name: '_AGENT_GIT', value: String(process.pid) } });
  const own = passed.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]] as const]));
  const said: Record<'stdout' | 'stderr', Buffer[]> = { stdout: [], stderr: [] };
  const result = await processes.run({
    file: 'git',
    args: [...harmless, ...args],
    cwd,
    env: {
      ...Object.fromEntries(own),
      LC_ALL: 'C',
      GIT_OPTIONAL_LOCKS: '0',
      GIT_TERMINAL_PROMPT: '0',
      GIT_LFS_SKIP_SMUDGE: '1',
      ...more,
    },
    sandbox: 'off',
    signal,
    timeoutMs: longestMs,
    maxTotalBytes: maxBytes,
    onOutput: (chunk, stream) => {
      said[stream].push(Buffer.from(chunk));
    },
  });
  if (result.ended === 'not_started')
    return { exitCode: null, output: '', bytes: Buffer.alloc(0), errors: result.error };
  const bytes = Buffer.concat(said.stdout);
  return { exitCode: result.exitCode, output: bytes.toString(), bytes, errors: Buffer.concat(said.stderr).toString() };
}
