import { execFileSync } from 'node:child_process';
import { chmodSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { agent, place, script } from './inside.js';

test('a record that cannot be written is listed, searched, counted, shown and exported', async () => {
  const at = place();
  const folder = join(at.home, '.agent');
  const file = join(folder, 'agent.db');
  await agent(at, ['-p', '--model', script(at, [{ text: 'about zebras' }]), 'hi']);
  const [id = ''] = /\w{26}/.exec((await agent(at, ['sessions', 'list'])).stdout) ?? [];
  // Root may write everything, so the rest of this process is an ordinary user.
  if (process.getuid?.() === 0) {
    execFileSync('chown', ['-R', '65534:65534', join(at.home, '..')]);
    process.seteuid?.(65534);
  }
  onTestFinished(() => {
    chmodSync(folder, 0o700);
    process.seteuid?.(process.getuid?.() ?? 0);
  });
  chmodSync(file, 0o444);
  chmodSync(folder, 0o555);
  const bytes = readFileSync(file);
  const names = readdirSync(folder);

  for (const [command, says] of [
    [['sessions', 'list'], id],
    [['search', 'zebras'], 'zebras'],
    [['audit'], ''],
    [['stats'], 'offline'],
    [['sessions', 'show', id], 'zebras'],
    [['sessions', 'export', id], 'zebras'],
  ] as const) {
    const { code, stdout, stderr } = await agent(at, command);
    expect([command, code, stderr]).toEqual([command, 0, '']);
    expect(stdout).toContain(says);
  }
  expect([readFileSync(file), readdirSync(folder)]).toEqual([bytes, names]);
});
