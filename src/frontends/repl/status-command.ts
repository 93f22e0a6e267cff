import { spelledLine } from '../../kernel/core/text.js';
import type { Schedule } from '../../kernel/core/runtime.js';
import { sanitize } from '../../kernel/core/sanitize.js';
import { shellEnvironment } from '../../kernel/tools/bash.js';
import type { ProcessRunner } from '../../kernel/tools/process/runner.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { ownKeys, secretVariables } from '../../kernel/secrets/known-secrets.js';

export interface OwnStatus {
  /** Returns the newest line of the program; null where it has given none. Runs the program soon where `key` is another
   * one than when it last ran; never waits. `input`: makes the object that the program reads, when it starts. */
  line(key: string, input: () => unknown): string | null;
  close(): void;
}

interface Parts {
  readonly settings: Pick<Settings, 'config' | 'cwd' | 'env'>;
  readonly processes: Pick<ProcessRunner, 'run'>;
  readonly schedule: Schedule;
  /** A new line is there. */
  readonly onChange: () => void;
  /** Called once with the reason if the program has printed no line. */
  readonly onProblem: (problem: string) => void;
}

const longestMs = 5_000;
const leastGapMs = 1_000;
const mostBytes = 65_536;
/** The number of failures after which the program is not started again. */
const mostFailures = 3;

/** Has the user's own program write the status line: `ui.status_command`. */
export function createOwnStatus(d: Parts): OwnStatus {
  const ending = new AbortController();
  let shown: string | null = null;
  let failures = 0;
  let last = '';
  let next: { readonly key: string; readonly input: () => unknown } | null = null;
  /** A run, or the second after it. */
  let pausing = false;
  const failed = (problem: string): void => {
    failures++;
    shown = null;
    if (failures === 1) d.onProblem(`ui.status_command: ${problem}. Using the built-in status line until it works.`);
  };
  const run = async (input: string): Promise<void> => {
    const done = await runOnce(d, input, ending.signal);
    if (ending.signal.aborted) return;
    if (done.ok) shown = done.line;
    else failed(done.problem);
    d.onChange();
  };
  const begin = (): void => {
    if (pausing || next === null || failures >= mostFailures || ending.signal.aborted) return;
    const { key, input } = next;
    [last, next, pausing] = [key, null, true];
    // A frame asks, and starting a process would hold it up.
    d.schedule(() => {
      void run(JSON.stringify(input())).then(() => {
        d.schedule(() => {
          pausing = false;
          begin();
        }, leastGapMs);
      });
    }, 0);
  };
  return {
    line: (key, input) => {
      next = key === last ? null : { key, input };
      begin();
      return shown;
    },
    close: () => {
      ending.abort();
    },
  };
}

type Outcome = { readonly ok: true; readonly line: string } | { readonly ok: false; readonly problem: string };

/** Standard input of a command is empty, so the report comes through descriptor 3. */
async function runOnce({ settings, processes }: Parts, input: string, signal: AbortSignal): Promise<Outcome> {
  const { config, cwd, env } = settings;
  const command = config.ui.statusCommand;
  const printed: Record<'stdout' | 'stderr', string> = { stdout: '', stderr: '' };
  const result = await processes.run({
    file: 'sh',
    args: ['-c', 'exec "$@" <&3 3<&-', 'sh', ...command],
    cwd,
    env: shellEnvironment(env, secretVariables(env, ownKeys(config))),
    sandbox: 'off',
    signal,
    timeoutMs: longestMs,
    maxTotalBytes: mostBytes,
    input: Buffer.from(`${input}\n`),
    onOutput: (chunk, stream) => {
      printed[stream] += chunk.toString();
    },
  });
  const name = command[0] ?? '';
  if (result.ended === 'not_started')
    return {
      ok: false,
      problem: `${name} could not be started: ${result.error}`,
    };
  if (result.ended === 'timeout')
    return {
      ok: false,
      problem: `${name} took longer than ${longestMs / 1000} seconds`,
    };
  if (result.ended === 'output_limit')
    return {
      ok: false,
      problem: `${name} printed more than ${mostBytes} bytes`,
    };
  if (result.exitCode === 0)
    return {
      ok: true,
      line: firstLineOf(printed.stdout),
    };
  const why = spelledLine(firstLineOf(printed.stderr)).slice(0, 200);
  return {
    ok: false,
    problem: `${name} ended with exit code ${result.exitCode}${why === '' ? '' : `: ${why}`}`,
  };
}

function firstLineOf(text: string): string {
  return sanitize(text.trimStart().split('\n')[0] ?? '')
    .replace(/\s+/g, ' ')
    .trim();
}
