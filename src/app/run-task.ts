import type { ApprovalMode } from '../kernel/core/policy.js';
import type { TurnEnd } from '../kernel/core/session-port.js';
import type { Task } from '../features/scheduled-tasks/tasks.js';
import type { Denial } from '../kernel/core/tool.js';
import { counted } from '../kernel/tools/define-tool.js';
import { isError, parseEnvelope } from '../kernel/core/envelope.js';
import { type Event, knownEvent } from '../kernel/core/event.js';
import type { AnsweredCall } from '../kernel/core/projection.js';
import type { ModelChunk, Provider } from '../kernel/core/provider.js';
import { firstLine } from '../kernel/core/text.js';
import { CliError } from '../kernel/console/command.js';
import { endingOf, turnEndings } from '../kernel/console/turn-endings.js';
import { type TaskRunRequest, missedText, type TaskOutcome } from '../features/scheduled-tasks/scheduler.js';
import { apiCallOf } from '../features/scheduled-tasks/task-call.js';
import { createUsageMeter } from '../kernel/console/usage-meter.js';
import type { RootOptions } from '../kernel/console/options.js';
import { createSubsetRegistry } from '../kernel/tools/registry.js';
import { lastTools } from './context-files.js';
import { keepMode } from './kept-mode.js';
import { approvalModes } from '../kernel/core/policy.js';
import { createAgentSession, type Assembly, openRun, type Run } from './create-session.js';
import type { UnattendedRun } from '../kernel/console/run-settings.js';
import { readSettings } from './settings.js';

/** A summary is a few lines of a list; the session has the rest. */
const maxSummary = 500;

/** What a task does: a prompt for the model, or one call of a tool that is decided already. */
interface Work {
  readonly prompt: string;
  readonly call?: { readonly name: string; readonly arguments: string };
  /** The model tells of the result of the call, in one answer. Without it no model is asked. */
  readonly toldByModel?: boolean;
}

/** Does what a task says in a session of its own, in the directory of the task, with nobody there to ask. Returns what
 * came of it; a failure to begin is one, too. Never rejects. It is no freer than the session that made the task was then,
 * and than `atLeast`, the approval mode of whoever fires it. */
export async function runTask(
  options: RootOptions,
  request: TaskRunRequest,
  atLeast?: ApprovalMode,
): Promise<TaskOutcome> {
  try {
    const work = workOf(request);
    const [settings, chosen, asking] = await settingsFor({ options, atLeast }, request, work);
    const run = await openRun(settings, chosen, asking);
    try {
      const maker = await eventsOfMaker(run, request.task);
      await keepMode(run, maker, false);
      return await inSession(work.call ? run : withToolsOf(run, maker), request, work);
    } finally {
      await run.close();
    }
  } catch (error) {
    const said = error instanceof CliError ? `${error.message}. ${error.hint}` : String(error);
    return { status: 'failed', summary: firstLine(said, maxSummary), costUsd: 0 };
  }
}

function workOf({ task, run, missed }: TaskRunRequest): Work {
  const given = task.execution ?? {};
  const late =
    missed === 0 ? '' : `\n\n[Note: ${missedText(missed, run.scheduledFor, task.tz)} This is for all of them.]`;
  switch (task.type) {
    case 'agent_task':
      return { prompt: `${typeof given.prompt === 'string' ? given.prompt : task.description}${late}` };
    case 'api_call':
      return { prompt: task.description, call: apiCallOf(given) };
    case 'web_search': {
      const { limit = 3, summarize = true } = given;
      const query = typeof given.query === 'string' ? given.query : task.description;
      return {
        prompt: `${task.description}\n\nSum up what the search for “${query}” has found, with the addresses.${late}`,
        call: { name: 'web_search', arguments: JSON.stringify({ query, num_results: limit }) },
        toldByModel: summarize !== false,
      };
    }
    case 'reminder':
      return { prompt: task.description };
    default:
      return task.type satisfies never;
  }
}

/** Returns the settings of the task's directory, with what the run may cost. A run that is one call gets its tool
 * alone. */
async function settingsFor(
  { options, atLeast }: { readonly options: RootOptions; readonly atLeast: ApprovalMode | undefined },
  { task, maxCostUsd }: TaskRunRequest,
  { call, toldByModel = call === undefined }: Work,
): Promise<Parameters<typeof openRun>> {
  const { config } = await readSettings({ ...options, cwd: task.cwd });
  const chosen: RootOptions = {
    ...options,
    cwd: task.cwd,
    ...(atLeast !== undefined && isStricter(atLeast, config.policy.approval) ? { approval: atLeast } : {}),
    ...(call === undefined ? {} : { tools: call.name }),
    ...(toldByModel
      ? { maxCost: String(Math.min(maxCostUsd, config.limits.maxCostUsd ?? Infinity)) }
      : { model: 'offline/offline' }),
  };
  return [await readSettings(chosen), chosen];
}

/** Returns the events of the session that made a task, up to that second: the store keeps no more of the time. */
async function eventsOfMaker({ store }: Run, { madeInSession, createdAt }: Task): Promise<readonly Event[]> {
  if (madeInSession === null || (await store.session(madeInSession)) === null) return [];
  return (await store.load(madeInSession)).filter((event) => event.createdAt < createdAt + 1000);
}

/** Returns the run with no other tools than the session that made the task had. A task that is one call keeps its tool:
 * the user allowed that very call. */
