// npm run t:acpx      five scripts driven by acpx 0.19.1, a client of the Agent Client Protocol, which needs Node 22;
// both are installed into a folder that is kept in node_modules/.bench
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { client, methods, ndJsonStream } from '@agentclientprotocol/sdk';
import { acpxIn, drive, scripts } from '../../e2e/acpx-scripts.js';

declare const AGENT_ROOT: string;

const { folder, packages, found } = acpxIn(AGENT_ROOT);
if (!found()) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"private": true}');
  execFileSync('npm', ['install', '--no-save', ...packages], { cwd: folder, stdio: 'ignore' });
}

let right = 0;
for (const script of scripts) {
  const startedAt = performance.now();
  const { made, said, ended, messages, output } = drive(AGENT_ROOT, script);
  const tookMs = performance.now() - startedAt;
  const isRight = said === script.said && made === script.made && ended;
  if (isRight) right += 1;
  console.log(`${isRight ? 'right' : 'WRONG'}  ${script.name}, ${messages} messages, ${tookMs.toFixed(0)} ms`);
  if (!isRight) console.log(output);
}
await loadLongSession();
console.log(`${right} of ${scripts.length} scripts right`);
if (right !== scripts.length) process.exitCode = 1;

/** A session of over 1,000 events is shown to an editor that loads it. */
async function loadLongSession(): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'agent-acpx-'));
  const script = join(home, 'script.json');
  const line = { calls: [{ name: 'bash', arguments: { command: 'echo a line' } }] };
  const turns = [...Array.from({ length: 260 }, () => line), { text: 'Done.' }];
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
