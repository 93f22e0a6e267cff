import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';

declare const AGENT_ROOT: string;

/** The built program; AGENT_PROGRAM names another build. */
export const program = process.env['AGENT_PROGRAM'] ?? join(AGENT_ROOT, 'bin/agent.js');

/** A home with a working directory, and the variables of what runs there. */
export interface Home {
  readonly work: string;
  readonly env: Readonly<Record<string, string>>;
  readonly database: string;
}

export interface Run {
  readonly child: ChildProcess;
  readonly ended: Promise<EndedRun>;
}

export interface EndedRun {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
  readonly ms: number;
}

/** Makes a home whose model answers by a script of `turns`. */
export function newHome(
  folder: string,
  name: string,
  turns: readonly object[],
  settings: Readonly<Record<string, unknown>> = {},
): Home {
  const home = join(realpathSync(folder), name);
  const work = join(home, 'work');
  const data = join(home, '.agent');
  for (const path of [work, data]) mkdirSync(path, { recursive: true });
  const script = join(home, 'script.json');
  writeFileSync(script, JSON.stringify({ turns, loop: true }));
  writeFileSync(join(data, 'config.json'), JSON.stringify({ model: `offline/${script}`, ...settings }));
  const env = { PATH: process.env['PATH'] ?? '', HOME: home, AGENT_HOME: data };
  return { work, env, database: join(data, 'agent.db') };
}

/** Starts the program in a home. */
export function startRun({ work, env }: Home, args: readonly string[]): Run {
  const begun = performance.now();
  const child = spawn(process.execPath, [program, ...args], { cwd: work, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let [output, errors] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    output += part;
  });
  child.stderr.setEncoding('utf8').on('data', (part: string) => {
    errors += part;
  });
  const ended = new Promise<EndedRun>((resolve) => {
    child.on('close', (code) => {
      resolve({ code, output, errors, ms: performance.now() - begun });
    });
  });
  return { child, ended };
}

/** Runs the program in a home to its end. */
export async function runProgram(home: Home, ...args: readonly string[]): Promise<EndedRun> {
  return await startRun(home, args).ended;
}

/** Returns the rows of a question to the database of a home, each as a list of its values. */
export function askDatabase({ database }: Pick<Home, 'database'>, sql: string): readonly (readonly unknown[])[] {
  const db = new Database(database, { readonly: true });
  try {
    return db.prepare<[], readonly unknown[]>(sql).raw().all();
  } finally {
    db.close();
  }
}

/** Returns the number of events in the database of a home. */
export function countEvents(home: Pick<Home, 'database'>): number {
  return Number(askDatabase(home, 'SELECT count(*) FROM events')[0]?.[0] ?? 0);
}

/** Counts exit codes: `160 × 0, 2 × 7`. */
export function formatCodes(runs: readonly Pick<EndedRun, 'code'>[]): string {
  const counts = new Map<string, number>();
  for (const { code } of runs) counts.set(String(code), (counts.get(String(code)) ?? 0) + 1);
  return [...counts].map(([code, count]) => `${count} × ${code}`).join(', ');
}

/** Returns true if `agent audit verify` finds every chain of a home whole. */
export async function isChainWhole(home: Home): Promise<boolean> {
  const { code, output } = await runProgram(home, 'audit', 'verify', '--json');
  return code === 0 && (JSON.parse(output) as { readonly ok: boolean }).ok;
}
