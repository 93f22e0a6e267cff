import { addAll } from '../../kernel/core/lists.js';
import { setTimeout as wait } from 'node:timers/promises';
import { knownEvent } from '../../kernel/core/event.js';
import type { Store } from '../../kernel/core/store.js';
import type { RunStatus, Task, TaskRun, Tasks } from './tasks.js';
import { didYouMean } from '../../kernel/core/text.js';
import { decisionText } from '../../kernel/core/sanitize.js';
import type { Firing } from './scheduler.js';
import { firedTasks } from './task-parts.js';
import { backgroundWork } from '../../kernel/console/background-work.js';
import { unattendedRunner } from '../../kernel/console/unattended.js';
import { timerKinds, timerText } from './timer-files.js';
import {
  CliError,
  type CommandLine,
  exit,
  type CommandStore,
  type Repl,
  type CommandHandler,
} from '../../kernel/console/command.js';
import { openFiring, type TaskEventListener } from './open-scheduler.js';
import { oneLine, printListing } from '../../kernel/console/line-output.js';
import { runExitCode } from '../../kernel/console/turn-endings.js';
import {
  changes,
  closeQuestions,
  findTask,
  formatTaskList,
  ranLines,
  readInbox,
  runAsJson,
  runsOf,
  formatTask,
} from './found-tasks.js';
import { taskTableSet } from './task-tables.js';

interface Options {
  readonly json?: boolean;
  readonly yes?: boolean;
}

const slashRuns = 20;

/** `agent tasks` holds other verbs; `/tasks` is all of them, and its list has the commands in the background, too. */
export const tasks: CommandHandler = {
  line: { example: 'agent tasks list' },
  slash: async (argument, repl) => {
    const isList = /^(list( --all)?)?$/.test(argument.trim());
    const jobs = isList ? await repl.parts.find(backgroundWork)?.() : undefined;
    if (jobs !== undefined && jobs.length > 0) repl.screen.print(['In the background:', ...jobs, ''].join('\n'));
    await runSlash('tasks', argument, repl);
    if (isList && repl.tools.registry.get('jobs'))
      repl.screen.notice(
        'info',
        '/jobs shows the output of background commands; /schedule lists only scheduled tasks.',
      );
  },
};

/** `/schedule`: reminders and scheduled tasks alone. */
export const schedule: CommandHandler = { slash: (argument, repl) => runSlash('schedule', argument, repl) };

async function runSlash(command: 'tasks' | 'schedule', argument: string, repl: Repl): Promise<void> {
  const [word = 'list', ...ids] = argument.split(/\s+/).filter((part) => part !== '');
  const id = ids[0] ?? '';
  const found = await repl.tables(taskTableSet);
  switch (word) {
    case 'list':
      repl.screen.print(await formatTaskList(found, ids.includes('--all')));
      return;
    case 'show':
      repl.screen.print((await formatTask(found, id)).join('\n'));
      return;
    case 'runs':
      repl.screen.print(await ranLines(found, await runsOf(found, id, slashRuns), 'No task has run yet.'));
      return;
    case 'inbox':
      repl.screen.print(await readInbox(found));
      return;
    case 'pause':
    case 'resume':
    case 'rm':
      repl.screen.notice('info', await changes[word](found, id));
      return;
    default:
      await firedInRepl(command, word, id, repl);
  }
}

export const runTask: CommandHandler = {
  line: {
    example: 'agent tasks run k3v9',
    options: (command) => command.option('--json', 'the run as JSON'),
    run: (line, [id = ''], options: Options) =>
      withFiring(line, async ({ tasks, firing }) =>
        ended(line, await runNow(tasks, firing, await findTask(tasks, id)), options),
      ),
  },
};

