import { CliError, type CommandHandler, exit } from '../../kernel/console/command.js';
import { age, columns, printJson, printListing } from '../../kernel/console/line-output.js';
import { money } from '../../kernel/agent/budget.js';
import type { JsonObject } from '../../kernel/core/json.js';
import { counted } from '../../kernel/tools/define-tool.js';
import {
  type EvalFolder,
  evaluationIds,
  openEvaluation,
  removeEvaluation,
  type RunResult,
  type EvalStatus,
} from './eval-runs.js';
import { modelOption, namedModels } from './named-models.js';
import { mcnemar } from './scores.js';
import { summaries } from './summaries.js';

/** The object that `--json` prints. */
export function reportObject({ plan, results }: EvalFolder): JsonObject {
  const runs = results();
  return {
    run_id: plan.run_id,
    runs: runs.map((run) => ({ ...run })),
    summary: summaries(runs).map((one) => ({ ...one })),
  };
}

const statuses: readonly EvalStatus[] = ['failed', 'limit', 'error'];

/** Returns the results as text: what each model did, then the runs that did not pass. */
export function reportLines({ plan, results }: EvalFolder): string {
  const runs = results();
  const rows = summaries(runs).map((one) => {
    const own = runs.filter(({ model }) => model === one.model);
    const sum = (of: (run: RunResult) => number): number => own.reduce((total, run) => total + of(run), 0);
    const failures = statuses.flatMap((status) => {
      const count = own.filter((run) => run.status === status).length;
      return count === 0 ? [] : [`${count} ${status}`];
    });
    return [
      one.model,
      `${one.passed}/${one.total}`,
      `${percent(one.passed / one.total)} (${percent(one.low)} to ${percent(one.high)})`,
      one.cost_usd === null ? 'unknown' : money(one.cost_usd),
      String(sum((run) => run.input_tokens + run.output_tokens)),
      String(sum((run) => run.turns)),
      `${(sum((run) => run.wall_ms) / 1000).toFixed(1)} s`,
      failures.join(', ') || '-',
    ];
  });
  const head = ['model', 'passed', 'share (95 %)', 'cost', 'tokens', 'turns', 'time', 'not passed'];
  const failed = runs
    .filter(({ status }) => status !== 'passed')
    .map(({ task, model, repeat, status, reason }) => [task, model, String(repeat), status, reason ?? '']);
  const missing = plan.runs.length - runs.length;
  return [
    ...columns([head, ...rows]),
    ...(failed.length === 0 ? [] : ['', ...columns([['task', 'model', 'run', 'status', 'why'], ...failed])]),
    ...(missing === 0 ? [] : ['', `${counted(missing, 'run')} not made yet: agent eval run --resume ${plan.run_id}`]),
    '',
    `As a page: agent eval report ${plan.run_id} --html FILE`,
    '',
  ].join('\n');
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}

/** Says how one run ended, while others run. */
export function runLine(done: number, total: number, { task, model, repeat, status, reason }: RunResult): string {
  const which = repeat > 1 ? `, run ${repeat}` : '';
  return `${done}/${total} ${status}: ${task}, ${model}${which}${reason === null ? '' : ` (${reason})`}`;
}

/** `agent eval` holds other verbs. */
export const evaluate: CommandHandler = { line: { example: 'agent eval run evals -m opus -m sonnet' } };

/** `agent eval list` */
export const listRuns: CommandHandler = {
  line: {
    example: 'agent eval list',
    options: (command) => command.option('--json', 'one JSON array'),
    run: async (line, _args, { json }: { json?: boolean }) => {
      const { files } = (await line.settings()).config;
      const all = evaluationIds(files).map((id) => openEvaluation(files, id));
      const rows = all.map(({ plan, results }) => {
        const done = results();
        const passed = done.filter(({ status }) => status === 'passed').length;
        return {
          run_id: plan.run_id,
          created_at: new Date(plan.created_at).toISOString(),
          tasks: plan.tasks.length,
          models: [...new Set(plan.runs.map(({ model }) => model))],
          passed,
          done: done.length,
          total: plan.runs.length,
        };
      });
      printListing(line.out, json, rows, () =>
        rows.length === 0
          ? ['There are no evaluations. Begin one with agent eval run.']
          : columns(
              rows.map(({ run_id: id, created_at: at, tasks, models, passed, done, total }) => [
                id,
                age(Date.now() - Date.parse(at)),
                counted(tasks, 'task'),
                `${passed} of ${done} passed${done < total ? `, ${total - done} not made` : ''}`,
                models.join(', '),
              ]),
            ),
      );
      return exit.done;
    },
  },
};

