import { randomBytes } from 'node:crypto';
import { isRecord, type JsonObject } from '../../kernel/core/json.js';
import { type Task, type Tasks, type TaskType, taskTypes } from './tasks.js';
import type { ToolContext, ToolOutcome } from '../../kernel/core/tool.js';
import {
  counted,
  type DefinedTool,
  defineTool,
  failed,
  outOfBounds,
  succeeded,
} from '../../kernel/tools/define-tool.js';
import { apiCallOf, grantFor } from './task-call.js';
import {
  localTime,
  parseDelay,
  parseSchedule,
  runTimes,
  type ScheduleContext,
  zoneProblem,
} from './schedule-parser.js';

export interface ScheduleOptions {
  readonly tasks: () => Promise<Tasks>;
  /** Unix ms of the wall clock. */
  readonly now: () => number;
  /** The IANA zone of hours that name none. */
  readonly zone: () => string;
  /** The model that tasks would ask, where its price is not known, so that no limit would hold; else null. */
  readonly unpriced: () => string | null;
  /** Hides secrets, before anything is stored. */
  readonly hide: <T>(value: T) => T;
}

const limits = { timeout_ms: 2000, rate_per_min: 20, max_output_bytes: 2048 };
/** A model that makes more in a loop is stopped. */
const maxTasks = 500;
const maxExecutionBytes = 32_768;
/** The time after which a model's task that asks a model ends, unless the user keeps it. */
const modelsOwnMs = 30 * 24 * 60 * 60 * 1000;
/** The session of a call that the user makes with `agent tools call`. */
const ofPerson = 'call';

/** Makes the tools that set, list and cancel tasks. */
export function scheduleTools(options: ScheduleOptions): readonly DefinedTool[] {
  return [addReminder(options), addRecurringTask(options), listTasks(options), cancelTask(options)];
}

function addReminder(d: ScheduleOptions): DefinedTool {
  return defineTool({
    name: 'add_reminder',
    description: 'Set a one-time reminder',
    effect: 'write',
    limits,
    schema: {
      type: 'object',
      properties: {
        delay: { type: 'string', description: '5m, 2h, 1d, at 5pm or ISO time' },
        message: { type: 'string' },
      },
      required: ['delay', 'message'],
      additionalProperties: false,
    },
    check: (args) => outOfBounds(args, { delay: [1, 100], message: [1, 2000] }),
    judge: () => ({ risk: 'mutating', reasons: ['it sets a reminder'], singular: true }),
    run: async ({ delay, message }, ctx) => {
      const here = { now: d.now(), tz: d.zone() };
      const at = parseDelay(delay, here);
      if (typeof at !== 'number') return failed('invalid_args', at.problem, { argument: 'delay' });
      const task = await added(d, ctx, {
        type: 'reminder',
        description: message,
        scheduleType: 'once',
        schedule: { delay: delay.trim() },
        execution: null,
        nextRun: at,
        tz: here.tz,
      });
      if ('envelope' in task) return task;
      const when = shortTime(at, here);
      return succeeded(`reminder for ${when}`, {
        output: `Reminder set for ${when}.`,
        success: true,
        reminder_id: task.id,
        trigger_at: localTime(at, here.tz),
        timezone: here.tz,
      });
    },
  });
}

/** `14:35`, with the day where it is another, with seconds where it is soon. */
function shortTime(at: number, { now, tz }: ScheduleContext): string {
  const [day = '', time = ''] = localTime(at, tz).split('T');
  const shown = at - now < 120_000 ? time : time.slice(0, 5);
  return localTime(now, tz).startsWith(day) ? shown : `${day} ${shown}`;
}

const recurringSchema = {
  type: 'object',
  properties: {
    schedule: {
      type: 'string',
      description: 'daily 9am, weekdays 6pm, monday 10am, every 15m, */15 * * * *',
    },
    task_type: { enum: taskTypes },
    description: { type: 'string' },
    execution_data: {
      type: 'object',
      description: 'agent_task: {prompt}; api_call: {url, method}; web_search: {query, limit: 3, summarize: true}',
    },
    timezone: { type: 'string' },
    missed: { enum: ['run_once', 'skip', 'ask'] },
    max_cost_usd: { type: 'number' },
  },
  required: ['schedule', 'task_type', 'description'],
  additionalProperties: false,
} as const;

