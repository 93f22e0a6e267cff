import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { noSession, type Tool, type ToolContext } from '../../../src/kernel/core/tool.js';
import { builtinTools } from '../../../src/kernel/tools/builtin.js';
import { createProcessRunner } from '../../../src/kernel/tools/process/runner.js';
import { findRipgrep } from '../../../src/kernel/tools/search/text-search.js';
import { median } from './program.js';
import type { Row } from './turns.js';

const env = process.env;

/** glob and grep on a tree of files of 200 bytes, and the same search by `rg` itself. */
export async function fileRows(folder: string): Promise<readonly Row[]> {
  const processes = createProcessRunner({ marker: { name: '_AGENT_BENCH', value: String(process.pid) } });
  const tools = builtinTools({
    processes,
    env,
    protectedEnv: [],
    shell: 'bash',
    encoding: null,
    maxReadBytes: 1_000_000,
    modelOutputBytes: 32_768,
    timeoutS: 60,
    maxTimeoutS: 60,
  });
  const ripgrep = await findRipgrep(env);
  const rows: Row[] = [];
  for (const files of [1_000, 10_000, 100_000]) {
    const root = join(folder, `tree-${files}`);
    plant(root, files);
    const glob = await timed(() => call(tools, 'glob', { pattern: '**/*7.ts' }, root));
    const grep = await timed(() => call(tools, 'grep', { pattern: 'needle' }, root));
    const rg =
      ripgrep === null
        ? null
        : await timed(() => {
            spawnSync(ripgrep, ['needle', '.'], { cwd: root });
          });
    rows.push([
      files,
      `${glob.toFixed(0)} ms`,
      `${grep.toFixed(0)} ms`,
      rg === null ? 'not installed' : `${rg.toFixed(0)} ms`,
    ]);
  }
  return rows;
}

function plant(root: string, files: number): void {
  for (let at = 0; at < files; at++) {
    const folder = join(root, `d${Math.floor(at / 1_000)}`, `e${Math.floor(at / 50) % 20}`);
    if (at % 50 === 0) mkdirSync(folder, { recursive: true });
    writeFileSync(
      join(folder, `f${at}.ts`),
      `export const value${at} = ${at};\n`.repeat(6) + (at % 5_000 === 0 ? 'needle\n' : ''),
    );
  }
}

async function call(
  tools: readonly Tool[],
  name: string,
  args: Readonly<Record<string, unknown>>,
  cwd: string,
): Promise<void> {
  const tool = tools.find((candidate) => candidate.name === name);
  const ctx: ToolContext = {
    cwd,
    session: noSession,
    sandbox: 'off',
    limits: { timeoutMs: 60_000, maxOutputBytes: 51_200 },
    knownFiles: new Map(),
    signal: new AbortController().signal,
    eventOutput: () => null,
    progress: () => undefined,
  };
  const outcome = await tool?.run(args, ctx);
  if (outcome === undefined || 'error' in outcome.envelope)
    throw new Error(`${name}: ${JSON.stringify(outcome?.envelope)}`);
}

async function timed(work: () => Promise<void> | void): Promise<number> {
  const times: number[] = [];
  for (let run = 0; run < 4; run++) {
    const start = performance.now();
    await work();
    if (run > 0) times.push(performance.now() - start);
  }
  return median(times);
}
