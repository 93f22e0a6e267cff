import { spawn } from '@lydell/node-pty';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { createPolicy } from '../../../src/kernel/permissions/permission-policy.js';
import { bashTool } from '../../../src/kernel/tools/bash.js';
import { inToolset } from '../../../src/kernel/tools/builtin.js';
import { createProcessRunner } from '../../../src/kernel/tools/process/runner.js';
import { furtherCommands } from '../../kernel/permissions/further-commands.js';
import { harmCommands } from '../../kernel/permissions/harm-commands.js';
import { hiddenCommands } from '../../kernel/permissions/hidden-commands.js';
import { leakCommands } from '../../kernel/permissions/leak-commands.js';
import { mixedCommands } from '../../kernel/permissions/mixed-commands.js';
import { mutatingCommands } from '../../kernel/permissions/mutating-commands.js';
import { optionCommands } from '../../kernel/permissions/option-commands.js';
import { defaultDeny } from '../../kernel/permissions/judging.js';
import { measure, rounds } from './bench.js';

/** `npm run t:jobs`: how many commands of the corpus that change something plan mode lets through; and jobs of the
 * built program in a pseudo-terminal, one in the background and one left behind with `nohup`: how many are listed, and
 * how many processes are left when the terminal is closed, and when the program is killed. */
declare const AGENT_ROOT: string;

const corpus = [harmCommands, leakCommands, hiddenCommands, optionCommands, mixedCommands, furtherCommands]
  .concat(mutatingCommands)
  .flatMap((groups) => Object.values(groups).flat());
const longestMs = 15_000;

async function letThrough(): Promise<number> {
  const processes = createProcessRunner({ marker: { name: '_BENCH', value: '' } });
  const options = { processes, shell: 'bash', timeoutS: 1, maxTimeoutS: 1, env: {}, protectedEnv: [] };
  const [tool] = inToolset({ name: 'exec', on: true, about: '' }, [bashTool(options)]);
  if (!tool) throw new Error('no tool');
  const workspace = '/home/user/project';
  const policy = createPolicy({
    ...{ approval: 'never', planning: true, sandbox: 'off', fsDeny: defaultDeny },
    rules: { allow: [{ tool: 'bash', argv: ['git'] }], ask: [], deny: [] },
    facts: {
      ...{ home: '/home/user', workspace, ownPaths: [] },
      landing: (path) => Promise.resolve(path),
      readWhole: () => Promise.resolve('missing'),
    },
  });
  let passed = 0;
  for (const command of corpus) {
    const call = { tool, args: { command }, limits: { timeoutMs: null, maxOutputBytes: 1 } };
    if ((await policy.assess(call, workspace)).decision !== 'deny') passed++;
  }
  return passed;
}

/** How many live processes were started with this argument. */
function alive(argument: string): number {
  return readdirSync('/proc').filter((id) => {
    try {
      return /^\d+$/.test(id) && readFileSync(`/proc/${id}/cmdline`, 'latin1') === `sleep\0${argument}\0`;
    } catch {
      return false;
    }
  }).length;
}

async function until(holds: () => boolean): Promise<boolean> {
  const end = performance.now() + longestMs;
  while (!holds() && performance.now() < end) await wait(50);
  return holds();
}

/** Opens the program, has it start two jobs, and ends it. */
async function ended(folder: string, round: number, how: 'closed' | 'killed') {
  const seconds = `${40_000 + round}${how === 'closed' ? '.25' : '.75'}`;
  const home = join(folder, `${how}${round}`);
  mkdirSync(home, { recursive: true });
  const background = { command: `sleep ${seconds}`, background: true };
  const left = { command: `nohup sleep ${seconds} >/dev/null 2>&1 &` };
  const turns = [
    { calls: [{ name: 'bash', arguments: background }] },
    { calls: [{ name: 'bash', arguments: left }] },
    { calls: [{ name: 'jobs', arguments: { action: 'list' } }] },
    { text: 'THEEND' },
  ];
  const script = join(home, 'script.json');
  writeFileSync(script, JSON.stringify({ turns }));
  const args = [join(AGENT_ROOT, 'bin/agent.js'), '-m', `offline/${script}`, '--tools', '+jobs', '--approval', 'never'];
  const env = { PATH: process.env.PATH ?? '', HOME: home, AGENT_HOME: join(home, 'a'), TERM: 'xterm-256color' };
  const pty = spawn(process.execPath, [...args, 'go'], { cols: 100, rows: 40, cwd: home, env });
  let text = '';
  pty.onData((chunk) => {
    text += chunk;
  });
  await until(() => text.includes('THEEND'));
  const before = alive(seconds);
  const listed = [1, 2].filter((id) =>
    new RegExp(`${id}: running for \\d+ s: [^\\n]*sleep ${seconds}`).test(text),
  ).length;
  // Closing the terminal is what a hang-up tells the program.
  pty.kill(how === 'closed' ? 'SIGHUP' : 'SIGKILL');
  await until(() => alive(seconds) === 0);
  return { before, listed, left: alive(seconds) };
}

await measure(async (folder) => {
  const passed = await letThrough();
  const all = { runs: 0, before: 0, listed: 0, closed: 0, killed: 0 };
  for (let round = 0; round < rounds(5); round++)
    for (const how of ['closed', 'killed'] as const) {
      const { before, listed, left } = await ended(folder, round, how);
      all.runs++;
      all.before += before;
      all.listed += listed;
      all[how] += left;
    }
  const { runs, before, listed, closed, killed } = all;
  return {
    line:
      `jobs: plan mode let ${passed} of ${corpus.length} commands through; ${runs} runs started ${before} processes, ` +
      `${listed} of ${2 * runs} jobs were listed; left: ${closed} with the terminal closed, ${killed} after kill -9`,
    ok: passed === 0 && before === 2 * runs && listed === 2 * runs && closed + killed === 0,
  };
});
