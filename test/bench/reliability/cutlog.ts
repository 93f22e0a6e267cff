import { copyFileSync, existsSync, mkdirSync, rmSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { CliError } from '../../../src/kernel/console/command.js';
import { explainMissing, lostEvents } from '../../../src/app/open-record.js';
import { openSession } from '../../../src/app/find-session.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { event, measure, row, rounds } from './bench.js';

/** `node test/bench/run.mjs test/bench/reliability/cutlog.ts`: databases as a kill leaves them, with their log deleted,
 * cut anywhere, or left alone; then every session is resumed, and what is missing has to be said. */
const perTurn = 7;

interface Tally {
  lost: number;
  events: number;
  unreported: number;
  falseAlarms: number;
  repaired: number;
}

/** A database with one session of a few turns, copied while it is open; gives the last `seq` that was acknowledged. */
async function killed(from: string, to: string, id: string): Promise<number> {
  const file = join(from, 'agent.db');
  const { store, ends } = await openSqliteStore({ file, now: Date.now });
  const turns = 1 + Math.floor(Math.random() * 4);
  await store.createSession(row(id));
  for (let seq = 1; seq <= turns * perTurn; seq++) {
    await store.append(id, event(seq, 'words '.repeat(Math.floor(Math.random() * 200))));
    if (seq % perTurn === 0) await ends.note({ sessionId: id, seq, cwd: '/work' });
  }
  for (const end of ['', '-wal', '.marks'])
    if (existsSync(`${file}${end}`)) copyFileSync(`${file}${end}`, join(to, `agent.db${end}`));
  await store.close();
  return turns * perTurn;
}

function damage(log: string, way: number): void {
  if (way === 0) rmSync(log, { force: true });
  else if (way === 1) truncateSync(log, Math.floor(Math.random() * statSync(log).size));
}

async function round(folder: string, index: number, tally: Tally): Promise<void> {
  const [from, to] = [join(folder, `${index}-from`), join(folder, `${index}-to`)];
  for (const path of [from, to]) mkdirSync(path);
  const id = `0199aaaa-0000-7000-8000-${String(index).padStart(12, '0')}`;
  const acknowledged = await killed(from, to, id);
  const file = join(to, 'agent.db');
  damage(`${file}-wal`, index % 3);
  const { store, ends, notices } = await openSqliteStore({ file, now: Date.now });
  if (notices.length > 0) tally.repaired++;
  const wish = { continueNewest: true, resume: null, fork: false };
  const present = (await store.load(id)).length;
  let said = '';
  try {
    const opened = await openSession(store, wish, row('new'));
    said = (await lostEvents(store, ends, wish, opened, '/work')).map((notice) => notice.message).join(' ');
  } catch (error) {
    const told = await explainMissing(error, store, ends, wish, '/work');
    said = told instanceof CliError && told !== error ? told.hint : '';
  }
  await store.close();
  const lost = acknowledged - present;
  const isNamed = said.includes(`${present === 0 ? acknowledged : lost} event`);
  tally.events += lost;
  if (lost > 0) tally.lost++;
  if (lost > 0 && !isNamed) tally.unreported++;
  if (lost === 0 && said !== '') tally.falseAlarms++;
  for (const path of [from, to]) rmSync(path, { recursive: true });
}

await measure(async (folder) => {
  const tally: Tally = { lost: 0, events: 0, unreported: 0, falseAlarms: 0, repaired: 0 };
  const count = rounds(100);
  for (let index = 0; index < count; index++) await round(folder, index, tally);
  return {
    line: `cutlog: ${count} databases, ${tally.lost} of them without their last events (${tally.events} in all), ${tally.unreported} unreported, ${tally.falseAlarms} false alarms, ${tally.repaired} repaired`,
    ok: tally.unreported + tally.falseAlarms === 0 && tally.lost > 0,
  };
});
