import type { ToolOutcome } from '../../kernel/core/tool.js';
import { failed, succeeded } from '../../kernel/tools/define-tool.js';
import type { Job, Jobs } from './background.js';
import { endOrRunning, stateOf } from './job-state.js';

/** Types text on the terminal of a job, if there is any, and returns its screen once it is quiet. */
export async function onTerminal(jobs: Jobs, job: Job, text: string | undefined): Promise<ToolOutcome> {
  const terminal = jobs.terminal(job.id);
  if (!terminal)
    return failed(
      'execution_failed',
      `Job ${job.id} has no terminal; start it with bash {"background": true, "terminal": true}.`,
    );
  if (text !== undefined) {
    if (job.end) return failed('execution_failed', `Job ${job.id} has ended: ${stateOf(job)}. Nothing was typed.`);
    const settled = jobs.settle(terminal);
    if (!terminal.write(text))
      return failed('execution_failed', `Job ${job.id} does not read what was typed before. Nothing was typed.`);
    await settled;
  }
  const { text: output, row, column } = await terminal.screen();
  const now = jobs.list(job.sessionId).find(({ id }) => id === job.id) ?? job;
  return succeeded(stateOf(now), { output, job: job.id, row, column, ...endOrRunning(now) });
}
