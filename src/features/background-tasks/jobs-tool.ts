import { largestOf } from '../../kernel/core/lists.js';
import { clampText, parseEnvelope } from '../../kernel/core/envelope.js';
import { type Event, knownEvent, type KnownEvent, type ToolResultData } from '../../kernel/core/event.js';
import type { Json } from '../../kernel/core/json.js';
import { firstLine } from '../../kernel/core/text.js';
import type { Judged, ToolContext, ToolOutcome } from '../../kernel/core/tool.js';
import {
  type DefinedTool,
  defineTool,
  failed,
  type FromSchema,
  outOfBounds,
  succeeded,
} from '../../kernel/tools/define-tool.js';
import type { Job, Jobs } from './background.js';

const mostBytes = 30_000;
const usualSeconds = 30;
const mostSeconds = 120;
const actions = ['list', 'output', 'wait', 'kill'] as const;

const schema = {
  type: 'object',
  properties: {
    action: { enum: actions },
    job: { type: 'integer' },
    since: { type: 'integer', description: 'byte; the next of an earlier result' },
    seconds: { type: 'integer', description: `of wait, at most ${mostSeconds}` },
  },
  required: ['action'],
  additionalProperties: false,
} as const;

type Asked = FromSchema<typeof schema>;

/** `jobs`: looks after the commands that run in the background. A model sees those of its session. */
export function jobsTool(jobs: Jobs): DefinedTool {
  const find = (id: number | undefined, sessionId: string): Job | undefined =>
    jobs.list(sessionId).find((job) => job.id === id);
  return defineTool({
    name: 'jobs',
    effect: 'execute',
    otherNames: ['BashOutput', 'KillShell'],
    description: 'Manage background commands (bash background). You get a note when one ends.',
    schema,
    describe: ({ action, job }) => `jobs(${action}${job === undefined ? '' : ` ${job}`})`,
    check: ({ action, job, since = 0, seconds = 1 }) =>
      action !== 'list' && job === undefined
        ? { argument: 'job', problem: 'missing', expected: 'the number of a job' }
        : outOfBounds({ since, seconds }, { since: [0, Infinity], seconds: [1, mostSeconds] }),
    judge: ({ action, job }, { session }): Judged =>
      action === 'kill'
        ? {
            risk: 'mutating',
            reasons: [`kills job ${job}: ${firstLine(find(job, session.id)?.line ?? 'unknown', 200)}`],
          }
        : { risk: 'read-only', reasons: [] },
    async run(asked, ctx) {
      if (asked.action === 'list') return listJobs(jobs.list(ctx.session.id));
      const job = find(asked.job, ctx.session.id);
      if (!job) {
        const known = jobs.list(ctx.session.id).map(({ id }) => id);
        return failed('not_found', `There is no job ${asked.job}; there are: ${known.join(', ') || 'none'}.`);
      }
      if (asked.action === 'kill') await jobs.kill(job.id, 'quietly');
      if (asked.action === 'wait') await jobs.wait(job.id, (asked.seconds ?? usualSeconds) * 1000, ctx.signal);
      return outputOf(jobs, find(job.id, ctx.session.id) ?? job, asked, ctx);
    },
  });
}

function listJobs(jobs: readonly Job[]): ToolOutcome {
  const running = jobs.filter(({ end }) => end === null).length;
  return succeeded(`${running} running`, { output: jobRows(jobs).join('\n') || 'There are no jobs.' });
}

/** Returns a line for each job: its number, its state and its command. */
export function jobRows(jobs: readonly Job[]): readonly string[] {
  return jobs.map((job) => `${job.id}: ${stateOf(job)}: ${firstLine(job.line, 200)}`);
}

function outputOf(jobs: Jobs, job: Job, { since }: Asked, ctx: ToolContext): ToolOutcome {
  const most = Math.min(mostBytes, ctx.limits.maxOutputBytes);
  const { text, from, next } = jobs.output(job.id, since ?? null, most) ?? { text: '', from: 0, next: 0 };
  const left: { [key: string]: Json } = from > (since ?? 0) ? { from } : {};
  const end: { [key: string]: Json } = job.end ? endFields(job.end) : { running: true };
  return succeeded(stateOf(job), { output: text, job: job.id, next, ...left, ...end });
}

function endFields({ exitCode, signal, killed }: NonNullable<Job['end']>): { [key: string]: Json } {
  return { exit_code: exitCode, ...(signal === null ? {} : { signal }), ...(killed ? { killed } : {}) };
}

/** Says whether a job runs, or how it ended. */
export function stateOf({ end, ranMs }: Job): string {
  const time = `${Math.round(ranMs / 1000)} s`;
  if (end === null) return `running for ${time}`;
  if (end.killed) return `killed after ${time}`;
  const how =
    end.exitCode === null ? 'not started' : `exit ${end.exitCode}${end.signal === null ? '' : ` (${end.signal})`}`;
  return `${how} after ${time}`;
}

/** Says to the model that a job has ended, with the end of its output. */
export function endNote(job: Job, lastWords: string): string {
  const line = clampText(job.line, 300).text;
  const said = lastWords.trim() === '' ? 'It had no output.' : `The end of its output:\n${lastWords.trimEnd()}`;
  return `[Note: job ${job.id} has ended (${line}): ${stateOf(job)}. ${said}]`;
}

/** Reads the record of a session: the number of the first job to come, and the jobs whose end is not there. */
export function recordedJobs(events: readonly Event[]): { readonly next: number; readonly open: readonly number[] } {
  const started = new Set<number>();
  const ended = new Set<number>();
  for (const raw of events) {
    const event = raw.kind === 'tool_result' || raw.kind === 'user' ? knownEvent(raw) : null;
    if (event?.kind === 'user') for (const id of notedEnds(event)) ended.add(id);
    const result = event?.kind === 'tool_result' ? jobOfResult(event.data) : null;
    if (result) (result.hasEnded ? ended : started).add(result.id);
  }
  return { next: largestOf(started, 0) + 1, open: [...started].filter((id) => !ended.has(id)) };
}

function notedEnds({ content, data }: Extract<KnownEvent, { readonly kind: 'user' }>): readonly number[] {
  const ids = data?.note === true ? /^\[Note: jobs? ([\d, ]+) ha(?:s|ve) ended/.exec(content)?.[1] : undefined;
  return ids === undefined ? [] : ids.split(', ').map(Number);
}

/** The job that a result is about. */
function jobOfResult({ name, output }: ToolResultData): { readonly id: number; readonly hasEnded: boolean } | null {
  if (name !== 'bash' && name !== 'jobs') return null;
  const { job, exit_code: exitCode } = parseEnvelope(output);
  return typeof job === 'number' ? { id: job, hasEnded: name === 'jobs' && exitCode !== undefined } : null;
}

/** Says to the model that jobs of an earlier run of the program are gone. */
export function lostNote(ids: readonly number[]): string {
  const jobs = ids.length === 1 ? `job ${ids[0]} has` : `jobs ${ids.join(', ')} have`;
  return `[Note: ${jobs} ended, because the program exited.]`;
}