function addRecurringTask(d: ScheduleOptions): DefinedTool {
  return defineTool({
    name: 'add_recurring_task',
    description: 'Schedule recurring task',
    effect: 'write',
    limits,
    schema: recurringSchema,
    check: (args) =>
      outOfBounds(args, { schedule: [1, 200], description: [1, 2000], max_cost_usd: [Number.MIN_VALUE, Infinity] }) ??
      executionProblem(args.task_type, args.execution_data ?? {}),
    judge: ({ task_type: type }) =>
      type === 'reminder'
        ? { risk: 'mutating', reasons: ['it sets a repeating reminder'], singular: true }
        : { risk: 'dangerous', singular: true, reasons: ['it runs repeatedly, even when nobody is there'] },
    run: async (args, ctx) => {
      const tz = args.timezone ?? d.zone();
      const zone = zoneProblem(tz);
      if (zone !== null) return failed('invalid_args', zone, { argument: 'timezone' });
      const type = args.task_type;
      const now = d.now();
      const schedule = parseSchedule(args.schedule, type, { now, tz });
      if ('problem' in schedule) return failed('invalid_args', schedule.problem, { argument: 'schedule' });
      const times = runTimes(schedule, now, 3);
      const task = await added(d, ctx, {
        type,
        description: args.description,
        scheduleType: 'recurring',
        schedule,
        execution: type === 'reminder' ? null : withDefaults(type, args.execution_data as JsonObject),
        nextRun: times[0] ?? now,
        tz,
        missed: args.missed ?? 'run_once',
        maxCostUsd: args.max_cost_usd ?? null,
      });
      if ('envelope' in task) return task;
      const shown = times.map((time) => localTime(time, tz));
      return succeeded(`task ${task.id}: ${schedule.source}`, {
        output: `Task ${task.id} runs ${schedule.source} (${tz}), next ${shown[0]?.replace('T', ' ') ?? ''}.${waitsText(task)}`,
        success: true,
        task_id: task.id,
        cron: schedule.cron,
        next_runs: shown,
        timezone: tz,
        ...(task.expiresAt === null ? {} : { expires_at: localTime(task.expiresAt, tz) }),
      });
    },
  });
}

/** The user's yes to making a task with an `api_call` is one to that request. */
function waitsText({ type, grants }: Task): string {
  return type === 'api_call' && grants.length === 0
    ? ' Unless web.api.allow allows this request, the first run waits until the user allows it: agent tasks approve.'
    : '';
}

function asksModel({ type, execution }: Pick<Task, 'type' | 'execution'>): boolean {
  return type === 'agent_task' || (type === 'web_search' && execution?.summarize !== false);
}

function noPrice(model: string): string {
  return (
    `the price of ${model} is not known, so nothing would limit what the task may cost. ` +
    'The user can add the price to "models" in the configuration.'
  );
}

type Problem = ReturnType<NonNullable<DefinedTool['check']>>;
type Data = Readonly<Record<string, unknown>>;

/** Says what a task could not run with. */
function executionProblem(type: TaskType, data: Data): Problem {
  const [name, problem, expected] =
    JSON.stringify(data).length > maxExecutionBytes
      ? ['', 'is too long', `at most ${maxExecutionBytes} bytes`]
      : (checks[type](data) ?? [null]);
  if (name === null || problem === undefined || expected === undefined) return null;
  return { argument: name === '' ? 'execution_data' : `execution_data/${name}`, problem, expected };
}

type Found = readonly [name: string, problem: string, expected: string] | null;

const checks: Readonly<Record<TaskType, (data: Data) => Found>> = {
  reminder: () => null,
  agent_task: ({ prompt }) =>
    isText(prompt, 20_000) ? null : ['prompt', 'is missing or not a string', 'the task, as in "Sum up the news"'],
  api_call: ({ url, method, headers }) => badUrl(url) ?? badMethod(method) ?? badHeaders(headers),
  web_search: ({ query, limit = 3, summarize = true }) => {
    if (!isText(query, 400)) return ['query', 'is missing or not a string', '1 to 400 characters'];
    if (!Number.isInteger(limit) || Number(limit) < 1 || Number(limit) > 10)
      return ['limit', 'is not a number of results', '1 to 10'];
    return typeof summarize === 'boolean' ? null : ['summarize', 'is neither', 'true or false'];
  },
};

function isText(value: unknown, maxChars: number): value is string {
  return typeof value === 'string' && value.trim() !== '' && value.length <= maxChars;
}

function badUrl(url: unknown): Found {
  return typeof url === 'string' && /^https?:\/\/[^/]/i.test(url) && URL.canParse(url)
    ? null
    : ['url', 'is missing or not an address', 'http or https, as in "http://home.lan/lights/off"'];
}

function badMethod(method: unknown): Found {
  const known = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
  if (method === undefined || (typeof method === 'string' && known.includes(method))) return null;
  return ['method', `is ${JSON.stringify(method)}`, known.join(', ')];
}

/** Returns the problem of headers. Those that sign a request come from the settings: a model must not set them, and the
 * table of tasks holds no secrets. */
function badHeaders(headers: unknown): Found {
  if (headers === undefined) return null;
  if (!isRecord(headers) || Object.values(headers).some((value) => typeof value !== 'string'))
    return ['headers', 'is not an object of strings', '{"Accept": "application/json"}'];
  const ours = Object.keys(headers).find((name) => /^(?:authorization|cookie|host|proxy-.*)$/i.test(name));
  return ours === undefined ? null : ['headers', `must not have "${ours}"`, 'what signs a request is in the settings'];
}

