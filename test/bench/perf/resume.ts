import Database from 'better-sqlite3';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { generateStore } from '../record/generate.js';
import type { Model } from './model.js';
import { median, runProgram, type Place } from './program.js';
import type { Row } from './turns.js';

/** `agent -p -c` on a session of so many events: from the start to the first request, and the memory then. */
export async function resumeRows(folder: string, model: Model): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const events of [1_000, 10_000, 100_000]) {
    const place: Place = {
      home: join(folder, `resume-${events}`),
      work: join(folder, `work-${events}`),
      modelUrl: model.url,
    };
    mkdirSync(join(place.home, '.agent'), { recursive: true });
    mkdirSync(place.work);
    const file = join(place.home, '.agent/agent.db');
    const { longest } = await generateStore({ file, events, perSession: events, longest: events });
    const db = new Database(file);
    db.prepare('UPDATE sessions SET cwd = ?').run(place.work);
    db.close();
    model.play(() => ({ text: 'Done.' }));
    const waits: number[] = [];
    let megabytes = 0;
    for (let run = 0; run < 4; run++) {
      model.seen.length = 0;
      const { startedAt, mostMegabytes } = await runProgram(place, ['-p', 'go', '-r', longest]);
      if (run > 0) waits.push((model.seen[0]?.arrivedAt ?? 0) - startedAt);
      megabytes = Math.max(megabytes, mostMegabytes);
    }
    rows.push([
      events,
      `${median(waits).toFixed(0)} ms`,
      `${((model.seen[0]?.bytes ?? 0) / 1e6).toFixed(2)} MB`,
      `${megabytes.toFixed(0)} MB`,
    ]);
  }
  return rows;
}
