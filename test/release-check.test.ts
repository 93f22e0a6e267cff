import { execFileSync, spawnSync } from 'node:child_process';
import { appendFileSync, chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

const program = fileURLToPath(new URL('../config/release-check.mjs', import.meta.url));
const dated = '# Changelog\n\n## Unreleased\n\n## 1.2.3 - 2026-11-29\n\n### Added\n\n- A thing.\n';

/** A repository that can be released, with what its `.ci/run`, its bench and its tests on other versions of Node end with. */
function repository({ changelog = dated, locked = '1.2.3', ci = 0, bench = 0, nodes = 0 } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'agent-release-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  const git = (...args: readonly string[]): string =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.c', ...args], { cwd: folder, encoding: 'utf8' });
  const files = {
    'package.json': JSON.stringify({
      version: '1.2.3',
      type: 'module',
      scripts: { bench: `exit ${bench}`, 'test:nodes': `exit ${nodes}` },
    }),
    'package-lock.json': JSON.stringify({ version: locked, packages: { '': { version: locked } } }),
    'CHANGELOG.md': changelog,
    '.ci/run': `#!/bin/sh\necho CI ran\nexit ${ci}\n`,
    'bin/agent.js':
      "import { execFileSync } from 'node:child_process';\n" +
      "console.log(`1.2.3 (${execFileSync('git', ['log', '-1', '--abbrev=8', '--format=%h, %cs']).toString().trim()})`);\n",
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  chmodSync(join(folder, '.ci/run'), 0o755);
  git('init', '--quiet');
  git('add', '.');
  git('commit', '--quiet', '-m', 'all');
  const check = () => {
    const { status, stdout } = spawnSync(process.execPath, [program], { cwd: folder, encoding: 'utf8' });
    return { status, stdout };
  };
  return { folder, git, check };
}

test('what can be released is told with the steps that are left', () => {
  const { check } = repository();
  const { status, stdout } = check();
  expect([status, stdout]).toEqual([0, expect.stringContaining('CI ran\n')]);
  expect(stdout).toMatch(/1\.2\.3 is ready\. What is left: git tag v1\.2\.3, git push --tags, npm publish\.\n$/);
});

test.each([
  [{ changelog: dated.replace(' - 2026-11-29', '') }, 'the section 1.2.3 has no day: ## 1.2.3 - YYYY-MM-DD'],
  [{ changelog: dated.replace('2026-11-29', '2026-99-99') }, 'the section 1.2.3 has no day'],
  [{ changelog: dated.replace('## 1.2.3', '- More.\n\n## 1.2.3') }, 'entries stand under Unreleased'],
  [{ changelog: dated.replace('1.2.3', '1.2.2') }, 'there is no section 1.2.3'],
  [{ locked: '1.2.2' }, 'it has 1.2.2: run npm install --package-lock-only'],
])('%o is refused before anything runs', (wrong, said) => {
  const { status, stdout } = repository(wrong).check();
  expect([status, stdout]).toEqual([1, expect.stringContaining(said)]);
  expect(stdout).not.toContain('CI ran');
});

test('a changed file and a tag that is there are refused', () => {
  const { folder, git, check } = repository();
  git('tag', 'v1.2.3');
  appendFileSync(join(folder, 'CHANGELOG.md'), 'more\n');
  const { status, stdout } = check();
  expect(status).toBe(1);
  expect(stdout).toContain('fail  the tree is clean: M CHANGELOG.md\n');
  expect(stdout).toContain('fail  the tag is free: v1.2.3 is there already\n');
});

test.each([
  [{ ci: 1 }, 'fail  everything of .ci/run holds: .ci/run ended with 1\n'],
  [{ nodes: 4 }, 'fail  all tests hold on the other versions of Node: npm run test:nodes ended with 4\n'],
  [{ bench: 3 }, 'fail  the bench runs to its end: npm run bench ended with 3\n'],
])('%o is refused', (wrong, said) => {
  expect(repository(wrong).check()).toEqual({ status: 1, stdout: expect.stringContaining(said) as string });
});