export const approveRun: CommandHandler = {
  line: {
    example: 'agent tasks approve 01KA3B',
    options: (command) => command.option('--yes', 'do not ask again').option('--json', 'print the new run as JSON'),
    run: (line, [id = ''], options: Options) =>
      withFiring(line, async ({ tasks, firing, store }) => {
        const asked = await askedCalls(tasks, store, id);
        for (const text of asked.calls.map(callText)) line.out.error(`${text}\n`);
        if (!(await isAllowed(line, asked, options))) return exit.denied;
        await grant(tasks, asked);
        return ended(line, await runNow(tasks, firing, await findTask(tasks, asked.task.id)), options);
      }),
  },
};

export const runDueTasks: CommandHandler = {
  line: {
    example: 'agent tasks run-due --json',
    options: (command) => command.option('--json', 'print the fired tasks as a JSON array'),
    run: (line, _args, { json }: Options) =>
      withFiring(line, async ({ tasks, firing, ended: endedWith }) => {
        const before = new Set((await tasks.runs({ limit: mostRuns })).map((run) => run.id));
        await firing.check();
        const rest = new AbortController();
        const looking = look(firing, rest.signal);
        await firing.settled();
        rest.abort();
        await looking;
        await firing.settled();
        const runs = (await tasks.runs({ limit: mostRuns })).filter((run) => !before.has(run.id)).toReversed();
        printListing(line.out, json, runs.map(runAsJson), () => runs.map(runLine));
        return endedWith() ?? exit.done;
      }),
  },
};

/** A machine that was off for a week has fewer tasks that were due. */
const mostRuns = 1000;
/** The lease that a daemon holds, as one of a session. */
const daemonLease = 'tasks daemon';

export const taskDaemon: CommandHandler = {
  line: {
    example: 'agent tasks daemon',
    run: (line) =>
      withFiring(line, async ({ firing, store, stopped, ended: endedWith }) => {
        const { config } = await line.settings();
        // On a server each daemon is one worker of many.
        const release = config.store.mode === 'remote' ? null : await onlyDaemon(store);
        line.out.error('agent: running due tasks until stopped (Ctrl-C).\n');
        await keepLooking(firing, stopped, line.out);
        await firing.stop();
        await release?.();
        return endedWith() ?? exit.done;
      }),
  },
};

async function onlyDaemon(store: Opened['store']): Promise<() => Promise<void>> {
  const lease = await store.acquire(daemonLease);
  if (lease.held) return () => lease.release();
  throw new CliError(
    exit.failed,
    `process ${lease.holder.pid} on ${lease.holder.host} already runs the tasks of this store`,
    'One daemon is enough. Stop that one first.',
  );
}

const retryMs = 15_000;

/** Fires what comes due until `signal`. A store that fails is said once and asked again. */
async function keepLooking(firing: Firing, signal: AbortSignal, out: CommandLine['out']): Promise<void> {
  let said = '';
  for (let restMs = 0; !signal.aborted;) {
    try {
      await firing.check();
      restMs = await firing.restMs();
      said = '';
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (message !== said) out.error(`agent: ${message}. Retrying every 15 s.\n`);
      said = message;
      restMs = retryMs;
    }
    await wait(restMs, undefined, { signal }).catch(() => undefined);
  }
}

export const printTimer: CommandHandler = {
  line: {
    example: 'agent tasks timer systemd',
    run: async ({ out, settings }, [kind = '']) => {
      const known = timerKinds.find((name) => name === kind);
      if (known === undefined)
        throw new CliError(
          exit.usage,
          `there is no timer \`${kind}\``,
          `${didYouMean(kind, timerKinds)} Known: ${timerKinds.join(', ')}`.trim(),
        );
      const { env, config } = await settings();
      const { AGENT_HOME: home, PATH: path = '/usr/local/bin:/usr/bin:/bin' } = env;
      const keys = config.files.config.replace(/[^/]*$/, 'tasks.env');
      out.data(
        timerText(known, {
          argv: [process.execPath, process.argv[1] ?? 'agent', 'tasks', 'run-due'],
          env: { PATH: path, ...(home ? { AGENT_HOME: home } : {}) },
          keys,
        }),
      );
      return exit.done;
    },
  },
};

/** Fires what comes due until `signal`: no timer is longer than the clock may be trusted. */
async function look(firing: Firing, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await wait(await firing.restMs(), undefined, { signal }).catch(() => undefined);
    if (!signal.aborted) await firing.check();
  }
}

