import { money } from '../../kernel/agent/budget.js';
import { clampText } from '../../kernel/core/envelope.js';
import type { Json } from '../../kernel/core/json.js';
import type { Job, Wake } from './background.js';

/** Says whether a job runs, or how it ended. */
export function stateOf({ end, ranMs }: Job): string {
  const time = `${Math.round(ranMs / 1000)} s`;
  if (end === null) return `running for ${time}`;
  if (end.killed) return `killed after ${time}`;
  const how =
    end.exitCode === null ? 'not started' : `exit ${end.exitCode}${end.signal === null ? '' : ` (${end.signal})`}`;
  return `${how} after ${time}`;
}

/** Sums the wakes of a job up: how many, and the cost of the turns that they started. */
export function wakeSummary(wakes: readonly Wake[]): string {
  if (wakes.length === 0) return '';
  const costs = wakes.flatMap(({ costUsd }) => costUsd ?? []);
  const cost = costs.length === 0 ? '' : ` (${money(costs.reduce((sum, usd) => sum + usd, 0))})`;
  return `, ${wakes.length === 1 ? '1 wake' : `${wakes.length} wakes`}${cost}`;
}

/** Says to the model that a job has ended, with the end of its output. */
export function endNote(job: Job, lastWords: string): string {
  const line = clampText(job.line, 300).text;
  const said = lastWords.trim() === '' ? 'It had no output.' : `The end of its output:\n${lastWords.trimEnd()}`;
  return `[Note: job ${job.id} has ended (${line}): ${stateOf(job)}. ${said}]`;
}

export function endOrRunning({ end }: Job): { [key: string]: Json } {
  return end ? endFields(end) : { running: true };
}

function endFields({ exitCode, signal, killed }: NonNullable<Job['end']>): { [key: string]: Json } {
  return { exit_code: exitCode, ...(signal === null ? {} : { signal }), ...(killed ? { killed } : {}) };
}
