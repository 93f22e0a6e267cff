import { money } from '../../kernel/agent/budget.js';
import { firstLine } from '../../kernel/core/text.js';
import type { Job, Jobs, Wake } from './background.js';
import { stateOf, wakeSummary } from './job-state.js';
import type { Repl, CommandHandler } from '../../kernel/console/command.js';
import { openedJobs } from './job-parts.js';

const shownBytes = 200_000;

/** `/jobs`: the commands in the background of all sessions of this run, their output, and how one is ended. */
export const showJobs: CommandHandler = {
  slash: async (argument, repl) => {
    const jobs = repl.parts.get(openedJobs).started();
    const [word = '', id] = argument.split(/\s+/);
    if (word === 'background') moveToBackground(repl, jobs);
    else if (!jobs || jobs.list().length === 0) repl.screen.notice('info', noJobs(repl));
    else if (word === '') await pickJob(repl, jobs);
    else if (word === 'kill') await kill(repl, jobs, findJob(jobs, id));
    else await show(repl, jobs, findJob(jobs, word));
  },
};

function noJobs({ tools }: Repl): string {
  return tools.registry.get('jobs')
    ? 'There are no jobs.'
    : 'There are no jobs; /tools +jobs offers them to the model.';
}

function moveToBackground({ screen, sessions }: Repl, jobs: Jobs | null): void {
  const moved = jobs?.toBackground(sessions.current().session.id) ?? 'nothing runs';
  if (moved === 'nothing runs') screen.notice('info', 'No running command to move to the background.');
  if (moved === 'too many') screen.notice('warn', 'Too many jobs are running. Stop one with /jobs kill.');
}

function findJob(jobs: Jobs, id: string | undefined): Job | undefined {
  return jobs.list().find((job) => String(job.id) === id);
}

function rowOf(job: Job): string {
  return `${job.id}: ${firstLine(job.line, 60)}`;
}

async function pickJob(repl: Repl, jobs: Jobs): Promise<void> {
  const items = jobs
    .list()
    .map((job) => ({ label: rowOf(job), detail: `${stateOf(job)}${wakeSummary(job.wakes)}`, value: job.id }));
  const id = await repl.screen.pick({ title: 'Which job?', items });
  const job = id === null ? undefined : findJob(jobs, String(id));
  if (!job) return;
  const what = job.end
    ? 'show'
    : await repl.screen.pick<'show' | 'kill'>({
        title: rowOf(job),
        items: [
          { label: 'Show its output', value: 'show' },
          { label: 'Stop it', detail: 'with its child processes', value: 'kill' },
        ],
        current: 'show',
      });
  if (what === 'show') await show(repl, jobs, job);
  if (what === 'kill') await kill(repl, jobs, job);
}

async function show({ screen }: Repl, jobs: Jobs, job: Job | undefined): Promise<void> {
  if (!job) screen.notice('error', 'No such job. /jobs lists them.');
  else {
    const output = await jobs.output(job.id, null, shownBytes);
    const rows = wakeRows(job.wakes);
    const head = rows.length === 0 ? '' : `${rows.join('\n')}\n\n`;
    await screen.page(`${rowOf(job)} (${stateOf(job)}${wakeSummary(job.wakes)})`, head + (output?.text ?? ''));
  }
}

async function kill({ screen }: Repl, jobs: Jobs, job: Job | undefined): Promise<void> {
  if (!job) {
    screen.notice('error', 'No such job. /jobs lists them.');
    return;
  }
  await jobs.kill(job.id, 'tell');
  screen.refresh();
  screen.notice('info', `Job ${job.id} was stopped.`);
}

/** Lists the wakes of a job, each with its cost. */
export function wakeRows(wakes: readonly Wake[]): readonly string[] {
  return wakes.map(({ lines, how, costUsd }, index) => {
    const cost = {
      turn: costUsd === null ? 'cost not known' : money(costUsd),
      joined: 'in a turn that ran',
      note: 'with the next message',
    }[how];
    const what = lines === 0 ? 'its end' : lines === 1 ? '1 line' : `${lines} lines`;
    return `wake ${index + 1}: ${what}, ${cost}`;
  });
}
