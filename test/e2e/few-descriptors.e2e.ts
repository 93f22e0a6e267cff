import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { binary, place, script } from './program.js';

const limits = [23, 24, 25, 26, 27, 28, 29, 30, 32, 36];

test('with few descriptors the program ends with an answer or a sentence, whichever process could not be started', () => {
  const at = place({ 'notes.txt': 'a line\n' });
  mkdirSync(join(at.home, '.agent'), { recursive: true });
  const command = 'cat >/dev/null';
  const hooks = ['SessionStart', 'PreToolUse', 'Stop'].map((name) => [
    name,
    [{ hooks: [{ type: 'command', command }] }],
  ]);
  const files = {
    'hooks.json': { hooks: Object.fromEntries(hooks) },
    'mcp.json': { mcpServers: { own: { command: 'true' } } },
  };
  for (const [name, content] of Object.entries(files))
    writeFileSync(join(at.home, '.agent', name), JSON.stringify(content));
  const calls = [
    { name: 'bash', arguments: { command: 'echo hi' } },
    { name: 'grep', arguments: { pattern: 'line' } },
    { name: 'tool_search', arguments: { query: 'own' } },
  ];
  const model = script(at, [...calls.map((item) => ({ calls: [item] })), { text: 'done' }]);
  const seen = limits.map((limit) => {
    const line = `ulimit -n ${limit}; exec "$@"`;
    const args = ['-c', line, 'sh', process.execPath, binary, '-p', '--approval', 'never', '-m', model, 'go'];
    const { status, stdout, stderr } = spawnSync('sh', args, { cwd: at.work, env: at.env, encoding: 'utf8' });
    return {
      limit,
      ends: status === 0 || status === 1,
      says: stdout === 'done\n' || /^agent: /m.test(stderr),
      unhandled: /Unhandled 'error' event|^ {4}at /m.test(stderr) && stderr,
    };
  });
  expect(seen).toEqual(limits.map((limit) => ({ limit, ends: true, says: true, unhandled: false })));
});
