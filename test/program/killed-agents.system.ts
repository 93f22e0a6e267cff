import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { agent, lines, place, script, type Place } from '../e2e/program.js';

const calls = (...made: readonly (readonly [name: string, args: object])[]) => ({
  calls: made.map(([name, args]) => ({ name, arguments: args })),
});
const files = 12;
const main = [
  calls(['agent', { agent: 'worker', prompt: 'go', description: 'writes', background: true, isolation: 'worktree' }]),
  { text: 'It works.' },
  { text: 'It has ended.' },
  { text: 'Yes.' },
  { text: 'Yes.' },
];

function repository(): Place {
  const at = place({ 'a.txt': 'a\n' });
  git(at, 'init', '-q');
  git(at, 'add', '.');
  git(at, 'commit', '-q', '-m', 'first');
  at.file('dirty.txt', 'dirty\n');
  const folder = join(at.home, '.agent', 'agents');
  mkdirSync(folder, { recursive: true });
  const plays = join(folder, 'worker.json');
  const writes = Array.from({ length: files }, (_, n) => ['file_write', { path: `made/${n}.txt`, content: `${n}\n` }]);
  const turns = [
    calls(...(writes as [string, object][])),
    calls(['bash', { command: 'rm dirty.txt' }]),
    { text: 'Done.' },
  ];
  writeFileSync(plays, JSON.stringify({ turns }));
  const head = `name: worker\ndescription: Works.\nmodel: offline/${plays}`;
  writeFileSync(join(folder, 'worker.md'), `---\n${head}\n---\nYou work.\n`);
  return at;
}

function git(at: Place, ...args: readonly string[]): string {
  const named = ['-c', 'user.name=t', '-c', 'user.email=t@t', ...args];
  return execFileSync('git', named, { cwd: at.work, encoding: 'utf8', env: { ...at.env, HOME: at.home } });
}

function left(at: Place): readonly string[] {
  const folders = readdirSync(dirname(at.work)).filter((name) => name.startsWith('work-'));
  return [...folders, ...git(at, 'branch', '--list', 'worktree-*').split('\n').filter(Boolean)];
}

function steps({ home }: Place): readonly string[] {
  const db = new Database(join(home, '.agent/agent.db'), { readonly: true });
  const rows = db.prepare("select json_extract(data_json, '$.state') state from events where kind = 'agent'").all();
  db.close();
  return rows.map((row) => (row as { readonly state: string }).state);
}

const made = ({ work }: Place): number => (existsSync(join(work, 'made')) ? readdirSync(join(work, 'made')).length : 0);

test(
  'a program that is killed at any line leaves no worktree that nobody knows, and its agents can be settled',
  { timeout: 600_000 },
  async () => {
    let kills = 0;
    for (let count = 1; count < 30; count += 2) {
      const at = repository();
      const model = script(at, main);
      const first = await agent(at, ['-p', '-m', model, '--output-format', 'stream-json', 'go'], {
        onStdout: (text, child) => {
          if (text.split('\n').length > count) child.kill('SIGKILL');
        },
      });
      if (first.signal === null) break;
      kills += 1;
      const again = await agent(at, ['-p', '-m', model, '--output-format', 'json', '-c', 'and now?']);
      if (again.code === 7) continue;
      expect([count, again.code, again.stderr, lines(again.stdout).at(-1)?.['status']]).toMatchObject([
        ...[count, 0, again.stderr],
        'completed',
      ]);
      const known = steps(at);
      expect([count, known.filter((state) => state === 'started').length <= 1]).toEqual([count, true]);
      expect(readFileSync(join(at.work, 'dirty.txt'), 'utf8')).toBe('dirty\n');
      if (left(at).length > 0) {
        expect([count, known.at(-1)]).toEqual([count, 'ended']);
        expect(await agent(at, ['agents', 'discard', '1', '--yes'])).toMatchObject({ code: 0 });
      }
      expect([count, left(at)]).toEqual([count, []]);
    }
    expect(kills).toBeGreaterThan(3);
  },
);

test(
  'a merge that is killed at any time is finished or has not begun, and one undo reverts it',
  { timeout: 600_000 },
  async () => {
    for (let delayMs = 150; delayMs <= 1200; delayMs += 150) {
      const at = repository();
      const ran = await agent(at, ['-p', '-m', script(at, main), '--output-format', 'json', 'go']);
      expect(ran.code).toBe(0);
      await agent(at, ['agents', 'merge', '1', '--yes'], {
        onStart: (child) => {
          setTimeout(() => child.kill('SIGKILL'), delayMs);
        },
      });
      const again = await agent(at, ['agents', 'merge', '1', '--yes']);
      expect([delayMs, again.code === 0 || again.stderr.includes('it is merged')]).toEqual([delayMs, true]);
      expect([delayMs, made(at), existsSync(join(at.work, 'dirty.txt'))]).toEqual([delayMs, files, false]);
      expect([delayMs, left(at)]).toEqual([delayMs, []]);
      await agent(at, ['undo', '--yes']);
      expect([delayMs, made(at), readFileSync(join(at.work, 'dirty.txt'), 'utf8')]).toEqual([delayMs, 0, 'dirty\n']);
    }
  },
);
