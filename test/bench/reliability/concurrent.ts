import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { event, measure, row, rounds } from './bench.js';

/** `npm run t:concurrent`: eight processes write 500 events each into one database at once. This file is both the
 * parent and the eight. */
const writers = 8;

async function write(file: string, id: string, count: number): Promise<void> {
  const { store } = await openSqliteStore({ file, now: Date.now });
  await store.createSession(row(id));
  for (let seq = 1; seq <= count; seq++) await store.append(id, event(seq, id));
  await store.close();
}

const [, , mode, file = '', id = '', count = '0'] = process.argv;
if (mode === 'write') await write(file, id, Number(count));
else {
  await measure(async (folder) => {
    const each = rounds(500);
    const database = join(folder, 'agent.db');
    const codes = await Promise.all(
      Array.from(
        { length: writers },
        (_, index) =>
          new Promise<number | null>((resolve) => {
            spawn(process.execPath, [process.argv[1] ?? '', 'write', database, `s${index}`, String(each)], {
              stdio: 'inherit',
            }).on('close', resolve);
          }),
      ),
    );
    const { store, notices } = await openSqliteStore({ file: database, now: Date.now });
    const found = await store.list(writers + 1);
    await store.close();
    const errors = codes.filter((code) => code !== 0).length;
    const stored = found.reduce((sum, session) => sum + session.events, 0);
    return {
      line: `concurrent: ${writers} x ${each} events, ${errors} writers failed, ${stored} of ${writers * each} stored, ${notices.length} notices`,
      ok: errors === 0 && stored === writers * each,
    };
  });
}
