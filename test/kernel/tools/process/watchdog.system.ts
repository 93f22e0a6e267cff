import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { startHelper } from '../../../../src/kernel/tools/process/start-child.js';
import { createProcessRunner, type ProcessRunner } from '../../../../src/kernel/tools/process/runner.js';
import { createWatchdog } from '../../../../src/kernel/tools/process/create-watchdog.js';
import { goneWithin, type HelperShell } from '../../../../src/kernel/tools/process/watchdog.js';
import { call, context, registry, tree } from '../workbench.js';

const root = fileURLToPath(new URL('../../../..', import.meta.url));
/** Runs commands one after the other and prints what they print; ends in order when it is told to. */
const program = `
import { createProcessRunner } from './src/kernel/tools/process/runner.js';
const [, , value, ...commands] = process.argv;
const runner = createProcessRunner({ watched: true, marker: { name: '_WATCHDOG_TEST', value } });
process.stdin.on('data', async () => { await runner.killBackground(); process.exit(0); });
for (const command of commands) {
  if (command.startsWith('open:')) {
    const opened = await runner.open({ file: 'bash', args: ['--norc', '-c', command.slice(5)], cwd: '/', env: process.env, sandbox: 'off' });
    opened.output.pipe(process.stdout);
    await opened.exited;
    continue;
  }
  await runner.run({ file: 'bash', args: ['-c', command], cwd: '/', env: process.env, sandbox: 'off', signal: new AbortController().signal, timeoutMs: 600_000, maxTotalBytes: 1_000_000, joined: true,
    onOutput: (chunk) => { process.stdout.write(chunk); } });
}
`;
let built = '';
beforeAll(async () => {
  built = join(tree(), 'run.mjs');
  await build({
    stdin: { contents: program, resolveDir: root, loader: 'ts' },
    absWorkingDir: root,
    outfile: built,
    bundle: true,
    format: 'esm',
    platform: 'node',
    banner: { js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom('/');" },
    target: 'node20',
    logLevel: 'error',
  });
});

/** Live processes, us and ours left out, whose command line or environment holds `text`. */
function holding(text: string): readonly string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && name !== String(process.pid))
    .flatMap((id) => {
      try {
        const line = readFileSync(`/proc/${id}/cmdline`, 'latin1');
        return `${line}\n${readFileSync(`/proc/${id}/environ`, 'latin1')}`.includes(text)
          ? [`${id} ${line.replaceAll('\0', ' ').slice(0, 80)}`]
          : [];
      } catch {
        return []; // ended meanwhile
      }
    });
}