function withToolsOf(run: Run, maker: readonly Event[]): Run {
  const tools = lastTools(maker)?.tools;
  if (!tools) return run;
  const names = new Set(tools.map(({ name }) => name));
  const registry = createSubsetRegistry(run.toolbox.registry, {
    offers: (name) => names.has(name),
    reaches: () => true,
  });
  return { ...run, toolbox: { ...run.toolbox, registry } };
}

function isStricter(one: ApprovalMode, other: ApprovalMode): boolean {
  return approvalModes.indexOf(one) > approvalModes.indexOf(other);
}

const newSession = { continueNewest: false, resume: null, fork: false };

async function inSession(run: Run, request: TaskRunRequest, work: Work): Promise<TaskOutcome> {
  const { task, signal } = request;
  const { call } = work;
  const mission: UnattendedRun = {
    grants: task.grants,
    ...(call ? { answers: (model) => callFirst(call, work.toldByModel === true ? model : null) } : {}),
  };
  const chat = await createAgentSession(run, { ...newSession, mission }, false);
  const { session } = chat;
  const interrupt = (): void => {
    session.interrupt();
  };
  signal.addEventListener('abort', interrupt);
  try {
    const meter = createUsageMeter();
    session.subscribe((event) => {
      meter.see(event);
      const { cost_usd: costUsd } = meter.sum();
      if (event.type === 'event' && event.event.kind === 'usage' && costUsd !== null)
        void request.note({ costUsd }).catch(() => undefined);
    });
    await begin(run, chat, request);
    if (signal.aborted) return { status: 'interrupted', summary: 'It was stopped.', costUsd: 0 };
    const end = await session.submit(work.prompt);
    const unsaved = await chat.save();
    const callFailed = work.call !== undefined && lastCallFailed(session.events());
    return { ...outcomeOf(end, { unsaved, callFailed, isStopped: signal.aborted }), costUsd: meter.sum().cost_usd };
  } finally {
    signal.removeEventListener('abort', interrupt);
    await chat.close();
  }
}

/** Records which run of which task the session is. */
async function begin(
  run: Run,
  { session, secrets }: Assembly,
  { task, run: { id, scheduledFor }, missed, note }: TaskRunRequest,
): Promise<void> {
  await session.append({
    kind: 'task',
    content: task.description,
    data: { task_id: task.id, run_id: id, scheduled_for: scheduledFor, missed },
  });
  await note({ sessionId: session.id });
  await run.store.update(session.id, { title: secrets.text(firstLine(`Task: ${task.description}`, 120)) });
}

type Ended = Omit<TaskOutcome, 'costUsd'>;

/** What else decides what came of a run. */
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
  return firstLines(text) || 'It ended without a word.';
}

function faultText({ message, hint }: NonNullable<TurnEnd['fault']>): string {
  return firstLines(hint === undefined ? message : `${message} ${hint}`);
}

/** Names the calls that wanted a yes. */
function deniedText(denials: readonly Denial[]): string {
  return firstLines(`Not run: ${denials.map(({ content, reason }) => `${content}: ${reason}`).join('. ')}.`);
}

function lastCallFailed(events: readonly Event[]): boolean {
  const result = events.map(knownEvent).findLast((event) => event?.kind === 'tool_result');
  return result?.kind === 'tool_result' && !result.data.success;
}

function firstLines(text: string): string {
  const { length } = text.trim();
  return length > maxSummary ? `${text.trim().slice(0, maxSummary).toWellFormed()} …` : text.trim();
}

/** Answers a conversation with one call first, and then as `next` does, which may not call any more; without it with
 * what the call gave. */
function callFirst({ name, arguments: text }: NonNullable<Work['call']>, next: Provider | null): Provider {
  return {
    async *stream(request) {
      const answered = request.conversation.messages.findLast((message) => message.role === 'assistant');
      if (answered?.role === 'assistant' && next) {
        yield* next.stream({ ...request, toolChoice: 'none' });
        return;
      }
      if (answered?.role === 'assistant') yield { type: 'text', text: resultText(answered.calls) };
      else yield { type: 'tool_call', call: { id: 'task_1', name, arguments: text } };
      yield free;
      yield { type: 'end', stop: answered ? 'stop' : 'tool' };
    },
  };
}

const free: ModelChunk = { type: 'usage', usage: { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 }, costUsd: 0 };

function resultText(calls: readonly AnsweredCall[]): string {
  const envelope = parseEnvelope(calls.at(-1)?.result.output ?? '');
  if (isError(envelope)) return envelope.error;
  const { status } = envelope;
  return typeof status === 'number' ? `${status} ${envelope.output}` : envelope.output;
}

/** A yes or a model for this conversation is none for tasks; what holds calls back is for both. A list of tools that
 * only adds some (`+web`) holds nothing back. */
export function taskOptions(options: RootOptions): RootOptions {
  const { safe, sandbox, test, ephemeral, debug, outputFormat, tools } = options;
  const isNarrower = tools === false || (typeof tools === 'string' && !tools.startsWith('+'));
  return {
    ...(isNarrower ? { tools } : {}),
    outputFormat,
    set: [],
    ...(safe ? { safe } : {}),
    ...(sandbox === undefined ? {} : { sandbox }),
    ...(test ? { test } : {}),
    ...(ephemeral ? { ephemeral } : {}),
    ...(debug ? { debug } : {}),
  };
}
