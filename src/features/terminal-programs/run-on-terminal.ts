import { constants } from 'node:os';
import type { TerminalNeed, TerminalRun } from '../../kernel/console/terminal-programs-port.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { ownKeys, secretVariables } from '../../kernel/secrets/known-secrets.js';
import { createOutputCollector } from '../../kernel/tools/process/output-collector.js';
import { shellOf } from '../../kernel/tools/process/shell-file.js';
import { runOnTerminal } from '../../kernel/tools/process/runner.js';

/** The signals of Ctrl-C and Ctrl-\. */
const keySignals = ['SIGINT', 'SIGQUIT'] as const;

/** Runs a command line in the shell of `bash` calls, on the terminal, without a sandbox: it is the user's own. Programs of the terminal's group get its signals, and so
 * do we: what Ctrl-C and Ctrl-\ do is left to the command. Ctrl-Z stops both, and `fg` continues both. */
export async function runCommand(
  command: string,
  need: TerminalNeed,
  { env, config, cwd, log }: Pick<Settings, 'env' | 'config' | 'cwd' | 'log'>,
  signal: AbortSignal,
): Promise<TerminalRun> {
  const collector = need === 'asks' ? createOutputCollector(config.limits.maxOutputBytes) : null;
  const hidden = new Set(secretVariables(env, ownKeys(config)));
  const kept = Object.entries(env).filter(([name, value]) => value !== undefined && !hidden.has(name));
  let isInterrupted = false;
  const heed = (): void => {
    isInterrupted = true;
  };
  for (const name of keySignals) process.on(name, heed);
  try {
    const ended = await runOnTerminal({
      file: shellOf(env),
      args: ['-c', command],
      cwd,
      env: Object.fromEntries(kept) as Record<string, string>,
      signal,
      isCancelled: () => isInterrupted,
      ...(collector ? { onOutput: (chunk: Buffer) => collector.add(chunk) } : {}),
    });
    const output = collector ? collector.collected().parts.join('') : null;
    return { exitCode: ended.signal === null ? ended.code : 128 + constants.signals[ended.signal], output };
  } catch (error) {
    log({ at: 'terminal program', message: 'it could not be run', error: String(error) });
    return { exitCode: null, output: null };
  } finally {
    for (const name of keySignals) process.off(name, heed);
  }
}
