import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isError } from '../../../src/kernel/core/envelope.js';
import { effectsText } from '../../../src/kernel/core/effects.js';
import { createProcessRunner } from '../../../src/kernel/tools/process/runner.js';
import { createRehearsals, recoverRehearsals } from '../../../src/kernel/tools/rehearsal/open-rehearsals.js';
import { openSandbox } from '../../../src/kernel/tools/sandbox/open-sandbox.js';
import { createRig, type Rig } from '../../kernel/tools/rehearsal/rehearsal-rig.js';

// `npm run t:rehearsal [part]`: ordinary commands under `mutating` in a clone of this repository and in a small project:
// who is asked, with rehearsals and without; whether a rehearsal gives what a run outside gives; what it costs. Then
// changing commands are kept and compared with a real run, and programs that keep are killed at random moments.

const root = new URL('.', import.meta.url).pathname.replace(/node_modules\/.*|test\/bench\/.*/, '');
const { node, python } = JSON.parse(readFileSync(join(root, 'fixtures/rehearsal/ordinary-commands.json'), 'utf8')) as {
  readonly node: readonly string[];
  readonly python: readonly string[];
};
const part = process.argv[2] ?? 'all';
const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'agent-ordinary-')));
const home = join(scratch, 'home');

interface Project {
  readonly name: string;
  readonly commands: readonly string[];
  make(folder: string): void;
}

const projects: readonly Project[] = [
  {
    name: 'node',
    commands: node,
    make(folder) {
      execFileSync('git', ['clone', '-q', '--local', root, folder]);
      execFileSync('cp', ['-al', realpathSync(join(root, 'node_modules')), join(folder, 'node_modules')]);
    },
  },
  {
    name: 'python',
    commands: python,
    make(folder) {
      mkdirSync(join(folder, 'pkg'), { recursive: true });
      const files: Readonly<Record<string, string>> = {
        'pkg/__init__.py': '',
        'pkg/__main__.py': 'print("main")\n',
        'pkg/mod.py': 'def add(a, b):\n    """\n    >>> add(1, 2)\n    3\n    """\n    return a + b\n',
        'test_mod.py':
          'import unittest\nfrom pkg.mod import add\n\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(add(1, 2), 3)\n',
        'setup.py': 'from setuptools import setup\nsetup(name="pkg", version="1.0")\n',
        Makefile: 'all: hello\nhello: hello.c\n\tgcc -o hello hello.c\ntest:\n\tpython3 -B -m unittest -q\n',
        'hello.c': '#include <stdio.h>\nint main(void) { puts("hi"); return 0; }\n',
        'run.sh': '#!/bin/sh\nls | wc -l\n',
      };
      for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text, { mode: 0o755 });
    },
  },
];

/** What a real run gives, in a copy of the project. */
function realRun(folder: string, command: string): { readonly output: string; readonly code: number | null } {
  const env = {
    ...process.env,
    HOME: home,
    PAGER: 'cat',
    GIT_PAGER: 'cat',
    TERM: 'dumb',
    NO_UPDATE_NOTIFIER: '1',
    npm_config_update_notifier: 'false',
  };
  const { stdout, status } = spawnSync('bash', ['-c', `exec 2>&1; ${command}`], {
    cwd: folder,
    env,
    timeout: 120_000,
    maxBuffer: 1 << 28,
  });
  return { output: stdout.toString('utf8'), code: status };
}

/** Times, process numbers and the like differ from run to run. */
function steady(text: string): string {
  return text
    .replaceAll(
      /\d+(?:\.\d+)?\s?(?:ms|s|usec|nsec|µs|sec)\b|\d+:\d\d(?::\d\d)?(?:\.\d+)?|\dm[\d.]+s|Access: .*|Change: .*|Birth: .*/g,
      '#',
    )
    .trimEnd();
}

