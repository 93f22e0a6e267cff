import { createExtraDirectories } from '../../src/kernel/core/directories.js';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createPathFacts, openPolicy } from '../../src/app/open-policy.js';
import type { SwitchablePolicy } from '../../src/kernel/console/run-settings.js';
import { loadConfig } from '../../src/kernel/config/load.js';
import type { Verdict } from '../../src/kernel/core/policy.js';
import { toolCall } from '../kernel/permissions/calls.js';

const root = realpathSync(mkdtempSync(join(tmpdir(), 'agent-facts-')));
afterAll(() => {
  rmSync(root, { recursive: true, force: true });
});
mkdirSync(join(root, 'real/deep'), { recursive: true });
writeFileSync(join(root, 'real/file'), 'text');
symlinkSync('real/deep', join(root, 'link'));
symlinkSync('loop', join(root, 'loop'));
symlinkSync(join(root, 'nowhere'), join(root, 'dangling'));
const facts = createPathFacts({ home: root, workspace: root, ownPaths: [] });

test.each([
  ['real/file', 'real/file'],
  ['link/../file', 'real/file'],
  ['link/new/name', 'real/deep/new/name'],
  ['absent/../real/file', 'real/file'],
  ['dangling', 'nowhere'],
])('%s lands on %s', async (path, landed) => {
  expect(await facts.landing(`${root}/${path}`)).toBe(join(root, landed));
});

test('a loop and a relative path land nowhere', async () => {
  expect([await facts.landing(`${root}/loop/x`), await facts.landing('real')]).toEqual([null, null]);
});

test('only regular files that are not longer than asked are read', async () => {
  const read = ['real/file', 'real', 'none', 'dangling'].map((path) => facts.readWhole(`${root}/${path}`, 4));
  expect(await Promise.all([...read, facts.readWhole(`${root}/real/file`, 3)])).toEqual([
    Buffer.from('text'),
    'refused',
    'missing',
    'refused',
    'refused',
  ]);
});

const home = join(root, 'home');
mkdirSync(home);

async function opened(text: string, ephemeral = false): Promise<SwitchablePolicy> {
  writeFileSync(join(home, 'config.json'), text);
  const loaded = await loadConfig({ env: { AGENT_HOME: home }, cwd: root, home: root });
  const directories = createExtraDirectories([]);
  return openPolicy({ loaded, config: loaded.config, cwd: root, directories, env: process.env, home: root, ephemeral });
}

async function decided(policy: SwitchablePolicy, command: string): Promise<Verdict['decision']> {
  return (await policy.assess(toolCall('bash', 'execute', { command }), root)).decision;
}

const own =
  '{\n  // mine\n  "approval": "mutating",\n  "rules": {"allow": [{"tool": "bash", "argv": ["npm", "test"]}]}\n}\n';

test('an answer for good counts at once and stands beside the rules of the user, comments kept', async () => {
  const policy = await opened(own);
  expect(await decided(policy, 'git commit -m x')).toBe('ask');
  const added = [{ tool: 'bash', argv: ['git', 'commit'] }];
  expect(await policy.allow?.(added)).toEqual({
    done: true,
    said: `Saved to ${home}/config.json: rules.allow = 2 rules.`,
  });
  await policy.allow?.(added);
  expect([await decided(policy, 'git commit -m x'), await decided(policy, 'npm test')]).toEqual(['allow', 'allow']);
  expect(readFileSync(join(home, 'config.json'), 'utf8')).toContain('// mine');
  const again = await loadConfig({ env: { AGENT_HOME: home }, cwd: root, home: root });
  expect(again.config.policy.rules.allow).toEqual([{ tool: 'bash', argv: ['npm', 'test'] }, ...added]);
  await policy.changeRules('allow', (rules) => rules.slice(1));
  expect([await decided(policy, 'git commit -m x'), await decided(policy, 'npm test')]).toEqual(['allow', 'ask']);
});

test('where nothing may be kept on disk the rule counts for this run', async () => {
  const policy = await opened(own, true);
  const kept = await policy.allow?.([{ tool: 'bash', argv: ['git', 'commit'] }]);
  expect(kept).toEqual({ done: false, said: 'Not saved: --ephemeral writes nothing to disk.' });
  expect(await decided(policy, 'git commit -m x')).toBe('allow');
  expect(readFileSync(join(home, 'config.json'), 'utf8')).toBe(own);
});

function shown(policy: SwitchablePolicy): string {
  return policy.planning() ? 'plan' : policy.mode();
}

test('Shift-Tab goes from the mode of the user to the stricter ones, to plan mode and back, and never to a looser one', async () => {
  const round = (policy: SwitchablePolicy): readonly string[] =>
    Array.from({ length: 5 }, () => {
      policy.next();
      return shown(policy);
    });
  expect(round(await opened('{}'))).toEqual(['mutating', 'always', 'plan', 'dangerous', 'mutating']);
  expect(round(await opened('{"approval": "never"}'))).toEqual(['dangerous', 'mutating', 'always', 'plan', 'never']);
  expect(round(await opened('{"approval": "mutating"}'))).toEqual(['always', 'plan', 'mutating', 'always', 'plan']);
  expect(round(await opened('{"approval": "always"}'))).toEqual(['plan', 'always', 'plan', 'always', 'plan']);
});

test('plan mode by Shift-Tab runs reads unasked, and ends in the mode of the user', async () => {
  for (const mode of ['never', 'dangerous', 'mutating', 'always'] as const) {
    const policy = await opened(JSON.stringify({ approval: mode }));
    while (!policy.planning()) policy.next();
    expect(await Promise.all(['ls', 'git status', 'npm test'].map((line) => decided(policy, line)))).toEqual([
      'allow',
      'allow',
      'deny',
    ]);
    policy.plan(false);
    expect(shown(policy)).toBe(mode);
  }
  const switched = await opened('{"approval": "dangerous"}');
  switched.switchTo('mutating');
  while (!switched.planning()) switched.next();
  switched.next();
  expect(shown(switched)).toBe('mutating');
});

test('in plan mode no rule and no approval mode lets through what does more than read', async () => {
  const policy = await opened('{"approval": "never", "rules": {"allow": [{"tool": "bash", "argv": ["npm", "test"]}]}}');
  policy.plan(true);
  expect(await Promise.all(['ls', 'git status', 'npm test', 'rm x'].map((line) => decided(policy, line)))).toEqual([
    'allow',
    'allow',
    'deny',
    'deny',
  ]);
  policy.plan(false);
  expect(await decided(policy, 'npm test')).toBe('allow');
});
