import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { commandEnv } from '../../kernel/config/sections.js';
import { CliError, type CommandHandler, type CommandLine, exit } from '../../kernel/console/command.js';
import { countOption, printJson } from '../../kernel/console/line-output.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import type { Sandbox } from '../../kernel/core/tool.js';
import { createSecretPaths } from '../../kernel/permissions/guarded-paths.js';
import { ownKeys, secretVariables } from '../../kernel/secrets/known-secrets.js';
import { counted } from '../../kernel/tools/define-tool.js';
import { atExit } from '../../kernel/tools/process/at-exit.js';
import { type Confine, createProcessRunner } from '../../kernel/tools/process/runner.js';
import { shellOf } from '../../kernel/tools/process/shell-file.js';
import { openSandbox } from '../../kernel/tools/sandbox/open-sandbox.js';
import {
  createEvaluation,
  type EvalFolder,
  type EvalPlan,
  newRunId,
  openEvaluation,
  type PlannedRun,
} from './eval-runs.js';
import { type CommandEnd, type EvalHost, runTask, withoutUndefined } from './one-run.js';
import { modelOption, namedModels } from './named-models.js';
import { reportLines, reportObject, runLine } from './show-run.js';
import { type EvalTask, readTasks } from './task-file.js';

interface Options {
  readonly repeat?: string;
  readonly jobs?: string;
  readonly resume?: string;
  readonly json?: boolean;
}

/** `agent eval run` */
export const runTasks: CommandHandler = {
  line: {
    example: 'agent eval run evals -m openai/gpt-5.2 -m anthropic/claude-sonnet-4-5 --repeat 3',
    options: (command) =>
      modelOption(command, 'a model to measure; repeatable')
        .option('--repeat <n>', 'how often each model gets each task (default 1)')
        .option('--jobs <n>', 'how many run at once (default 2)')
        .option('--resume <run>', 'continue an evaluation that was stopped or killed')
        .option('--json', 'one JSON object'),
    run: async (line, paths, options: Options) => {
      const { settings, evaluation, tasks } = await opened(line, paths, options);
      evaluation.take();
      try {
        return await runAll(line, { settings, evaluation, tasks }, options.json === true);
      } finally {
        evaluation.release();
      }
    },
  },
};

interface Opened {
  readonly settings: Settings;
  readonly evaluation: EvalFolder;
  readonly tasks: readonly EvalTask[];
}

async function opened(line: CommandLine, paths: readonly string[], options: Options): Promise<Opened> {
  const settings = await line.settings();
  const { cwd, config, guard } = settings;
  const models = namedModels(line.program.root);
  const { resume, repeat, jobs } = options;
  if (resume === undefined) {
    if (paths.length === 0)
      throw new CliError(exit.usage, 'no task is named', 'For example: agent eval run evals -m opus');
    const tasks = await readTasks(paths, cwd);
    const plan = planOf(settings, tasks, models, options);
    return { settings, tasks, evaluation: createEvaluation(config.files, guard.deep(plan)) };
  }
  if (paths.length > 0 || models.length > 0 || repeat !== undefined)
    throw new CliError(exit.usage, '--resume continues an evaluation as it was asked for', 'Leave the rest out.');
  const found = openEvaluation(config.files, resume);
  const plan: EvalPlan = { ...found.plan, jobs: jobs === undefined ? found.plan.jobs : jobsOf(jobs) };
  return { settings, tasks: await unchangedTasks(plan, cwd), evaluation: { ...found, plan } };
}

/** Reads the tasks of an evaluation again. Throws a `CliError` (2) where one has changed since it began. */
async function unchangedTasks({ run_id: id, tasks: kept }: EvalPlan, cwd: string): Promise<readonly EvalTask[]> {
  const files = kept.map(({ file }) => file);
  const tasks = await readTasks(files, cwd);
  const changed = tasks.find((task) => kept.find(({ file }) => file === task.file)?.sha256 !== task.sha256);
  if (changed === undefined) return tasks;
  throw new CliError(
    exit.usage,
    `${changed.file} has changed since evaluation ${id} began`,
    'Undo the change, or begin another evaluation with agent eval run.',
  );
}

function planOf(
  settings: Settings,
  tasks: readonly EvalTask[],
  models: readonly string[],
  { repeat, jobs }: Options,
): EvalPlan {
  const { config, loaded } = settings;
  const measured = models.length > 0 ? models : [configuredModel(settings)];
  const twice = measured.find((name, index) => measured.indexOf(name) !== index);
  if (twice !== undefined) throw new CliError(exit.usage, `-m ${twice} is there twice`, 'Use --repeat to repeat runs.');
  const repeats = Array.from({ length: countOption(repeat, '--repeat', 1) }, (_, index) => index + 1);
  return {
    run_id: newRunId(),
    created_at: Date.now(),
    sandbox: loaded.origins['sandbox']?.kind === 'default' ? 'workspace' : config.policy.sandbox,
    jobs: jobsOf(jobs),
    folder: mkdtempSync(join(realpathSync(tmpdir()), 'agent-eval-')),
    tasks: tasks.map(({ name, file, sha256, prompts, check }) => ({ name, file, sha256, prompts, check })),
    runs: tasks.flatMap(({ name }) =>
      measured.flatMap((model) => repeats.map((number): PlannedRun => ({ task: name, model, repeat: number }))),
    ),
  };
}

function configuredModel({ config: { provider } }: Settings): string {
  if (provider.model === null) return 'offline';
  return provider.provider === null ? provider.model : `${provider.provider}/${provider.model}`;
}

function jobsOf(given: string | undefined): number {
  return countOption(given, '--jobs', Math.min(2, availableParallelism()));
}

