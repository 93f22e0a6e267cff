import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { createPathFacts, withLandings } from '../../../src/app/open-policy.js';
import type { Policy } from '../../../src/kernel/core/policy.js';
import { noSession, type Registry, type ToolContext } from '../../../src/kernel/core/tool.js';
import { createPolicy } from '../../../src/kernel/permissions/permission-policy.js';
import { builtinTools } from '../../../src/kernel/tools/builtin.js';
import { createProcessRunner } from '../../../src/kernel/tools/process/runner.js';
import { createRegistry } from '../../../src/kernel/tools/registry.js';

/** What one kind of race came to. `refused`: also what a search left out. `escapes`: calls that were allowed as lying
 * inside the workspace and read or changed something else. */
export interface RaceResult {
  readonly kind: string;
  readonly attempts: number;
  readonly done: number;
  readonly refused: number;
  readonly swaps: number;
  readonly escapes: number;
}

interface Race {
  readonly kind: string;
  readonly tool: 'file_read' | 'file_write' | 'file_edit' | 'glob' | 'grep';
  /** What the call names. */
  readonly path: string;
  /** The link that is exchanged, and the targets it has in turn; or a real folder or file in whose place a link to the
   * second stands in turn. */
  readonly swapped: string;
  readonly between: readonly [string, string];
  readonly real?: 'folder' | 'file';
}

const races: readonly Race[] = [
  {
    kind: 'read, the file is a link',
    tool: 'file_read',
    path: 'f',
    swapped: 'f',
    between: ['inside/f', '../outside/f'],
  },
  {
    kind: 'read, its folder is a link',
    tool: 'file_read',
    path: 'd/f',
    swapped: 'd',
    between: ['inside', '../outside'],
  },
  { kind: 'read, a secret file', tool: 'file_read', path: 's', swapped: 's', between: ['inside/f', '.env'] },
  {
    kind: 'write, the file is a link',
    tool: 'file_write',
    path: 'f',
    swapped: 'f',
    between: ['inside/f', '../outside/f'],
  },
  {
    kind: 'write, its folder is a link',
    tool: 'file_write',
    path: 'd/f',
    swapped: 'd',
    between: ['inside', '../outside'],
  },
  {
    kind: 'write, a new file in a linked folder',
    tool: 'file_write',
    path: 'd/new',
    swapped: 'd',
    between: ['inside', '../outside'],
  },
  {
    kind: 'edit, its folder is a link',
    tool: 'file_edit',
    path: 'd/f',
    swapped: 'd',
    between: ['inside', '../outside'],
  },
  { kind: 'glob, its folder is a link', tool: 'glob', path: 'd', swapped: 'd', between: ['inside', '../outside'] },
  {
    kind: 'glob, a folder below becomes a link',
    tool: 'glob',
    path: 'tree',
    swapped: 'tree/d',
    between: ['', '../../outside'],
    real: 'folder',
  },
  { kind: 'grep, its folder is a link', tool: 'grep', path: 'd', swapped: 'd', between: ['inside', '../outside'] },
  {
    kind: 'grep, a folder below becomes a link',
    tool: 'grep',
    path: 'tree',
    swapped: 'tree/d',
    between: ['', '../../outside'],
    real: 'folder',
  },
  {
    kind: 'grep, a file below becomes a link',
    tool: 'grep',
    path: 'tree',
    swapped: 'tree/f',
    between: ['', '../../outside/f'],
    real: 'file',
  },
];

/** Exchanges the target of one link as fast as it can: a new link is renamed over the old one. What is real is moved
 * away for a link and back. */
const swapper = `
const { workerData } = require('node:worker_threads');
const fs = require('node:fs');
const { path, between, real, shared } = workerData;
const state = new Int32Array(shared);
for (let turn = 0; Atomics.load(state, 0) === 0; turn++) {
  if (real) {
    if (turn % 2 === 0) { fs.renameSync(path, path + '.away'); fs.symlinkSync(between[1], path); }
    else { fs.unlinkSync(path); fs.renameSync(path + '.away', path); }
    Atomics.add(state, 1, 1);
    continue;
  }
  const next = path + '.' + (turn % 2);
  try { fs.symlinkSync(between[turn % 2], next); } catch {}
  fs.renameSync(next, path);
  Atomics.add(state, 1, 1);
}
`;

/** A busy machine may run a hundred attempts before the links are exchanged once: there are more until both have had
 * their turn. */
const mostRounds = 50;

/** Runs every kind of race at least `attempts` times through policy and tools, as a session in safe mode without
 * anybody to ask would. */
export async function runRaces(attempts: number): Promise<readonly RaceResult[]> {
  const results: RaceResult[] = [];
  for (const race of races)
    results.push(await runRace(race, race.tool === 'grep' ? Math.ceil(attempts / 10) : attempts)); // each grep starts a worker
  return results;
}

