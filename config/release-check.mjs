// `npm run release:check`: what must hold before a version is tagged and published. It changes and publishes nothing.
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const readJson = (file) => JSON.parse(readFileSync(file, 'utf8'));
const git = (...args) => execFileSync('git', args, { encoding: 'utf8' }).trim();
const { version } = readJson('package.json');

/** Returns what is wrong, or null. */
const quickChecks = {
  'the tree is clean': () => git('status', '--porcelain') || null,
  'the changelog has this version with its day': () => changelogProblem(readFileSync('CHANGELOG.md', 'utf8')),
  'package-lock.json has this version': () => {
    const locked = readJson('package-lock.json');
    const found = [locked.version, locked.packages[''].version].find((other) => other !== version);
    return found === undefined ? null : `it has ${found}: run npm install --package-lock-only`;
  },
  'the tag is free': () => (git('tag', '--list', `v${version}`) === '' ? null : `v${version} is there already`),
};

const longChecks = {
  'everything of .ci/run holds': () => failureOf('.ci/run', []),
  'all tests hold on the other versions of Node': () => failureOf('npm', ['run', 'test:nodes']),
  'the program tells its version, commit and day': () => {
    const wanted = `${version} (${git('log', '-1', '--abbrev=8', '--format=%h, %cs')})`;
    const told = execFileSync(process.execPath, ['bin/agent.js', '--version'], { encoding: 'utf8' }).trim();
    return told === wanted ? null : `it says ${told}, not ${wanted}`;
  },
  'the bench runs to its end': () => failureOf('npm', ['run', 'bench']),
};

function changelogProblem(text) {
  const sections = text.split(/^## /m).slice(1);
  const titleOf = (section) => section.split('\n', 1)[0].replace(/[[\]]/g, '').trim();
  const unreleased = sections.find((section) => titleOf(section) === 'Unreleased');
  if (unreleased !== undefined && /^- |^\*\*/m.test(unreleased)) return 'entries stand under Unreleased';
  const section = sections.find((one) => titleOf(one).split(' ')[0] === version);
  if (section === undefined) return `there is no section ${version}`;
  const [, day = ''] = / - (\d{4}-\d\d-\d\d)$/.exec(titleOf(section)) ?? [];
  if (day === '' || Number.isNaN(Date.parse(day)))
    return `the section ${version} has no day: ## ${version} - YYYY-MM-DD`;
  return section.trim().split('\n').length > 1 ? null : `the section ${version} is empty`;
}

function failureOf(program, args) {
  const { status, error } = spawnSync(program, args, { stdio: 'inherit' });
  return status === 0 ? null : `${[program, ...args].join(' ')} ended with ${error?.message ?? status}`;
}

/** Runs checks one after the other, and returns whether all hold. */
function hold(checks) {
  const problems = Object.entries(checks).map(([name, check]) => {
    const problem = check();
    console.log(problem === null ? `ok    ${name}` : `fail  ${name}: ${problem}`);
    return problem;
  });
  return problems.every((problem) => problem === null);
}

if (!hold(quickChecks) || !hold(longChecks)) process.exit(1);
console.log(`\n${version} is ready. What is left: git tag v${version}, git push --tags, npm publish.`);
