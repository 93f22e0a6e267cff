// How many small faults the tests notice: npm run t:mutants [-- count [seed [folder]]]
// Each mutant is one change at a random place of src/, made in a copy of the last commit; the tests that import the file
// run until the first fails. Survivors are printed. A mutant that makes tests hang for `limitMs` counts as killed.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { mutationsOf, type Mutation } from './mutations.js';

declare const AGENT_ROOT: string;

interface Mutant {
  readonly file: string;
  readonly change: Mutation;
}

const count = Number(process.argv[2] ?? 60);
const seed = Number(process.argv[3] ?? 20_261_122);
const folder = process.argv[4] ?? 'src';
/** A mutant may take this long; all tests without one, ten times as long. */
const limitMs = 300_000;
const root = AGENT_ROOT.replace(/\/$/, '');
const scratch = mkdtempSync(join(tmpdir(), 'agent-mutants-'));
const copy = join(scratch, 'agent');

/** Mulberry32: the same numbers for the same seed. */
function randomFrom(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

function pick(): Mutant[] {
  const files = readdirSync(join(copy, folder), { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\.tsx?$/.test(name),
  );
  const all = files.toSorted().flatMap((name) => {
    const file = join(folder, name);
    return mutationsOf(file, readFileSync(join(copy, file), 'utf8')).map((change) => ({ file, change }));
  });
  const random = randomFrom(seed);
  const chosen = new Set<Mutant>();
  while (chosen.size < Math.min(count, all.length)) {
    const mutant = all[Math.floor(random() * all.length)];
    if (mutant) chosen.add(mutant);
  }
  process.stdout.write(`${all.length} places in ${files.length} files; ${chosen.size} mutants, seed ${seed}\n`);
  return [...chosen];
}

/** Runs tests in the copy; true when one fails or they do not end in time. */
function isRed(which: readonly string[], { quiet, limitMs }: { quiet: boolean; limitMs: number }): Promise<boolean> {
  const args = ['vitest', ...which, '--bail', '1', '--config', 'config/vitest.config.ts', '--reporter', 'dot'];
  return new Promise((resolve) => {
    const child = spawn('npx', args, { cwd: copy, stdio: quiet ? 'ignore' : 'inherit', detached: true });
    const timer = setTimeout(() => {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    }, limitMs);
    child.on('close', (code) => {
      clearTimeout(timer);
      resolve(code !== 0);
    });
  });
}

function describe({ file, change }: Mutant, source: string): string {
  const before = source.slice(0, change.start);
  const line = before.split('\n').length;
  return `${file}:${line} ${change.what}: ${(source.split('\n')[line - 1] ?? '').trim().slice(0, 100)}`;
}

try {
  execFileSync('git', ['clone', '--quiet', '--shared', root, copy]);
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  symlinkSync(join(dirname(root), 'shared'), join(scratch, 'shared'));
  execFileSync('node', ['config/build.mjs'], { cwd: copy });
  const mutants = pick();
  if (
    await isRed(['related', '--run', ...new Set(mutants.map(({ file }) => file))], {
      quiet: false,
      limitMs: limitMs * 10,
    })
  )
    throw new Error('The tests fail without any mutant.');
  let killed = 0;
  const survivors: string[] = [];
  for (const mutant of mutants) {
    const path = join(copy, mutant.file);
    const source = readFileSync(path, 'utf8');
    const { start, end, text } = mutant.change;
    writeFileSync(path, source.slice(0, start) + text + source.slice(end));
    const dead = await isRed(['related', '--run', mutant.file], { quiet: true, limitMs });
    writeFileSync(path, source);
    if (dead) killed += 1;
    else survivors.push(describe(mutant, source));
    process.stdout.write(`${dead ? 'killed  ' : 'SURVIVED'} ${describe(mutant, source)}\n`);
  }
  process.stdout.write(
    `\n${killed} of ${mutants.length} killed\n${survivors.map((line) => `survived: ${line}\n`).join('')}`,
  );
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
