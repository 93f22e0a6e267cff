import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import * as pty from '@lydell/node-pty';
import { configuredServer } from '../../../src/features/mcp/configured-servers.js';
import { openSignIns } from '../../../src/features/mcp/access/kept-sign-ins.js';
import { namedTools } from '../../../src/features/mcp/foreign-tools.js';
import { openRememberedTools } from '../../../src/features/mcp/remembered-tools.js';
import { createServers, type Servers } from '../../../src/features/mcp/servers.js';
import { createProcessRunner } from '../../../src/kernel/tools/process/runner.js';
import { triedServer } from '../../features/mcp/tried-server.js';
import { median } from '../perf/program.js';
import { measure, rounds } from '../reliability/bench.js';

declare const AGENT_ROOT: string;

/** `npm run t:mcp -- 100 10000`: MCP servers that are slow, stubborn, hostile and loud, around the built program. First
 * how often each is closed and killed, then the megabytes of junk. */
const program = join(AGENT_ROOT, 'bin/agent.js');
const times = rounds(10);
const junkMegabytes = Number(process.argv[3] ?? 500);

interface Place {
  readonly folder: string;
  readonly home: string;
  readonly work: string;
  readonly env: Readonly<Record<string, string>>;
  /** Writes the user's `mcp.json`. */
  readonly serve: (servers: Readonly<Record<string, object>>) => void;
}

interface Found {
  readonly line: string;
  readonly ok: boolean;
}

function placeIn(folder: string, name: string): Place {
  const root = join(folder, name);
  const [home, work] = [join(root, 'home'), join(root, 'work')];
  mkdirSync(join(home, '.agent'), { recursive: true });
  mkdirSync(join(work, '.git'), { recursive: true });
  const env = { PATH: process.env['PATH'] ?? '', HOME: home, AGENT_HOME: join(home, '.agent'), LANG: 'C.UTF-8' };
  const serve = (mcpServers: Readonly<Record<string, object>>): void => {
    writeFileSync(join(home, '.agent', 'mcp.json'), JSON.stringify({ mcpServers }));
  };
  return { folder: root, home, work, env, serve };
}

function start({ work, env }: Place, args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [program, ...args], { cwd: work, env, stdio: ['ignore', 'pipe', 'pipe'] });
}

async function run(at: Place, args: readonly string[], onTick?: (id: number) => void): Promise<string> {
  const child = start(at, args);
  let output = '';
  child.stdout?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const timer = setInterval(() => onTick?.(child.pid ?? 0), 20);
  await new Promise((resolve) => child.once('close', resolve));
  clearInterval(timer);
  return output;
}

function script({ folder }: Place, turns: readonly unknown[]): string {
  const file = join(folder, `script-${turns.length}.json`);
  writeFileSync(file, JSON.stringify({ turns }));
  return `offline/${file}`;
}

/** How many processes name this text in their command line. */
function running(text: string): number {
  return readdirSync('/proc').filter((id) => {
    try {
      return /^\d+$/.test(id) && readFileSync(`/proc/${id}/cmdline`, 'utf8').includes(text);
    } catch {
      return false;
    }
  }).length;
}

/** Waits until none of them runs, at most 3 s; returns how many are left. */
async function leftOf(text: string): Promise<number> {
  const end = performance.now() + 3000;
  while (running(text) > 0 && performance.now() < end) await wait(20);
  return running(text);
}

/** Opens the REPL, and returns when its input stood there and how many processes ran then. */
async function firstFrame(at: Place, mark: string): Promise<{ readonly ms: number; readonly processes: number }> {
  const begun = performance.now();
  const env = { ...at.env, TERM: 'xterm-256color', AGENT_MODEL: 'offline/offline' };
  const terminal = pty.spawn(process.execPath, [program], { cwd: at.work, env, cols: 100, rows: 30 });
  let shown = '';
  const frame = await new Promise<{ ms: number; processes: number }>((resolve) => {
    terminal.onData((text) => {
      shown += text;
      if (shown.includes('❯')) resolve({ ms: performance.now() - begun, processes: running(mark) });
    });
  });
  terminal.kill('SIGKILL');
  return frame;
}

