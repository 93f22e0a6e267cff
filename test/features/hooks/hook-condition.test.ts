import { expect, test } from 'vitest';
import { parseCondition } from '../../../src/features/hooks/hook-condition.js';

const from = { path: '/p/.claude/settings.json', origin: 'project', directory: '/p', home: '/home/u' } as const;

function runs(condition: string, tool: string, args: Readonly<Record<string, unknown>>): boolean | undefined {
  return parseCondition(condition)?.({ call: { id: 'c1', tool, args }, cwd: '/p/app', from });
}

test.each([
  ['Bash(git push*)', 'git push origin main', true],
  ['Bash(git push*)', 'ls', false],
  ['Bash(git push *)', 'git push', true],
  ['Bash(git push:*)', 'git push --force', true],
  ['Bash(git push:*)', 'git pushx', false],
  ['Bash(git push *)', 'npm test && git push', true],
  ['Bash(git push *)', 'FOO=bar git push', true],
  ['Bash(git push *)', 'FOO="a b" BAR=1 /usr/bin/git  push', true],
  ['Bash(git push *)', 'timeout 5s git push', true],
  ['Bash(git push *)', 'if true; then git push; fi', true],
  ['Bash(git push *)', 'echo "$(git push)"', true],
  ['Bash(git push *)', 'echo `git push`', true],
  ['Bash(git push *)', '(cd x; git push)', true],
  ['Bash(git push *)', '"git" push', true],
  ['Bash(git push *)', "echo 'git push'", false],
  ['Bash(git push *)', 'echo "a; git push"', false],
  ['Bash(git push *)', 'make 2>&1 | tee log', false],
  ['Bash(git push *)', 'git commit -m "$(cat <<\'EOF\'\ngit push is told\nEOF\n)"', false],
  ['Bash(git push *)', "cat <<'EOF' && git push\ntext\nEOF", true],
  // Too complex to say: the hook runs.
  ['Bash(git push *)', 'bash -c "git push"', true],
  ['Bash(git push *)', 'eval "$x"', true],
  ['Bash(git push *)', 'echo "unfinished', true],
  ['Bash(git * main)', 'git merge main', true],
  ['Bash(npm test)', 'npm test', true],
  ['Bash(npm test)', 'npm test -- x', false],
  ['Bash', 'ls', true],
  ['Bash(*)', 'ls', true],
  ['bash(ls)', 'ls', true],
])('%s over %j: %s', (condition, command, expected) => {
  expect(runs(condition, 'bash', { command })).toBe(expected);
});

test.each([
  ['Edit(*.ts)', 'file_edit', { path: 'src/a.ts' }, true],
  ['Edit(*.ts)', 'file_write', { path: 'src/a.ts' }, true],
  ['Edit(*.ts)', 'file_edit', { path: 'src/a.js' }, false],
  ['Edit(*.ts)', 'file_read', { path: 'src/a.ts' }, false],
  ['Edit(src/**)', 'file_edit', { path: 'src/x/y' }, true],
  ['Edit(src/**)', 'file_edit', { path: '/p/src/y' }, false],
  ['Edit(/src/**)', 'file_edit', { path: '/p/src/y' }, true],
  ['Edit(./src)', 'file_edit', { path: 'src/y' }, true],
  ['Read(//etc/**)', 'file_read', { path: '/etc/hosts' }, true],
  ['Read(~/.ssh/**)', 'file_read', { path: '/home/u/.ssh/id' }, true],
  ['Read(secrets/**)', 'grep', { pattern: 'x', path: 'secrets' }, true],
  ['WebFetch(domain:example.com)', 'web_fetch', { url: 'https://Example.com/x' }, true],
  ['WebFetch(domain:example.com)', 'web_fetch', { url: 'https://other.com' }, false],
  ['WebFetch(domain:*.example.com)', 'web_fetch', { url: 'https://a.example.com' }, true],
  ['mcp__github', 'mcp__github__get', {}, true],
  ['mcp__github__*', 'mcp__github__get', {}, true],
  ['mcp__*', 'mcp__github__get', {}, true],
  ['mcp__git', 'mcp__github__get', {}, false],
  ['Agent(explore)', 'agent', { agent: 'explore' }, true],
  ['Agent(explore)', 'agent', { agent: 'general' }, false],
  ['Skill(deploy:*)', 'skill', { name: 'deploy' }, true],
])('%s over %s %j: %s', (condition, tool, args, expected) => {
  expect(runs(condition, tool, args)).toBe(expected);
});

test.each(['', 'git push', 'Bash(', 'Bash()', 'Bash(x) || Read(y)', 'WebFetch(example.com)', 'mcp__x__y(z)'])(
  '%j is not a condition',
  (text) => {
    expect(parseCondition(text)).toBeNull();
  },
);

test('stars are matched without going back over them', () => {
  const long = 'a'.repeat(20_000);
  expect(runs(`WebSearch(${'*a'.repeat(500)}*b)`, 'web_search', { query: long })).toBe(false);
  expect(runs(`WebSearch(${'*a'.repeat(500)}*)`, 'web_search', { query: long })).toBe(true);
  expect(runs('WebSearch(a*b *)', 'web_search', { query: 'axb abxb c' })).toBe(true);
  expect(runs('WebSearch(a*b *)', 'web_search', { query: 'axb abxbc' })).toBe(true);
  expect(runs('WebSearch(a*c *)', 'web_search', { query: 'axb abxbcd' })).toBe(false);
});
