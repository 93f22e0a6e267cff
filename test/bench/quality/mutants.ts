// How many small faults the tests notice: npm run t:mutants [-- count [seed [folder]]]
// Each mutant is one change at a random place of src/, made in a copy of the last commit. All tests run once on a copy
// that notes which test files reach which of these places; then the files that reach a place run on its mutant until the
// first test fails. A place that runs when its module is loaded runs once in each worker, so all tests that import the
// file run on it; all tests run on one that a process of a test reaches. Survivors are printed. A mutant that makes tests hang for `limitMs` counts as killed.
import { execFileSync, spawn } from 'node:child_process';
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { mutationsOf, type Mutation } from './mutations.js';

declare const AGENT_ROOT: string;

interface Mutant {
  readonly file: string;
  readonly change: Mutation;
}

/** What one test file reached: indices of mutants. Without a name it is what processes reached. */
interface Reached {
  readonly file: string;
  readonly places: readonly number[];
}

const count = Number(process.argv[2] ?? 60);
const seed = Number(process.argv[3] ?? 20_261_122);
const folder = process.argv[4] ?? 'src';
/** A mutant may take this long; all tests without one, ten times as long. */
const limitMs = 300_000;
const root = AGENT_ROOT.replace(/\/$/, '');
const scratch = mkdtempSync(join(tmpdir(), 'agent-mutants-'));
const copy = join(scratch, 'agent');
const notes = join(scratch, 'reached');
const inProcesses = join(scratch, 'reached-in-processes');

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

/** Runs all tests on a copy that notes what each test file reaches. Throws if one fails. */
async function findReached(mutants: readonly Mutant[]): Promise<readonly Reached[]> {
  const sources = new Map(mutants.map(({ file }) => [file, readFileSync(join(copy, file), 'utf8')]));
  for (const [file, source] of sources) {
    const here = [...mutants.entries()].filter(([, mutant]) => mutant.file === file);
    writeFileSync(join(copy, file), withProbes(source, here));
  }
  mkdirSync(inProcesses);
  const setup = join(copy, 'test/setup.ts');
  const before = readFileSync(setup, 'utf8');
  appendFileSync(setup, setupOfProbes);
  const isBroken = await isRed(['run'], { quiet: false, limitMs: limitMs * 10 });
  for (const [file, source] of [...sources, ['test/setup.ts', before] as const])
    writeFileSync(join(copy, file), source);
  if (isBroken) throw new Error('The tests fail without any mutant.');
  const byTests = readFileSync(notes, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Reached);
  return [...byTests, { file: '', places: readdirSync(inProcesses).map(Number) }];
}

function withProbes(source: string, mutants: readonly (readonly [number, Mutant])[]): string {
  const inserted = mutants.flatMap(([index, { change }]): [number, string][] => {
    const { start, end, isStatement } = change.place;
    const call = `(globalThis.reachedPlace ?? ${noteInProcess})(${index})`;
    return isStatement
      ? [
          [start, `{${call};`],
          [end, '}'],
        ]
      : [
          [start, `(${call}, (`],
          [end, '))'],
        ];
  });
  return inserted
    .toSorted(([one], [other]) => other - one)
    .reduce((text, [at, more]) => text.slice(0, at) + more + text.slice(at), source);
}

/** Notes a place that a process of a test reaches, once, as an empty file: which test started it is not known. */
const noteInProcess = `(globalThis.reachedPlace = (place) => {
  try {
    (globalThis.reachedPlaces ??= new Set()).has(place) ||
      process.getBuiltinModule('fs').writeFileSync(${JSON.stringify(`${inProcesses}/`)} + place, '');
  } catch {}
  globalThis.reachedPlaces.add(place);
})`;

const setupOfProbes = `
import { appendFileSync } from 'node:fs';
import { afterAll, afterEach } from 'vitest';
const places = new Set();
let file = '';
Object.assign(globalThis, { reachedPlace: (place) => places.add(place) });
afterEach(({ task }) => void (file = task.file.filepath));
afterAll(() => appendFileSync(${JSON.stringify(notes)}, JSON.stringify({ file, places: [...places] }) + '\\n'));
`;

/** Whether the tests that reach the mutant notice it. */
async function isKilled({ file, change }: Mutant, tests: readonly string[]): Promise<boolean> {
  const path = join(copy, file);
  const source = readFileSync(path, 'utf8');
  writeFileSync(path, source.slice(0, change.start) + change.text + source.slice(change.end));
  const which = change.place.isTopLevel ? ['related', '--run', file] : tests.includes('') ? ['run'] : ['run', ...tests];
  const isDead = await isRed(which, { quiet: true, limitMs });
  writeFileSync(path, source);
  return isDead;
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
  const reached = await findReached(mutants);
  let killed = 0;
  const survivors: string[] = [];
  for (const [index, mutant] of mutants.entries()) {
    const tests = reached.flatMap(({ file, places }) => (places.includes(index) ? [file] : []));
    const isReached = tests.length > 0 || mutant.change.place.isTopLevel;
    const isDead = isReached && (await isKilled(mutant, tests));
    const line = describe(mutant, readFileSync(join(copy, mutant.file), 'utf8'));
    if (isDead) killed += 1;
    else survivors.push(line);
    process.stdout.write(`${isDead ? 'killed  ' : isReached ? 'SURVIVED' : 'NO TEST '} ${line}\n`);
  }
  process.stdout.write(
    `\n${killed} of ${mutants.length} killed\n${survivors.map((line) => `survived: ${line}\n`).join('')}`,
  );
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