async function slowStart(folder: string): Promise<Found> {
  const [bare, slow] = [placeIn(folder, 'bare'), placeIn(folder, 'slow')];
  const entry = { command: 'sh', args: ['-c', `sleep 5; : ${slow.folder}/server`] };
  slow.serve(Object.fromEntries(Array.from({ length: 10 }, (_none, index) => [`s${index}`, entry])));
  const [without, with10] = [[], []] as [number[], number[]];
  let processes = 0;
  for (let count = 0; count < 15; count++) {
    without.push((await firstFrame(bare, 'nothing')).ms);
    const frame = await firstFrame(slow, `${slow.folder}/server`);
    with10.push(frame.ms);
    processes += frame.processes;
  }
  const [one, other] = [median(without), median(with10)];
  const line = `first frame ${one.toFixed(0)} ms, with 10 servers that sleep ${other.toFixed(0)} ms`;
  return { line: `${line} (x ${(other / one).toFixed(2)}), ${processes} processes at it`, ok: processes === 0 };
}

interface StoredEvent {
  readonly kind: string;
  readonly content: string | null;
  readonly data: unknown;
}

async function sameTools(folder: string): Promise<Found> {
  const at = placeIn(folder, 'same');
  const { entry, list } = triedServer(at.work);
  list([{ name: 'rename' }, { name: 'die' }, { name: 'echo' }]);
  at.serve({ tried: { ...entry, expose: 'deferred', allow: ['*'] } });
  const call = (name: string) => ({
    calls: [{ name: 'tool_run', arguments: { tool: `mcp__tried__${name}`, arguments: {} } }],
  });
  const turns = [call('rename'), call('die'), call('echo'), { text: 'done' }, call('echo'), { text: 'again' }];
  const model = script(at, turns);
  const toolsOf = async (session: string): Promise<readonly string[]> => {
    const shown = await run(at, ['sessions', 'show', session, '--json']);
    const events = JSON.parse(shown) as readonly StoredEvent[];
    return events.filter(({ kind }) => kind === 'tools').map(({ data }) => JSON.stringify(data));
  };
  const go = ['-p', '-m', model, '--output-format', 'stream-json'];
  const idOf = (said: string): string => /"session_id":"([^"]+)"/.exec(said)?.[1] ?? '';
  const session = idOf(await run(at, [...go, 'go']));
  const before = await toolsOf(session);
  list([{ name: 'echo' }]);
  const said = await run(at, [...go, '-c', 'again']);
  const after = await toolsOf(session);
  const [none = ''] = await toolsOf(idOf(await run(at, [...go, '--tools', '-mcp', 'go'])));
  const more = Buffer.byteLength(before[0] ?? '') - Buffer.byteLength(none);
  const isSame =
    said.includes('"status":"completed"') && before.length === 1 && after.length === 1 && before[0] === after[0];
  const line = `tools through connect, change, death, resume: ${isSame ? 'identical' : 'CHANGED'}`;
  return { line: `${line}; a request has ${more} bytes more for the bridge`, ok: isSame && more > 0 && more <= 1024 };
}

