import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { build } from 'esbuild';
import { measure, rounds } from './bench.js';

/** `npm run t:lasting`: a program keeps a process open whose grandchildren lead sessions of their own and ignore TERM.
 * Half of the rounds end it in order, half by SIGKILL at a random instant; then the processes that are left are
 * counted. */
const owner = `
import { createProcessRunner } from './src/kernel/tools/process/runner.js';
import { createLastingProcess } from './src/kernel/tools/process/lasting-process.js';
const [, , mark] = process.argv;
const runner = createProcessRunner({ watched: true, marker: { name: '_LASTING_BENCH', value: mark } });
const command = \`(setsid bash -c 'trap "" TERM HUP INT; while :; do sleep 600.\${mark}; done' &)
setsid setsid sleep 600.\${mark} & env -i sleep 600.\${mark} & trap "" TERM; echo begun; cat; while :; do sleep 600.\${mark}; done\`;
const lasting = createLastingProcess(runner.open, {
  command: { file: 'bash', args: ['--norc', '-c', command], cwd: '/', env: { PATH: process.env.PATH }, sandbox: 'off' },
  onOutput: (chunk) => { process.stdout.write(chunk); },
  maxRestarts: 3,
  restartWindowMs: 600_000,
  now: () => performance.now(),
});
process.stdin.on('data', async () => { await lasting.stop(); await runner.killBackground(); process.exit(0); });
await lasting.start();
`;
const graceMs = 3000;
const pollMs = 100;

/** Live processes, us left out, whose command line or environment holds `text`. */
function holding(text: string): number {
  return readdirSync('/proc').filter((id) => {
    try {
      if (!/^\d+$/.test(id) || id === String(process.pid)) return false;
      return ['cmdline', 'environ'].some((file) => readFileSync(`/proc/${id}/${file}`, 'latin1').includes(text));
    } catch {
      return false; // ended meanwhile
    }
  }).length;
}

/** How many processes are left `graceMs` after the program is gone. */
async function left(program: string, round: number): Promise<number> {
  const mark = String(process.hrtime.bigint());
  const child = spawn(process.execPath, [program, mark], { stdio: ['pipe', 'pipe', 'inherit'] });
  const gone = new Promise((resolve) => {
    child.once('exit', resolve);
  });
  const begun = new Promise((resolve) => {
    child.stdout.once('data', resolve);
  });
  if (round % 2 === 0) {
    await begun;
    child.stdin.write('end\n');
  } else {
    await Promise.race([begun, gone]);
    await delay(Math.random() * 50);
    child.kill('SIGKILL');
  }
  await gone;
  for (let waitedMs = 0; waitedMs < graceMs && holding(mark) > 0; waitedMs += pollMs) await delay(pollMs);
  return holding(mark);
}

await measure(async (folder) => {
  const program = join(folder, 'owner.mjs');
  await build({
    stdin: { contents: owner, resolveDir: process.cwd(), loader: 'ts' },
    outfile: program,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    logLevel: 'error',
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
    },
  });
  const count = rounds(200);
  let total = 0;
  for (let round = 0; round < count; round++) total += await left(program, round);
  return {
    line: `lasting: ${Math.ceil(count / 2)} ends in order, ${Math.floor(count / 2)} by kill -9, ${total} processes left`,
    ok: total === 0,
  };
});
