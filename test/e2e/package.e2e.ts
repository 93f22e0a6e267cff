import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { place } from './program.js';
import { openProgram } from './terminal.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'agent-package-'));
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

function npm(bin: string, ...args: readonly string[]): string {
  const env = { ...process.env, PATH: `${bin}${delimiter}${process.env['PATH'] ?? ''}` };
  return execFileSync('npm', [...args], { cwd: folder, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
}

/** Compiled once for this Node by `npm ci`; compiling it again for the installed copy takes a minute. */
function takeCompiled(module: string): void {
  if (!existsSync(join(module, 'prebuilds')))
    cpSync(join(root, 'node_modules/better-sqlite3/build'), join(module, 'build'), { recursive: true });
}

// AGENT_NODES: the folders of the programs of other versions of Node, as in a PATH.
const others = process.env['AGENT_NODES']?.split(delimiter) ?? [];
const nodes = [dirname(process.execPath), ...others].map((bin) => ({
  bin,
  node: execFileSync(join(bin, 'node'), ['--version'], { encoding: 'utf8' }).trim(),
}));

test.each(nodes)('the packed package is installed and runs under Node $node', async ({ bin, node }) => {
  const prefix = join(folder, node);
  const packed = npm(bin, 'pack', root, '--ignore-scripts', '--silent').trim();
  npm(bin, 'install', '--global', '--prefix', prefix, '--ignore-scripts', '--prefer-offline', join(folder, packed));
  takeCompiled(join(prefix, 'lib/node_modules/agent-shell/node_modules/better-sqlite3'));

  const at = place({ 'a.md': 'hello\n' });
  const agent = join(prefix, 'bin', 'agent');
  const env = { ...at.env, PATH: `${bin}${delimiter}${at.env['PATH'] ?? ''}` };
  const run = (...args: readonly string[]) => {
    const { status, stdout, stderr } = spawnSync(agent, args, { cwd: at.work, env, encoding: 'utf8', input: '' });
    return [status, stdout, stderr] as const;
  };
  expect(run('--version')).toEqual([0, expect.stringMatching(/^\d+\.\d+\.\d+/), '']);
  expect(run('-p', 'list **/*.md')).toEqual([0, expect.stringContaining('a.md'), '']);
  expect(run('upgrade')[1]).toContain(`To upgrade: npm install --global --prefix ${prefix} agent-shell@latest\n`);
  const [, checks] = run('doctor', '--json');
  expect(JSON.parse(checks)).toEqual(
    expect.arrayContaining([
      { name: 'node', status: 'ok', detail: node, fix: null },
      { name: 'sqlite', status: 'ok', detail: expect.any(String) as string, fix: null },
    ]),
  );

  const screen = openProgram(at, agent, [], { env: { PATH: env.PATH } });
  await screen.until(/\/help/);
  screen.type('list **/*.md\r');
  await screen.until(/a\.md[^]*❯ *$/);
  screen.type('\u0004');
  expect(await screen.exited).toBe(0);
});
