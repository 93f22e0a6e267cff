import { spawn, spawnSync } from 'node:child_process';
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { accounts, bubblewrapWorks, type Account } from '../../kernel/tools/sandbox/confined-child.js';
import { hangingCommands, hangingSamples } from '../../kernel/tools/sandbox/hanging-commands.js';

// `npm run t:contained`: commands that wait for ever, print without end or fork without end, through the built program
// and as each account there is. The samples and the forking run in the sandbox alone. Prints a line for each kind;
// fails where one did not end in time or left something behind.

interface Case {
  readonly kind: string;
  readonly command: string;
  readonly sandbox: 'off' | 'workspace';
  readonly timeoutS: number;
}
interface Ended {
  readonly ms: number;
  readonly output: string;
  readonly maxMegabytes: number;
}

const root = process.cwd();
const graceMs = 5000;
const forking = "perl -e 'fork while 1'";

const cases: readonly Case[] = [
  ...hangingCommands.map((command): Case => ({ kind: 'waits for ever', command, sandbox: 'off', timeoutS: 2 })),
  ...(bubblewrapWorks
    ? [...hangingCommands, ...hangingSamples()].map((command): Case => ({
        kind: 'waits for ever, in the sandbox',
        command,
        sandbox: 'workspace',
        timeoutS: 2,
      }))
    : []),
  ...['yes', 'cat /dev/zero', 'yes >&2'].map((command): Case => ({
    kind: 'prints without end',
    command,
    sandbox: 'off',
    timeoutS: 60,
  })),
  ...(bubblewrapWorks
    ? [{ kind: 'forks without end, in the sandbox', command: forking, sandbox: 'workspace', timeoutS: 5 } as const]
    : []),
];

function place(account: Account): string {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'agent-contained-')));
  for (const folder of ['', 'work', 'work/.git', 'work/.git/objects', 'work/.git/refs'])
    mkdirSync(join(home, folder), { recursive: true });
  for (const [path, text] of [
    ['work/README.md', 'read me\n'],
    ['work/.git/HEAD', 'ref: refs/heads/main\n'],
    ['work/.git/config', '[core]\n'],
  ] as const)
    writeFileSync(join(home, path), text);
  for (const path of ['', ...readdirSync(home, { recursive: true, encoding: 'utf8' })])
    chownSync(join(home, path), account.uid, account.gid);
  return home;
}

async function run({ command, sandbox, timeoutS }: Case, home: string, account: Account): Promise<Ended> {
  const own = process.getuid?.() === account.uid ? {} : { uid: account.uid, gid: account.gid };
  const startedAt = performance.now();
  const args = JSON.stringify({ command, timeout_seconds: timeoutS });
  const child = spawn(
    process.execPath,
    [join(root, 'bin/agent.js'), '--approval', 'never', '--sandbox', sandbox, 'tools', 'call', 'bash', args],
    {
      cwd: join(home, 'work'),
      env: { PATH: process.env.PATH, HOME: home, LANG: 'C.UTF-8' },
      stdio: ['ignore', 'pipe', 'pipe'],
      ...own,
    },
  );
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      if (output.length < 4_000_000) output += chunk.toString('utf8');
    });
  let maxMegabytes = 0;
  const timer = setInterval(() => {
    maxMegabytes = Math.max(maxMegabytes, megabytes(child.pid ?? 0));
  }, 20);
  await new Promise((resolve) => {
    child.once('close', resolve);
  });
  clearInterval(timer);
  return { ms: performance.now() - startedAt, output, maxMegabytes };
}

/** Source: proc(5), VmHWM of /proc/PID/status, in kB. */
function megabytes(id: number): number {
  try {
    return Number(/^VmHWM:\s*(\d+)/m.exec(readFileSync(`/proc/${id}/status`, 'utf8'))?.[1] ?? 0) / 1024;
  } catch {
    return 0; // ended
  }
}

/** Processes that work below `home` or have it in their environment. */
function leftIn(home: string): readonly string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((id) => {
      try {
        return (
          readlinkSync(`/proc/${id}/cwd`).startsWith(home) ||
          readFileSync(`/proc/${id}/environ`, 'latin1').includes(home)
        );
      } catch {
        return false;
      }
    });
}

/** How long the machine takes to start the smallest program meanwhile, at worst. */
function slowestAnswer(): { stop(): number } {
  let worst = 0;
  const program = 'true';
  const timer = setInterval(() => {
    const startedAt = performance.now();
    spawnSync(program);
    worst = Math.max(worst, performance.now() - startedAt);
  }, 200);
  return {
    stop: () => {
      clearInterval(timer);
      return worst;
    },
  };
}

if (!existsSync(join(root, 'dist/main.js'))) throw new Error('npm run build comes first');
interface Row {
  cases: number;
  ended: number;
  left: number;
  slowestMs: number;
  answerMs: number;
  megabytes: number;
}
const atOnce = 6;
let bad = 0;

async function tried(one: Case, account: Account, row: Row): Promise<void> {
  const home = place(account);
  const answer = slowestAnswer();
  const ended = await run(one, home, account);
  const answerMs = answer.stop();
  const left = leftIn(home).length;
  const inTime = ended.ms <= one.timeoutS * 1000 + graceMs && /^\{"(?:output|error)"/m.test(ended.output);
  if (!inTime || left > 0) {
    bad++;
    console.log(
      `  ${account.name}, ${one.command}: ${ended.ms.toFixed(0)} ms, ${left} left: ${ended.output.slice(0, 200)}`,
    );
  }
  row.ended += inTime ? 1 : 0;
  row.left += left;
  row.slowestMs = Math.max(row.slowestMs, ended.ms);
  row.answerMs = Math.max(row.answerMs, answerMs);
  row.megabytes = Math.max(row.megabytes, ended.maxMegabytes);
  rmSync(home, { recursive: true, force: true });
}

for (const account of accounts) {
  for (const kind of new Set(cases.map((one) => one.kind))) {
    const waiting = cases.filter((one) => one.kind === kind);
    const row: Row = { cases: waiting.length, ended: 0, left: 0, slowestMs: 0, answerMs: 0, megabytes: 0 };
    const workers = kind.startsWith('waits') ? atOnce : 1; // the others keep the machine busy alone
    await Promise.all(
      Array.from({ length: workers }, async () => {
        for (let one = waiting.shift(); one; one = waiting.shift()) await tried(one, account, row);
      }),
    );
    console.log(
      `${account.name}, ${kind}: ${row.ended} of ${row.cases} ended in time, ${row.left} processes left, slowest ${(row.slowestMs / 1000).toFixed(1)} s, the program at most ${row.megabytes.toFixed(0)} MB, \`true\` took ${row.answerMs.toFixed(0)} ms at worst`,
    );
  }
}
process.exitCode = bad === 0 ? 0 : 1;
