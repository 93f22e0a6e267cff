import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { parseSearchLine } from '../../../src/kernel/core/files/search-filters.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { generateStore } from './generate.js';

/** `npm run t:find [-- <events>]`: how long a search of the record takes with each filter, with hits and without, as a
 * Markdown table. A tenth of the sessions was brought in from another program. */
const events = Number(process.argv[2] ?? 100_000);
const runs = 30;
const folder = mkdtempSync(join(tmpdir(), 'agent-find-'));

function at(times: readonly number[], share: number): string {
  return ([...times].sort((a, b) => a - b)[Math.floor(share * (times.length - 1))] ?? 0).toFixed(1);
}

function bringIn(file: string): void {
  const db = new Database(file);
  db.exec(`INSERT INTO events (session_id, seq, kind, content, data_json, created_at)
    SELECT s.id, (SELECT max(seq) + 1 FROM events WHERE session_id = s.id), 'import', 'Imported',
      '{"tool":"codex","version":null,"session":"x","file_sha256":"","dropped":{}}', created_at
    FROM sessions s WHERE s.rowid % 10 = 3`);
  db.close();
}

try {
  const file = join(folder, 'agent.db');
  const { words } = await generateStore({ file, events, perSession: 500, longest: events / 10, resultWords: 1000 });
  bringIn(file);
  const { store } = await openSqliteStore({ file, now: Date.now });
  await store.search('nosuchword', 1);
  // One common and one rare: `ban` is the commonest of all words.
  const [common, rare] = ['ban', words.at(-1) ?? ''];
  const filters = ['tool:bash', 'tool:nosuch', 'file:src/nowhere.ts', 'from:codex', 'from:agent', 'from:aider'];
  const others = ['session:0', 'session:nosuch', 'kind:shell', 'kind:user', 'after:2999-01-01', 'before:2000-01-01'];
  const all = [...filters, ...others, 'project:here', 'from:codex tool:bash', 'from:aider file:a.ts'];
  const searches = [common, rare, 'nosuchword', ...all.flatMap((filter) => [filter, `${filter} ${common}`])];
  console.log(`| ${events} events, 20 hits, ${runs} times | hits | p50 ms | p95 ms |\n| --- | ---: | ---: | ---: |`);
  for (const search of searches) {
    const line = parseSearchLine(search, '/work/nowhere');
    if (!line.ok) throw new Error(line.problem);
    const times: number[] = [];
    let hits = 0;
    for (let run = 0; run < runs; run++) {
      const start = performance.now();
      hits = (await store.search(line.words, 20, undefined, line.filters)).length;
      times.push(performance.now() - start);
    }
    console.log(`| \`${search}\` | ${hits} | ${at(times, 0.5)} | ${at(times, 0.95)} |`);
  }
  await store.close();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
