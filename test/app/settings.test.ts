import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { settingFlags } from '../../src/app/settings.js';

const folder = mkdtempSync(join(tmpdir(), 'agent-setup-'));
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

test('a system prompt comes from the command line or from a file, which may not go on for ever', () => {
  writeFileSync(join(folder, 'prompt.md'), '\uFEFFBe brief.\n');
  writeFileSync(join(folder, 'long.md'), 'é'.repeat(128 * 1024));
  writeFileSync(join(folder, 'longer.md'), 'é'.repeat(128 * 1024) + '.');
  const prompt = (systemPrompt: string): unknown => settingFlags({ systemPrompt }, folder).system_prompt;
  expect(prompt('Be brief.')).toBe('Be brief.');
  expect(prompt('@prompt.md')).toBe('Be brief.\n');
  expect(prompt('@long.md')).toHaveLength(128 * 1024);
  expect(() => prompt('@longer.md')).toThrow('is larger than 256 KiB');
  expect(() => prompt('@/dev/zero')).toThrow('is larger than 256 KiB');
  expect(() => prompt('@none.md')).toThrow('cannot be read');
});
