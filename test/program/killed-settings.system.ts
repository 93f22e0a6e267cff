import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, watch, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { agent, binary, place, type Place } from '../e2e/program.js';

/** Settings of a user who has many, so that writing them takes a while. */
const models = Object.fromEntries(
  Array.from({ length: 2_000 }, (_, index) => [`local/model-${index}`, { context_window: 8_000, input_usd: 1 }]),
);

function withSettings(): { readonly at: Place; readonly file: string } {
  const at = place();
  const folder = join(at.home, '.agent');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, 'config.json');
  writeFileSync(file, `${JSON.stringify({ exec: { timeout_s: 1 }, models }, null, 2)}\n`);
  return { at, file };
}

interface Settings {
  readonly exec: { readonly timeout_s: number };
  readonly models: object;
}

const read = (file: string): Settings => JSON.parse(readFileSync(file, 'utf8')) as Settings;

/** Starts the change and kills it: when its draft appears in the folder, or after a time. True if it was killed. */
async function killed(at: Place, value: number, when: 'draft' | number): Promise<boolean> {
  const child = spawn(process.execPath, [binary, '-p', `/config exec.timeout_s=${value}`], {
    ...{ cwd: at.work, env: at.env, stdio: 'ignore' as const },
  });
  const ended = new Promise<boolean>((resolve) => {
    child.on('close', (_code, signal) => {
      resolve(signal === 'SIGKILL');
    });
  });
  const watcher = watch(join(at.home, '.agent'), (_event, name) => {
    if (when === 'draft' && name?.startsWith('.config-') === true) child.kill('SIGKILL');
  });
  if (typeof when === 'number') {
    await Promise.race([ended, wait(when)]);
    child.kill('SIGKILL');
  }
  const wasKilled = await ended;
  watcher.close();
  return wasKilled;
}

test('/config that is killed at any moment leaves the settings as they were or as they become, whole', async () => {
  const { at, file } = withSettings();
  const startedAtMs = performance.now();
  expect((await agent(at, ['-p', '/config exec.timeout_s=2'])).code).toBe(0);
  const tookMs = performance.now() - startedAtMs;
  let kills = 0;
  const moments = ['draft', 'draft', 'draft', ...[0.2, 0.4, 0.6, 0.8, 0.9, 1].map((share) => share * tookMs)] as const;
  for (const [index, when] of moments.entries()) {
    const before = read(file).exec.timeout_s;
    const value = 100 + index;
    if (await killed(at, value, when)) kills++;
    const after = read(file);
    expect([before, value]).toContain(after.exec.timeout_s);
    expect(after.models).toEqual(models);
  }
  expect(kills).toBeGreaterThan(3);
  // What undoes the changes is whole too.
  const set = await agent(at, ['-p', '/config exec.timeout_s=7']);
  expect([set.code, read(file).exec.timeout_s]).toEqual([0, 7]);
  const undone = await agent(at, ['-p', '/config undo']);
  expect([undone.code, undone.stderr, read(file).models]).toEqual([0, '', models]);
});

/** Runs a command with a limit of the size of files, which is met in the middle of a text, as a full disk is. */
async function withSmallFiles(at: Place, args: readonly string[]): Promise<{ code: number | null; stderr: string }> {
  const run = spawn('bash', ['-c', 'ulimit -f 64; exec "$0" "$@"', process.execPath, binary, ...args], {
    ...{ cwd: at.work, env: at.env },
  });
  let stderr = '';
  run.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const code = await new Promise<number | null>((resolve) => run.on('close', resolve));
  return { code, stderr };
}

test('where the disk takes only a part of a file, it stays as it was and the command says so', async () => {
  const { at, file } = withSettings();
  const before = readFileSync(file, 'utf8');
  const set = await withSmallFiles(at, ['config', 'set', 'exec.timeout_s', '9']);
  expect([set.code, readFileSync(file, 'utf8')]).toEqual([1, before]);
  expect(set.stderr).toMatch(/could not|cannot|EFBIG|too large/i);

  const servers = join(dirname(file), 'mcp.json');
  const others = { mcpServers: { other: { command: 'x'.repeat(80_000) } } };
  writeFileSync(servers, JSON.stringify(others));
  const add = await withSmallFiles(at, ['mcp', 'add', 'files', '--', 'node', 'server.mjs']);
  expect([add.code, JSON.parse(readFileSync(servers, 'utf8'))]).toEqual([1, others]);
  expect(add.stderr).toMatch(/EFBIG|could not/);
  expect(add.stderr).not.toContain('bug');
});
