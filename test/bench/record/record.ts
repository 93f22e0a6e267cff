import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createProjection } from '../../../src/kernel/core/projection.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { generateStore } from './generate.js';

/** `npm run bench:record [-- <events> <events of the longest session>]`: search and resume on a generated store, as a
 * Markdown table. */
const events = Number(process.argv[2] ?? 1_000_000);
const longest = Number(process.argv[3] ?? 100_000);
const folder = mkdtempSync(join(tmpdir(), 'agent-bench-'));

function at(times: readonly number[], share: number): string {
  return ([...times].sort((a, b) => a - b)[Math.floor(share * (times.length - 1))] ?? 0).toFixed(1);
}

async function timed<T>(work: () => Promise<T>): Promise<readonly [number, T]> {
  const start = performance.now();
  const value = await work();
  return [performance.now() - start, value];
}

try {
  const file = join(folder, 'agent.db');
  const [made, generated] = await timed(() => generateStore({ file, events, perSession: 500, longest }));
  const beforeIndex = statSync(file).size;
  const { store } = await openSqliteStore({ file, now: Date.now });
  const [indexed] = await timed(() => store.search('nosuchword', 1));
  const searches: number[] = [];
  let fewest = Infinity;
  let most = 0;
  for (const word of generated.words) {
    const [time, hits] = await timed(() => store.search(word, 20));
    searches.push(time);
    fewest = Math.min(fewest, hits.length);
    most = Math.max(most, (await store.search(word, events)).length);
  }
  const loads: number[] = [];
  let projected = 0;
  for (let run = 0; run < 9; run++) {
    const [time, log] = await timed(() => store.load(generated.longest));
    loads.push(time);
    const start = performance.now();
    const projection = createProjection();
    for (const event of log) projection.add(event);
    projected = performance.now() - start;
  }
  const [listed] = await timed(() => store.list(50));
  await store.close();
  console.log(
    [
      `| ${events} events, one session of ${longest}; Node ${process.version} | |`,
      '| --- | ---: |',
      `| search, 100 words, 20 rows: median / p95 / most | ${at(searches, 0.5)} / ${at(searches, 0.95)} / ${at(searches, 1)} ms |`,
      `| rows found: fewest of 20, most without a limit | ${fewest}, ${most} (${((most / events) * 100).toFixed(2)} %) |`,
      `| load of ${longest} events: median / most of 9 | ${at(loads, 0.5)} / ${at(loads, 1)} ms |`,
      `| their projection | ${projected.toFixed(1)} ms |`,
      `| list of 50 sessions | ${listed.toFixed(1)} ms |`,
      `| index built (all events at once) | ${(indexed / 1000).toFixed(1)} s |`,
      `| size without / with the index | ${(beforeIndex / 1e6).toFixed(0)} / ${(statSync(file).size / 1e6).toFixed(0)} MB |`,
      `| most memory of this process | ${(process.resourceUsage().maxRSS / 1024).toFixed(0)} MB |`,
      `| generated in | ${(made / 1000).toFixed(1)} s |`,
    ].join('\n'),
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
