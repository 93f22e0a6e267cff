import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { agent, place, type Place } from './program.js';
import { openProgram, type Screen } from './terminal.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** A copy of the built program, of which parts can be taken away. */
function copied(at: Place): { readonly binary: string; remove(part: RegExp): void } {
  const folder = join(dirname(at.work), 'program');
  mkdirSync(folder);
  for (const part of ['bin', 'dist', 'package.json']) cpSync(join(root, part), join(folder, part), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  const chunks = join(folder, 'dist', 'chunks');
  return {
    binary: join(folder, 'bin', 'agent.js'),
    remove: (part) => {
      const found = readdirSync(chunks).filter((name) => part.test(name));
      expect(found).toHaveLength(1);
      for (const name of found) rmSync(join(chunks, name));
    },
  };
}

/** The program below a shell that notes the terminal's modes before and after, and its exit code. */
function opened(at: Place, binary: string): Screen {
  return openProgram(at, 'bash', [
    '--norc',
    '-c',
    'stty -a >before; "$0" "$@"; echo "left $?"; stty -a >after; echo over',
    process.execPath,
    binary,
  ]);
}

function expectGivenBack(at: Place, screen: Screen): void {
  expect(readFileSync(join(at.work, 'after'), 'utf8')).toBe(readFileSync(join(at.work, 'before'), 'utf8'));
  for (const [on, off] of [
    ['\x1b[?2004h', '\x1b[?2004l'],
    ['\x1b[>5u', '\x1b[<u'],
    ['\x1b[22;0t', '\x1b[23;0t'],
  ] as const)
    expect(screen.raw().lastIndexOf(off)).toBeGreaterThanOrEqual(screen.raw().lastIndexOf(on));
  expect(screen.text()).not.toMatch(/ {4}at |node:internal/);
}

test('a clone that is not built says how to build it', () => {
  const at = place();
  const { binary } = copied(at);
  const folder = dirname(dirname(binary));
  rmSync(join(folder, 'dist'), { recursive: true });
  const { status, stderr } = spawnSync(process.execPath, [binary, '--version'], { env: at.env, encoding: 'utf8' });
  expect([status, stderr]).toEqual([1, `agent: the program is not built yet\nRun npm run build in ${folder}.\n`]);
});

const supported = ['20.19.0', '20.20.2', '22.14.0', '23.0.0', '24.1.0', '26.0.0'];

test.each([...supported, '18.20.0', '20.18.9', '21.7.0', '22.13.1'])('Node %s runs it, or is refused', (node) => {
  const at = place();
  const pretended = at.file(
    'version.cjs',
    `for (const [name, value] of [['version', 'v${node}'], ['versions', { ...process.versions, node: '${node}' }]])
      Object.defineProperty(process, name, { value });`,
  );
  const program = join(root, 'bin', 'agent.js');
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--require', pretended, program, '--version'], {
    env: at.env,
    encoding: 'utf8',
  });
  expect([status, stderr]).toEqual(
    supported.includes(node)
      ? [0, '']
      : [1, `agent: Node v${node} is not supported\nInstall Node 22.14 or newer (or 20.19 or newer of 20).\n`],
  );
  expect(stdout).toMatch(
    supported.includes(node) ? /^\d+\.\d+\.\d+ \([\da-f]{8}, \d{4}-\d\d-\d\d(, modified)?\)\n$/ : /^$/,
  );
});

test('an installation that has to compile names what is missing for that', () => {
  const at = place();
  const pretended = at.file('version.cjs', "Object.defineProperty(process, 'version', { value: 'v20.19.0' });");
  const check = (...programs: readonly string[]): readonly unknown[] => {
    const folder = join(at.work, programs.join('-'));
    mkdirSync(folder);
    for (const name of programs) symlinkSync('/bin/true', join(folder, name));
    const line = ['--require', pretended, join(root, 'bin', 'check-install.js')];
    const { status, stderr } = spawnSync(process.execPath, line, { env: { PATH: folder }, encoding: 'utf8' });
    return [status, stderr];
  };
  expect(check('python3', 'make', 'g++')).toEqual([0, '']);
  expect(check('make', 'apt-get')).toEqual([
    1,
    'agent needs better-sqlite3, which npm has to compile under Node v20.19.0. Missing for that: python3, a C++ compiler.\n' +
      'Use Node 22.14 or newer, for which it comes compiled, or: apt-get install -y python3 make g++\n',
  ]);
});

test.each([
  ['what every command needs', /^run-\w+\.js$/],
  ['what a chat needs', /^offline-/],
] as const)('%s is missing: two lines, exit code 1', (_name, part) => {
  const at = place();
  const program = copied(at);
  program.remove(part);
  const { status, stderr, stdout } = spawnSync(process.execPath, [program.binary, '-p', 'hi'], {
    cwd: at.work,
    env: at.env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  expect([status, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(/^agent: a part of the program .*\n.*[Ss]tart agent again.*\n$/);
});

test.each([
  ['the start', /^run-\w+\.js$/],
  ['the REPL', /^repl-[A-Z0-9]{8}\.js$/],
] as const)('%s is missing once the prompt stands: the terminal is given back', async (_name, part) => {
  const at = place();
  const program = copied(at);
  program.remove(part);
  const screen = opened(at, program.binary);
  await screen.until(/over$/);
  expect(screen.lines().join('\n').trim()).toMatch(
    /^agent: a part of the program .*\n.*[Ss]tart agent again.*\nleft 1\nover$/,
  );
  expectGivenBack(at, screen);
});

test('a command whose part is gone says what to do, and the program continues', async () => {
  const at = place();
  const program = copied(at);
  const screen = opened(at, program.binary);
  await screen.until(/\/work.*\n❯ /);
  program.remove(/^settings-commands-/);
  screen.type('/help\r');
  await screen.until(/\/help failed:\s+a\s+part\s+of\s+the\s+program\s+is\s+missing/);
  expect(screen.lines().join(' ').replaceAll(/\s+/g, ' ')).toMatch(
    /of another version: settings-commands-\w+\.js\. .* start agent again \(continue with agent -c\)/,
  );
  screen.type('\u0004');
  await screen.until(/left 0\nover$/);
});

test('a turn whose part is gone names it, and calls it no bug', async () => {
  const at = place();
  const program = copied(at);
  program.remove(/^verdict-/);
  const { code, stderr } = await agent(at, ['-p', 'run echo hi'], { program: program.binary });
  expect(code).toBe(1);
  expect(stderr).toMatch(/a part of the program is missing or of another version: verdict-\w+\.js/);
  expect(stderr).toContain('start agent again');
  expect(stderr).not.toContain('bug');
});
