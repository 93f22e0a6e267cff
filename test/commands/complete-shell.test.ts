import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type CompletionCommand, completionScript, isCompletionShell } from '../../src/commands/complete-shell.js';

const leaf = (name: string, args: CompletionCommand['args'] = []): CompletionCommand => ({
  name,
  description: `it's ${name}: one`,
  options: [{ flags: ['--json'], description: 'as JSON', value: null }],
  commands: [],
  args,
});
const spec: CompletionCommand = {
  name: 'agent',
  description: '',
  options: [
    { flags: ['-m', '--model'], description: 'the model', value: 'text' },
    {
      flags: ['--approval'],
      description: 'which calls wait',
      value: ['never', 'dangerous', 'mutating', 'always'],
      global: true,
    },
    { flags: ['-C', '--cwd'], description: 'work there', value: 'directory', global: true },
    { flags: ['-p', '--print'], description: 'headless', value: null },
  ],
  commands: [
    {
      name: 'config',
      description: 'settings',
      options: [],
      commands: [leaf('get', [['approval', 'model']]), leaf('set', [['approval', 'model'], 'text']), leaf('show')],
    },
    { ...leaf('completion', [['bash', 'zsh', 'fish']]) },
    { ...leaf('import', ['file']) },
  ],
};

function has(program: string): boolean {
  return spawnSync(program, ['--version'], { stdio: 'ignore' }).status === 0;
}

function makeDirectory(): string {
  const root = mkdtempSync(join(tmpdir(), 'agent-completion-'));
  onTestFinished(() => {
    rmSync(root, { recursive: true, force: true });
  });
  mkdirSync(join(root, 'folder'));
  writeFileSync(join(root, 'file.txt'), '');
  return root;
}

/** What bash would offer behind `words`, the last of which is being typed. */
function offered(words: readonly string[], cwd: string): readonly string[] {
  const asked = `COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _agent; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const out = execFileSync(
    'bash',
    ['--norc', '-c', `${completionScript('bash', spec)}\n${asked}`, 'bash', 'agent', ...words],
    { cwd, encoding: 'utf8' },
  );
  return out.split('\n').filter((line) => line !== '');
}

test.runIf(has('bash'))('bash offers commands, options, values, files and folders where they fit', () => {
  const cwd = makeDirectory();
  const rows = [
    [''],
    ['co'],
    ['--a'],
    ['-'],
    ['--approval', ''],
    ['--approval', 'm'],
    ['--approval', '=', 'al'],
    ['--model', ''],
    ['-m', 'config', ''],
    ['config', ''],
    ['config', 'set', ''],
    ['config', 'set', 'model', ''],
    ['config', 'get', '--'],
    ['--approval', 'never', 'config', 's'],
    ['completion', 'b'],
    ['-C', ''],
    ['import', 'f'],
    ['fix', ''],
    ['config', '--approval', 'never', ''],
    ['config', 'show', ''],
  ].map((words) => [words.join(' '), offered(words, cwd)]);
  expect(rows).toEqual(
    [
      ['', ['config', 'completion', 'import']],
      ['co', ['config', 'completion']],
      ['--a', ['--approval']],
      ['-', ['-m', '--model', '--approval', '-C', '--cwd', '-p', '--print']],
      ['--approval ', ['never', 'dangerous', 'mutating', 'always']],
      ['--approval m', ['mutating']],
      ['--approval = al', ['always']],
      ['--model ', []],
      ['-m config ', ['config', 'completion', 'import']],
      ['config ', ['get', 'set', 'show']],
      ['config set ', ['approval', 'model']],
      ['config set model ', []],
      ['config get --', ['--json', '--approval', '--cwd']],
      ['--approval never config s', ['set', 'show']],
      ['completion b', ['bash']],
      ['-C ', ['folder']],
      ['import f', ['folder', 'file.txt']],
      ['fix ', []],
      ['config --approval never ', ['get', 'set', 'show']],
      ['config show ', []],
    ].map(([words, items]) => [
      words,
      expect.toSatisfy(
        (given: readonly string[]) => [...given].sort().join() === [...(items as string[])].sort().join(),
        String(items),
      ),
    ]),
  );
});

test.each(['bash', 'zsh', 'fish'] as const)('%s reads its script without complaint', (shell) => {
  if (!has(shell)) {
    console.log(`${shell} is not installed: 1 case skipped`);
    return;
  }
  const file = join(makeDirectory(), 'script');
  writeFileSync(file, completionScript(shell, spec));
  expect(spawnSync(shell, ['-n', file], { encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' });
});

test('zsh and fish are given the descriptions, quoted', () => {
  expect(completionScript('zsh', spec)).toContain(String.raw`'get:it'\''s get\: one'`);
  expect(
    completionScript('fish', spec)
      .split('\n')
      .filter((line) => line.includes('set') && line.startsWith('complete')),
  ).toContain(String.raw`complete -c agent -n '__agent_at '\''config'\'' 0' -a 'set' -d 'it'\''s set: one'`);
});

test('only the three shells are known', () => {
  expect(['bash', 'zsh', 'fish', 'sh', ''].map(isCompletionShell)).toEqual([true, true, true, false, false]);
});
