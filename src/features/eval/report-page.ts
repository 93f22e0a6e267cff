import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { money } from '../../kernel/agent/budget.js';
import { CliError, exit } from '../../kernel/console/command.js';
import { localTime } from '../../kernel/console/line-output.js';
import { escaped, pageStyle, policyHash } from '../../kernel/console/page-look.js';
import { counted } from '../../kernel/tools/define-tool.js';
import type { EvalFolder, RunResult } from './eval-runs.js';
import { summaries } from './summaries.js';

/** The look of tables and of one column for each model, besides the look that all pages share. */
const reportStyle = `
main {
  max-width: 84rem;
}
h2 {
  font-size: 1.1rem;
  margin: 2rem 0 0.5rem;
}
.wide {
  overflow-x: auto;
}
p {
  overflow-wrap: anywhere;
}
table {
  border-collapse: collapse;
  font-size: 0.9rem;
}
th,
td {
  padding: 0.3rem 0.9rem 0.3rem 0;
  text-align: left;
  border-bottom: 1px solid var(--line);
  vertical-align: top;
}
.passed {
  color: var(--good);
}
.failed,
.limit,
.error {
  color: var(--bad);
}
.sides {
  display: grid;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr));
  gap: 1rem;
}
.side {
  min-width: 0;
}
.side p {
  margin: 0.2rem 0;
  font-size: 0.875rem;
}
`;
const style = pageStyle + reportStyle;
const policy = `default-src 'none'; style-src ${policyHash(style)}; form-action 'none'; base-uri 'none'; frame-ancestors 'none'`;

/** Writes an evaluation as one page that loads nothing and runs no script. Returns its path. Throws a `CliError` where
 * it cannot be written. */
export function writeReportPage(evaluation: EvalFolder, cwd: string, given: string): string {
  const path = resolve(cwd, given);
  try {
    writeFileSync(path, reportPage(evaluation), { mode: 0o600 });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new CliError(exit.failed, `the page could not be written: ${why}`, 'Choose another file.');
  }
  return path;
}

function reportPage(evaluation: EvalFolder): string {
  const { plan, results } = evaluation;
  const runs = results();
  const models = [...new Set(plan.runs.map(({ model }) => model))];
  const title = `Evaluation of ${counted(plan.tasks.length, 'task')} with ${counted(models.length, 'model')}`;
  const facts = `${localTime(plan.created_at)} · ${runs.length} of ${counted(plan.runs.length, 'run')} made`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<title>${escaped(title)}</title><style>${style}</style></head>
<body><main><header><h1>${escaped(title)}</h1>
<p>${escaped(facts)} · <code>${escaped(plan.run_id)}</code></p></header>
<div class="wide">${summaryTable(runs)}</div>
${plan.tasks.map(({ name, prompts, check }) => taskPart(evaluation, { name, prompts, check })).join('\n')}
</main></body></html>
`;
}

function summaryTable(runs: readonly RunResult[]): string {
  const rows = summaries(runs).map(({ model, passed, total, low, high, cost_usd: cost }) => {
    const own = runs.filter((run) => run.model === model);
    const sum = (of: (run: RunResult) => number): number => own.reduce((all, run) => all + of(run), 0);
    return [
      model,
      `${passed} of ${total}`,
      `${percent(low)} to ${percent(high)}`,
      cost === null ? 'unknown' : money(cost),
      String(sum((run) => run.input_tokens)),
      String(sum((run) => run.output_tokens)),
      String(sum((run) => run.turns)),
      `${(sum((run) => run.wall_ms) / 1000).toFixed(1)} s`,
    ];
  });
  const head = ['model', 'passed', '95 % interval', 'cost', 'tokens in', 'tokens out', 'turns', 'time'];
  return table(head, rows);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = (tag: string, row: readonly string[]): string =>
    `<tr>${row.map((cell) => `<${tag}>${escaped(cell)}</${tag}>`).join('')}</tr>`;
  return `<table><thead>${cells('th', head)}</thead><tbody>${rows.map((row) => cells('td', row)).join('')}</tbody></table>`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}

function taskPart(
  evaluation: EvalFolder,
  {
    name,
    prompts,
    check,
  }: { readonly name: string; readonly prompts: readonly string[]; readonly check: string | null },
): string {
  const sides = evaluation.plan.runs.flatMap((run, index) => {
    const result = run.task === name ? evaluation.result(index) : null;
    return result === null ? [] : [side(result, evaluation.diff(index))];
  });
  const checked = check === null ? '' : `<p>Check: <code>${escaped(check)}</code></p>`;
  return `<section><h2>${escaped(name)}</h2>
<pre>${escaped(prompts.join('\n\n'))}</pre>${checked}
<div class="sides">${sides.join('\n')}</div></section>`;
}

function side(result: RunResult, diff: string): string {
  const { model, repeat, status, reason, cost_usd: cost, turns, wall_ms: ms, session_id: session } = result;
  const figures = [
    cost === null ? 'cost unknown' : money(cost),
    counted(turns, 'turn'),
    `${(ms / 1000).toFixed(1)} s`,
    ...(session === null ? [] : [`session ${session}`]),
  ];
  return `<div class="side"><p><b>${escaped(model)}</b>${repeat > 1 ? ` run ${repeat}` : ''}
<span class="${status}">${status}</span></p>
${reason === null ? '' : `<p>${escaped(reason)}</p>`}
<p>${escaped(figures.join(' · '))}</p>${diff === '' ? '<p>No file changed.</p>' : diffBlock(diff)}</div>`;
}

function diffBlock(diff: string): string {
  const rows = diff
    .trimEnd()
    .split('\n')
    .map((line) => `<div${kindOf(line)}>${escaped(line) || ' '}</div>`);
  return `<div class="change">${rows.join('')}</div>`;
}

function kindOf(line: string): string {
  if (/^(?:(?:\+\+\+|---) (?:"?[ab]\/|\/dev\/null)|diff |index |@@)/.test(line)) return ' class="gap"';
  if (line.startsWith('+')) return ' class="added"';
  return line.startsWith('-') ? ' class="removed"' : '';
}
