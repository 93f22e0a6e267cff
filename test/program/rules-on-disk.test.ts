import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, place } from './inside.js';

/** A project with a denied folder, a secret file, and links and wildcards that lead there. */
function guarded(): ReturnType<typeof place> {
  const at = place({
    'private/plan.txt': 'text-of-a-denied-file\n',
    'docs/open.txt': 'text-of-an-open-file\n',
    'deploy/id_rsa': 'text-of-a-key\n',
    'deploy/run.sh': 'text-of-a-script\n',
    'src/[id]/page.tsx': 'text-of-a-page\n',
  });
  symlinkSync('../private', join(at.work, 'docs/pub'));
  symlinkSync('../deploy/id_rsa', join(at.work, 'docs/z.txt'));
  const home = String(at.env.AGENT_HOME);
  mkdirSync(home, { recursive: true });
  const deny = [{ path: `${at.work}/private/**` }, { path: `${at.work}/src/[id]/**` }];
  writeFileSync(join(home, 'config.json'), JSON.stringify({ rules: { deny } }));
  return at;
}

test.each([
  ...['cat docs/pub/plan.txt', 'cp docs/pub/plan.txt x', 'mv docs/pub/plan.txt x', 'sed -i s/a/b/ docs/pub/plan.txt'],
  ...[
    'echo x > docs/pub/plan.txt',
    'cat < docs/pub/plan.txt',
    'cat priv*/plan.txt',
    'cat p*/*',
    'head -1 docs/p*/*.txt',
  ],
  ...['for f in priv*/*; do cat "$f"; done', 'cat "src/[id]/page.tsx"', 'cat src/*/page.tsx', 'tail private/plan.txt'],
])('a rule that denies a folder holds for %s', async (command) => {
  const { stdout } = await agent(guarded(), ['tools', 'check', 'bash', JSON.stringify({ command })]);
  expect(JSON.parse(stdout)).toMatchObject({ decision: 'deny' });
});

test.each([
  'cat docs/*.txt',
  'cat deploy/*',
  'head docs/z*',
  'grep x deploy/*',
  'for f in deploy/*; do cat "$f"; done',
])('a wildcard that stands for a secret file is asked about: %s', async (command) => {
  const { stdout } = await agent(guarded(), ['tools', 'check', 'bash', JSON.stringify({ command })]);
  expect(JSON.parse(stdout)).toMatchObject({ risk: 'dangerous', decision: 'ask' });
  expect(stdout).toContain('id_rsa');
});

test.each(['cat docs/o*.txt', 'ls deploy/*', 'cat deploy/*.sh', 'wc -l docs/open.*'])(
  'a wildcard that stands for nothing guarded is not: %s',
  async (command) => {
    const { stdout } = await agent(guarded(), ['tools', 'check', 'bash', JSON.stringify({ command })]);
    expect(JSON.parse(stdout)).toMatchObject({ decision: 'allow' });
  },
);

test('searches leave out what a rule denies, and say so', async () => {
  const at = guarded();
  const found = await agent(at, ['tools', 'call', 'grep', '{"pattern":"text-of"}']);
  expect(found.stdout).toContain('text-of-an-open-file');
  expect(found.stdout).not.toMatch(/denied-file|text-of-a-page/);
  expect(found.stdout).toMatch(/2 files that a user rule denies or asks about/);
  const docs = await agent(at, ['tools', 'call', 'doc_search', '{"query":"denied"}', '--tools', '+docs']);
  expect(docs.stdout).not.toContain('text-of-a-denied-file');
});