/** `agent eval report` */
export const reportRun: CommandHandler = {
  line: {
    example: 'agent eval report 01kb --html report.html',
    options: (command) =>
      command.option('--html <file>', 'write a page with the diffs side by side').option('--json', 'one JSON object'),
    run: async (line, [id = ''], { html, json }: { html?: string; json?: boolean }) => {
      const { config, cwd } = await line.settings();
      const evaluation = openEvaluation(config.files, id);
      if (html !== undefined) {
        const { writeReportPage } = await import('./report-page.js');
        line.out.error(`agent: wrote ${writeReportPage(evaluation, cwd, html)}\n`);
      }
      if (json) printJson(line.out, reportObject(evaluation), 2);
      else if (html === undefined) line.out.print(reportLines(evaluation));
      return exit.done;
    },
  },
};

/** `agent eval rm` */
export const removeRun: CommandHandler = {
  line: {
    example: 'agent eval rm 01kb',
    run: async (line, [id = '']) => {
      const { files } = (await line.settings()).config;
      const evaluation = openEvaluation(files, id);
      evaluation.take();
      removeEvaluation(files, evaluation);
      line.out.print(`Removed evaluation ${evaluation.plan.run_id}. Its sessions are still there.\n`);
      return exit.done;
    },
  },
};

interface Pair {
  readonly task: string;
  readonly repeat: number;
  readonly model: string | null;
  readonly a: EvalStatus;
  readonly b: EvalStatus;
}

/** `agent eval compare` */
export const compareRuns: CommandHandler = {
  line: {
    example: 'agent eval compare 01kb 01kc',
    options: (command) =>
      modelOption(command, 'a model of the first evaluation, then one of the second; repeatable').option(
        '--json',
        'one JSON object',
      ),
    run: async (line, [one = '', other = ''], { json }: { json?: boolean }) => {
      const { files } = (await line.settings()).config;
      const first = openEvaluation(files, one);
      const second = openEvaluation(files, other);
      const pairs = pairsOf(first, second, namedModels(line.program.root));
      const onlyA = pairs.filter(({ a, b }) => a === 'passed' && b !== 'passed').length;
      const onlyB = pairs.filter(({ a, b }) => a !== 'passed' && b === 'passed').length;
      const report = {
        a: first.plan.run_id,
        b: second.plan.run_id,
        tasks: pairs.map((pair) => ({ ...pair })),
        only_a: onlyA,
        only_b: onlyB,
        p_value: mcnemar(onlyA, onlyB),
      };
      if (json) printJson(line.out, report, 2);
      else line.out.print(compareLines(pairs, report));
      return exit.done;
    },
  },
};

function compareLines(
  pairs: readonly Pair[],
  {
    only_a: onlyA,
    only_b: onlyB,
    p_value: p,
  }: { readonly only_a: number; readonly only_b: number; readonly p_value: number },
): string {
  const rows = pairs.map(({ task, repeat, model, a, b }) => [task, String(repeat), model ?? '', a, b]);
  return [
    ...columns([['task', 'run', 'model', 'first', 'second'], ...rows]),
    '',
    `Passed only in the first: ${onlyA}, only in the second: ${onlyB}. McNemar's exact test: p = ${p.toPrecision(3)}.`,
    '',
  ].join('\n');
}

/** Pairs the runs of two evaluations: the same task and repeat, and the same model unless two are named. */
function pairsOf(first: EvalFolder, second: EvalFolder, models: readonly string[]): readonly Pair[] {
  const [left, right] = [chosen(first, models[0]), chosen(second, models[1] ?? models[0])];
  const single = models.length > 0 || (modelsOf(left).length === 1 && modelsOf(right).length === 1);
  const pairs = left.flatMap((a): readonly Pair[] => {
    const b = right.find((one) => one.task === a.task && one.repeat === a.repeat && (single || one.model === a.model));
    return b ? [{ task: a.task, repeat: a.repeat, model: single ? null : a.model, a: a.status, b: b.status }] : [];
  });
  if (pairs.length > 0) return pairs;
  throw new CliError(
    exit.usage,
    'the two evaluations have no run in common',
    `Name a model of each with -m. First: ${modelsOf(first.results()).join(', ')}; second: ${modelsOf(second.results()).join(', ')}.`,
  );
}

function modelsOf(results: readonly RunResult[]): readonly string[] {
  return [...new Set(results.map(({ model }) => model))];
}

function chosen(evaluation: EvalFolder, model: string | undefined): readonly RunResult[] {
  const results = evaluation.results();
  if (model === undefined) return results;
  const own = results.filter((result) => result.model === model);
  if (own.length > 0) return own;
  throw new CliError(
    exit.usage,
    `evaluation ${evaluation.plan.run_id} has no model ${model}`,
    `It has ${modelsOf(results).join(', ')}.`,
  );
}
