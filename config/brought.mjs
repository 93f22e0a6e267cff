// Runs the tests of forms that other programs have (fixtures/brought) and prints one table: how many forms of each kind
// are used whole, in part, or not. A form that is read otherwise than expected fails its test.
import { spawnSync } from 'node:child_process';

const tests = [
  'test/app/instructions/instruction-forms',
  'test/app/claude-rules',
  'test/features/prompts-and-skills/text-forms',
  'test/features/subagents/agent-forms',
  'test/features/hooks/hook-forms',
  'test/features/plugins/plugin-forms',
  'test/features/mcp/brought-servers',
  'test/features/output-styles/brought-styles',
];
const run = spawnSync('npx', ['vitest', 'run', '--config', 'config/vitest.config.ts', ...tests], { encoding: 'utf8' });
const rows = [...run.stdout.matchAll(/^([\w-]+): (\d+) forms, (\{.*\})$/gm)].map(([, kind, forms, counts]) => ({
  kind,
  forms: Number(forms),
  ...JSON.parse(counts),
}));
rows.sort((one, other) => (one.kind < other.kind ? -1 : 1));
const sum = (key) => rows.reduce((total, row) => total + row[key], 0);
const total = { kind: 'all', forms: sum('forms'), whole: sum('whole'), part: sum('part'), not: sum('not') };
const columns = ['kind', 'forms', 'whole', 'part', 'not'];
const lines = [Object.fromEntries(columns.map((column) => [column, column])), ...rows, total].map((row) =>
  columns.map((key) => (key === 'kind' ? row[key].padEnd(16) : String(row[key]).padStart(7))).join(''),
);
if (run.status !== 0) process.stderr.write(`${run.stdout}${run.stderr}`);
process.stdout.write(`${lines.join('\n')}\n`);
process.exitCode = run.status ?? 1;