interface Opened {
  readonly tasks: Tasks;
  readonly firing: Firing;
  readonly store: CommandStore['store'];
  /** Aborted by a signal that asks the program to end. */
  readonly stopped: AbortSignal;
  /** Its exit code, or null. */
  readonly ended: () => number | null;
}

/** Opens the store and what fires its tasks. A signal stops the runs. */
async function withFiring(line: CommandLine, use: (opened: Opened) => Promise<number>): Promise<number> {
  return await line.withStore(async ({ tables, store, settings }) => {
    const tasks = await tables(taskTableSet);
    const firing = openFiring(settings, tasks, {
      heard: createErrorReporter(line),
      asks: false,
      run: line.parts.get(unattendedRunner),
    });
    const stop = new AbortController();
    let endedWith: number | null = null;
    line.onEnd((exitCode) => {
      endedWith ??= exitCode;
      stop.abort();
      void firing.stop();
    });
    return await use({ tasks, firing, store, stopped: stop.signal, ended: () => endedWith });
  });
}

/** Returns a listener that prints to standard error. It never reports a notification as read: no user may be there. */
function createErrorReporter({ out }: CommandLine): TaskEventListener {
  return ({ title, text }) => {
    out.error(`${title}: ${oneLine(text, 500)}\n`);
    return false;
  };
}

async function runNow(tasks: Tasks, firing: Firing, task: Task): Promise<TaskRun> {
  const run = await firing.runNow(task);
  if (run === null)
    throw new CliError(
      exit.failed,
      `task ${task.id} cannot start now: it is already running, or two others are`,
      `See it with agent tasks runs ${task.id}.`,
    );
  await firing.settled();
  return (await tasks.runs({ taskId: task.id, limit: shownBack })).find(({ id }) => id === run.id) ?? run;
}

const shownBack = 20;

function ended({ out }: CommandLine, run: TaskRun, { json }: Options): number {
  if (json) printListing(out, true, [runAsJson(run)], () => []);
  else out.print(`${runLine(run)}\n`);
  return runExitCode(run.status);
}

function runLine({ id, taskId, status, summary }: TaskRun): string {
  return `${status} ${taskId} ${id}${summary === null ? '' : `: ${summary}`}`;
}

/** The calls of a run that wanted a yes and got none, and the task they belong to. */
interface Asked {
  readonly task: Task;
  readonly calls: readonly AskedCall[];
}

interface AskedCall {
  readonly name: string;
  /** The arguments as the model wrote them; secrets are masked. */
  readonly argumentsText: string;
  readonly reasons: readonly string[];
  readonly sha256: string;
}

/** A run that reached a limit may have made such calls before. */
const stopsAtCalls: ReadonlySet<RunStatus> = new Set<RunStatus>(['needs_approval', 'limit']);

/** Finds the calls of a run by its id or the end of one, or of the last such run of a task. */
async function askedCalls(tasks: Tasks, store: Pick<Store, 'load' | 'agentsOf'>, text: string): Promise<Asked> {
  const wanted = text.trim().toUpperCase();
  const runs = await tasks.runs({ limit: mostRuns });
  const waiting = runs.filter(({ status }) => status === 'needs_approval');
  const found = runs.filter(
    ({ id, status }) => stopsAtCalls.has(status) && wanted !== '' && (id.startsWith(wanted) || id.endsWith(wanted)),
  );
  const run = found.length === 1 ? found[0] : waiting.find(({ taskId }) => taskId === text.trim().toLowerCase());
  if (run === undefined)
    throw new CliError(
      exit.usage,
      found.length > 1 ? `${found.length} runs fit \`${text}\`` : `no run \`${text}\` waits for approval`,
      waiting.length === 0
        ? 'None does.'
        : `These do: ${waiting
            .slice(0, 5)
            .map(({ id }) => id)
            .join(', ')}`,
    );
  const task = await findTask(tasks, run.taskId);
  const asked = run.sessionId === null ? [] : await unaskedCalls(store, run.sessionId);
  if (asked.length === 0)
    throw new CliError(exit.failed, `the calls of run ${run.id} are no longer stored`, 'Run the task again.');
  return { task, calls: asked };
}