async function begun(commands: readonly string[], mark: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, [built, mark, ...commands], { stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  let text = '';
  await new Promise<void>((resolve, reject) => {
    child.stdout?.on('data', (chunk: Buffer) => {
      if ((text += chunk.toString()).includes('begun')) resolve();
    });
    child.once('exit', () => {
      reject(new Error('the program ended before it had begun'));
    });
  });
  return child;
}

/** Each sleeps for a time of its own, so that it is found by it also where the environment is empty. */
const sleep = (mark: string): string => `sleep 600.${mark}`;
const commands: readonly (readonly [name: string, commands: (mark: string) => readonly string[]])[] = [
  ['one command', (mark) => [`echo begun; ${sleep(mark)}`]],
  ['what is deaf to TERM', (mark) => [`trap "" TERM HUP INT; echo begun; while :; do ${sleep(mark)}; done`]],
  [
    'what left its group',
    (mark) => [`setsid ${sleep(mark)} & setsid setsid ${sleep(mark)} & echo begun; ${sleep(mark)}`],
  ],
  ['what has no environment beside one that has', (mark) => [`env -i ${sleep(mark)} & echo begun; ${sleep(mark)}`]],
  ['a command without any environment', (mark) => [`echo begun; trap "" TERM; exec env -i ${sleep(mark)}`]],
  [
    'what earlier commands left behind',
    (mark) => [
      `env -i ${sleep(mark)} & echo one`,
      `nohup ${sleep(mark)} >/dev/null 2>&1 & disown; echo two`,
      'echo begun; sleep 600',
    ],
  ],
  [
    'a process that stays, with grandchildren in sessions of their own',
    (mark) => [
      `open:trap "" TERM; (setsid bash -c 'trap "" TERM; ${sleep(mark)}; true' &); setsid setsid ${sleep(mark)} & ` +
        `echo begun; cat; ${sleep(mark)}`,
    ],
  ],
  ['what goes on after the call', (mark) => [`setsid ${sleep(mark)} >/dev/null 2>&1 & echo begun`, 'sleep 600']],
];

test.each(commands)('after kill -9 of the program its watchdog ends %s, and itself', async (_name, lines) => {
  const mark = String(process.hrtime.bigint());
  const child = await begun(lines(mark), mark);
  await expect.poll(() => holding(mark).length).toBeGreaterThan(2);
  child.kill('SIGKILL');
  await expect.poll(() => holding(mark), { timeout: 10_000 }).toEqual([]);
});

test('after an end in order nothing is left, the watchdog included', async () => {
  const mark = String(process.hrtime.bigint());
  const child = await begun([`setsid ${sleep(mark)} & echo begun; ${sleep(mark)}`], mark);
  child.stdin?.write('end\n');
  await new Promise((resolve) => {
    child.once('exit', resolve);
  });
  expect(holding(mark)).toEqual([]);
});

function watchedRunner(value: string): ProcessRunner {
  const runner = createProcessRunner({ watched: true, marker: { name: '_WATCHDOG_TEST', value } });
  onTestFinished(() => {
    runner.killNow();
  });
  return runner;
}

test('what is prepared ahead serves the first command, and ends with the runner where none came', async () => {
  const value = String(process.hrtime.bigint());
  const runner = watchedRunner(value);
  const tools = registry({ processes: runner });
  tools.get('bash')?.prepare?.();
  await expect.poll(() => holding(value)).toHaveLength(1);
  const [watchdog] = holding(value);
  expect((await call('bash', { command: 'echo $PPID' }, context(tree()), tools)).envelope).toEqual({
    output: `${process.pid}\n`,
    exit_code: 0,
  });
  expect(holding(value)).toEqual([watchdog]);
  await runner.killBackground();
  expect(holding(value)).toEqual([]);
});

test('an end that comes while it is prepared leaves nothing either', async () => {
  const value = String(process.hrtime.bigint());
  const runner = watchedRunner(value);
  runner.prepare();
  await runner.killBackground();
  for (let turns = 0; turns < 100; turns++)
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  expect(holding(value)).toEqual([]);
});

/** A watchdog whose program is gone at once. */
async function bereaved(mark: string, groups: readonly number[], folder?: string): Promise<void> {
  const shells: HelperShell[] = [];
  const watchdog = createWatchdog((args) => {
    const shell = startHelper(args);
    if (shell) shells.push(shell);
    return shell;
  }, `_WATCHDOG_TEST=${mark}`);
  watchdog.start();
  watchdog.tell({ running: () => [], leaderless: () => groups });
  if (folder !== undefined) expect(await watchdog.makePipes(folder)).toBe(true);
  const ended = new Promise<void>((resolve) => {
    shells[0]?.on('exit', resolve);
  });
  shells[0]?.stdin?.end();
  await ended;
}

function stranger(command: string): ChildProcess {
  const child = spawn('sh', ['-c', command], { detached: true, stdio: 'ignore' });
  onTestFinished(() => {
    process.kill(-(child.pid ?? 0), 'SIGKILL');
  });
  return child;
}

test('a process that has come by the number of a group of ours is left alone', async () => {
  const mark = String(process.hrtime.bigint());
  const other = stranger(`exec ${sleep(mark)}`);
  await expect.poll(() => holding(mark)).toHaveLength(1);
  await bereaved(mark, [other.pid ?? 0]);
  expect(holding(mark)).toEqual([`${other.pid ?? 0} sleep 600.${mark} `]);
});

test('pipes that nobody has come to open are taken away', async () => {
  const folder = tree();
  await bereaved(String(process.hrtime.bigint()), [], folder);
  expect(existsSync(folder)).toBe(false);
});

test('a group that somebody else leads is left alone, whoever has joined it', async () => {
  const mark = String(process.hrtime.bigint());
  const other = stranger(`_WATCHDOG_TEST=${mark} sleep 601 & exec ${sleep(mark)}`);
  await expect.poll(() => holding(mark)).toHaveLength(2);
  await bereaved(mark, []);
  expect(holding(mark)).toEqual([`${other.pid ?? 0} sleep 600.${mark} `]);
});

test('pipes are used again: many commands, some with children that go on holding them, keep no descriptor', async () => {
  const runner = watchedRunner(String(process.hrtime.bigint()));
  const tools = registry({ processes: runner });
  const run = async (command: string): Promise<unknown> =>
    (await call('bash', { command }, context(tree()), tools)).envelope;
  await run('true');
  const open = (): number => readdirSync('/proc/self/fd').length;
  const before = open();
  for (let count = 0; count < 30; count++)
    expect(await run(`echo ${count}; exit ${count}`)).toEqual({ output: `${count}\n`, exit_code: count });
  expect(open()).toBe(before);
  for (let count = 0; count < 5; count++)
    expect(await run(`(sleep 600; echo late) & echo ${count}`)).toEqual({
      output: `${count}\n`,
      exit_code: 0,
      background: 2,
    });
  await runner.killBackground();
  await expect.poll(open).toBeLessThan(before + 12);
  const settled = open();
  for (let count = 0; count < 30; count++) await run('true');
  expect(open()).toBeLessThanOrEqual(settled + 4);
});

test('the time to end is by the clock, also where a look at the processes takes long', async () => {
  let looks = 0;
  const size = (): number => {
    looks++;
    const endMs = performance.now() + 50;
    while (performance.now() < endMs);
    return 1;
  };
  expect(await goneWithin({ size }, 100)).toBe(false);
  expect(looks).toBeLessThan(4);
});
