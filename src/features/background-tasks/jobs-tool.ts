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
import { endOrRunning, stateOf, wakeSummary } from './job-state.js';

const mostBytes = 30_000;
const usualSeconds = 30;
const mostSeconds = 120;
const mostTyped = 4_000;
const actions = ['list', 'output', 'wait', 'kill'] as const;

const schema = {
  type: 'object',
  properties: {
    action: { enum: actions },
    job: { type: 'integer' },
    /** Another name of `job`. */
    id: { type: 'integer' },
    write: { type: 'string' },
    screen: { type: 'boolean' },
    since: { type: 'integer', description: 'next of a result' },
    seconds: { type: 'integer' },
  },
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
    description: 'Manage background commands; a note says when one ends. write types in its terminal.',
    schema,
    describe: (asked) => {
      const { what, id, write } = meant(asked);
      const text = write === undefined ? '' : ` ${JSON.stringify(write)}`;
      return `jobs(${what}${id === undefined ? '' : ` ${id}`}${text})`;
    },
    check: (asked) => {
      const { what, id } = meant(asked);
      const { since = 0, seconds = 1, write } = asked;
      if (what !== 'list' && id === undefined)
        return { argument: 'id', problem: 'missing', expected: 'the number of a job' };
      if (write !== undefined && asked.action !== undefined)
        return { argument: 'action', problem: 'is given beside write', expected: 'write alone' };
      if (write !== undefined && (write === '' || write.length > mostTyped))
        return { argument: 'write', problem: 'empty or too long', expected: `1 to ${mostTyped} characters` };
      return outOfBounds({ since, seconds }, { since: [0, Infinity], seconds: [1, mostSeconds] });
    },
    typedText: ({ write }) => write ?? null,
    judge: (asked, { session }): Judged => {
      const { what, id, write } = meant(asked);
      const line = firstLine(find(id, session.id)?.line ?? 'unknown', 200);
      if (what === 'kill') return { risk: 'mutating', reasons: [`kills job ${id}: ${line}`] };
      if (write === undefined) return { risk: 'read-only', reasons: [] };
      return {
        risk: isKeysOnly(write) ? 'mutating' : 'dangerous',
        reasons: [`types ${JSON.stringify(clampText(write, 200).text)} into job ${id}: ${line}`],
        singular: true,
      };
    },
    async run(asked, ctx) {
      const { what, id, write } = meant(asked);
      if (what === 'list') return listJobs(jobs.list(ctx.session.id));
      const job = find(id, ctx.session.id);
      if (!job) {
        const known = jobs.list(ctx.session.id).map((one) => one.id);
        return failed('not_found', `There is no job ${id}; there are: ${known.join(', ') || 'none'}.`);
      }
      if (what === 'write' || what === 'screen')
        return await (await import('./wakes-code.js')).onTerminal(jobs, job, write);
      if (what === 'kill') await jobs.kill(job.id, 'quietly');
      if (what === 'wait') await jobs.wait(job.id, (asked.seconds ?? usualSeconds) * 1000, ctx.signal);
      return await outputOf(jobs, find(job.id, ctx.session.id) ?? job, asked, ctx);
    },
  });
}

/** A call as it is meant: `write` and `screen` need no action, and a number alone asks for the output. */
function meant({ action, id, job, write, screen }: Asked) {
  const number = id ?? job;
  const implied =
    write === undefined ? (screen === true ? 'screen' : number === undefined ? 'list' : 'output') : 'write';
  return { what: action ?? implied, id: number, write };
}

/** Returns true for Ctrl-C, Esc, arrows and the like, which neither spell nor confirm anything. */
function isKeysOnly(text: string): boolean {
  return /^(?:\u001B[[O][A-D]|[\u0003\u0004\u001B])+$/.test(text);
}

function listJobs(jobs: readonly Job[]): ToolOutcome {
  const running = jobs.filter(({ end }) => end === null).length;
  return succeeded(`${running} running`, { output: jobRows(jobs).join('\n') || 'There are no jobs.' });
}

/** Returns a line for each job: its number, its state and its command. */
export function jobRows(jobs: readonly Job[]): readonly string[] {
  return jobs.map((job) => `${job.id}: ${stateOf(job)}${wakeSummary(job.wakes)}: ${firstLine(job.line, 200)}`);
}

async function outputOf(jobs: Jobs, job: Job, { since }: Asked, ctx: ToolContext): Promise<ToolOutcome> {
  const most = Math.min(mostBytes, ctx.limits.maxOutputBytes);
  const { text, from, next } = (await jobs.output(job.id, since ?? null, most)) ?? { text: '', from: 0, next: 0 };
  const left: { [key: string]: Json } = from > (since ?? 0) ? { from } : {};
  return succeeded(stateOf(job), { output: text, job: job.id, next, ...left, ...endOrRunning(job) });
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