/** Returns the calls of a session, and of its sub-agents, that wanted a yes and got none. */
async function unaskedCalls(store: Pick<Store, 'load' | 'agentsOf'>, sessionId: string): Promise<readonly AskedCall[]> {
  const events = (await store.load(sessionId)).map(knownEvent);
  const calls = new Map(events.flatMap((event) => (event?.kind === 'tool_call' ? [[event.data.id, event.data]] : [])));
  const own = events.flatMap((event): readonly AskedCall[] => {
    if (event?.kind !== 'approval' || event.data.by !== 'headless') return [];
    const { tool_call_id: callId, reasons, call_sha256: sha256 } = event.data;
    const call = calls.get(callId)?.function;
    return call ? [{ name: call.name, argumentsText: call.arguments, reasons, sha256 }] : [];
  });
  const ofAgents: AskedCall[] = [];
  for (const { id } of await store.agentsOf(sessionId)) addAll(ofAgents, await unaskedCalls(store, id));
  return [...own, ...ofAgents];
}

function callText({ name, argumentsText, reasons }: AskedCall): string {
  return [name, argumentsText, ...reasons].map((text) => decisionText(text, { lines: false })).join('\n');
}

async function isAllowed({ out }: CommandLine, { task, calls }: Asked, { yes }: Options): Promise<boolean> {
  if (yes) return true;
  if (!out.canAsk) throw new CliError(exit.denied, 'no terminal to ask in', 'Add --yes to run the calls above.');
  const what = calls.length === 1 ? 'this call' : `these ${calls.length} calls`;
  const reply = await out.ask(`Allow task ${task.id} exactly ${what}, now and in later runs? [y/N] `);
  return /^y(es)?$/i.test(reply.trim());
}

async function grant(tasks: Tasks, { task, calls }: Asked): Promise<void> {
  const grants = [...new Set([...task.grants, ...calls.map(({ sha256 }) => sha256)])];
  await tasks.change(task.id, { grants });
  await closeQuestions(tasks, task.id);
}

/** `/tasks run` and `/tasks approve`. */
async function firedInRepl(command: string, word: string, id: string, { parts, store, screen }: Repl): Promise<void> {
  if (!slashWords.includes(word)) {
    screen.notice('warn', `There is no /${command} ${word}. There are ${slashWords.join(', ')}.`);
    return;
  }
  const fired = await parts.find(firedTasks)?.();
  if (fired === undefined)
    throw new CliError(
      exit.usage,
      `/${command} ${word} works only in the REPL`,
      `Use agent tasks ${word} ${id}`.trim(),
    );
  const { tasks, firing } = fired;
  if (word === 'approve') {
    const asked = await askedCalls(tasks, store, id);
    screen.print(asked.calls.map(callText).join('\n'));
    const allowed = await screen.pick({
      title: `Allow task ${asked.task.id} exactly that, now and in later runs?`,
      items: [
        { label: 'No', value: false },
        { label: 'Yes', value: true },
      ],
    });
    if (allowed !== true) return;
    await grant(tasks, asked);
    await begin(tasks, firing, asked.task.id, screen);
  } else await begin(tasks, firing, id, screen);
}

const slashWords = ['list', 'show', 'run', 'pause', 'resume', 'rm', 'inbox', 'runs', 'approve'];

/** Begins a run beside the conversation; its end is said. */
async function begin(tasks: Tasks, firing: Firing, id: string, screen: Repl['screen']): Promise<void> {
  const task = await findTask(tasks, id);
  const run = await firing.runNow(task);
  if (run === null)
    screen.notice('warn', `Task ${task.id} cannot start now: it is already running, or two others are.`);
  else if (task.type !== 'reminder') screen.notice('info', `Task ${task.id} has started: ${oneLine(task.description)}`);
}
