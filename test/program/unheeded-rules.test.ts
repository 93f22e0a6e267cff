import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, place, script } from './inside.js';

test('allow rules that allow nothing are named by config check and at the start, the others are not', async () => {
  const at = place();
  const home = String(at.env.AGENT_HOME);
  mkdirSync(home, { recursive: true });
  const allow = [
    { tool: 'bash', argv: ['git'] },
    { tool: 'bash', argv: ['python3'] },
    { tool: 'bash' },
    { tool: 'bash', argv: ['git', 'add'] },
  ];
  writeFileSync(join(home, 'config.json'), JSON.stringify({ rules: { allow } }));
  const checked = await agent(at, ['config', 'check']);
  const ran = await agent(at, ['-p', '-m', script(at, [{ text: 'ok' }]), 'go']);
  for (const { stderr } of [checked, ran]) {
    expect(stderr).toContain('rules.allow {"tool":"bash","argv":["git"]} allows nothing: git needs its subcommand');
    expect(stderr).toContain('rules.allow {"tool":"bash","argv":["python3"]} allows nothing: python3 runs whatever');
    expect(stderr).toContain(
      'rules.allow {"tool":"bash"} allows nothing: an allow rule for bash needs the leading words',
    );
    expect(stderr).not.toContain('"add"');
  }
  expect([checked.code, ran.code]).toEqual([2, 0]);
});