async function runAll(line: CommandLine, { settings, evaluation, tasks }: Opened, json: boolean): Promise<number> {
  const { plan } = evaluation;
  const stop = new AbortController();
  let stoppedBy: number | null = null;
  line.onEnd((exitCode) => {
    stoppedBy ??= exitCode;
    stop.abort();
  });
  const host = await openHost(line, settings, plan.sandbox, stop.signal);
  const waiting = plan.runs.map((_, index) => index).filter((index) => evaluation.result(index) === null);
  const total = plan.runs.length;
  line.out.error(
    `agent: evaluation ${plan.run_id}: ${counted(total, 'run')}, ${total - waiting.length} done already\n`,
  );
  const next = async (): Promise<void> => {
    for (;;) {
      const index = stop.signal.aborted ? undefined : waiting.shift();
      if (index === undefined) return;
      await runOne(line, host, { evaluation, tasks, settings }, index);
    }
  };
  try {
    await Promise.all(Array.from({ length: plan.jobs }, next));
  } finally {
    stop.abort();
    await host.close();
  }
  if (stoppedBy !== null) {
    line.out.error(`agent: stopped. To continue: agent eval run --resume ${plan.run_id}\n`);
    return stoppedBy;
  }
  rmSync(plan.folder, { recursive: true, force: true });
  if (json) printJson(line.out, reportObject(evaluation), 2);
  else line.out.print(reportLines(evaluation));
  return evaluation.results().length < total ? exit.failed : exit.done;
}

async function runOne(
  line: CommandLine,
  host: EvalHost,
  { evaluation, tasks, settings }: Opened,
  index: number,
): Promise<void> {
  const { plan } = evaluation;
  const planned = plan.runs[index];
  const task = tasks.find(({ name }) => name === planned?.task);
  if (!planned || !task) throw new Error(`the plan of ${plan.run_id} has no run ${index}`);
  const begun = evaluation.begun(index);
  // Each try has a folder of its own: what a killed process has started may still write into that of the try before.
  mkdirSync(plan.folder, { recursive: true, mode: 0o700 });
  const newFolder = (): string => mkdtempSync(join(plan.folder, `${index}-`));
  const ended = await runTask(host, { task, planned, begun, newFolder }, (now) => {
    evaluation.noteBegun(index, now);
  });
  if (ended === null) return;
  evaluation.noteResult(index, ended.result, settings.guard.text(ended.diff));
  if (ended.folder !== null) rmSync(ended.folder, { recursive: true, force: true });
  line.out.error(`${runLine(evaluation.results().length, plan.runs.length, ended.result)}\n`);
}

type OpenedHost = EvalHost & { close(): Promise<void> };

async function openHost(
  line: CommandLine,
  settings: Settings,
  sandbox: string,
  signal: AbortSignal,
): Promise<OpenedHost> {
  const programs = createProcessRunner({ marker: { name: '_AGENT_EVAL', value: String(process.pid) } });
  const commands = createProcessRunner({ marker: { name: '_AGENT_CHECK', value: String(process.pid) }, watched: true });
  const cancelExit = atExit(() => {
    commands.killNow();
  });
  if (sandbox !== 'off') await sandboxFor(settings, settings.cwd, sandbox as Exclude<Sandbox, 'off'>);
  const env = commandEnv(settings);
  const hidden = new Set(secretVariables(env, ownKeys(settings.config)));
  const shown = Object.fromEntries(Object.entries(env).filter(([name]) => !hidden.has(name)));
  return {
    env: settings.env,
    cwd: settings.cwd,
    processes: programs,
    sandbox,
    signal,
    withStore: (use) => line.withStore(({ store }) => use(store)),
    command: async (command, place, timeoutMs) => {
      const kind = sandbox as Sandbox;
      const confine = kind === 'off' ? undefined : await sandboxFor(settings, place.top, kind);
      const output: Buffer[] = [];
      const end = await commands.run({
        file: shellOf(shown),
        args: ['-c', command],
        cwd: place.work,
        env: withoutUndefined(shown),
        sandbox: kind,
        ...(confine ? { confine } : {}),
        signal,
        timeoutMs,
        maxTotalBytes: maxCommandBytes,
        joined: true,
        onOutput: (chunk) => {
          output.push(Buffer.from(chunk));
        },
      });
      return commandEnd(end, Buffer.concat(output).toString());
    },
    close: async () => {
      await Promise.all([programs.killBackground(), commands.killBackground()]);
      cancelExit();
    },
  };
}

const maxCommandBytes = 16 * 1024 * 1024;

function commandEnd(
  end: Awaited<ReturnType<ReturnType<typeof createProcessRunner>['run']>>,
  output: string,
): CommandEnd {
  if (end.ended === 'not_started') return { exitCode: null, output: end.error, ended: 'exit' };
  if (end.ended === 'output_limit')
    return { exitCode: 1, output: `it printed more than ${maxCommandBytes} bytes`, ended: 'exit' };
  return { exitCode: end.exitCode, output, ended: end.ended };
}

/** Opens the sandbox of a place. Throws a `CliError` (1) where there is none. */
async function sandboxFor(settings: Settings, workspace: string, sandbox: Exclude<Sandbox, 'off'>): Promise<Confine> {
  const { config, home, env } = settings;
  const secrets = createSecretPaths(config.fs.deny, home);
  const opened = await openSandbox({
    sandbox,
    workspace,
    home,
    env,
    passes: Object.keys(config.exec.env),
    isSecret: (path) => secrets.matches(path),
  });
  if (opened.ok) return opened.confine;
  throw new CliError(
    exit.failed,
    `runs cannot be made in the sandbox: ${opened.problem}`,
    `${opened.fix} Or run without it: agent eval run --sandbox off.`,
  );
}
