import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import Database from 'better-sqlite3';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { randomNumbers } from '../record/generate.js';
import { event, measure, row, rounds } from './bench.js';

/** `npm run t:powerloss`: records with strace what a writer does to its files, builds the disk as a power cut at a
 * random moment could have left it (what was synced is there; of the rest each sector of 512 bytes is there or not),
 * opens it and looks for what was acknowledged. */
const sector = 512;
const appended = 120;
const random = randomNumbers(2026);

async function write(file: string): Promise<void> {
  const { store } = await openSqliteStore({ file, now: Date.now });
  await store.createSession(row('s'));
  let untold = '';
  for (let seq = 1; seq <= appended; seq++) {
    const later = seq % 4 === 1 || seq % 4 === 2;
    await store.append('s', event(seq, 'y'.repeat((seq * 131) % 3000)), [], later ? 'later' : 'now');
    untold += `ack ${seq}\n`;
    if (seq % 12 === 2) await store.sync('s');
    else if (later) continue;
    process.stdout.write(untold);
    untold = '';
  }
  process.exit(0);
}

type Step =
  | { readonly file: string; readonly position: number; readonly bytes: Buffer }
  | { readonly file: string; readonly sync: true }
  | { readonly file: string; readonly length: number }
  | { readonly acknowledged: number };

/** Writes, syncs and cuts of the database and its log, in order, with the acknowledgements between them. */
function readTrace(text: string): readonly Step[] {
  return text.split('\n').flatMap((line): readonly Step[] => {
    const told = /write\(1<[^>]*>, "((?:\\x[0-9a-f]{2})*)"/.exec(line)?.[1];
    if (told !== undefined) {
      const numbers = [
        ...bytesOf(told)
          .toString()
          .matchAll(/ack (\d+)/g),
      ].map((found) => Number(found[1]));
      return numbers.map((acknowledged) => ({ acknowledged }));
    }
    const name = /^\S*\s*(?:pwrite64|fdatasync|fsync|ftruncate)\(\d+<([^>]*)>/.exec(line)?.[1];
    const file = name === undefined ? '' : basename(name.startsWith('\\x') ? bytesOf(name).toString() : name);
    if (file !== 'agent.db' && file !== 'agent.db-wal') return [];
    if (/(fdatasync|fsync)\(/.test(line)) return [{ file, sync: true }];
    const length = /ftruncate\(\d+<[^>]*>, (\d+)\)/.exec(line)?.[1];
    if (length !== undefined) return [{ file, length: Number(length) }];
    const [, bytes, position] = /pwrite64\(\d+<[^>]*>, "((?:\\x[0-9a-f]{2})*)", \d+, (\d+)\)/.exec(line) ?? [];
    if (bytes === undefined) throw new Error(`cannot read ${line.slice(0, 200)}`);
    return [{ file, position: Number(position), bytes: bytesOf(bytes) }];
  });
}

function bytesOf(escaped: string): Buffer {
  return Buffer.from(escaped.replaceAll('\\x', ''), 'hex');
}

function put(disk: Map<string, Buffer>, file: string, position: number, bytes: Buffer): void {
  const old = disk.get(file) ?? Buffer.alloc(0);
  const grown =
    old.length >= position + bytes.length
      ? old
      : Buffer.concat([old, Buffer.alloc(position + bytes.length - old.length)]);
  bytes.copy(grown, position);
  disk.set(file, grown);
}

/** The disk after a power cut behind step `cut`, and the last event acknowledged before it. */
function crashState(
  before: ReadonlyMap<string, Buffer>,
  steps: readonly Step[],
  cut: number,
): { readonly disk: Map<string, Buffer>; readonly acknowledged: number } {
  const disk = new Map([...before].map(([name, bytes]) => [name, Buffer.from(bytes)]));
  const past = steps.slice(0, cut);
  const synced = new Map<string, number>();
  past.forEach((step, index) => {
    if ('sync' in step) synced.set(step.file, index);
  });
  let acknowledged = 0;
  past.forEach((step, index) => {
    if ('acknowledged' in step) {
      acknowledged = step.acknowledged;
      return;
    }
    if ('sync' in step) return;
    const isSafe = index < (synced.get(step.file) ?? -1);
    if ('length' in step) {
      if (isSafe || random() < 0.5)
        disk.set(step.file, Buffer.concat([disk.get(step.file) ?? Buffer.alloc(0)]).subarray(0, step.length));
      return;
    }
    if (isSafe) {
      put(disk, step.file, step.position, step.bytes);
      return;
    }
    const mode = random();
    for (let at = 0; at < step.bytes.length; at += sector) {
      if (mode < 0.25 || (mode < 0.75 && random() < 0.5))
        put(disk, step.file, step.position + at, step.bytes.subarray(at, at + sector));
    }
  });
  return { disk, acknowledged };
}

async function judge(
  folder: string,
  disk: ReadonlyMap<string, Buffer>,
  acknowledged: number,
): Promise<{ readonly unopenable: number; readonly lost: number }> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { mode: 0o700 });
  for (const [name, bytes] of disk) writeFileSync(join(folder, name), bytes, { mode: 0o600 });
  try {
    const { store, notices } = await openSqliteStore({ file: join(folder, 'agent.db'), now: Date.now });
    const events = await store.load('s');
    await store.close();
    const db = new Database(join(folder, 'agent.db'), { readonly: true });
    const sound = db.pragma('quick_check', { simple: true }) === 'ok';
    db.close();
    const right = events.every(
      (item, index) =>
        item.seq === index + 1 && item.content === event(index + 1, 'y'.repeat(((index + 1) * 131) % 3000)).content,
    );
    return {
      unopenable: sound && right && notices.length === 0 ? 0 : 1,
      lost: Math.max(0, acknowledged - events.length),
    };
  } catch {
    return { unopenable: 1, lost: acknowledged };
  }
}

if (process.argv[2] === 'write') await write(process.argv[3] ?? '');
else {
  await measure(async (folder) => {
    const file = join(folder, 'agent.db');
    await (await openSqliteStore({ file, now: Date.now })).store.close();
    const before = new Map(
      ['agent.db', 'agent.db-wal']
        .filter((name) => existsSync(join(folder, name)))
        .map((name) => [name, readFileSync(join(folder, name))]),
    );
    const trace = join(folder, 'trace');
    const made = spawnSync(
      'strace',
      [
        '-f',
        '-y',
        '-xx',
        '-s',
        '100000',
        '-o',
        trace,
        '-e',
        'trace=pwrite64,write,fdatasync,fsync,ftruncate',
        process.execPath,
        process.argv[1] ?? '',
        'write',
        file,
      ],
      { encoding: 'utf8' },
    );
    if (made.error) return { line: 'powerloss: skipped, there is no strace', ok: true };
    const steps = readTrace(readFileSync(trace, 'utf8'));
    const told = steps.filter((step) => 'acknowledged' in step).length;
    const cuts = rounds(1500);
    let unopenable = 0;
    let lost = 0;
    for (let n = 0; n < cuts; n++) {
      const { disk, acknowledged } = crashState(before, steps, Math.floor(random() * (steps.length + 1)));
      const result = await judge(join(folder, 'state'), disk, acknowledged);
      unopenable += result.unopenable;
      lost += result.lost;
    }
    return {
      line: `powerloss: ${cuts} power cuts in ${steps.length} steps (${told} acknowledged), ${unopenable} databases not sound, ${lost} acknowledged events lost`,
      ok: unopenable === 0 && lost === 0 && told === appended,
    };
  });
}
