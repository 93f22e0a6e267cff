import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createChangeWatch } from '../../../../src/kernel/tools/changes/watch-files.js';

/** Source: Linux, include/uapi/linux/magic.h. */
const types = { ext4: 0xef53, '9p': 0x0102_1997 };

const verdict = { risk: 'mutating', decision: 'allow', reasons: [], sandbox: 'off' } as const;

test.each([
  ['ext4', null],
  ['9p', expect.stringContaining('there was no time to look at all of') as string],
] as const)('on %s the time for looking at a tree has passed: %s', async (type, unwatched) => {
  const cwd = mkdtempSync(join(tmpdir(), 'drive-'));
  for (let n = 0; n < 50; n++) writeFileSync(join(cwd, `${n}.txt`), '');
  const watch = createChangeWatch({
    env: {},
    isSecret: () => false,
    limits: { maxWalkMs: -1 },
    fileSystemType: () => types[type],
  });
  const report = await watch.begin({ effect: 'execute', cwd, verdict, commandText: 'true', knownPaths: [] });
  expect((await report()).unwatched ?? null).toEqual(unwatched);
});
