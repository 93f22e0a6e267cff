import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { inspectStore } from '../../../src/kernel/store/inspect.js';

function directory(): string {
  const root = mkdtempSync(join(tmpdir(), 'agent-inspect-'));
  onTestFinished(() => {
    rmSync(root, { recursive: true, force: true });
  });
  return root;
}

test('the store is looked at without making anything', async () => {
  const root = directory();
  const missing = await inspectStore(join(root, 'a', 'b', 'agent.db')).facts();
  writeFileSync(join(root, 'agent.db'), '');
  chmodSync(join(root, 'agent.db'), 0o640);
  mkdirSync(join(root, 'folder.db'));
  expect([
    missing,
    await inspectStore(join(root, 'agent.db')).facts(),
    await inspectStore(join(root, 'folder.db')).facts(),
    await inspectStore(join(root, 'agent.db', 'x.db')).facts(),
    existsSync(join(root, 'a')),
  ]).toEqual([
    { file: join(root, 'a', 'b', 'agent.db'), mode: null, writable: true, reason: '', refused: null },
    { file: join(root, 'agent.db'), mode: 0o640, writable: true, reason: '', refused: null },
    {
      file: join(root, 'folder.db'),
      mode: null,
      writable: false,
      reason: `${join(root, 'folder.db')} is not a file`,
      refused: null,
    },
    {
      file: join(root, 'agent.db', 'x.db'),
      mode: null,
      writable: false,
      reason: `${join(root, 'agent.db')} is not a directory`,
      refused: null,
    },
    false,
  ]);
  expect(await inspectStore(join(root, 'a', 'b', 'agent.db')).freeBytes()).toBeGreaterThan(0);
});
