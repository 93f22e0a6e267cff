import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createPathFacts } from '../../src/app/open-policy.js';
import type { Rule, RuleList, Verdict } from '../../src/kernel/core/policy.js';
import type { Effect } from '../../src/kernel/core/tool.js';
import { readClaudeRule, type ReadRule } from '../../src/app/claude-rules.js';
import { createPolicy } from '../../src/kernel/permissions/permission-policy.js';
import { refusedAllow } from '../../src/kernel/permissions/rules.js';
import { formsFolder, printCounts } from '../brought-forms.js';
import { toolCall } from '../kernel/permissions/calls.js';

/** A rule as it is found in real settings, calls that it fits, and calls that it does not. */
interface Form {
  readonly list: RuleList;
  readonly rule: string;
  readonly fits: readonly string[];
  readonly others: readonly string[];
}

const forms = JSON.parse(readFileSync(join(formsFolder('permissions'), 'rules.json'), 'utf8')) as readonly Form[];

const root = realpathSync(mkdtempSync(join(tmpdir(), 'claude-rules-')));
const [work, home] = [join(root, 'work'), join(root, 'home')];
for (const folder of ['lib', 'docs', 'private', 'src']) mkdirSync(join(work, folder), { recursive: true });
mkdirSync(home);
afterAll(() => rmSync(root, { recursive: true, force: true }));

const tools: Readonly<Record<string, readonly [Effect, string]>> = {
  bash: ['execute', 'command'],
  file_read: ['read', 'path'],
  file_edit: ['write', 'path'],
  file_write: ['write', 'path'],
  web_fetch: ['network', 'url'],
  web_search: ['network', 'query'],
  skill: ['read', 'name'],
  agent: ['read', 'agent'],
};

const judged = { judge: () => ({ risk: 'mutating' as const, reasons: [] }) };

/** Judges `<tool> <argument>` by one rule. */
async function verdictOf(given: string, list: RuleList, { rules }: ReadRule): Promise<Verdict> {
  const [, name = '', argument = ''] = /^(\S+)\s*(.*)$/.exec(given) ?? [];
  const [effect, key] = tools[name] ?? ['network', 'x'];
  const call = toolCall(name, effect, { [key]: argument.replace(/^~/, home) });
  const isFile = effect === 'execute' || key === 'path';
  const facts = createPathFacts({ home, workspace: work, ownPaths: [], env: process.env });
  const all = { allow: [], ask: [], deny: [], [list]: rules };
  const policy = createPolicy({ approval: 'mutating', sandbox: 'off', facts, fsDeny: [], rules: all });
  return await policy.assess(isFile ? call : { ...call, tool: { ...call.tool, ...judged } }, work);
}

/** Without a rule of its own a reading call is allowed, another one is asked about. */
const effects: Readonly<Record<RuleList, Partial<Verdict>>> = {
  allow: { decision: 'allow', decidedBy: 'rule' },
  ask: { decision: 'ask', ruled: true },
  deny: { decision: 'deny', decidedBy: 'rule' },
};

test.each(forms)('$list $rule', async ({ list, rule, fits, others }) => {
  const read = readClaudeRule(rule, list, { cwd: work, folder: work });
  if (read === null) throw new Error('no rule');
  for (const call of fits.filter((one) => !one.startsWith('host ')))
    expect([call, await verdictOf(call, list, read)]).toEqual([call, expect.objectContaining(effects[list])]);
  for (const call of others)
    expect([call, await verdictOf(call, list, read)]).not.toEqual([call, expect.objectContaining(effects[list])]);
  expect(read.domains ?? []).toEqual(fits.filter((one) => one.startsWith('host ')).map((one) => one.slice(5)));
});

test('the forms of permission rules are counted', () => {
  const works = ({ list, rule }: Form): boolean => {
    const read = readClaudeRule(rule, list, { cwd: work });
    const isRefused = (rule: Rule): boolean => list === 'allow' && refusedAllow(rule) !== null;
    return read !== null && (read.domains !== undefined || read.rules.some((one) => !isRefused(one)));
  };
  const whole = forms.filter(works).length;
  printCounts(
    'permissions',
    forms.map((form) => (works(form) ? 'whole' : 'not')),
  );
  expect(whole).toBeGreaterThan(forms.length * 0.9);
});

test.each(['', '(x)', 'Bash(', '!x'])('%j is no rule', (text) => {
  expect(readClaudeRule(text, 'deny', { cwd: work })).toBeNull();
});

test('a rule for all of git allows its harmless verbs one by one', () => {
  const read = readClaudeRule('Bash(git *)', 'allow', { cwd: work });
  const verbs = read?.rules.flatMap(({ argv }) => argv?.[1] ?? []) ?? [];
  expect(verbs).toEqual(expect.arrayContaining(['status', 'commit', 'remote']));
  expect(verbs.filter((verb) => verb.includes(',') || ['hook', 'filter-branch', 'config'].includes(verb))).toEqual([]);
});
