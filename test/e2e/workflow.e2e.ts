import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { binary, type Place, place, script } from './program.js';

const page = readFileSync(fileURLToPath(new URL('../../docs/ci.md', import.meta.url)), 'utf8');

interface Step {
  readonly name: string;
  readonly env: Readonly<Record<string, string>>;
  readonly run: string;
}

/** Returns the steps of the workflows of docs/ci.md that run a shell. */
function shellSteps(): readonly Step[] {
  const workflows = [...page.matchAll(/^```yaml\n([^]*?)\n```$/gm)].map(([, text = '']) => text);
  return workflows
    .flatMap((text) => text.split(/^ {6}- /m).slice(1))
    .flatMap((step) => {
      const [, block] = /^ {8}run: \|\n((?: {10}.*\n?)+)/m.exec(step) ?? [];
      const run = block?.replaceAll(/^ {10}/gm, '') ?? /^ {8}run: (.+)$/m.exec(step)?.[1];
      if (run === undefined) return [];
      const env = [...step.matchAll(/^ {10}([A-Z_]+): (.+)$/gm)].map(([, name = '', value = '']) => [name, value]);
      return [{ name: /^name: (.+)$/m.exec(step)?.[1] ?? '', env: Object.fromEntries(env) as Step['env'], run }];
    });
}

const finding = { file: 'a.txt', line: 1, severity: 'error', title: 'Bad', detail: 'very' };

/** Runs a step as a runner does: in bash that stops at the first failure. */
function runStep(
  at: Place,
  { env, run }: Step,
  values: Readonly<Record<string, string>>,
): ReturnType<typeof spawnSync> {
  const filled = Object.entries(env).map(([name, value]) => {
    const [, expression] = /^\$\{\{ (.+) \}\}$/.exec(value) ?? [];
    return [name, expression === undefined ? value : (values[expression] ?? '')];
  });
  return spawnSync('bash', ['--noprofile', '--norc', '-eo', 'pipefail', '-c', run], {
    cwd: at.work,
    env: { ...at.env, ...(Object.fromEntries(filled) as object), AGENT_MODEL: values['model'] ?? '' },
    encoding: 'utf8',
  });
}

test('the steps of the documented workflows review a pull request', () => {
  const at = place({ 'a.txt': 'one\n' });
  const git = (...args: readonly string[]): string =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], {
      cwd: at.work,
      encoding: 'utf8',
    }).trim();
  git('init', '-q', '-b', 'main');
  git('add', '.');
  git('commit', '-qm', 'first');
  git('checkout', '-qb', 'change');
  at.file('a.txt', 'two\n');
  git('commit', '-qam', 'second');
  const bin = join(dirname(at.work), 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'agent'), `#!/bin/sh\nexec '${process.execPath}' '${binary}' "$@"\n`);
  chmodSync(join(bin, 'agent'), 0o755);
  at.env['PATH'] = `${bin}:${at.env['PATH'] ?? ''}`;

  const steps = shellSteps();
  // What installs the program fetches it from the registry; here it is the build.
  expect(steps.map(({ name }) => name)).toEqual(['Install', 'Review', 'Review for code scanning']);
  const values = {
    'github.event.pull_request.base.sha': git('rev-parse', 'main'),
    'secrets.ANTHROPIC_API_KEY': 'placeholder',
    model: script(at, [{ text: JSON.stringify({ summary: 'No.', findings: [finding] }) }]),
  };
  const [, annotations, scanning] = steps;
  const reviewed = runStep(at, annotations as Step, values);
  expect(reviewed).toMatchObject({ status: 1, stderr: '' });
  expect(reviewed.stdout).toMatch(/^::error file=a\.txt,line=1,title=Bad::very%0AShown by events \d+\n::notice /);
  expect(runStep(at, scanning as Step, values)).toMatchObject({ status: 0, stdout: '', stderr: '' });
  const sarif = JSON.parse(readFileSync(join(at.work, 'review.sarif'), 'utf8')) as { readonly runs: readonly object[] };
  expect(sarif.runs).toMatchObject([{ results: [{ level: 'error', message: { text: 'Bad\nvery' } }] }]);
});
