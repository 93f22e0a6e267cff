import { spawn } from 'node:child_process';
import { mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { streamLine } from '../../../src/frontends/headless/headless.js';
import type { Event } from '../../../src/kernel/core/event.js';
import { project } from '../../../src/kernel/core/projection.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { makers } from '../../kernel/providers/logs.js';
import { wires } from '../../kernel/providers/wires/recordings.js';
import { rules } from '../../kernel/providers/wires/request-rules.js';
import { measure, rounds } from './bench.js';

/** `npm run t:kill9`: kills `agent -p` with SIGKILL at a random instant, half of the times counted from its start, half
 * from its first line, holds the lines it printed against the rows, and resumes every session with `agent -c -p`.
 * AGENT_PROGRAM names another build. */
const program = process.env['AGENT_PROGRAM'] ?? join(process.cwd(), 'dist/main.js');
const durable = ['assistant', 'tool_call', 'tool_result', 'usage', 'error'];

interface Ended {
  readonly lines: readonly Record<string, unknown>[];
  readonly code: number | null;
}

function run(
  work: string,
  home: string,
  args: readonly string[],
  killAfterMs: { readonly from: 'start' | 'line'; readonly ms: number } | null,
): Promise<Ended> {
  const child = spawn(process.execPath, [program, ...args], {
    cwd: work,
    env: { PATH: process.env['PATH'] ?? '', HOME: home, AGENT_HOME: join(home, '.agent'), AGENT_LOOP_LIMIT: '0' },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let text = '';
  let armed = false;
  const arm = (): void => {
    if (armed || killAfterMs === null) return;
    armed = true;
    setTimeout(() => child.kill('SIGKILL'), killAfterMs.ms);
  };
  if (killAfterMs?.from === 'start') arm();
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString();
    arm();
  });
  return new Promise((resolve) => {
    child.on('close', (code) => {
      const whole = text.slice(0, text.lastIndexOf('\n') + 1);
      resolve({
        code,
        lines: whole
          .split('\n')
          .filter((line) => line !== '')
          .map((line) => JSON.parse(line) as Record<string, unknown>),
      });
    });
  });
}

/** What is wrong with the requests the session would send next. */
function brokenRules(events: readonly Event[]): readonly string[] {
  return Object.values(wires).flatMap((wire) => {
    const body = JSON.parse(
      wire.requestParts(project(events), { ...makers[0], toolChoice: 'auto', quirks: {} }).join(''),
    ) as Record<string, unknown>;
    return rules[wire.api]?.(body) ?? ['no rules'];
  });
}

interface Tally {
  lost: number;
  gaps: number;
  acknowledged: number;
  sessions: number;
  resumed: number;
  invalid: number;
}

async function round(
  work: string,
  home: string,
  scripts: { readonly busy: string; readonly done: string },
  index: number,
  tally: Tally,
): Promise<void> {
  const from = index % 2 === 0 ? 'start' : 'line';
  const killed = await run(
    work,
    home,
    ['-p', '--approval', 'never', '--model', `offline/${scripts.busy}`, '--output-format', 'stream-json', 'go'],
    { from, ms: Math.random() * (from === 'start' ? 500 : 250) },
  );
  const id = killed.lines.find((line) => line['type'] === 'session')?.['session_id'];
  const acknowledged = killed.lines
    .filter((line) => durable.includes(String(line['type'])))
    .map((line) => JSON.stringify(line));
  tally.acknowledged += acknowledged.length;
  const file = join(home, '.agent/agent.db');
  const { store } = await openSqliteStore({ file, now: Date.now });
  const events = typeof id === 'string' ? await store.load(id) : [];
  await store.close();
  const stored = events
    .flatMap((event) => streamLine({ type: 'event', event }) ?? [])
    .map((line) => JSON.stringify(line));
  tally.lost += acknowledged.filter((line, at) => stored[at] !== line).length;
  if (events.some((event, at) => event.seq !== at + 1)) tally.gaps++;
  if (events.length === 0) return;
  tally.sessions++;
  const { code } = await run(
    work,
    home,
    ['-c', '-p', '--model', `offline/${scripts.done}`, '--output-format', 'json', 'go on'],
    null,
  );
  const again = await openSqliteStore({ file, now: Date.now });
  const after = await again.store.load(String(id));
  await again.store.close();
  if (
    code === 0 &&
    after.length > events.length &&
    JSON.stringify(after.slice(0, events.length)) === JSON.stringify(events)
  )
    tally.resumed++;
  if (brokenRules(events).length + brokenRules(after).length > 0) tally.invalid++;
}

await measure(async (folder) => {
  const count = rounds(1000);
  const [work, home] = ['work', 'home'].map((name) => join(realpathSync(folder), name)) as [string, string];
  for (const path of [work, home]) mkdirSync(path);
  const scripts = { busy: join(home, 'busy.json'), done: join(home, 'done.json') };
  const call = (name: string, args: object): object => ({ name, arguments: args });
  writeFileSync(
    scripts.busy,
    JSON.stringify({
      loop: true,
      turns: [
        {
          text: 'I look first. '.repeat(10),
          calls: [call('glob', { pattern: '**/*' }), call('bash', { command: 'echo some output' })],
          usage: { input_tokens: 10, output_tokens: 5 },
        },
        {
          text: 'Now I write.',
          calls: [
            call('file_write', { path: 'a.txt', content: 'text\n'.repeat(50) }),
            call('file_read', { path: 'a.txt' }),
          ],
        },
        {
          calls: [
            call('file_edit', { path: 'a.txt', old_string: 'no such text', new_string: 'x' }),
            call('grep', { pattern: 'text' }),
          ],
        },
      ],
    }),
  );
  writeFileSync(scripts.done, JSON.stringify({ loop: true, turns: [{ text: 'Done.' }] }));
  const tally: Tally = { lost: 0, gaps: 0, acknowledged: 0, sessions: 0, resumed: 0, invalid: 0 };
  for (let index = 0; index < count; index++) await round(work, home, scripts, index, tally);
  return {
    line: `kill9: ${count} kills, ${tally.acknowledged} lines acknowledged, ${tally.lost} lost, ${tally.gaps} gaps, ${tally.resumed} of ${tally.sessions} sessions resumed, ${tally.invalid} with a request that would be refused`,
    ok: tally.lost === 0 && tally.gaps === 0 && tally.resumed === tally.sessions && tally.invalid === 0,
  };
});
