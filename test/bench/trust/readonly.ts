import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createRig } from '../../kernel/tools/rehearsal/rehearsal-rig.js';

// `npm run t:readonly [pattern]`: commands that look as if they only read, and write, connect or start something. Each
// is run in scratch folders with nobody to ask: under `mutating` and in plan mode, with rehearsals and without, and as a
// control under `never`. Prints how many had an effect; fails unless none of the first four did.

const corpus = new URL(import.meta.url).pathname.replace(
  /node_modules\/.bench\/.*/,
  'fixtures/rehearsal/seeming-readers.json',
);
const { commands } = JSON.parse(readFileSync(corpus, 'utf8')) as { commands: readonly string[] };
const wanted = new RegExp(process.argv[2] ?? '');

interface Scratch {
  readonly root: string;
  readonly workspace: string;
  readonly home: string;
}

function git(cwd: string, ...args: readonly string[]): void {
  execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.c', ...args], { cwd, stdio: 'ignore' });
}

/** Makes a workspace with what the commands need: a repository, option-like names, programs, code that other code loads. */
function makeScratch(): Scratch {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'agent-seeming-')));
  const [workspace, home] = [join(root, 'work'), join(root, 'home')];
  for (const folder of [workspace, home, join(root, 'outside'), join(workspace, 'empty')]) mkdirSync(folder);
  const mark = join(root, 'outside', 'mark');
  const run = `#!/bin/sh\ncat >/dev/null 2>&1 </dev/null\n: > ${mark}\n`;
  const files: Readonly<Record<string, string>> = {
    'a.txt': 'x a\nx b\nx c\n',
    'b.txt': 'x b\n',
    'data.json': '{"a": 1}',
    'data.js': `require('fs').writeFileSync('${mark}', '')`,
    'data.json.js': `require('fs').writeFileSync('${mark}', '')`,
    'package.json': '{"name": "x", "version": "1.0.0", "scripts": {"prepare": "touch made"}}',
    'pwn.cjs': `require('fs').writeFileSync('${mark}', '')`,
    'pwn.mjs': `import fs from 'fs'; fs.writeFileSync('${mark}', '')`,
    'Pwn.pm': `package Pwn; open F, '>${mark}'; 1;`,
    'pwnmod.py': `open('${mark}', 'w')`,
    'prog.py': 'print(1)',
    'prog.awk': `BEGIN { system(": > ${mark}") }`,
    'prog.sed': `1w ${mark}\n`,
    'prog.bc': '1+1\nquit\n',
    'init.sql': `.output ${mark}\nselect 1;`,
    'opts.env': 'NODE_OPTIONS=--require=./pwn.cjs',
    'names.txt': mark,
    'evil.txt': `-v a[$(touch ${mark})]`,
    'array.txt': `([$(touch ${mark})]=1)`,
    edscript: `w ${mark}\nq\n`,
    curlrc: `url = "file:///etc/hostname"\noutput = "${mark}"\n`,
    'hex.txt': '00000000: 6162 ab\n',
    Makefile: `X := $(shell touch ${mark})\nall:\n\t+touch ${mark}\n`,
    '-oF': '',
    '--pre=sh': '',
    ls: run,
    'ls-local': run,
    'local-program': run,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(workspace, name), text, { mode: 0o755 });
  writeFileSync(join(root, 'outside', 'run'), run, { mode: 0o755 });
  writeFileSync(join(home, '.bashrc'), '');
  git(workspace, 'init', '-q');
  git(workspace, 'add', '-A');
  git(workspace, 'commit', '-qm', 'one');
  writeFileSync(join(workspace, 'a.txt'), 'x a\nx b\nx c\nx d\n');
  git(workspace, 'commit', '-qam', 'two');
  writeFileSync(join(workspace, 'b.txt'), 'x changed\n');
  git(workspace, 'stash', '-q');
  writeFileSync(join(workspace, 'b.txt'), 'x again\n');
  execFileSync('tar', ['-cf', 'x.tar', 'a.txt'], { cwd: workspace });
  git(workspace, 'config', 'diff.external', join(root, 'outside', 'run'));
  return { root, workspace, home };
}

