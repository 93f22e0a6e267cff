import { endingOf, turnEndings } from '../../kernel/console/turn-endings.js';
import type { RunUnattended, UnattendedEnd, UnattendedRequest } from '../../kernel/console/unattended.js';
import type { TurnEnd } from '../../kernel/core/session-port.js';
import { firstLine } from '../../kernel/core/text.js';
import type { Denial } from '../../kernel/core/tool.js';
import { counted } from '../../kernel/tools/define-tool.js';
import { missedText, type RunTask, type TaskOutcome, type TaskRunRequest } from './scheduler.js';
import { apiCallOf } from './task-call.js';

/** A summary is a few lines of a list; the session has the rest. */
const maxSummary = 500;

/** Returns what runs tasks, each in a session of its own in the directory of the task. A failure to begin is an outcome,
 * too. */
export function taskRunner(run: RunUnattended): RunTask {
  return async (request, atLeast) => taskOutcome(await run(unattended(request), atLeast), request.signal.aborted);
}

function unattended(request: TaskRunRequest): UnattendedRequest {
  const { task, run, missed, maxCostUsd, signal, note } = request;
  const { description, madeInSession, createdAt } = task;
  return {
    ...workOf(request),
    cwd: task.cwd,
    maxCostUsd,
    grants: task.grants,
    maker: madeInSession === null ? null : { sessionId: madeInSession, at: createdAt },
    event: {
      kind: 'task',
      content: description,
      data: { task_id: task.id, run_id: run.id, scheduled_for: run.scheduledFor, missed },
    },
    title: firstLine(`Task: ${description}`, 120),
    signal,
    note,
  };
}

function workOf({ task, run, missed }: TaskRunRequest): Pick<UnattendedRequest, 'prompt' | 'call'> {
  const given = task.execution ?? {};
  const late =
    missed === 0 ? '' : `\n\n[Note: ${missedText(missed, run.scheduledFor, task.tz)} This is for all of them.]`;
  switch (task.type) {
    case 'agent_task':
      return { prompt: `${typeof given.prompt === 'string' ? given.prompt : task.description}${late}` };
    case 'api_call':
      return { prompt: task.description, call: { ...apiCallOf(given), toldByModel: false } };
    case 'web_search': {
      const { limit = 3, summarize = true } = given;
      const query = typeof given.query === 'string' ? given.query : task.description;
      return {
        prompt: `${task.description}\n\nSum up what the search for “${query}” has found, with the addresses.${late}`,
        call: {
          name: 'web_search',
          arguments: JSON.stringify({ query, num_results: limit }),
          toldByModel: summarize !== false,
        },
      };
    }
    case 'reminder':
      return { prompt: task.description };
    default:
      return task.type satisfies never;
  }
}

function taskOutcome(ended: UnattendedEnd, isStopped: boolean): TaskOutcome {
  if (ended.kind === 'not started')
    return { status: 'failed', summary: firstLine(ended.problem, maxSummary), costUsd: 0 };
  if (ended.kind === 'stopped') return { status: 'interrupted', summary: 'It was stopped.', costUsd: 0 };
  const { turn, costUsd, ...facts } = ended;
  return { ...outcomeOf(turn, { ...facts, isStopped }), costUsd };
}

type Ended = Omit<TaskOutcome, 'costUsd'>;

/** The other facts that decide the outcome of a run. */
interface Facts {
  /** Events that could not be saved. */
  readonly unsaved: number;
  /** The call that is the task failed. */
  readonly callFailed: boolean;
  readonly isStopped: boolean;
}

export function outcomeOf(end: TurnEnd, { unsaved, callFailed, isStopped }: Facts): Ended {
  const ending = isStopped ? 'interrupted' : endingOf(end, unsaved);
  const { status } = turnEndings[ending];
  if (ending === 'interrupted') return { status, summary: 'It was stopped.' };
  if (ending === 'done' && callFailed) return { status: 'failed', summary: outcomeText(end) };
  const lost = unsaved === 0 ? '' : `${counted(unsaved, 'event')} of its session could not be saved. `;
  const limit = ending === 'limit' ? `Stopped after ${end.turns} answers. ` : '';
  return { status, summary: firstLines(`${lost}${limit}${outcomeText(end)}`) };
}

/** Returns the fault, else the calls that nobody could allow, else the answer. */
function outcomeText({ fault, denials, text }: TurnEnd): string {
  if (fault) return faultText(fault);
  const unasked = denials.filter((denial) => denial.unasked);
  if (unasked.length > 0) return deniedText(unasked);
  return firstLines(text) || 'It ended without an answer.';
}

function faultText({ message, hint }: NonNullable<TurnEnd['fault']>): string {
  return firstLines(hint === undefined ? message : `${message} ${hint}`);
}

/** Names the calls that wanted a yes. */
function deniedText(denials: readonly Denial[]): string {
  return firstLines(`Not run: ${denials.map(({ content, reason }) => `${content}: ${reason}`).join('. ')}.`);
}

function firstLines(text: string): string {
  const { length } = text.trim();
  return length > maxSummary ? `${text.trim().slice(0, maxSummary).toWellFormed()} …` : text.trim();
}
