import {
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  readSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { generateStore, randomNumbers } from '../record/generate.js';
import { measure, rounds } from './bench.js';

/** `npm run t:corrupt`: damages copies of a database, opens each and reads all of it. A row that is missing or not what
 * was written must have been reported; of one with a bad page of events at least 95 % of the rows must come back. */
const pageBytes = 4096;
const eventCount = 2000;
const random = randomNumbers(99);
const below = (limit: number): number => Math.floor(random() * limit);

type Damage = (file: string, leaves: readonly number[]) => void;

function overwrite(file: string, position: number, bytes: Buffer): void {
  const descriptor = openSync(file, 'r+');
  writeSync(descriptor, bytes, 0, bytes.length, position);
  closeSync(descriptor);
}

const garbage = (length: number): Buffer => Buffer.from(Array.from({ length }, () => below(256)));
const pages = (file: string): number => Math.floor(statSync(file).size / pageBytes);

const damages: Readonly<Record<string, Damage>> = {
  truncated: (file) => {
    truncateSync(file, below(statSync(file).size));
  },
  'flipped bits': (file) => {
    for (let n = 1 + below(20); n > 0; n--) {
      const position = below(statSync(file).size);
      const byte = Buffer.alloc(1);
      const descriptor = openSync(file, 'r');
      readSync(descriptor, byte, 0, 1, position);
      closeSync(descriptor);
      byte[0] = (byte[0] ?? 0) ^ (1 << below(8));
      overwrite(file, position, byte);
    }
  },
  'zero page': (file) => {
    overwrite(file, below(pages(file)) * pageBytes, Buffer.alloc(pageBytes));
  },
  'garbage page': (file) => {
    overwrite(file, below(pages(file)) * pageBytes, garbage(pageBytes));
  },
  'bad leaf': (file, leaves) => {
    overwrite(file, ((leaves[below(leaves.length)] ?? 1) - 1) * pageBytes, garbage(pageBytes));
  },
  'garbage header': (file) => {
    overwrite(file, 0, garbage(100));
  },
  text: (file) => {
    writeFileSync(file, 'this is not a database\n'.repeat(1 + below(400)));
  },
  empty: (file) => {
    truncateSync(file, 0);
  },
};

interface Found {
  readonly crashed: string | null;
  readonly told: number;
  readonly wrong: number;
  readonly share: number;
}

async function readAll(file: string, original: ReadonlyMap<string, string>): Promise<Found> {
  let told = 0;
  try {
    const { store, notices } = await openSqliteStore({
      file,
      now: Date.now,
      notify: () => {
        told++;
      },
    });
    let right = 0;
    let wrong = 0;
    for (const session of await store.list(1000)) {
      for (const event of await store.load(session.id)) {
        if (original.get(`${session.id} ${event.seq}`) === JSON.stringify([event.kind, event.content, event.data]))
          right++;
        else wrong++;
      }
    }
    await store.close();
    return { crashed: null, told: told + notices.length, wrong, share: right / original.size };
  } catch (error) {
    return {
      crashed: error instanceof Error ? (error.stack ?? error.message) : String(error),
      told,
      wrong: 0,
      share: 0,
    };
  }
}

await measure(async (folder) => {
  const count = rounds(400);
  const source = join(folder, 'source.db');
  await generateStore({ file: source, events: eventCount, perSession: 250, longest: 250 });
  const db = new Database(source);
  db.pragma('wal_checkpoint(TRUNCATE)');
  const leaves = db
    .prepare<[], number>("SELECT pageno FROM dbstat WHERE name = 'events' AND pagetype = 'leaf'")
    .pluck()
    .all();
  const rows = db
    .prepare<[], { id: string; seq: number; kind: string; content: string | null; data_json: string | null }>(
      'SELECT session_id AS id, seq, kind, content, data_json FROM events',
    )
    .all();
  db.close();
  const original = new Map(
    rows.map((row) => [
      `${row.id} ${row.seq}`,
      JSON.stringify([row.kind, row.content, row.data_json === null ? null : JSON.parse(row.data_json)]),
    ]),
  );
  const names = Object.keys(damages);
  let crashes = 0;
  let unreported = 0;
  let silent = 0;
  let worstLeaf = 1;
  for (let round = 0; round < count; round++) {
    const name = names[round % names.length] ?? '';
    mkdirSync(join(folder, `case-${round}`));
    const file = join(folder, `case-${round}`, 'agent.db');
    copyFileSync(source, file);
    damages[name]?.(file, leaves);
    const found = await readAll(file, original);
    if (found.crashed !== null) {
      crashes++;
      console.log(`${round} ${name}: ${found.crashed}`);
    }
    if (found.told === 0 && found.share < 1) {
      unreported++;
      console.log(`${round} ${name}: ${(found.share * 100).toFixed(1)} % of the rows, not reported`);
    }
    if (found.told === 0) silent += found.wrong;
    if (name === 'bad leaf') worstLeaf = Math.min(worstLeaf, found.share);
  }
  return {
    line: `corrupt: ${count} damaged files, ${crashes} crashes, ${unreported} unreported, ${silent} wrong rows without a word, worst of one bad leaf ${(worstLeaf * 100).toFixed(1)} % of the rows`,
    ok: crashes === 0 && unreported === 0 && silent === 0 && worstLeaf >= 0.95,
  };
});