async function leftBehind(folder: string): Promise<Found> {
  const at = placeIn(folder, 'wrapped');
  const { entry, list } = triedServer(at.work);
  list([{ name: 'wait' }]);
  // As npx does it: a shell that starts a shell that starts the server; none of them passes signals on.
  const inner = `${entry.command} ${entry.args.join(' ')}; true`;
  at.serve({ tried: { command: 'sh', args: ['-c', `sh -c '${inner}'; true`], allow: ['*'] } });
  const model = script(at, [{ calls: [{ name: 'tool_run', arguments: { tool: 'mcp__tried__wait', arguments: {} } }] }]);
  let [closed, killed, most] = [0, 0, 0];
  for (let count = 0; count < times; count++) {
    await run(at, ['mcp', 'test', 'tried'], () => (most = Math.max(most, running(entry.args[0] ?? ''))));
    closed += await leftOf(entry.args[0] ?? '');
    const child = start(at, ['-p', '-m', model, 'go']);
    while (running(entry.args[0] ?? '') < 3) await wait(10);
    child.kill('SIGKILL');
    killed += await leftOf(entry.args[0] ?? '');
  }
  const line = `a server behind two shells (${most} processes), ${times} closes and ${times} kill -9 of us`;
  return { line: `${line}: ${closed} and ${killed} left after 3 s`, ok: closed + killed === 0 };
}

async function hostile(folder: string): Promise<Found> {
  const at = placeIn(folder, 'hostile');
  const mark = join(at.folder, 'started');
  const evil = { command: 'sh', args: ['-c', `: > ${mark}`], alwaysLoad: true, allow: ['*'] };
  writeFileSync(join(at.work, '.mcp.json'), JSON.stringify({ mcpServers: { evil } }));
  const model = script(at, [{ calls: [{ name: 'tool_search', arguments: {} }] }, { text: 'done' }]);
  const said = await run(at, ['-p', '--approval', 'never', '-m', model, 'go']);
  const listed = await run(at, ['mcp', 'list']);
  const env = { ...at.env, TERM: 'xterm-256color', AGENT_MODEL: 'offline/offline' };
  const terminal = pty.spawn(process.execPath, [program], { cwd: at.work, env, cols: 100, rows: 30 });
  let shown = '';
  await new Promise<void>((resolve) => {
    terminal.onData((text) => {
      shown += text;
      if (shown.includes('[y/N]')) resolve();
    });
  });
  terminal.write('n\r');
  await wait(2000);
  terminal.kill('SIGKILL');
  const isTold = said.includes('not trusted') && listed.includes('not trusted') && shown.includes('starts sh -c');
  const line = `hostile .mcp.json in agent, -p and mcp list: ${existsSync(mark) ? 'STARTED' : '0 starts'}`;
  return { line: `${line}, ${isTold ? 'told each time' : 'NOT TOLD'}`, ok: !existsSync(mark) && isTold };
}

async function loud(folder: string): Promise<Found> {
  const at = placeIn(folder, 'loud');
  const { entry, list } = triedServer(at.work);
  list([{ name: 'echo' }]);
  const flood = `
const piece = Buffer.alloc(1 << 20, 'junk');
for (let at = 0; at < piece.length; at += 4096) if (process.argv[3] === 'lines') piece[at] = 10;
const { writeSync } = await import('node:fs');
for (let left = ${junkMegabytes}; left > 0; left--)
  for (let at = 0; at < piece.length; )
    try { at += writeSync(1, piece, at); } catch (error) { if (error.code !== 'EAGAIN') throw error; }
writeSync(1, '\\n');
await import(${JSON.stringify(entry.args[0])});
`;
  const file = join(at.work, 'loud.mjs');
  writeFileSync(file, flood);
  const args = [file, entry.args[1] ?? ''];
  at.serve({
    lines: { command: entry.command, args: [...args, 'lines'], startup_timeout_ms: 600_000 },
    endless: { command: entry.command, args, startup_timeout_ms: 600_000 },
  });
  let most = 0;
  const said: string[] = [];
  for (const name of ['lines', 'endless'])
    said.push(
      await run(at, ['mcp', 'test', name], (id) => {
        try {
          const text = readFileSync(`/proc/${id}/status`, 'utf8');
          most = Math.max(most, Number(/VmHWM:\s+(\d+)/.exec(text)?.[1] ?? 0) / 1024);
        } catch {
          /* it has ended */
        }
      }),
    );
  const isConnected = said.every((text) => text.includes('connected in'));
  const line = `${junkMegabytes} MB of junk in lines and in one line: ${isConnected ? 'connected' : said.join(' ')}`;
  return { line: `${line}, at most ${most.toFixed(0)} MB of memory`, ok: isConnected && most < 150 };
}