function withDefaults(type: TaskType, data: JsonObject): JsonObject {
  if (type === 'api_call' && data.method === undefined) return { ...data, method: 'GET' };
  return type === 'web_search' && data.limit === undefined ? { ...data, limit: 3 } : data;
}

type Wanted = Pick<Task, 'type' | 'description' | 'scheduleType' | 'schedule' | 'execution' | 'nextRun' | 'tz'> &
  Partial<Pick<Task, 'missed' | 'maxCostUsd'>>;

/** Stores a task, without the secrets in it. */
async function added(d: ScheduleOptions, ctx: ToolContext, wanted: Wanted): Promise<Task | ToolOutcome> {
  const unpriced = asksModel(wanted) ? d.unpriced() : null;
  if (unpriced !== null) return failed('execution_failed', `Not set: ${noPrice(unpriced)}`);
  const tasks = await d.tasks();
  const active = (await tasks.list()).filter((task) => task.enabled).length;
  if (active >= maxTasks)
    return failed('limit_reached', `There are ${active} tasks already; cancel some with cancel_task first.`);
  const madeInSession = ctx.session.id === ofPerson ? null : ctx.session.id;
  const now = d.now();
  const hidden = d.hide(wanted);
  const call = hidden.type === 'api_call' && hidden.execution ? apiCallOf(hidden.execution) : null;
  const task: Task = {
    missed: 'run_once',
    maxCostUsd: null,
    ...hidden,
    id: newId(),
    enabled: true,
    createdAt: now,
    lastRun: null,
    cwd: ctx.cwd,
    grants: ctx.approved && call ? [grantFor(call)] : [],
    expiresAt: wanted.type === 'agent_task' && madeInSession !== null ? now + modelsOwnMs : null,
    failures: 0,
    madeInSession,
  };
  await tasks.add(task);
  return task;
}

/** Without characters that look alike. */
const letters = 'abcdefghijkmnpqrstuvwxyz23456789';

function newId(): string {
  return [...randomBytes(6)].map((byte) => letters[byte % letters.length] ?? '').join('');
}

function listTasks(d: ScheduleOptions): DefinedTool {
  return defineTool({
    name: 'list_tasks',
    description: 'List active scheduled tasks',
    effect: 'read',
    limits: { timeout_ms: 2000, max_output_bytes: 32_768 },
    schema: { type: 'object', properties: {}, additionalProperties: false },
    judge: () => ({ risk: 'read-only', reasons: [] }),
    run: async () => {
      const active = (await (await d.tasks()).list()).filter((task) => task.enabled);
      return succeeded(counted(active.length, 'task'), {
        output: active.length === 0 ? 'There are no scheduled tasks.' : active.map((task) => taskLine(task)).join('\n'),
        count: active.length,
      });
    },
  });
}

/** `abc123 reminder, once at 2026-01-27 14:35 (Europe/Berlin): check the oven`. */
function taskLine(task: Task): string {
  const next = localTime(task.nextRun, task.tz).replace('T', ' ').slice(0, 16);
  const when = 'cron' in task.schedule ? `${task.schedule.source}, next` : 'once at';
  return `${task.id} ${task.type}, ${when} ${next} (${task.tz}): ${task.description.replaceAll(/\s+/g, ' ')}`;
}

function cancelTask(d: ScheduleOptions): DefinedTool {
  return defineTool({
    name: 'cancel_task',
    description: 'Cancel a scheduled task',
    effect: 'write',
    limits,
    schema: {
      type: 'object',
      properties: { task_id: { type: 'string' } },
      required: ['task_id'],
      additionalProperties: false,
    },
    check: (args) => outOfBounds(args, { task_id: [1, 100] }),
    judge: () => ({ risk: 'mutating', reasons: ['it removes a task'] }),
    run: async ({ task_id: text }) => {
      const tasks = await d.tasks();
      const match = await tasks.find(text);
      switch (match.found) {
        case 'one': {
          const { id, description } = match.task;
          await tasks.remove(id);
          return succeeded(`cancelled ${id}`, { output: `Cancelled: ${description}`, success: true, task_id: id });
        }
        case 'many': {
          const ids = match.tasks.map(({ id }) => id);
          return failed('not_found', `"${text}" is the start of ${ids.length} tasks; name one whole.`, {
            nearest: ids.slice(0, 20),
          });
        }
        case 'none': {
          const { nearest } = match;
          const hint = nearest[0] === undefined ? 'list_tasks shows those there are' : `did you mean "${nearest[0]}"`;
          return failed('not_found', `No task "${text}"; ${hint}.`, { nearest });
        }
        default:
          return match satisfies never;
      }
    },
  });
}
