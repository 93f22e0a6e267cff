import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readLoginShell } from '../../../src/features/own-shell/read-login-shell.js';
import { processes, tree } from '../../kernel/tools/workbench.js';

afterAll(async () => {
  await processes.killBackground();
});

const shellAt = (name: string): string =>
  ['/bin', '/usr/bin', '/usr/local/bin', '/opt/homebrew/bin'].map((folder) => join(folder, name)).find(existsSync) ??
  '';

const read = async (shell: string, files: Readonly<Record<string, string>>) => {
  const home = tree(files);
  const env = { PATH: process.env['PATH'] ?? '', HOME: home, TERM: 'dumb' };
  return { home, found: await readLoginShell({ processes, home, env, shell }) };
};

const noise = 'echo "Welcome back!"\nprintf "no line end"\n';

test('bash: what an interactive shell has, whatever its start files print and however they begin', async () => {
  const { home, found } = await read(shellAt('bash'), {
    '.bashrc': [
      'case $- in *i*) ;; *) return;; esac',
      '[ -z "$PS1" ] && return',
      noise,
      "alias ll='ls -l' say='echo '\\''hi'\\'''",
      'echo() { return 1; }',
      'grep() { return 1; }',
      'greet() { printf "%s\\n" "$1"; }',
      'export PATH="$PATH:$HOME/bin:relative"',
      'sleep 30 &',
      noise,
    ].join('\n'),
  });
  if (!found.ok) throw new Error(found.problem);
  const { aliases, functions, path } = found.shell;
  expect([aliases.get('ll'), aliases.get('say'), [...functions.keys()].toSorted()]).toEqual([
    'ls -l',
    "echo 'hi'",
    ['echo', 'greet', 'grep'],
  ]);
  expect([path.at(-1), path.includes('relative')]).toEqual([join(home, 'bin'), false]);
});

test('bash: a login file that reads .bashrc is enough; it is not read twice', async () => {
  const { found } = await read(shellAt('bash'), {
    '.bash_profile': '. ~/.bashrc\n',
    '.bashrc': 'export TIMES=x$TIMES\nalias "times$TIMES=true"\n',
  });
  expect(found.ok && [...found.shell.aliases.keys()]).toEqual(['timesx']);
});

test('start files may leave parts out, and do not see the folder of the project', async () => {
  const { home, found } = await read(shellAt('bash'), {
    '.bashrc': '[ -n "$AGENT_READS_SHELL" ] && alias "at=$PWD" && return\nsleep 60\n',
  });
  expect(found.ok && found.shell.aliases.get('at')).toBe(home);
});

test.each<[what: string, shell: string, rc: string, problem: RegExp]>([
  ['too slow', 'bash', 'sleep 60\n', /^bash took more than 1 s to start\..*AGENT_READS_SHELL/],
  ['without an end', 'bash', 'exec true\n', /^bash ended before it had listed them\.$/],
  [
    'that prints without end',
    'bash',
    'while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done\n',
    /^bash (?:took|ended)/,
  ],
])('a shell %s is given up', async (_what, shell, rc, problem) => {
  const startedAt = performance.now();
  const { found } = await read(shellAt(shell), { '.bashrc': rc });
  expect(found.ok ? '' : found.problem).toMatch(problem);
  expect(performance.now() - startedAt).toBeLessThan(1_500);
});

test.each([
  ['/nowhere/bash', 'bash could not be started.'],
  ['/bin/false', 'false is not bash, zsh or fish.'],
])('%s: %s', async (shell, problem) => {
  expect((await read(shell, {})).found).toEqual({ ok: false, problem });
});

test.skipIf(shellAt('zsh') === '')('zsh: aliases, functions and PATH', async () => {
  const { home, found } = await read(shellAt('zsh'), {
    '.zshrc': [
      noise,
      "alias ll='ls -l' gs='git status'",
      "alias -g G='| grep'",
      "alias -s txt='cat'",
      '_help() { print -r -- "$1" }',
      'mkcd() { mkdir -p "$1" && cd "$1"; }',
      'path+=($HOME/bin)',
    ].join('\n'),
    '.zprofile': noise,
  });
  if (!found.ok) throw new Error(found.problem);
  const { aliases, functions, path } = found.shell;
  expect([aliases.get('ll'), aliases.get('gs'), aliases.has('G'), aliases.has('txt')]).toEqual([
    'ls -l',
    'git status',
    false,
    false,
  ]);
  expect(functions.get('mkcd')).toContain('mkdir -p "$1" && cd "$1"');
  expect(functions.has('_help')).toBe(true);
  expect(path).toContain(join(home, 'bin'));
});

test.skipIf(shellAt('fish') === '')('fish: aliases and PATH', async () => {
  const home = tree({ '.config/fish/': '' });
  writeFileSync(
    join(home, '.config/fish/config.fish'),
    `${noise.replaceAll('printf', 'printf %s')}alias ll 'ls -l'\nset -gx PATH $PATH ~/bin\n`,
  );
  const env = { PATH: process.env['PATH'] ?? '', HOME: home, TERM: 'dumb' };
  const found = await readLoginShell({ processes, home, env, shell: shellAt('fish') });
  if (!found.ok) throw new Error(found.problem);
  expect(found.shell.aliases.get('ll')).toBe('ls -l');
  expect(found.shell.path).toContain(join(home, 'bin'));
});