async function ordinary(): Promise<void> {
  let asked = 0;
  let askedWithout = 0;
  let rehearsed = 0;
  let equal = 0;
  let listed = 0;
  const overheads: number[] = [];
  const differing: string[] = [];
  let count = 0;
  for (const { name, commands, make } of projects) {
    const folder = join(scratch, name);
    make(folder);
    const rig = createRig({ workspace: folder, home });
    const without = createRig({ workspace: folder, home, rehearses: false });
    await rig.rehearsals.problem();
    for (const command of commands) {
      count++;
      if ((await without.call(command)).decision?.decidedBy !== 'static') askedWithout++;
      const start = performance.now();
      const done = await rig.call(command);
      const took = performance.now() - start;
      const { decidedBy, effects } = done.decision ?? {};
      if (decidedBy === 'static') listed++;
      else if (decidedBy === 'rehearsal') {
        rehearsed++;
        const startReal = performance.now();
        const real = realRun(folder, command);
        if (performance.now() - startReal < 100) overheads.push(took - (performance.now() - startReal));
        const { envelope } = done.outcome;
        const got = isError(envelope)
          ? { output: envelope.error, code: -1 }
          : { output: envelope.output, code: Number(envelope['exit_code']) };
        if (steady(got.output) === steady(real.output) && got.code === real.code) equal++;
        else
          differing.push(
            `${command}: ${JSON.stringify(steady(got.output).slice(0, 80))} (${got.code}) for ${JSON.stringify(steady(real.output).slice(0, 80))} (${real.code})`,
          );
      } else {
        asked++;
        const why = effects ? effectsText({ effects, unclear: null }).slice(0, 90) : 'by its text';
        console.log(`asked: ${command}: ${why}`);
      }
    }
    await rig.close();
    await without.close();
  }
  for (const line of differing) console.log(`differs: ${line}`);
  const middle = overheads.toSorted((a, b) => a - b)[Math.floor(overheads.length / 2)] ?? 0;
  console.log(
    `rehearsal: ${count} ordinary commands: ${listed} on the list, ${rehearsed} rehearsed without effects, ${asked} asked about ` +
      `(${askedWithout} without rehearsals); ${equal} of ${rehearsed} gave what a run outside gave; ` +
      `median ${middle.toFixed(0)} ms more than the bare command`,
  );
}

const changing: readonly string[] = [
  'echo x > new.txt',
  'echo x >> a.txt',
  'sed -i s/one/1/ a.txt',
  'rm a.txt',
  'rm src/b.ts src/deep/c.ts',
  'rmdir empty',
  'mkdir -p x/y/z',
  'mkdir x; touch x/1 x/2',
  'cp a.txt b.txt',
  'cp -r src copy',
  'mv a.txt moved.txt',
  'mv a.txt src/',
  'ln -s a.txt l2',
  'ln -sf src link',
  'chmod 600 a.txt',
  'chmod 700 src',
  'touch a.txt',
  'touch -d 2001-01-01 src',
  'truncate -s 5 a.txt',
  'truncate -s 1M big',
  'dd if=/dev/zero of=zeros bs=1k count=64 status=none',
  'tar -cf s.tar src',
  'tar -cf s.tar src; mkdir out; tar -xf s.tar -C out',
  'git init -q repo; rm -f repo/.git/hooks/*',
  'printf "\\0\\1" > bin',
  'rm -r src',
  'rm -r src; mkdir src',
  'rm -r src; mkdir src; echo z > src/z',
  'rm a.txt; mkdir a.txt',
  'rm link; mkdir link; touch link/x',
  'for i in $(seq 1000); do echo $i > f$i; done',
  'for i in $(seq 100); do mkdir d$i; done',
  'find src -type f -delete',
  'find . -name "*.ts" -exec cp {} {}.bak \\;',
  'sed -i.orig s/c/d/ src/deep/c.ts',
  "python3 -c \"open('p', 'w').write('x' * 100000)\"",
  "node -e \"fs.appendFileSync('a.txt', 'more')\"",
  'perl -pi -e s/one/eins/ a.txt',
  'awk \'{print > "o" NR}\' a.txt',
  'split -l 1 a.txt part-',
  'touch "a b" "c\'d"',
  'touch $(printf "odd\\377")',
  'mkdir .hid; echo s > .hid/x',
  'umask 077; echo p > private',
  'echo 1 > 1; echo 2 > 2; rm 1',
  'mkdir -p __pycache__; echo c > __pycache__/x.pyc; echo x > x.py',
  'touch ~/home-file',
  'mkdir -p ~/.config/x; echo y > ~/.config/x/y',
  'cat a.txt src/b.ts > joined',
  'install -m 755 a.txt installed',
  'echo q > src/deep/q; mv src/deep src/deeper 2>/dev/null || cp -r src/deep src/d2',
  'gzip -k a.txt',
];

