import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { afterEach, expect, test } from 'vitest';
import { agent, binary, place, type Place } from '../e2e/program.js';
import { startVendor, type VendorServer, type VendorTurn } from '../kernel/providers/vendor-server.js';

const open: VendorServer[] = [];

afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
});

const long = (name: string): string => `<${name}> ${'lorem ipsum '.repeat(700)}\n`;
const read = (path: string): VendorTurn => ({
  calls: [{ name: 'file_read', arguments: JSON.stringify({ path }) }],
  usage: { input: 1000, cached: 0, output: 10 },
});

/** A session that has read three long files. */
async function session(): Promise<{ readonly at: Place; readonly server: VendorServer }> {
  const server = await startVendor({ api: 'openai-chat', models: ['small'] });
  open.push(server);
  const at = place({ 'a.txt': long('a'), 'b.txt': long('b'), 'c.txt': long('c') });
  mkdirSync(join(at.home, '.agent'), { recursive: true });
  const small = { context_window: 20_000, input_usd: 3, output_usd: 15, cache_read_usd: 0.3 };
  writeFileSync(
    join(at.home, '.agent/config.json'),
    JSON.stringify({ model: 'openai/small', models: { 'openai/small': small } }),
  );
  Object.assign(at.env, { OPENAI_API_KEY: 'test-key-openai-1', OPENAI_BASE_URL: `${server.url}/v1` });
  server.script(read('a.txt'), read('b.txt'), read('c.txt'), { text: 'Read.' });
  expect((await agent(at, ['-p', 'REQUEST-ONE'])).code).toBe(0);
  return { at, server };
}

/** The number of events of that kind on the disk. */
function count({ home }: Place, kind: string): number {
  const db = new Database(join(home, '.agent/agent.db'), { readonly: true });
  try {
    return (db.prepare('select count(*) as n from events where kind = ?').get(kind) as { readonly n: number }).n;
  } finally {
    db.close();
  }
}

/** When a command is killed: after so many milliseconds, once its event is on the disk, or not at all. */
type Moment = number | 'its event' | 'never';

/** Starts the command and kills it. Resolves with true if it was still running. */
async function killed(at: Place, { prompt, kind }: (typeof ways)[number], moment: Moment): Promise<boolean> {
  const before = count(at, kind);
  const child = spawn(process.execPath, [binary, '-c', '-p', prompt], { cwd: at.work, env: at.env, stdio: 'ignore' });
  let isOver = false;
  const ended = new Promise<boolean>((resolve) => {
    child.on('close', (_code, signal) => {
      isOver = true;
      resolve(signal === 'SIGKILL');
    });
  });
  if (typeof moment === 'number') await Promise.race([ended, wait(moment)]);
  if (moment === 'its event') while (!isOver && count(at, kind) === before) await wait(1);
  if (moment !== 'never') child.kill('SIGKILL');
  return await ended;
}

const ways = [
  { name: 'a compaction', prompt: '/compact', kind: 'compaction' },
  { name: 'leaving out old results', prompt: '/compact --results', kind: 'results_omitted' },
];

test.each(ways)(
  '$name that is killed at any moment leaves the conversation as it was or as it becomes, whole',
  { timeout: 600_000 },
  async (way) => {
    const { prompt, kind } = way;
    const { at, server } = await session();
    // A turn that a killed process did not ask for is there for the next one.
    const answer = { text: 'THE-SUMMARY of the files.' };
    server.script(answer);
    const startedAtMs = performance.now();
    expect((await agent(at, ['-c', '-p', prompt])).code).toBe(0);
    const tookMs = performance.now() - startedAtMs;
    expect((await agent(at, ['-c', '-p', '/compact undo'])).code).toBe(0);
    let before = count(at, kind);
    const outcomes = new Set<string>();
    const times = [0.4, 0.6, 0.75, 0.85, 0.95].map((share) => tookMs * share);
    for (const moment of [...times, 'its event', 'never'] satisfies readonly Moment[]) {
      server.script(answer);
      const wasRunning = await killed(at, way, moment);
      const after = count(at, kind);
      const isDone = after > before;
      outcomes.add(`${wasRunning ? 'killed' : 'ended'}, ${isDone ? 'new' : 'old'}`);
      before = after;
      server.script(answer);
      const next = await agent(at, ['-c', '-p', 'REQUEST-TWO']);
      expect([moment, next.code, next.stdout, server.refusals]).toEqual([moment, 0, `${answer.text}\n`, []]);
      const sent = JSON.stringify(server.bodies.at(-1)?.['messages']);
      expect([moment, sent.includes('REQUEST-ONE'), sent.includes('<a>')]).toEqual([moment, true, !isDone]);
      if (!isDone) continue;
      if (kind === 'compaction') expect(sent).toContain('## Summary');
      expect((await agent(at, ['-c', '-p', '/compact undo'])).code).toBe(0);
    }
    expect([...outcomes]).toEqual(expect.arrayContaining(['killed, old', 'ended, new']));
    expect((await agent(at, ['doctor'])).stdout).not.toMatch(/damaged|malformed/);
  },
);