async function runRace(race: Race, attempts: number): Promise<RaceResult> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'agent-race-')));
  const work = join(root, 'work');
  for (const folder of ['work/inside', 'outside']) mkdirSync(join(root, folder), { recursive: true });
  for (const [path, text] of [
    ['work/inside/f', 'INSIDE'],
    ['outside/f', 'OUTSIDE'],
    ['outside/OUTSIDE.txt', 'OUTSIDE'],
    ['work/.env', 'OUTSIDE'],
  ] as const)
    writeFileSync(join(root, path), text);
  mkdirSync(join(work, 'tree'));
  if (race.real === 'folder') mkdirSync(join(work, race.swapped));
  if (race.real) writeFileSync(join(work, race.swapped, race.real === 'folder' ? 'f' : ''), 'INSIDE');
  else symlinkSync(race.between[0], join(work, race.swapped));
  const shared = new SharedArrayBuffer(8);
  const state = new Int32Array(shared);
  const worker = new Worker(swapper, {
    eval: true,
    workerData: { path: join(work, race.swapped), between: race.between, real: race.real, shared },
  });
  try {
    const counts = await attempt(
      race,
      (made) => made < attempts || (Atomics.load(state, 1) < attempts && made < attempts * mostRounds),
      { root, work },
    );
    return { kind: race.kind, ...counts, swaps: Atomics.load(state, 1) };
  } finally {
    Atomics.store(state, 0, 1);
    await new Promise((resolve) => {
      worker.once('exit', resolve);
    });
    rmSync(root, { recursive: true });
  }
}

async function attempt(
  race: Race,
  goesOn: (made: number) => boolean,
  { root, work }: { readonly root: string; readonly work: string },
): Promise<Omit<RaceResult, 'kind' | 'swaps'>> {
  const registry = await makeRegistry();
  const policy = makePolicy(root, work);
  const counts = { attempts: 0, done: 0, refused: 0, escapes: 0 };
  for (; goesOn(counts.attempts); counts.attempts++) {
    writeFileSync(join(work, 'inside/f'), 'INSIDE');
    rmSync(join(work, 'inside/new'), { force: true });
    const binding = await registry.bind({ name: race.tool, arguments: JSON.stringify(argumentsOf(race)) });
    if (!binding.ok) throw new Error(binding.error.error);
    const verdict = await policy.assess(binding.bound, work);
    if (verdict.decision !== 'allow') {
      counts.refused++;
      continue;
    }
    const outcome = await binding.bound.tool.run(binding.bound.args, contextOf(work, verdict.landings));
    if ('error' in outcome.envelope || (race.real && !JSON.stringify(outcome.envelope).includes(race.swapped)))
      counts.refused++;
    else counts.done++;
    if (JSON.stringify(outcome.envelope).includes('OUTSIDE') || !untouched(root)) counts.escapes++;
  }
  return counts;
}

function argumentsOf({ tool, path }: Race): Readonly<Record<string, string>> {
  if (tool === 'file_read') return { path };
  if (tool === 'glob') return { path, pattern: '**/*' };
  if (tool === 'grep') return { path, pattern: 'SIDE' };
  return tool === 'file_write' ? { path, content: 'WRITTEN' } : { path, old_string: 'SIDE', new_string: 'TIDE' };
}

/** What lies outside is as it was; what was created there is taken away, so that each escape counts once. */
function untouched(root: string): boolean {
  const same =
    readFileSync(join(root, 'outside/f'), 'utf8') === 'OUTSIDE' &&
    readFileSync(join(root, 'work/.env'), 'utf8') === 'OUTSIDE';
  if (!same) for (const path of ['outside/f', 'work/.env']) writeFileSync(join(root, path), 'OUTSIDE');
  try {
    rmSync(join(root, 'outside/new'));
    return false;
  } catch {
    return same;
  }
}

async function makeRegistry(): Promise<Registry> {
  const registry = createRegistry({
    maxOutputBytes: 1_048_576,
    now: () => performance.now(),
  });
  const processes = createProcessRunner({ marker: { name: '_AGENT_RACE', value: String(process.pid) } });
  for (const tool of builtinTools({
    processes,
    shell: 'sh',
    encoding: null,
    maxReadBytes: 1_048_576,
    modelOutputBytes: 32_768,
    timeoutS: 10,
    maxTimeoutS: 10,
    env: process.env,
    protectedEnv: [],
  }))
    registry.register(tool);
  return registry;
}

function makePolicy(root: string, work: string): Policy {
  const facts = createPathFacts({ home: join(root, 'home'), workspace: work, ownPaths: [] });
  return withLandings(facts, (noting) =>
    createPolicy({ approval: 'mutating', sandbox: 'workspace', fsDeny: ['**/.env'], facts: noting }),
  );
}

function contextOf(cwd: string, landings: readonly string[] | undefined): ToolContext {
  return {
    cwd,
    session: noSession,
    sandbox: 'workspace',
    signal: new AbortController().signal,
    ...(landings ? { landings } : {}),
    limits: { timeoutMs: null, maxOutputBytes: 1_048_576 },
    knownFiles: new Map(),
    eventOutput: () => null,
    progress: () => undefined,
  };
}
