// npm run t:hooks -- [rounds]      what one hook adds to a call, beside the plain start of a shell; all in turns
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Event } from '../../../src/kernel/core/event.js';
import type { Occasion } from '../../../src/kernel/core/hooks.js';
import { readHookFile } from '../../../src/features/hooks/listed-hooks.js';
import { allowedAsTheyAre, createHooks } from '../../../src/features/hooks/run-hooks.js';
import { createTranscripts } from '../../../src/kernel/tools/transcripts.js';
import { createProcessRunner } from '../../../src/kernel/tools/process/runner.js';

const mostMs = 15;
const rounds = Number(process.argv[2] ?? 60);
const folder = mkdtempSync(join(tmpdir(), 'agent-hooks-'));
const processes = createProcessRunner({ marker: { name: '_HOOK_BENCH', value: '1' }, watched: true });
const transcripts = createTranscripts(folder);
const command = 'cat > /dev/null';
const { hooks } = readHookFile(
  { hooks: { PreToolUse: [{ matcher: 'Bash', hooks: [{ type: 'command', command }] }] } },
  { path: join(folder, 'hooks.json'), origin: 'user', directory: folder, home: folder },
);
const host = {
  processes,
  env: process.env,
  protectedEnv: [],
  settingsFiles: [],
  post: () => Promise.reject(new Error('no hook here asks a server')),
  transcripts,
  mode: () => 'default',
  now: () => performance.now(),
};
const some = createHooks(
  allowedAsTheyAre(hooks, () => true),
  host,
);
const none = createHooks([], host);
const occasion: Occasion = { event: 'PreToolUse', call: { id: 'c1', tool: 'bash', args: { command: 'ls -la' } } };
const events: Event[] = [];
const scene = { session: 'bench', cwd: folder, prompt: 'bench:1', events: () => events };

/** A conversation grows between two hooks. */
function grow(): void {
  for (let n = 0; n < 4; n++)
    events.push({ seq: events.length + 1, kind: 'user', content: 'x'.repeat(500), data: null, createdAt: 0 });
}

const ways: Readonly<Record<string, () => Promise<unknown>>> = {
  'no hook': () =>
    none.listens('PreToolUse') ? none.ask(occasion, scene, AbortSignal.timeout(5000)) : Promise.resolve(),
  'one hook': () => some.ask(occasion, scene, AbortSignal.timeout(5000)),
  'plain sh -c': () =>
    new Promise((resolve) => {
      const child = spawn('sh', ['-c', command], { cwd: folder, stdio: ['pipe', 'pipe', 'pipe'], detached: true });
      child.once('close', resolve);
      child.stdin.end('{}');
    }),
};
const took = Object.fromEntries(Object.keys(ways).map((name) => [name, [] as number[]]));
for (let round = -5; round < rounds; round++) {
  grow();
  for (const [name, run] of Object.entries(ways)) {
    const started = performance.now();
    await run();
    if (round >= 0) took[name]?.push(performance.now() - started);
  }
}
const first = performance.now();
transcripts.write(
  'long',
  Array.from({ length: 10_000 }, (_, index) => ({
    seq: index + 1,
    kind: 'user',
    content: 'x'.repeat(500),
    data: null,
    createdAt: 0,
  })),
);
const transcriptMs = performance.now() - first;
await processes.killBackground();
transcripts.close();
rmSync(folder, { recursive: true, force: true });

const figures = Object.entries(took).map(([name, all]) => {
  const sorted = all.toSorted((a, b) => a - b);
  return { name, least: sorted[0] ?? 0, median: sorted[sorted.length >> 1] ?? 0 };
});
for (const { name, least, median } of figures)
  console.log(`${name.padEnd(12)} least ${least.toFixed(2)} ms, median ${median.toFixed(2)} ms`);
const [without, hooked, plain] = figures;
const addedMs = (hooked?.least ?? 0) - (without?.least ?? 0);
console.log(
  `one hook adds ${addedMs.toFixed(2)} ms at least (at most ${mostMs}), ` +
    `${((hooked?.median ?? 0) / (plain?.median ?? 1)).toFixed(2)} x a plain shell in the median; ${rounds} rounds`,
);
console.log(`the first transcript of 10,000 events takes ${transcriptMs.toFixed(1)} ms`);
process.exitCode = addedMs <= mostMs ? 0 : 1;