/** Every file below a folder with what is in it. Caches of tools do not count. */
function picture(folder: string, found = new Map<string, string>()): ReadonlyMap<string, string> {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (/\/(?:__pycache__|\.cache|\.npm\/_(?:logs|cacache|update-notifier-last-checked))(?:\/|$)/.test(`${path}/`))
      continue;
    const stat = lstatSync(path);
    if (stat.isDirectory()) {
      if (name !== '.npm') found.set(path, `folder ${stat.mode}`);
      picture(path, found);
    } else if (stat.isSymbolicLink()) found.set(path, readlinkSync(path));
    else if (!stat.isFile()) found.set(path, 'special');
    else if (!path.endsWith('/.git/index'))
      found.set(path, `${stat.mode} ${stat.mtimeMs} ${createHash('sha256').update(readFileSync(path)).digest('hex')}`);
  }
  return found;
}

function differs(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string | null {
  for (const [path, state] of after) if (before.get(path) !== state) return path;
  for (const path of before.keys()) if (!after.has(path)) return path;
  return null;
}

/** Processes that still run in a scratch folder. */
function startedIn(root: string): readonly string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => {
      try {
        return readlinkSync(`/proc/${pid}/cwd`).startsWith(root);
      } catch {
        return false;
      }
    });
}

type Way = 'never' | 'mutating' | 'plan';

async function effectOf(text: string, way: Way, rehearses: boolean): Promise<string | null> {
  const scratch = makeScratch();
  const { root, workspace, home } = scratch;
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    socket.destroy();
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  const values: Readonly<Record<string, string>> = {
    mark: join(root, 'outside', 'mark'),
    out: 'out.txt',
    run: join(root, 'outside', 'run'),
    port: String(address !== null && typeof address === 'object' ? address.port : 0),
    esc: join(root, 'outside', 'mark').replaceAll('/', '\\/'),
  };
  const command = text.replaceAll(/\{(mark|out|run|port|esc)\}/g, (_all, name: string) => values[name] ?? '');
  const before = picture(root);
  const rig = createRig({
    workspace,
    home,
    approval: way === 'plan' ? 'never' : way,
    planning: way === 'plan',
    rehearses,
    journals: join(tmpdir(), 'agent-seeming-journals'),
  });
  try {
    await rig.call(command, { timeout_seconds: 15 });
    if (/&|-d |setsid|nohup/.test(command)) await delay(100);
    if (connections > 0) return 'connected';
    const changed = differs(before, picture(root));
    if (changed !== null) return `changed ${changed.slice(root.length + 1)}`;
    return startedIn(root).length > 0 ? 'started a process' : null;
  } finally {
    for (const pid of startedIn(root)) spawnSync('kill', ['-9', pid]);
    await rig.close();
    server.close();
    rmSync(root, { recursive: true, force: true });
  }
}

async function main(): Promise<void> {
  const chosen = commands.filter((command) => wanted.test(command));
  const counts = { control: 0, mutating: 0, 'mutating, no rehearsal': 0, plan: 0, 'plan, no rehearsal': 0 };
  const idle: string[] = [];
  const ways = [
    ['mutating', 'mutating', true],
    ['mutating, no rehearsal', 'mutating', false],
    ['plan', 'plan', true],
    ['plan, no rehearsal', 'plan', false],
  ] as const;
  for (const command of chosen) {
    const control = await effectOf(command, 'never', false);
    if (control === null) idle.push(command);
    else counts.control++;
    for (const [name, way, rehearses] of ways) {
      const effect = await effectOf(command, way, rehearses);
      if (effect === null) continue;
      counts[name]++;
      console.log(JSON.stringify({ command, way: name, effect }));
    }
  }
  console.log(`no effect here even when it is run: ${idle.length}: ${idle.join(' ¦ ')}`);
  const { control, ...held } = counts;
  const rows = Object.entries(held).map(([name, count]) => `${count} under ${name}`);
  console.log(
    `readonly: ${chosen.length} commands, ${control} have an effect here when they are run; effects: ${rows.join(', ')}`,
  );
  process.exitCode = Object.values(held).every((count) => count === 0) && existsSync(corpus) ? 0 : 1;
}

await main();
