import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';

/** Time of one append, each its own commit with a sync: `node test/bench/run.mjs test/bench/record/append.ts
 * [count]`. */
const count = Number(process.argv[2] ?? 3000);
const folder = mkdtempSync(join(tmpdir(), 'agent-bench-'));
try {
  const { store } = await openSqliteStore({ file: join(folder, 'agent.db'), now: Date.now });
  const createdAt = Date.now();
  await store.createSession({
    id: 's',
    parentId: null,
    cwd: '/',
    title: null,
    provider: null,
    model: null,
    createdAt,
    updatedAt: createdAt,
  });
  const times: number[] = [];
  for (let seq = 1; seq <= count; seq++) {
    const output = JSON.stringify({
      output: `line ${seq} of some output, with words such as parser${seq % 97}\n`.repeat(12),
    });
    const start = performance.now();
    await store.append('s', {
      seq,
      kind: 'tool_result',
      content: `result ${seq}`,
      data: { tool_call_id: `c${seq}`, name: 'bash', output, success: true, duration_ms: 5 },
      createdAt,
    });
    times.push(performance.now() - start);
  }
  const closing = performance.now();
  await store.close();
  const closed = performance.now() - closing;
  times.sort((a, b) => a - b);
  const at = (share: number): string => (times[Math.floor(share * (times.length - 1))] ?? 0).toFixed(3);
  console.log(
    `append of ${count} events, ms: p50 ${at(0.5)}, p95 ${at(0.95)}, p99 ${at(0.99)}, most ${at(1)}, mean ${(times.reduce((sum, time) => sum + time, 0) / count).toFixed(3)}; close ${closed.toFixed(1)}`,
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
