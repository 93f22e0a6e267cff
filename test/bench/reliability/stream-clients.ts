import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { ApiClient, type ApiStream } from '../../frontends/viewers/api-client.js';
import { measure, rounds } from './bench.js';

/** `npm run t:streams -- [kills]`: a client of the HTTP API follows a session while it runs, and is killed 100 times, at
 * any moment; each time it comes again with the number of the last event that it has. Prints what its list of events
 * lacks or has twice, compared with the record. Then the CPU time of `agent serve` with 1 and with 10 clients of the same
 * turn. */
declare const AGENT_ROOT: string;

const program = join(AGENT_ROOT, 'bin/agent.js');
const calls = 400;
/** Ten clients may take so many times the CPU time of one. */
const mostTimes = 3;

interface Served {
  readonly child: ChildProcess;
  readonly api: ApiClient;
}

class Place {
  readonly work: string;
  readonly env: Readonly<Record<string, string>>;

  constructor(folder: string, name: string) {
    this.work = join(folder, name);
    this.env = { PATH: process.env.PATH ?? '', HOME: this.work, AGENT_HOME: join(this.work, 'a') };
    mkdirSync(this.work);
    writeFileSync(join(this.work, 'long.txt'), 'hello\n'.repeat(calls + 10));
    const turns = Array.from({ length: calls }, (_, at) => ({
      text: `Text number ${at}.`,
      calls: [{ name: 'file_read', arguments: { path: 'long.txt', offset: at + 1, limit: 3 } }],
    }));
    writeFileSync(
      join(this.work, 'script.json'),
      JSON.stringify({ turns: [{ text: 'Hi.' }, ...turns, { text: 'End.' }] }),
    );
  }

  /** Runs a turn to its end. */
  async turn(...args: readonly string[]): Promise<void> {
    const model = `offline/${join(this.work, 'script.json')}`;
    const argv = [program, '-p', '-m', model, '--max-tool-turns', '100000', ...args];
    const child = spawn(process.execPath, argv, { cwd: this.work, env: this.env, stdio: 'ignore' });
    await new Promise((resolve) => child.on('close', resolve));
  }

  async serve(): Promise<Served> {
    const child = spawn(process.execPath, [program, 'serve', '--json'], { cwd: this.work, env: this.env });
    const printed = await new Promise<string>((resolve) => {
      child.stdout.once('data', (chunk: Buffer) => {
        resolve(chunk.toString());
      });
    });
    const { url, token } = JSON.parse(printed) as { readonly url: string; readonly token: string };
    return { child, api: new ApiClient(url, token) };
  }
}

async function sessionOf(api: ApiClient): Promise<string> {
  const [row] = (await api.call('GET', '/api/sessions')).value as readonly { readonly session_id: string }[];
  return row?.session_id ?? '';
}

async function recorded(api: ApiClient, id: string): Promise<readonly number[]> {
  const all: number[] = [];
  for (;;) {
    const { value } = await api.call('GET', `/api/sessions/${id}/events?limit=1000&after=${all.at(-1) ?? 0}`);
    const page = value as readonly { readonly seq: number }[];
    if (page.length === 0) return all;
    for (const { seq } of page) all.push(seq);
  }
}

function isEnd({ blocks }: ApiStream): boolean {
  return blocks.some(({ data }) => (data as { readonly content?: string | null }).content === 'End.');
}

/** A client that is killed `kills` times, after a time of 0 to 150 ms each. */
async function killed(folder: string, kills: number) {
  const place = new Place(folder, 'killed');
  await place.turn('hello');
  const { child, api } = await place.serve();
  const id = await sessionOf(api);
  const turn = place.turn('-c', 'go');
  const got: number[] = [];
  const follow = (): ApiStream =>
    api.stream(`/api/sessions/${id}/events?after=0`, got.length === 0 ? {} : { 'last-event-id': String(got.at(-1)) });
  for (let kill = 0; kill < kills; kill++) {
    const stream = follow();
    await wait((kill * 37) % 151);
    stream.kill();
    got.push(...stream.ids);
  }
  const duringTurn = got.length;
  const last = follow();
  await last.until(isEnd);
  got.push(...last.ids);
  last.kill();
  await turn;
  const all = await recorded(api, id);
  child.kill('SIGKILL');
  const times = new Map<number, number>();
  for (const seq of got) times.set(seq, (times.get(seq) ?? 0) + 1);
  return {
    events: all.length,
    duringTurn,
    missing: all.filter((seq) => !times.has(seq)).length,
    doubled: [...times.values()].filter((count) => count > 1).length,
    isOrdered: got.every((seq, index) => seq > (got[index - 1] ?? 0)),
  };
}

/** The CPU time of a server with so many clients during a turn, in seconds. */
async function cpuWith(folder: string, clients: number): Promise<number> {
  const place = new Place(folder, `clients${clients}`);
  await place.turn('hello');
  const { child, api } = await place.serve();
  const id = await sessionOf(api);
  const streams = Array.from({ length: clients }, () => api.stream(`/api/sessions/${id}/events?live=1`));
  await Promise.all(streams.map((stream) => stream.until(({ ids }) => ids.length > 0)));
  const before = cpuOf(child);
  await place.turn('-c', 'go');
  await Promise.all(streams.map((stream) => stream.until(isEnd)));
  const used = cpuOf(child) - before;
  for (const stream of streams) stream.kill();
  child.kill('SIGKILL');
  return used;
}

/** Linux counts in 1/100 s. */
function cpuOf({ pid }: ChildProcess): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

await measure(async (folder) => {
  const kills = rounds(100);
  const { events, duringTurn, missing, doubled, isOrdered } = await killed(folder, kills);
  console.log(`killed ${kills} times: ${duringTurn} of ${events} events before the last connection`);
  const one = await cpuWith(folder, 1);
  const ten = await cpuWith(folder, 10);
  console.log(
    `CPU of the server during a turn of ${calls} calls: ${one.toFixed(2)} s with 1 client, ${ten.toFixed(2)} s with 10`,
  );
  return {
    line:
      `streams: killed ${kills} times, ${missing} of ${events} events missing, ${doubled} twice; ` +
      `ten clients take ${(ten / one).toFixed(2)} times the CPU time of one`,
    ok: missing === 0 && doubled === 0 && isOrdered && ten / one <= mostTimes,
  };
});
