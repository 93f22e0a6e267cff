import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { StoreError } from '../../../src/kernel/store/errors.js';
import { event, measure, row, rounds } from './bench.js';

/** `npm run t:enospc`: fills a small file system until an append is refused, looks that everything acknowledged is
 * there, gives it room and goes on. Needs root for the mount. */
async function fill(folder: string, round: number): Promise<{ readonly lost: number; readonly wrong: number }> {
  mkdirSync(folder);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', folder]);
  try {
    const file = join(folder, 'data', 'agent.db');
    const { store } = await openSqliteStore({ file, now: Date.now });
    await store.createSession(row('s'));
    const text = 'x'.repeat(200 + round * 397);
    let acknowledged = 0;
    let code = '';
    while (code === '') {
      try {
        await store.append('s', event(acknowledged + 1, text));
        acknowledged++;
      } catch (error) {
        code = error instanceof StoreError ? error.code : 'not a StoreError';
      }
    }
    let wrong = code === 'disk_full' ? 0 : 1;
    let lost = acknowledged - (await store.load('s')).length;
    execFileSync('mount', ['-o', 'remount,size=12m', folder]);
    for (let n = 1; n <= 20; n++) await store.append('s', event(acknowledged + n, text));
    await store.close();
    const again = await openSqliteStore({ file, now: Date.now });
    const events = await again.store.load('s');
    if (
      again.notices.length > 0 ||
      events.some((item, index) => item.seq !== index + 1 || item.content !== `${index + 1} ${text}`)
    )
      wrong++;
    lost += acknowledged + 20 - events.length;
    await again.store.close();
    return { lost, wrong };
  } finally {
    execFileSync('umount', [folder]);
  }
}

await measure(async (folder) => {
  if (process.getuid?.() !== 0) return { line: 'enospc: skipped, mounting needs root', ok: true };
  const count = rounds(50);
  let lost = 0;
  let wrong = 0;
  for (let round = 0; round < count; round++) {
    const result = await fill(join(folder, `disk-${round}`), round);
    lost += result.lost;
    wrong += result.wrong;
  }
  return {
    line: `enospc: ${count} full disks, ${lost} acknowledged events lost, ${wrong} not as they should be`,
    ok: lost === 0 && wrong === 0,
  };
});