function open(folder: string, entry: object): { readonly servers: Servers; readonly change: () => string | null } {
  const env = { PATH: process.env['PATH'] };
  const log = (): void => undefined;
  const remembered = openRememberedTools({
    cache: join(folder, 'cache.json'),
    seen: join(folder, 'seen.json'),
    now: Date.now,
    log,
  });
  const runner = createProcessRunner({ watched: true, marker: { name: '_AGENT_BENCH', value: String(process.pid) } });
  const servers = createServers({
    servers: [configuredServer('tried', entry, 'mcp.json', { env, cwd: folder, home: folder })],
    remembered,
    notify: log,
    open: runner.open,
    env,
    version: '1',
    now: () => performance.now(),
    log,
    keepErrors: log,
    signIns: openSignIns(join(folder, 'auth.json'), log),
  });
  const change = (): string | null => servers.tools().map((tool) => remembered.change(tool))[0] ?? null;
  return { servers, change };
}

async function cancelled(folder: string): Promise<Found> {
  const at = placeIn(folder, 'cancel');
  const { entry, list } = triedServer(at.work);
  list([{ name: 'wait' }]);
  const { servers } = open(at.folder, entry);
  await servers.discover(new AbortController().signal);
  const [tool] = servers.tools();
  const tookMs: number[] = [];
  for (let count = 0; tool && count < 50; count++) {
    const stop = new AbortController();
    const call = servers.call(tool, {}, { signal: stop.signal, onProgress: () => undefined, putForm: null });
    await wait(5);
    const begun = performance.now();
    stop.abort();
    await call;
    tookMs.push(performance.now() - begun);
  }
  await servers.close();
  const most = Math.max(...tookMs);
  return {
    line: `50 cancelled calls: at most ${most.toFixed(1)} ms until answered`,
    ok: tool !== undefined && most <= 100,
  };
}

async function changed(folder: string): Promise<Found> {
  const at = placeIn(folder, 'changed');
  const { entry, list } = triedServer(at.work);
  const twins = ['x.y', 'x_y', 'n'.repeat(90), `${'n'.repeat(90)}m`];
  list(twins.map((name) => ({ name, description: 'as it was' })));
  const first = open(at.folder, entry);
  await first.servers.discover(new AbortController().signal);
  const names = namedTools(first.servers.tools()).map(({ name }) => name);
  const isFit = names.every((name) => /^[A-Za-z0-9_-]{1,64}$/.test(name)) && new Set(names).size === twins.length;
  const before = first.change();
  await first.servers.close();
  list(twins.map((name) => ({ name, description: 'another' })));
  const { servers, change } = open(at.folder, { ...entry, timeout_ms: 9 });
  await servers.discover(new AbortController().signal);
  const isNoticed = before === null && change() !== null;
  await servers.close();
  const line = `twin, dotted and 90-character names: ${isFit ? 'fit, all different' : 'DO NOT FIT'}`;
  return { line: `${line}; a changed description ${isNoticed ? 'is' : 'IS NOT'} asked about`, ok: isFit && isNoticed };
}

await measure(async (folder) => {
  const results: Found[] = [];
  for (const check of [slowStart, sameTools, leftBehind, hostile, loud, cancelled, changed]) {
    const found = await check(folder);
    results.push(found);
    console.log(`${found.ok ? 'ok    ' : 'BROKEN'} ${found.line}`);
  }
  rmSync(join(folder, 'loud'), { recursive: true, force: true });
  const broken = results.filter(({ ok }) => !ok).length;
  return { line: `mcp: ${results.length} checks, ${broken} broken`, ok: broken === 0 };
});