function fill(folder: string): void {
  mkdirSync(join(folder, 'src', 'deep'), { recursive: true });
  mkdirSync(join(folder, 'empty'));
  writeFileSync(join(folder, 'a.txt'), 'one\ntwo\nthree\n');
  writeFileSync(join(folder, 'src', 'b.ts'), 'export {};\n', { mode: 0o755 });
  writeFileSync(join(folder, 'src', 'deep', 'c.ts'), 'c\n');
  symlinkSync('a.txt', join(folder, 'link'));
}

function picture(folder: string): string {
  const found: string[] = [];
  const visit = (path: Buffer, name: string): void => {
    const stat = lstatSync(path);
    if (stat.isDirectory()) {
      found.push(`${name} folder ${stat.mode}`);
      for (const inner of readdirSync(path, { encoding: 'buffer' }))
        visit(Buffer.concat([path, Buffer.from('/'), inner]), `${name}/${inner.toString('latin1')}`);
    } else if (stat.isSymbolicLink()) found.push(`${name} link ${readlinkSync(path)}`);
    else found.push(`${name} ${stat.mode} ${createHash('sha256').update(readFileSync(path)).digest('hex')}`);
  };
  visit(Buffer.from(folder), '');
  return found.toSorted().join('\n');
}

function keeping(workspace: string, own: string): Rig {
  return createRig({
    workspace,
    home: own,
    answer: ({ effects, canPreview }) => ({ answer: effects ? 'keep' : canPreview ? 'preview' : 'deny' }),
    journals: join(scratch, 'journals'),
  });
}

async function kept(): Promise<void> {
  let equal = 0;
  let refused = 0;
  for (const [index, command] of changing.entries()) {
    const base = join(scratch, `keep-${index}`);
    for (const name of ['one', 'two']) fill(join(base, name, 'work'));
    for (const name of ['one', 'two']) mkdirSync(join(base, name, 'home'));
    const text = `#!/bin/bash\n${command}\n`;
    for (const name of ['one', 'two']) writeFileSync(join(base, name, 'work', 'do.sh'), text, { mode: 0o755 });
    const rig = keeping(join(base, 'one', 'work'), join(base, 'one', 'home'));
    const done = await rig.call('./do.sh');
    await rig.close();
    spawnSync('bash', ['do.sh'], {
      cwd: join(base, 'two', 'work'),
      env: { ...process.env, HOME: join(base, 'two', 'home') },
    });
    if (done.decision?.kept !== true) {
      refused++;
      console.log(`not kept: ${command}: ${rig.questions.at(-1)?.effects?.keepProblem ?? ''}`);
    } else if (picture(join(base, 'one')) === picture(join(base, 'two'))) equal++;
    else console.log(`differs: ${command}`);
  }
  console.log(`keep: ${changing.length} changing commands: ${equal} kept and equal to a real run, ${refused} refused`);
}

/** Keeps the changes of one command; killed from outside. */
async function victim(folder: string): Promise<void> {
  const rig = createRig({
    workspace: join(folder, 'work'),
    home: join(folder, 'home'),
    answer: ({ effects, canPreview }) => ({ answer: effects ? 'keep' : canPreview ? 'preview' : 'deny' }),
    journals: join(folder, 'journals'),
    watched: true,
  });
  console.log('ready');
  await rig.call('./do.sh');
  await rig.close();
}

