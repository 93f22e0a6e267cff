import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import * as nodeModule from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { agent, place, type Place } from './program.js';
import { openScreen } from './terminal.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

// Node keeps what it compiles since 22.1; before that the program does.
const keepsItself = !('enableCompileCache' in nodeModule);

const run = (at: Place, ...args: readonly string[]): ReturnType<typeof agent> =>
  agent(at, ['-p', ...args, '--model', 'offline', 'run echo kept']);

function keptFiles(at: Place): readonly string[] {
  const folder = join(at.home, '.agent', 'compiled');
  return existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
    : [];
}

const states = (files: readonly string[]): unknown =>
  files.map((file) => {
    const { ino, mtimeMs, size } = statSync(file);
    return [file, ino, mtimeMs, size];
  });

test('what was compiled is kept for the next run, which takes it as it is', async () => {
  const at = place();
  expect((await run(at)).stdout).toContain('kept');
  const kept = keptFiles(at);
  expect(kept.length).toBeGreaterThan(3);
  const before = states(kept);
  expect((await run(at)).stdout).toContain('kept');
  expect(states(keptFiles(at))).toEqual(before);
});

test('--ephemeral leaves nothing, and neither does NODE_DISABLE_COMPILE_CACHE', async () => {
  const at = place();
  await run(at, '--ephemeral');
  await agent(at, ['tools', 'list'], { env: { NODE_DISABLE_COMPILE_CACHE: '1' } });
  expect(keptFiles(at)).toEqual([]);
});

test.skipIf(!keepsItself)('damaged, cut and foreign files are not taken, and are made anew', async () => {
  const at = place();
  await run(at);
  const sound = keptFiles(at);
  const damage: readonly ((file: string, index: number) => void)[] = [
    (file, index) => {
      const bytes = readFileSync(file);
      for (let at = 300 + index; at < bytes.length; at += 997) bytes[at] = (bytes[at] ?? 0) ^ 0x5a;
      writeFileSync(file, bytes);
    },
    (file) => {
      truncateSync(file, Math.floor(statSync(file).size / 2));
    },
    (file) => {
      truncateSync(file, 3);
    },
    (file, index) => {
      writeFileSync(file, readFileSync(sound[(index + 1) % sound.length] ?? file));
    },
  ];
  for (const spoil of damage) {
    sound.forEach(spoil);
    const spoilt = states(sound);
    const { code, stdout, stderr } = await run(at);
    expect([code, stdout.includes('kept'), stderr]).toEqual([0, true, '']);
    expect(states(sound)).not.toEqual(spoilt);
  }
});

test.skipIf(!keepsItself)('a run that does more leaves more; what belongs to no file of the program goes', async () => {
  const at = place();
  await agent(at, ['tools', 'list']);
  const few = keptFiles(at);
  const stray = join(few[0] ?? '', '..', 'start-00000000.js');
  writeFileSync(stray, 'of another build');
  await run(at);
  const more = keptFiles(at);
  expect(more.length).toBeGreaterThan(few.length);
  expect(more).not.toContain(stray);
  expect(more.map((file) => statSync(file).mode & 0o777)).toEqual(more.map(() => 0o600));
});

test('a run that goes on for long, or is killed, has kept what it compiled', async () => {
  const at = place();
  const minutesAreShort = at.file(
    'short.cjs',
    'const { setInterval } = globalThis; globalThis.setInterval = (callback, ms, ...args) => setInterval(callback, ms === 60_000 ? 20 : ms, ...args);',
  );
  const screen = openScreen(at, ['--model', 'offline'], { env: { NODE_OPTIONS: `--require ${minutesAreShort}` } });
  await screen.until(/❯ *$/);
  await expect.poll(() => keptFiles(at).length, { timeout: 20_000 }).toBeGreaterThan(3);
  screen.pty.kill('SIGKILL');
});

test('without AGENT_HOME it is kept beside the program, and where that cannot be written in the cache of the user', async () => {
  const at = place();
  const program = join(at.work, 'program');
  mkdirSync(program);
  for (const part of ['bin', 'dist', 'package.json'])
    cpSync(join(root, part), join(program, part), { recursive: true, filter: (path) => !path.includes('compiled/') });
  symlinkSync(join(root, 'node_modules'), join(program, 'node_modules'));
  const own = join(program, 'dist', 'compiled');
  rmSync(own, { recursive: true, force: true });
  const start = (cache: string): number | null =>
    spawnSync(process.execPath, [join(program, 'bin', 'agent.js'), '-p', '--model', 'offline', 'run echo kept'], {
      cwd: at.work,
      env: { ...at.env, AGENT_HOME: '', XDG_CACHE_HOME: cache },
      stdio: 'ignore',
    }).status;
  const count = (folder: string): number => (existsSync(folder) ? readdirSync(folder, { recursive: true }).length : 0);
  expect([start(join(at.home, 'cache')), count(join(at.home, 'cache'))]).toEqual([0, 0]);
  expect(count(own)).toBeGreaterThan(3);
  rmSync(own, { recursive: true });
  writeFileSync(own, 'a file where the folder belongs');
  expect(start(join(at.home, 'cache'))).toBe(0);
  expect(count(join(at.home, 'cache'))).toBeGreaterThan(3);
  expect(start('/proc/nothing')).toBe(0);
});
