import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { agent, place } from './inside.js';

test('agent -p runs /config, /config key, /config key=value and /config undo', async () => {
  const at = place();
  const file = (await agent(at, ['config', 'path'])).stdout.trim();
  const run = async (prompt: string) => await agent(at, ['-p', prompt]);
  const set = await run('/config exec.timeout_s=7');
  expect([set.code, set.stdout]).toEqual([0, `Saved to ${file}: exec.timeout_s = 7. Restart agent to use it.\n`]);
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ exec: { timeout_s: 7 } });
  expect((await run('/config exec.timeout_s')).stdout).toMatch(/^exec\.timeout_s = 7 \(user file .*\)\n/);
  const list = (await run('/config')).stdout;
  expect(list).toMatch(/^exec\.timeout_s = 7 \(user file .*\)$/m);
  expect(list).toMatch(/^Defaults:\nkey_store = "file"$/m);
  const refused = await run('/config exec.timeout_s=soon');
  expect([refused.code, refused.stdout]).toEqual([1, '']);
  expect(refused.stderr).toContain('not saved: exec.timeout_s must be an integer of at least 1, not "soon"');
  expect((await run('/config undo')).stdout).toContain('exec.timeout_s is not set again');
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({});
});
