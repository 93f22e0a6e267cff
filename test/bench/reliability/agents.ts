import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Event } from '../../../src/kernel/core/event.js';
import { project } from '../../../src/kernel/core/projection.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { makers } from '../../kernel/providers/logs.js';
import { wires } from '../../kernel/providers/wires/recordings.js';
import { rules } from '../../kernel/providers/wires/request-rules.js';
import { measure } from './bench.js';

/** `npm run t:agents`: agents of the built program against a model on loopback. Costs are held against what the model
 * was asked; an interrupt against the request and the command that it has to end; a SIGKILL inside of an agent against
 * the record and every wire; 31 turns against the limit; four agents that read against one after the other.
 * AGENT_PROGRAM names another build. */
const program = process.env['AGENT_PROGRAM'] ?? join(process.cwd(), 'dist/main.js');
const price = { input: 3, output: 15 };

interface Answer {
  readonly text?: string;
  readonly calls?: readonly (readonly [name: string, args: object])[];
  /** The answer never comes. */
  readonly never?: true;
  readonly delayMs?: number;
}
/** The nth answer to the person's session, or to that of an agent. */
type Play = (who: 'person' | 'agent', answers: number) => Answer;

interface Double {
  readonly url: string;
  /** When each request came, on the clock of this process. */
  readonly requests: readonly number[];
  costUsd(): number;
  /** When a request that was never answered was given up by the other side; null: never. */
  gaveUpAt(): number | null;
  close(): void;
}

async function double(play: Play): Promise<Double> {
  const requests: number[] = [];
  let tokens = { input: 0, output: 0 };
  let gaveUpAt: number | null = null;
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk: Buffer) => (text += chunk.toString()));
    request.on('end', () => {
      if (request.method !== 'POST') {
        response.writeHead(404).end();
        return;
      }
      requests.push(performance.now());
      const { messages } = JSON.parse(text) as { messages: readonly { role: string; content: unknown }[] };
      const who = JSON.stringify(messages[0]).includes('You find words') ? 'agent' : 'person';
      const answer = play(who, messages.filter(({ role }) => role === 'assistant').length);
      const used = { input: 1000 + 37 * requests.length, output: 11 + requests.length };
      response.on('close', () => {
        if (answer.never && gaveUpAt === null) gaveUpAt = performance.now();
      });
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      if (answer.never) {
        response.flushHeaders();
        return;
      }
      tokens = { input: tokens.input + used.input, output: tokens.output + used.output };
      setTimeout(() => {
        send(response, answer, requests.length, used);
      }, answer.delayMs ?? 0);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    costUsd: () => (tokens.input * price.input + tokens.output * price.output) / 1e6,
    gaveUpAt: () => gaveUpAt,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

function send(
  response: ServerResponse,
  { text, calls = [] }: Answer,
  n: number,
  used: { readonly input: number; readonly output: number },
): void {
  const part = (body: object): void => {
    response.write(
      `data: ${JSON.stringify({ id: `c${n}`, object: 'chat.completion.chunk', model: 'm', ...body })}\n\n`,
    );
  };
  const tool_calls = calls.map(([name, args], index) => ({
    index,
    id: `call_${n}_${index}`,
    type: 'function',
    function: { name, arguments: JSON.stringify(args) },
  }));
  part({ choices: [{ index: 0, delta: { content: text ?? '', ...(calls.length > 0 ? { tool_calls } : {}) } }] });
  part({ choices: [{ index: 0, delta: {}, finish_reason: calls.length > 0 ? 'tool_calls' : 'stop' }] });
  const { input, output } = used;
  part({ choices: [], usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output } });
  response.end('data: [DONE]\n\n');
}

const ask = (more: object = {}): readonly [string, object] => [
  'agent',
  { agent: 'finder', prompt: 'find the word', description: 'find a word', ...more },
];

interface Place {
  readonly work: string;
  readonly home: string;
}

function place(folder: string, name: string): Place {
  const at = { work: join(folder, name, 'work'), home: join(folder, name, 'home') };
  mkdirSync(at.work, { recursive: true });
  mkdirSync(join(at.home, 'agents'), { recursive: true });
  const tools = name === 'together' ? 'tools: Read, Grep\n' : '';
  const role = `---\nname: finder\ndescription: Finds words.\n${tools}---\nYou find words.\n`;
  writeFileSync(join(at.home, 'agents', 'finder.md'), role);
  const models = { 'openai/m': { input_usd: price.input, output_usd: price.output } };
  writeFileSync(join(at.home, 'config.json'), JSON.stringify({ models, loop_limit: 0 }));
  writeFileSync(join(at.work, 'a.txt'), 'the word\n');
  return at;
}

interface Started {
  readonly child: ChildProcess;
  readonly ended: Promise<{ readonly lines: readonly Record<string, unknown>[]; readonly text: string }>;
}

function start({ work, home }: Place, url: string, args: readonly string[]): Started {
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: home,
    AGENT_HOME: home,
    AGENT_MODEL: 'openai/m',
    OPENAI_API_KEY: 'sk-of-a-double',
    OPENAI_BASE_URL: url,
  };
  const child = spawn(process.execPath, [program, ...args], { cwd: work, env, stdio: ['ignore', 'pipe', 'ignore'] });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const ended = new Promise<Awaited<Started['ended']>>((resolve) => {
    child.on('close', () => {
      const whole = text.slice(0, text.lastIndexOf('\n') + 1).split('\n');
      const lines = whole.flatMap((line) =>
        line.startsWith('{') ? [JSON.parse(line) as Record<string, unknown>] : [],
      );
      resolve({ lines, text });
    });
  });
  return { child, ended };
}