async function killed(times: number): Promise<void> {
  const counts = { before: 0, after: 0, between: 0, left: 0 };
  const model = join(scratch, 'kill-model');
  const make = (folder: string): void => {
    fill(join(folder, 'work'));
    mkdirSync(join(folder, 'home'));
    const script =
      '#!/bin/bash\nfor i in $(seq 200); do echo $i > n$i; done; rm -r src; echo changed > a.txt; mkdir src; echo z > src/z; rm -r empty\n';
    writeFileSync(join(folder, 'work', 'do.sh'), script, { mode: 0o755 });
  };
  make(model);
  const beforeAll = picture(join(model, 'work'));
  spawnSync('bash', ['do.sh'], { cwd: join(model, 'work') });
  const afterAll = picture(join(model, 'work'));
  const whole = join(scratch, 'kill-whole');
  make(whole);
  const started = spawn(process.execPath, [process.argv[1] ?? '', 'victim', whole], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await new Promise((resolve) => started.stdout.once('data', resolve));
  const start = performance.now();
  await new Promise((resolve) => started.once('exit', resolve));
  const totalMs = performance.now() - start;
  for (let round = 0; round < times; round++) {
    const folder = join(scratch, `kill-${round}`);
    make(folder);
    const child = spawn(process.execPath, [process.argv[1] ?? '', 'victim', folder], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const exited = new Promise((resolve) => child.once('exit', resolve));
    await new Promise((resolve) => child.stdout.once('data', resolve));
    await delay((round / times) * totalMs * 1.2);
    child.kill('SIGKILL');
    await exited;
    await delay(100);
    await recoverRehearsals(join(folder, 'journals'));
    const now = picture(join(folder, 'work'));
    if (now === beforeAll) counts.before++;
    else if (now === afterAll) counts.after++;
    else {
      counts.between++;
      writeFileSync(join(tmpdir(), `between-${round}.txt`), now);
    }
    const layers = ['/var/tmp', '/dev/shm']
      .flatMap((place) => readdirSync(place))
      .filter((name) => name.startsWith(`agent-rehearsal-${child.pid}-`));
    const mounts = readFileSync('/proc/self/mountinfo', 'utf8').includes(folder);
    if (layers.length > 0 || mounts || readdirSync(join(folder, 'journals')).length > 0) counts.left++;
    rmSync(folder, { recursive: true, force: true });
  }
  console.log(
    `kill -9 at ${times} moments: ${counts.before} before, ${counts.after} after, ${counts.between} between, ${counts.left} with something left`,
  );
}

/** What a rehearsal of `bash -c true` costs beside a bare run and one in the sandbox, in turn. */
async function cost(): Promise<void> {
  const workspace = join(scratch, 'cost');
  mkdirSync(workspace);
  const opened = await openSandbox({ sandbox: 'workspace', workspace, home, env: process.env, isSecret: () => false });
  if (!opened.ok) throw new Error(opened.problem);
  const path = process.env['PATH'] ?? '';
  const processes = createProcessRunner({
    marker: { name: '_AGENT_RIG', value: 'cost' },
    confine: opened.confine,
    watched: true,
  });
  const shared = { processes, workspace, home, path, isSecret: () => false, isSecretVariable: () => false };
  const rehearsals = createRehearsals({ ...shared, journals: join(scratch, 'journals') });
  await rehearsals.problem();
  const command = { file: 'bash', args: ['-c', 'true'], cwd: workspace, env: { PATH: path } };
  const limits = { signal: new AbortController().signal, timeoutMs: 9000, maxTotalBytes: 65_536 };
  const times = { off: [] as number[], workspace: [] as number[], rehearsal: [] as number[] };
  for (let round = 0; round < 60; round++) {
    for (const sandbox of ['off', 'workspace'] as const) {
      const start = performance.now();
      await processes.run({ ...command, ...limits, sandbox, joined: true, onOutput: () => undefined });
      times[sandbox].push(performance.now() - start);
    }
    const start = performance.now();
    const outcome = () => ({ envelope: { output: '' }, summary: '' });
    const done = await rehearsals.run({ command, ...limits, maxOutputBytes: 65_536, outcome });
    times.rehearsal.push(performance.now() - start);
    if (typeof done === 'string') throw new Error(done);
    await done.discard();
  }
  await processes.killBackground();
  const median = (list: readonly number[]): string => (list.toSorted((a, b) => a - b)[30] ?? 0).toFixed(1);
  console.log(
    `cost of \`bash -c true\`, medians of 60: ${median(times.off)} ms bare, ${median(times.workspace)} ms in the sandbox, ` +
      `${median(times.rehearsal)} ms rehearsed`,
  );
}

try {
  mkdirSync(home);
  if (part === 'victim') await victim(process.argv[3] ?? '');
  if (part === 'all' || part === 'ordinary') await ordinary();
  if (part === 'all' || part === 'cost') await cost();
  if (part === 'all' || part === 'keep') await kept();
  if (part === 'all' || part === 'kill') await killed(Number(process.argv[3] ?? 100));
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
