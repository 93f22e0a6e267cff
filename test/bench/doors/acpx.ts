// npm run t:acpx      five scripts driven by acpx 0.19.1, a client of the Agent Client Protocol, which needs Node 22;
// both are installed into a folder that is kept in node_modules/.bench
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

declare const AGENT_ROOT: string;

const tools = join(AGENT_ROOT, 'node_modules/.bench/acpx');
const bin = join(tools, 'node_modules/.bin');
if (!existsSync(join(bin, 'acpx'))) {
  mkdirSync(tools, { recursive: true });
  writeFileSync(join(tools, 'package.json'), '{"private": true}');
  execFileSync('npm', ['install', '--no-save', 'acpx@0.19.1', 'node@22'], { cwd: tools, stdio: 'ignore' });
}

interface Script {
  readonly name: string;
  readonly turns: readonly object[];
  readonly answer: '--approve-all' | '--deny-all';
  /** What `made.txt` holds afterwards; null for no such file. */
  readonly made: string | null;
  readonly said: string;
}

const call = (name: string, args: object): object => ({ calls: [{ name, arguments: args }] });
const write = call('file_write', { path: 'made.txt', content: 'hello\n' });
const edit = call('file_edit', { path: 'made.txt', old_string: 'hello', new_string: 'good-bye' });
const command = call('bash', { command: 'seq 1 2000; echo done > made.txt' });
const scripts: readonly Script[] = [
  { name: 'an answer', turns: [{ text: 'Nothing to do.' }], answer: '--deny-all', made: null, said: 'Nothing to do.' },
  {
    name: 'a write, allowed',
    turns: [write, { text: 'Written.' }],
    answer: '--approve-all',
    made: 'hello\n',
    said: 'Written.',
  },
  {
    name: 'a write, denied',
    turns: [write, { text: 'Not written.' }],
    answer: '--deny-all',
    made: null,
    said: 'Not written.',
  },
  {
    name: 'an edit',
    turns: [write, edit, { text: 'Edited.' }],
    answer: '--approve-all',
    made: 'good-bye\n',
    said: 'Edited.',
  },
  {
    name: 'a command',
    turns: [command, { text: 'Counted.' }],
    answer: '--approve-all',
    made: 'done\n',
    said: 'Counted.',
  },
];

let right = 0;
for (const { name, turns, answer, made, said } of scripts) {
  const home = mkdtempSync(join(tmpdir(), 'agent-acpx-'));
  const script = join(home, 'script.json');
  writeFileSync(script, JSON.stringify({ turns }));
  const ours = `${process.execPath} ${join(AGENT_ROOT, 'bin/agent.js')} -m offline/${script} --approval mutating acp`;
  const startedAt = performance.now();
  const run = spawnSync('acpx', ['--cwd', home, answer, '--format', 'json', '--agent', ours, 'exec', 'go'], {
    encoding: 'utf8',
    timeout: 60_000,
    env: { PATH: `${bin}:${process.env['PATH'] ?? ''}`, HOME: home },
  });
  const tookMs = performance.now() - startedAt;
  const file = join(home, 'made.txt');
  const spoken = [...run.stdout.matchAll(/"agent_message_chunk","content":\{"type":"text","text":"([^"]*)"/g)];
  const isRight =
    spoken.map(([, text = '']) => text).join('') === said &&
    (existsSync(file) ? readFileSync(file, 'utf8') : null) === made &&
    run.stdout.includes('"stopReason":"end_turn"');
  if (isRight) right += 1;
  console.log(
    `${isRight ? 'right' : 'WRONG'}  ${name}, ${run.stdout.split('\n').length - 1} messages, ${tookMs.toFixed(0)} ms`,
  );
  if (!isRight) console.log(run.stdout, run.stderr);
  rmSync(home, { recursive: true, force: true });
}
console.log(`${right} of ${scripts.length} scripts right`);
process.exitCode = right === scripts.length ? 0 : 1;
