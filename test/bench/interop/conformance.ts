// Runs the official conformance suite for MCP clients against our own client. The suite and the Node that it needs come
// from the npm registry into a temporary folder; the client runs on this Node. `npm run t:conformance`
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { playScenario } from './conformance-client.js';

const suite = '@modelcontextprotocol/conformance';
const version = '0.2.0-alpha.12';
const node = 'node@22';
const revisions = ['2025-11-25', '2026-07-28'];

const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
if (scenario === undefined) runSuite();
else await playScenario(scenario, process.argv.at(-1) ?? '', JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? 'null'));

function runSuite(): void {
  const folder = join(tmpdir(), `agent-conformance-${version}`);
  const runner = join(folder, 'node_modules', suite, 'dist', 'index.js');
  const node22 = join(folder, 'node_modules', 'node', 'bin', 'node');
  if (!existsSync(runner) || !existsSync(node22)) {
    mkdirSync(folder, { recursive: true });
    const args = ['i', '--prefix', folder, '--no-audit', '--no-fund', `${suite}@${version}`, node];
    const { status } = spawnSync('npm', args, { stdio: ['ignore', 'ignore', 'inherit'] });
    if (status !== 0 || !existsSync(node22)) {
      console.log('skipped: the suite could not be installed from the npm registry');
      return;
    }
  }
  let isComplete = true;
  for (const revision of revisions) {
    const client = `${process.execPath} ${process.argv[1] ?? ''}`;
    const args = [runner, 'client', '--command', client, '--requirements', revision];
    const begun = performance.now();
    const { stdout } = spawnSync(node22, args, { cwd: folder, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
    const { required, failed, aside } = summary(stdout);
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    console.log(`${revision}: ${required.length - failed.length} of ${required.length} required, in ${seconds} s`);
    for (const name of failed) console.log(`  failed: ${name}\n${reasons(stdout, name)}`);
    for (const line of aside) console.log(`  not scored: ${line}`);
    isComplete &&= required.length > 0 && failed.length === 0;
  }
  process.exitCode = isComplete ? 0 : 1;
}

/** Reads what the runner says at its end. */
function summary(stdout: string): {
  readonly required: readonly string[];
  readonly failed: readonly string[];
  readonly aside: readonly string[];
} {
  const end = stdout.slice(stdout.lastIndexOf('=== SUITE SUMMARY ==='));
  const aside = [...end.matchAll(/^ {2}([✓✗] \S+ \(.+\))$/gm)].map(([, line = '']) => line);
  const notScored = new Set(aside.map((line) => line.split(' ')[1]));
  const all = [...end.matchAll(/^([✓✗]) (\S+): /gm)].filter(([, , name]) => !notScored.has(name));
  return {
    required: all.map(([, , name = '']) => name),
    failed: all.filter(([, sign]) => sign === '✗').map(([, , name = '']) => name),
    aside,
  };
}

/** The failed checks of a scenario, as the runner prints them. */
function reasons(stdout: string, name: string): string {
  const from = stdout.indexOf(name);
  const lines = stdout
    .slice(from)
    .split('\n')
    .filter((line) => line.includes('FAILURE'));
  return lines
    .slice(0, 5)
    .map((line) => `    ${line.trim()}`)
    .join('\n');
}
