import { closeTerminal } from '../../kernel/console/print.js';
import { loadStartChild } from '../../kernel/tools/process/load-start-child.js';
import { jobControl } from './job-control.js';

/** The time that the shell gets to take its terminal back. */
const stoppedS = 0.1;

/** Lets the terminal go and continues in the background: the shell shows its prompt. A shell shows it once its job is
 * stopped, so the process stops, and a helper continues it. What comes from the terminal later, such as its end, no longer
 * concerns this process. The screen is closed already. */
export async function letTerminalGo(): Promise<void> {
  for (const signal of ['SIGHUP', 'SIGTTOU', 'SIGTTIN'] as const) process.on(signal, () => undefined);
  const { startHelper } = await loadStartChild();
  closeTerminal();
  const group = jobControl.group();
  const helper = startHelper(['-c', 'sleep "$1"; kill -s CONT -- "$2"', 'sh', String(stoppedS), String(group)]);
  if (helper === null) return;
  jobControl.stop();
}
