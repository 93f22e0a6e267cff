import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { agent, lines, place, script, type Place } from '../e2e/program.js';

const bash = (command: string) => ({ calls: [{ name: 'bash', arguments: { command } }] });
const turns = [
  bash('echo one >> work.log'),
  { text: 'The first part.' },
  bash('echo two >> work.log; touch done'),
  { text: 'The rest.' },
  bash('test -f done || { echo two >> work.log; touch done; }'),
  { text: 'What was lost.' },
];
const check = 'echo $$ >> checks.log; wc -l < checks.log; test -f done';

function results({ home }: Place): readonly string[] {
  const db = new Database(join(home, '.agent/agent.db'), { readonly: true });
  const rows = db.prepare("select data_json from events where kind = 'tool_result'").all();
  db.close();
  return rows
    .map((row) => JSON.parse((row as { readonly data_json: string }).data_json) as Readonly<Record<string, unknown>>)
    .filter(({ synthetic }) => synthetic === undefined)
    .map(({ tool_call_id }) => String(tool_call_id));
}

test(
  'a goal whose process is killed at any line continues when it is resumed, and repeats no work',
  {
    timeout: 600_000,
  },
  async () => {
    let kills = 0;
    for (let count = 1; count < 60; count++) {
      const at = place();
      const goal = ['-m', script(at, turns), '--goal', 'done is there', '--goal-check', check];
      const first = await agent(at, ['-p', '--output-format', 'stream-json', ...goal], {
        onStdout: (text, child) => {
          if (text.split('\n').length > count) child.kill('SIGKILL');
        },
      });
      if (first.signal === null) break;
      kills += 1;
      const again = await agent(at, ['-p', '--output-format', 'json', '-c', ...goal]);
      // Nothing was recorded yet: the goal is set anew.
      const run = again.code === 7 ? await agent(at, ['-p', '--output-format', 'json', ...goal]) : again;
      expect([count, run.code, lines(run.stdout).at(-1)?.['goal']]).toEqual([
        ...[count, 0],
        { condition: 'done is there', check, met: true, turns: expect.any(Number) as number, last_exit_code: 0 },
      ]);
      expect(existsSync(join(at.work, 'done'))).toBe(true);
      const work = readFileSync(join(at.work, 'work.log'), 'utf8').trim().split('\n');
      expect([count, new Set(work).size]).toEqual([count, work.length]);
      const ids = results(at);
      expect([count, new Set(ids).size]).toEqual([count, ids.length]);
    }
    expect(kills).toBeGreaterThan(10);
  },
);