const go = ['-p', '--output-format', 'stream-json', 'go'];

async function until(holds: () => boolean): Promise<number> {
  const from = performance.now();
  while (!holds() && performance.now() - from < 20_000) await wait(2);
  return performance.now();
}

async function openStore({ home }: Place) {
  return await openSqliteStore({ file: join(home, 'agent.db'), now: Date.now });
}

function resultsOf(lines: readonly Record<string, unknown>[]): readonly Record<string, unknown>[] {
  return lines
    .filter(({ type, name }) => type === 'tool_result' && name === 'agent')
    .map(({ output }) => JSON.parse(String(output)) as Record<string, unknown>);
}

/** Two agents, the second of which goes on with the first: every sum is what the model was paid. */
async function costs(folder: string): Promise<readonly [string, boolean]> {
  const at = place(folder, 'costs');
  let id = '';
  const model = await double((who, answers) => {
    if (who === 'agent') return answers % 2 === 0 ? { calls: [['grep', { pattern: 'word' }]] } : { text: 'a.txt:1' };
    if (answers === 0) return { calls: [ask()] };
    return answers === 2 && id !== '' ? { calls: [ask({ resume: id })] } : { text: 'done' };
  });
  const first = await start(at, model.url, go).ended;
  id = String(resultsOf(first.lines)[0]?.['agent_session_id']);
  const session = String(first.lines[0]?.['session_id']);
  const second = await start(at, model.url, ['-r', session, ...go]).ended;
  const list = JSON.parse((await start(at, model.url, ['sessions', 'list', '--json']).ended).text) as readonly {
    cost_usd: number;
  }[];
  const stats = JSON.parse((await start(at, model.url, ['stats', '--json']).ended).text) as readonly {
    table: string;
    cost_usd: number;
  }[];
  const printed = [first, second].map(
    ({ lines }) => (lines.at(-1)?.['usage'] as { cost_usd: number } | undefined)?.cost_usd ?? NaN,
  );
  const sums = {
    asked: model.costUsd(),
    printed: printed.reduce((sum, cost) => sum + cost, 0),
    listed: list[0]?.cost_usd ?? NaN,
    turns: stats.filter(({ table }) => table.endsWith('_tools')).reduce((sum, { cost_usd }) => sum + cost_usd, 0),
    models: stats.filter(({ table }) => table === 'model').reduce((sum, { cost_usd }) => sum + cost_usd, 0),
  };
  model.close();
  const ok = list.length === 1 && Object.values(sums).every((sum) => Math.abs(sum - sums.asked) < 1e-9);
  const said = Object.entries(sums).map(([name, sum]) => `${name} $${sum.toFixed(6)}`);
  return [`costs of ${model.requests.length} requests: ${said.join(', ')}`, ok];
}

/** Interrupts an agent while it waits for the model, and while its command runs. */
async function interrupts(folder: string): Promise<readonly [string, boolean]> {
  const rounds = 5;
  const took = { request: [] as number[], command: [] as number[] };
  let after = 0;
  for (let round = 0; round < rounds; round++)
    for (const what of ['request', 'command'] as const) {
      const at = place(folder, `interrupt-${what}-${round}`);
      const command = 'echo $$ >pid; exec sleep 300';
      const model = await double((who) => {
        if (who === 'person') return { calls: [ask()] };
        return what === 'request' ? { never: true } : { calls: [['bash', { command }]] };
      });
      const { child, ended } = start(at, model.url, go);
      const pid = (): number =>
        existsSync(join(at.work, 'pid')) ? Number(readFileSync(join(at.work, 'pid'), 'utf8')) : 0;
      await until(() => (what === 'request' ? model.requests.length === 2 : pid() > 0));
      await wait(50);
      const before = model.requests.length;
      const from = performance.now();
      child.kill('SIGINT');
      const to = await until(() => (what === 'request' ? model.gaveUpAt() !== null : !isAlive(pid())));
      took[what].push((what === 'request' ? (model.gaveUpAt() ?? to) : to) - from);
      await ended;
      after += model.requests.length - before;
      model.close();
    }
  const most = (times: readonly number[]): number => Math.max(...times);
  const ok = after === 0 && most(took.request) <= 100 && most(took.command) <= 100;
  return [
    `interrupt: request ended after at most ${most(took.request).toFixed(0)} ms, command after at most ` +
      `${most(took.command).toFixed(0)} ms, ${after} requests afterwards (${rounds} rounds each)`,
    ok,
  ];
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return false;
  }
}

