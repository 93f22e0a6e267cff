import { spawnSync } from 'node:child_process';
import { expect } from 'vitest';
import { agent, type Finished, type Place, place } from '../../e2e/program.js';

/** Runs git in the workspace and returns what it prints. */
export function git(at: Place, ...args: readonly string[]): string {
  const own = ['-c', 'user.name=n', '-c', 'user.email=n@example.org', '-c', 'commit.gpgsign=false'];
  const { status, stdout, stderr } = spawnSync('git', [...own, ...args], { cwd: at.work, encoding: 'utf8' });
  expect([args, status, stderr]).toEqual([args, 0, expect.anything()]);
  return stdout.trim();
}

/** A repository with one commit: a sum that is wrong, and a test that says so. */
export function repository(): Place {
  const at = place({
    '.gitignore': '*.json\nevals\n',
    'add.mjs': 'export const add = (a, b) => a - b;\n',
    'test.mjs':
      "import { add } from './add.mjs';\nif (add(1, 2) !== 3) { console.error(`1 + 2 is ${add(1, 2)}`); process.exit(1); }\n",
  });
  git(at, 'init', '--quiet', '.');
  git(at, 'add', '--all');
  git(at, 'commit', '--quiet', '-m', 'first');
  return at;
}

export const edit = (path: string, old_string: string, new_string: string) => ({
  name: 'file_edit',
  arguments: { path, old_string, new_string },
});
export const bash = (command: string) => ({ name: 'bash', arguments: { command } });

/** A script of the embedded provider, as a file of the workspace. Returns the name of the model. */
export function model(at: Place, name: string, turns: readonly object[]): string {
  at.file(`${name}.json`, JSON.stringify({ turns }));
  return `offline/${name}.json`;
}

const usage = (cost_usd: number) => ({ input_tokens: 100, output_tokens: 10, cost_usd });

/** A model that repairs the sum and tests it. */
export function goodModel(at: Place): string {
  return model(at, 'good', [
    { calls: [edit('add.mjs', 'a - b', 'a + b')], usage: usage(0.01) },
    { calls: [bash('node test.mjs')], usage: usage(0.02) },
    { text: 'Done.', usage: usage(0.003) },
  ]);
}

/** A model that says that it is done. */
export function lazyModel(at: Place): string {
  return model(at, 'lazy', [{ text: 'Done.', usage: usage(0.001) }]);
}

export interface Report {
  readonly run_id: string;
  readonly runs: readonly {
    readonly task: string;
    readonly model: string;
    readonly repeat: number;
    readonly status: string;
    readonly reason: string | null;
    readonly cost_usd: number | null;
    readonly turns: number;
    readonly session_id: string | null;
  }[];
  readonly summary: readonly {
    readonly model: string;
    readonly passed: number;
    readonly total: number;
    readonly low: number;
    readonly high: number;
    readonly cost_usd: number | null;
  }[];
}

function reportOf({ code, stdout, stderr }: Finished): Report {
  expect([code, stderr]).toEqual([0, expect.any(String)]);
  return JSON.parse(stdout) as Report;
}

/** A task file for the repository as it is. */
export function task(at: Place, name: string, fields: object = {}): string {
  const base = git(at, 'rev-parse', 'HEAD');
  at.file(
    `evals/${name}/task.json`,
    JSON.stringify({ name, prompt: 'repair it', repo: '../..', base, check: 'node test.mjs', ...fields }),
  );
  return `evals/${name}`;
}

/** Runs tasks without a sandbox, which not every machine has. */
export async function evaluated(at: Place, ...args: readonly string[]): Promise<Report> {
  return reportOf(await agent(at, ['eval', 'run', ...args, '--sandbox', 'off', '--json']));
}

interface Recorded {
  readonly id: string;
  readonly kind: string;
  readonly content: string | null;
  readonly data: Readonly<Record<string, unknown>> | null;
}

/** Returns the events of the newest session, or of all sessions of a kind. */
export async function recorded(at: Place, session?: string): Promise<readonly Recorded[]> {
  const id = session ?? (await sessions(at))[0]?.id ?? '';
  return JSON.parse((await agent(at, ['sessions', 'show', id, '--json'])).stdout) as readonly Recorded[];
}

export async function sessions(at: Place): Promise<readonly { readonly id: string; readonly title: string | null }[]> {
  const { stdout } = await agent(at, ['sessions', 'list', '--json']);
  return JSON.parse(stdout) as readonly { readonly id: string; readonly title: string | null }[];
}
