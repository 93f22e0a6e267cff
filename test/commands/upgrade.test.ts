import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { installationOf, isNewer } from '../../src/commands/upgrade.js';
import type { Place } from '../e2e/program.js';
import { agent, place } from '../program/inside.js';

/** A folder with empty files. */
function folder(...files: readonly string[]): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'agent-upgrade-')));
  onTestFinished(() => {
    rmSync(root, { recursive: true, force: true });
  });
  for (const file of files) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), '');
  }
  return root;
}

const inside = 'node_modules/agent-shell';

test.each([
  ['npm, globally', 'usr/lib/' + inside, [], 'with npm, globally', 'npm install --global --prefix ROOT/usr '],
  [
    'npm under a version manager',
    '.nvm/versions/node/v20/lib/' + inside,
    [],
    'with npm, globally',
    'ROOT/.nvm/versions/node/v20 ',
  ],
  ['npx', '.npm/_npx/1a2b/' + inside, [], 'for one run by npx', ''],
  ['pnpm, globally', '.local/share/pnpm/global/5/' + inside, [], 'with pnpm', 'pnpm add --global '],
  ['Homebrew', 'opt/homebrew/Cellar/agent/0.1.0/libexec/lib/' + inside, [], 'with Homebrew', 'brew upgrade agent'],
  [
    'the npm of Homebrew',
    'opt/homebrew/lib/' + inside,
    [],
    'with npm, globally',
    'npm install --global --prefix ROOT/opt/homebrew ',
  ],
  ['yarn, globally', '.config/yarn/global/' + inside, [], 'with yarn', 'yarn global add '],
  ['volta', '.volta/tools/image/packages/agent-shell/lib/' + inside, [], 'with volta', 'volta install '],
  ['bun, globally', '.bun/install/global/' + inside, [], 'with bun', 'bun add --global '],
  [
    'a dependency',
    'project/' + inside,
    ['project/package.json'],
    'as a dependency of the project in ROOT/project',
    'npm install ',
  ],
  [
    'a dependency, by pnpm',
    'project/node_modules/.pnpm/agent-shell@0.1.0/' + inside,
    ['project/package.json', 'project/pnpm-lock.yaml'],
    'as a dependency of the project in ROOT/project',
    'pnpm add ',
  ],
  ['a checkout', 'src/agent', ['src/agent/.git/HEAD'], 'as a git checkout', 'git -C ROOT/src/agent pull --ff-only'],
  ['an unpacked archive', 'opt/agent', [], 'in a way that is not known here', ''],
])('%s is told from the folder of the program', (_, path, files, how, command) => {
  const root = folder(`${path}/bin/agent.js`, ...files);
  const found = installationOf(join(root, path));
  expect(found.how).toContain(how.replace('ROOT', root));
  expect(found.commands.map((words) => `${words.join(' ')} `).join('')).toContain(command.replace('ROOT', root));
  expect(found.commands.length > 0).toBe(command !== '');
});

test.each([
  ['0.2.0', '0.1.9', true],
  ['0.10.0', '0.9.0', true],
  ['1.0.0', '1.0.0-rc.1', true],
  ['1.0.0-rc.1', '1.0.0', false],
  ['0.1.0', '0.1.0', false],
])('%s is newer than %s: %s', (one, other, newer) => {
  expect(isNewer(one, other)).toBe(newer);
});

/** A place whose `npm` and `git` note what they are called with, and the key they see. */
function withPrograms(npm: string): { at: Place; env: Record<string, string>; called: () => string } {
  const at = place();
  for (const [name, end] of [
    ['npm', npm],
    ['git', 'echo pulled'],
  ] as const) {
    const noted = `echo "${name} $1 \${OPENAI_API_KEY:-no key}" >>"$HOME/called"`;
    chmodSync(at.file(`bin/${name}`, `#!/bin/sh\n${noted}\n${end}\n`), 0o755);
  }
  const env = { PATH: `${at.work}/bin:${at.env.PATH}`, OPENAI_API_KEY: 'sk-test-000000000000000000000000' };
  const file = join(at.home, 'called');
  return { at, env, called: () => (existsSync(file) ? readFileSync(file, 'utf8') : '') };
}

test('without --check and --yes it says what would be run, and runs nothing', async () => {
  const { at, env, called } = withPrograms('echo 9.9.9');
  const { stdout, code } = await agent(at, ['upgrade'], { env });
  expect({ code, called: called() }).toEqual({ code: 0, called: '' });
  expect(stdout).toMatch(/^agent \S+, installed as a git checkout \(.*\)\.\nTo upgrade: git -C /);
  expect(stdout).toMatch(/agent upgrade --yes runs them\.\n$/);
});

test.each([
  ['echo 9.9.9', 0, 'Version 9.9.9 is out.'],
  ['echo 0.0.1', 0, 'That is the newest version.'],
  ['echo "npm error code E404" >&2; exit 1', 1, 'it has no package agent-shell'],
])('--check asks npm, which answers by `%s`', async (npm, code, said) => {
  const { at, env, called } = withPrograms(npm);
  const finished = await agent(at, ['upgrade', '--check'], { env });
  expect(finished.code).toBe(code);
  expect(finished.stdout + finished.stderr).toContain(said);
  expect(called()).toBe('npm view no key\n');
});

test('--yes runs the commands that it shows, one after the other, and stops where one fails', async () => {
  const { at, env, called } = withPrograms('echo broken; exit 3');
  const { code, stdout, stderr } = await agent(at, ['upgrade', '--yes'], { env });
  expect(code).toBe(1);
  expect(stdout).toMatch(/\n\$ git -C .*\npulled\n\$ npm --prefix .*\nbroken\n$/);
  expect(stderr).toContain('ended with exit code 3\n');
  expect(called()).toBe('git -C no key\nnpm --prefix no key\n');
});
