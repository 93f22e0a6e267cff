// npm run t:acpx      five scripts driven by acpx 0.19.1, a client of the Agent Client Protocol, which needs Node 22;
// both are installed into a folder that is kept in node_modules/.bench
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { client, methods, ndJsonStream } from '@agentclientprotocol/sdk';

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
await loadLongSession();
console.log(`${right} of ${scripts.length} scripts right`);
if (right !== scripts.length) process.exitCode = 1;

/** A session of over 1,000 events is shown to an editor that loads it. */
async function loadLongSession(): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'agent-acpx-'));
  const script = join(home, 'script.json');
  const turns = [...Array.from({ length: 260 }, () => call('bash', { command: 'echo a line' })), { text: 'Done.' }];
  writeFileSync(script, JSON.stringify({ turns }));
  const ours = [join(AGENT_ROOT, 'bin/agent.js'), '--set', 'max_tool_turns=1000', '-m', `offline/${script}`];
  const env = { PATH: process.env['PATH'] ?? '', HOME: home };
  execFileSync(process.execPath, [...ours, '--set', 'loop_limit=0', '-p', 'go'], { cwd: home, env, stdio: 'ignore' });
  const listed = execFileSync(process.execPath, [...ours, 'sessions', 'list', '--json'], {
    cwd: home,
    env,
    encoding: 'utf8',
  });
  const [{ id, events }] = JSON.parse(listed) as readonly [{ id: string; events: number }];
  const child = spawn(process.execPath, [...ours, 'acp'], { cwd: home, env, stdio: ['pipe', 'pipe', 'inherit'] });
  let updates = 0;
  const app = client({ name: 'bench' }).onNotification(methods.client.session.update, () => {
    updates += 1;
  });
  const connection = app.connect(
    ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>),
  );
  await connection.agent.request(methods.agent.initialize, { protocolVersion: 1 });
  const startedAt = performance.now();
  await connection.agent.request(methods.agent.session.load, { sessionId: id, cwd: home, mcpServers: [] });
  const tookMs = performance.now() - startedAt;
  console.log(`a session of ${events} events loaded: ${updates} updates in ${tookMs.toFixed(0)} ms (at most 1000)`);
  if (tookMs > 1000 || events < 1000) process.exitCode = 1;
  child.kill();
  rmSync(home, { recursive: true, force: true });
}
