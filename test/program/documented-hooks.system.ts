import { chmodSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { projects } from '../../src/app/project-files.js';
import { openTrustFile } from '../../src/kernel/config/trust-file.js';
import { agentPaths } from '../../src/kernel/config/settings-file.js';
import { agent, lines, place, repl, script } from './inside.js';

type At = ReturnType<typeof place>;

const fixtures = fileURLToPath(new URL('../../fixtures/hooks', import.meta.url));

/** A repository with the settings and scripts of Claude Code's documentation, trusted as they are. */
async function documented(): Promise<At> {
  const at = place({ '.git/HEAD': 'ref: refs/heads/main\n', 'README.md': 'Read me.\n' });
  cpSync(join(fixtures, 'settings.json'), join(at.work, '.claude/settings.json'), { recursive: true });
  cpSync(fixtures, join(at.work, '.claude/hooks'), { recursive: true });
  const bin = join(at.home, 'bin');
  mkdirSync(bin, { recursive: true });
  for (const name of ['npx', 'notify-send', 'npm']) {
    writeFileSync(join(bin, name), `#!/bin/sh\necho ${name} "$@" >> ${join(at.home, 'called')}\necho 1 FAIL\n`);
    chmodSync(join(bin, name), 0o755);
  }
  const settings = { cwd: at.work, home: at.home, config: { files: agentPaths(at.env, at.home) } };
  const files = await projects.files(settings);
  if (files === null) throw new Error('nothing to trust');
  openTrustFile(settings.config.files.trust).files.record(files, true, 1);
  return { ...at, env: { ...at.env, PATH: `${bin}:${process.env.PATH}` } };
}

const bash = (command: string): unknown => ({ calls: [{ name: 'bash', arguments: { command } }] });
const write = (path: string, content = 'x\n'): unknown => ({
  calls: [{ name: 'file_write', arguments: { path, content } }],
});

/** The results of the calls of a run, in order. */
async function results(at: At, turns: readonly unknown[]): Promise<readonly string[]> {
  const ran = await agent(at, ['-p', '-m', script(at, turns), '--output-format', 'stream-json', 'go']);
  const id = String(lines(ran.stdout)[0]?.session_id);
  const { stdout } = await agent(at, ['sessions', 'export', id, '--format', 'jsonl']);
  return lines(stdout)
    .filter(({ kind }) => kind === 'tool_result' || kind === 'user')
    .map(({ kind, content, data }) =>
      kind === 'user' ? `user: ${String(content)}` : (data as { output: string }).output,
    );
}

test('the settings and scripts of Claude Code’s documentation run as they are', async () => {
  const at = await documented();
  expect((await agent(at, ['hooks'])).stderr).toBe('');
  const said = await results(at, [
    bash('grep -r TODO .'),
    bash('rm -rf build'),
    write('src/a.ts'),
    write('package-lock.json'),
    write('.env.local'),
    write('notes.md', '```\nimport os\n```\n'),
    { calls: [{ name: 'file_read', arguments: { path: 'README.md' } }] },
    { text: 'Done.' },
    bash('npm test'),
    { text: 'Tested.' },
  ]);
  expect(said).toEqual([
    expect.stringMatching(/^user: Session source: startup\. Files: README\.md/),
    'user: The team freezes on Friday.',
    'user: go',
    expect.stringContaining("Denied by a hook: • Use 'rg' (ripgrep) instead of 'grep'"),
    expect.stringContaining('Denied by a hook: Destructive command blocked by hook'),
    expect.stringContaining('"output"'),
    expect.stringContaining(`Blocked: ${at.work}/package-lock.json matches protected pattern`),
    expect.stringContaining("matches protected pattern '.env'"),
    expect.stringContaining('"output"'),
    expect.stringContaining('Read me.'),
    'user: Run npm test before you stop.',
    expect.stringContaining('"hook_message":"Tests failed: fix them before anything else."'),
  ] as string[]);
  expect(readFileSync(join(at.home, 'called'), 'utf8')).toBe(`npx prettier --write ${at.work}/src/a.ts\nnpm test\n`);
  expect(readFileSync(join(at.work, 'notes.md'), 'utf8')).toBe('```python\nimport os\n```\n');
  expect(readFileSync(join(at.home, 'bash-command-log.txt'), 'utf8')).toContain('npm test - No description\n');
  const kept = lines(readFileSync(join(at.home, 'last-session.jsonl'), 'utf8'));
  expect(kept.filter(({ type }) => type === 'assistant').length).toBeGreaterThan(8);
});

test('a documented prompt check holds a prompt back, a compaction is saved, and a waiting question is told', async () => {
  const at = await documented();
  const held = await agent(at, ['-p', '-m', script(at, [{ text: 'never' }]), 'my password: x']);
  expect(held.stderr).toContain('Security policy violation: Prompt contains what looks like a secret.');
  const long = { text: `${'word '.repeat(4000)}finished.` };
  await repl(
    at,
    ['-m', script(at, [bash('npm test'), long, long, { text: 'short' }])],
    [
      ['go', /finished\.[^]*❯ /],
      ['more', /finished\.[^]*❯ /],
      ['/compact', 'Reminder: use pnpm'],
    ],
  );
  expect(lines(readFileSync(join(at.home, 'before-compaction.jsonl'), 'utf8')).length).toBeGreaterThan(4);
  await repl(
    at,
    ['-m', script(at, [bash('npm test; git push --force ../elsewhere'), { text: 'ok' }])],
    [
      ['push', /or no \(and why\): /],
      ['n', /ok/],
    ],
  );
  expect(readFileSync(join(at.home, 'called'), 'utf8')).toContain('notify-send Claude Code Claude Code needs');
});