/** What is wrong with the next request of a session, on every wire. */
function problems(events: readonly Event[]): readonly string[] {
  return Object.values(wires).flatMap((wire) => {
    const body = JSON.parse(
      wire.requestParts(project(events), { ...makers[0], toolChoice: 'auto', quirks: {} }).join(''),
    ) as Record<string, unknown>;
    return rules[wire.api]?.(body) ?? ['no rules'];
  });
}

/** Kills the program inside of an agent, resumes it, and has the agent go on. */
async function kills(folder: string): Promise<readonly [string, boolean]> {
  const rounds = 5;
  let good = 0;
  for (let round = 0; round < rounds; round++) {
    const at = place(folder, `kill-${round}`);
    let killed = false;
    let id = '';
    const model = await double((who, answers) => {
      if (who === 'agent' && killed) return { text: 'a.txt:1' };
      if (who === 'agent') return answers < 2 ? { calls: [['grep', { pattern: `word${answers}` }]] } : { never: true };
      if (answers === 0) return { calls: [ask()] };
      return id !== '' && answers === 1 ? { calls: [ask({ resume: id })] } : { text: 'done' };
    });
    const { child, ended } = start(at, model.url, go);
    await until(() => model.requests.length === 4);
    await wait(5 * round);
    child.kill('SIGKILL');
    const { lines } = await ended;
    killed = true;
    const session = String(lines[0]?.['session_id']);
    const one = await openStore(at);
    id = (await one.store.agentsOf(session))[0]?.id ?? '';
    await one.store.close();
    const again = await start(at, model.url, ['-r', session, ...go]).ended;
    const { store, records } = await openStore(at);
    const events = await store.load(session);
    const interrupted = JSON.stringify(events.find(({ kind }) => kind === 'tool_result')?.data ?? {});
    const faults = [events, await store.load(id)].flatMap(problems);
    const { breaks } = await records.verify(null);
    const cost = (await store.list(1))[0]?.costUsd ?? NaN;
    await store.close();
    model.close();
    const went = resultsOf(again.lines)[0];
    const ok =
      interrupted.includes('interrupted') &&
      interrupted.includes(id) &&
      went?.['output'] === 'a.txt:1' &&
      went['agent_session_id'] === id &&
      faults.length === 0 &&
      breaks.length === 0 &&
      Math.abs(cost - model.costUsd()) < 1e-9;
    if (ok) good++;
    else console.error({ interrupted, went, faults, breaks, cost, asked: model.costUsd() });
  }
  return [
    `kill -9 inside of an agent: ${good} of ${rounds} resumed, valid on ${Object.keys(wires).length} wires, cost whole`,
    good === rounds,
  ];
}

/** An agent that never ends by itself. */
async function limits(folder: string): Promise<readonly [string, boolean]> {
  const at = place(folder, 'limits');
  const model = await double((who, answers) => {
    if (who === 'person') return answers === 0 ? { calls: [ask()] } : { text: 'done' };
    return answers < 30 ? { calls: [['grep', { pattern: `word${answers}` }]] } : { text: 'as far as I came' };
  });
  const { lines } = await start(at, model.url, go).ended;
  const [result] = resultsOf(lines);
  model.close();
  const requests = model.requests.length - 2;
  const ok = requests === 31 && result?.['turns'] === 30 && result['status'] === 'limit_reached';
  return [`limit: ${requests} requests of an agent, status ${String(result?.['status'])}`, ok];
}

/** Four agents that read, each of which waits for its model. */
async function together(folder: string): Promise<readonly [string, boolean]> {
  const took: number[] = [];
  for (const name of ['alone', 'together']) {
    const at = place(folder, name);
    const model = await double((who, answers) => {
      if (who === 'agent') return { text: 'found', delayMs: 400 };
      return answers === 0 ? { calls: Array.from({ length: 4 }, () => ask()) } : { text: 'done' };
    });
    await start(at, model.url, go).ended;
    took.push((model.requests.at(-1) ?? 0) - (model.requests[0] ?? 0));
    model.close();
  }
  const [alone = 0, sideBySide = 0] = took;
  const ratio = alone / sideBySide;
  return [`four agents that read: ${ratio.toFixed(1)} x as fast as four that may write`, ratio > 1.5];
}

await measure(async (folder) => {
  const done: (readonly [string, boolean])[] = [];
  for (const check of [costs, interrupts, kills, limits, together]) done.push(await check(folder));
  return {
    line: done.map(([line, ok]) => `${ok ? 'ok' : 'BROKEN'}: ${line}`).join('\n'),
    ok: done.every(([, ok]) => ok),
  };
});
