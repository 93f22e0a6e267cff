import { type IPty, spawn as spawnTerminal } from '@lydell/node-pty';
import xterm from '@xterm/headless';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { connectOwner } from '../../../src/app/live/connect-owner.js';
import { followPage, type FollowedPage } from '../../e2e/pages.js';
import { ApiClient } from '../../frontends/viewers/api-client.js';
import { median } from '../perf/program.js';
import { measure } from './bench.js';

/** `npm run t:followers -- [calls] [followers] [rounds]`: one turn of many calls by the built program, alone and with 1 and 10
 * followers: `agent watch`, pages of one `agent serve`, clients of its HTTP API, and terminals (`agent attach`). Prints
 * the CPU time of the owner and of each follower (without its start), how long the turn takes, and what the followers lack
 * or have twice. The turn with terminals has an owner with a screen, so it is compared with such a turn alone. Figures are medians of the rounds. */
declare const AGENT_ROOT: string;

const program = process.env['AGENT_PROGRAM'] ?? join(AGENT_ROOT, 'bin/agent.js');
const [calls = 500, many = 10, rounds = 3] = process.argv.slice(2).map(Number);
const mostShare = 0.25;
const mostTurns = 2;
const kinds = ['watch', 'page', 'stream', 'terminal'] as const;
type Kind = (typeof kinds)[number];
const theEnd = 'The end.';
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

interface Turn {
  readonly cpuS: number;
  readonly ms: number;
}

interface Ran extends Turn {
  /** Of all processes that follow, without their start. */
  readonly followersS: number;
  readonly missing: number;
  readonly doubled: number;
}

/** What follows a session. */
interface Follower {
  /** Null: another follower has the same process. */
  readonly pid: number | null;
  /** Resolves to what it has lost and has twice, once it has the end of the turn. */
  counted(): Promise<Counted>;
  close(): void;
}

interface Counted {
  readonly missing: number;
  readonly doubled: number;
}

/** The CPU time that a process has used, in seconds; with `field` 13 that of its children. Linux counts in 1/100 s. */
function cpuS(stat: string, field: 11 | 13 = 11): number {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[field]) + Number(fields[field + 1])) / 100;
}

const cpuOf = (pid: number): number => cpuS(readFileSync(`/proc/${pid}/stat`, 'latin1'));

const scripted = [
  { text: 'Hi.' },
  ...Array.from({ length: calls }, (_, at) => ({
    text: `Text number ${at} is **here**.`,
    calls: [{ name: 'file_read', arguments: { path: 'long.txt', offset: at + 1, limit: 3 } }],
  })),
  { text: theEnd },
];

class Place {
  readonly work: string;
  readonly env: Readonly<Record<string, string>>;
  readonly children: ChildProcess[] = [];

  constructor(folder: string, name: string) {
    this.work = join(folder, name);
    this.env = { PATH: process.env.PATH ?? '', HOME: this.work, AGENT_HOME: join(this.work, 'a'), CI: 'false' };
    mkdirSync(this.work);
    writeFileSync(join(this.work, 'long.txt'), 'hello\n'.repeat(calls + 10));
    writeFileSync(join(this.work, 'script.json'), JSON.stringify({ turns: scripted }));
  }

  /** The options of a run. The script counts the answers of the session. */
  options(): readonly string[] {
    return ['-m', `offline/${join(this.work, 'script.json')}`, '--max-tool-turns', '100000'];
  }

  /** Runs a headless turn. The shell outlives it and prints the CPU time of its children. */
  async turn(...args: readonly string[]): Promise<Turn> {
    const script = 'node "$0" "$@" >/dev/null; cat /proc/$$/stat >&2';
    const start = performance.now();
    const argv = ['-c', script, program, '-p', ...this.options(), ...args];
    const child = spawn('sh', argv, { cwd: this.work, env: this.env, stdio: ['ignore', 'ignore', 'pipe'] });
    let errors = '';
    child.stderr.setEncoding('utf8').on('data', (part: string) => {
      errors += part;
    });
    await new Promise((resolve) => child.on('close', resolve));
    return { cpuS: cpuS(errors.trim().split('\n').at(-1) ?? '', 13), ms: performance.now() - start };
  }

  /** Runs a turn in a session that runs already. */
  async send(id: string): Promise<Turn> {
    let end = (): void => undefined;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const owner = await connectOwner({ data: join(this.work, 'a') }, id, {
      client: 'api',
      onMessage: (message) => {
        if (message.type === 'busy' && !message.busy) end();
      },
    });
    if (owner === null) throw new Error('no process runs the session');
    const { pid } = owner.state.facts;
    const [before, start] = [cpuOf(pid), performance.now()];
    await owner.request({ type: 'message', text: 'go', source: 'send', when: 'after' });
    await ended;
    const turn = { cpuS: cpuOf(pid) - before, ms: performance.now() - start };
    owner.close();
    return turn;
  }

  /** Runs a command that prints one answer and ends. */
  async ask(...args: readonly string[]): Promise<string> {
    const child = spawn(process.execPath, [program, ...args], { cwd: this.work, env: this.env });
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    await new Promise((resolve) => child.on('close', resolve));
    return text;
  }

  async sessionId(): Promise<string> {
    const [row] = JSON.parse(await this.ask('sessions', 'list', '--json')) as readonly { readonly id: string }[];
    return row?.id ?? '';
  }

  /** Starts a command that does not end. `until` resolves once its output satisfies a test. */
  start(...args: readonly string[]): Output {
    const child = spawn(process.execPath, [program, ...args], { cwd: this.work, env: this.env });
    this.children.push(child);
    let text = '';
    let look = (): void => undefined;
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      text += part;
      look();
    });
    const until = (test: (text: string) => boolean): Promise<string> =>
      new Promise((resolve) => {
        look = () => {
          if (test(text)) resolve(text);
        };
        look();
      });
    return { child, until };
  }
}

interface Output {
  readonly child: ChildProcess;
  until(test: (text: string) => boolean): Promise<string>;
}

/** Counts the texts that are not there, and those that are there more than once. */
function counted(timesOf: (text: string) => number): Counted {
  const times = Array.from({ length: calls }, (_, at) => timesOf(`Text number ${at} is`));
  return { missing: times.filter((found) => found === 0).length, doubled: times.filter((found) => found > 1).length };
}

const timesIn =
  (text: string): ((part: string) => number) =>
  (part) =>
    text.split(part).length - 1;

async function openWatches(place: Place, count: number): Promise<readonly Follower[]> {
  const watches = Array.from({ length: count }, () => place.start('watch'));
  for (const watch of watches) await watch.until((text) => text.includes('Hi.'));
  return watches.map(({ child, until }) => ({
    pid: child.pid ?? 0,
    counted: async () => counted(timesIn(await until((text) => text.includes(theEnd)))),
    close: () => undefined,
  }));
}

async function openPages(place: Place, count: number): Promise<readonly Follower[]> {
  const serve = place.start('serve');
  const address = new URL((await serve.until((text) => text.includes('\n'))).split('\n')[0] ?? '');
  const id = await place.sessionId();
  const pages: FollowedPage[] = [];
  while (pages.length < count) pages.push(await followPage(address, id));
  return pages.map((page, at) => ({
    pid: at === 0 ? (serve.child.pid ?? 0) : null,
    counted: async () => {
      await page.until(({ entries }) => [...entries.values()].some((html) => html.includes(theEnd)));
      return counted((part) => page.updates.filter(({ html }) => html.includes(part)).length);
    },
    close: () => {
      page.close();
    },
  }));
}

async function openStreams(place: Place, count: number): Promise<readonly Follower[]> {
  const serve = place.start('serve', '--json');
  const printed = JSON.parse(await serve.until((text) => text.includes('\n'))) as { url: string; token: string };
  const api = new ApiClient(printed.url, printed.token);
  const id = await place.sessionId();
  const streams = Array.from({ length: count }, () => api.stream(`/api/sessions/${id}/events?live=1`));
  const contents = (stream: (typeof streams)[number]): readonly string[] =>
    stream.blocks.flatMap(({ data }) => {
      const { kind, content } = data as { readonly kind?: string; readonly content?: string | null };
      return kind === 'assistant' && typeof content === 'string' ? [content] : [];
    });
  await Promise.all(streams.map((stream) => stream.until(({ ids }) => ids.length > 0)));
  return streams.map((stream, at) => ({
    pid: at === 0 ? (serve.child.pid ?? 0) : null,
    counted: async () => {
      await stream.until(() => contents(stream).includes(theEnd));
      return counted(timesIn(contents(stream).join('\n')));
    },
    close: () => {
      stream.kill();
    },
  }));
}

/** Of the terminals one is emulated, and counted. The others only answer what a terminal is asked. */
async function openTerminals(place: Place, count: number, id: string): Promise<readonly Follower[]> {
  const opened = Array.from({ length: count }, () =>
    spawnTerminal(process.execPath, [program, 'attach', id], {
      name: 'xterm-256color',
      cols: 100,
      rows: 30,
      cwd: place.work,
      env: { ...place.env, TERM: 'xterm-256color', LANG: 'C.UTF-8' },
    }),
  );
  const [first, ...others] = opened;
  if (!first) return [];
  const screen = emulated(first);
  await Promise.all([screen.until('Hi.'), ...others.map(answering)]);
  return opened.map((pty, at) => ({
    pid: pty.pid,
    counted: async () => (at === 0 ? counted(timesIn(await screen.until(theEnd))) : { missing: 0, doubled: 0 }),
    close: () => {
      pty.kill('SIGKILL');
    },
  }));
}

/** Answers that the cursor is in the first row, and that the terminal is well. Resolves with the first frame. */
async function answering(pty: IPty): Promise<void> {
  await new Promise<void>((resolve) => {
    pty.onData((chunk) => {
      if (chunk.includes('\x1b[6n')) pty.write('\x1b[1;1R');
      if (chunk.includes('\x1b[5n')) pty.write('\x1b[0n');
      resolve();
    });
  });
}

function emulated(pty: IPty) {
  const terminal = new xterm.Terminal({ cols: 100, rows: 30, scrollback: 100_000, allowProposedApi: true });
  pty.onData((chunk) => {
    terminal.write(chunk);
  });
  terminal.onData((reply) => {
    pty.write(reply);
  });
  const text = (): string => {
    const { active } = terminal.buffer;
    const lines = Array.from({ length: active.length }, (_, row) => active.getLine(row)?.translateToString(true) ?? '');
    return lines.join('\n');
  };
  /** Resolves to all that it has shown, once that has a part. */
  const until = async (part: string): Promise<string> => {
    while (!text().includes(part)) await wait(200);
    return text();
  };
  return { until };
}

/** Resolves once processes use no CPU time. */
async function settled(pids: readonly number[]): Promise<void> {
  for (let before = -1, now = 0; now !== before;) {
    await wait(500);
    [before, now] = [now, pids.reduce((sum, pid) => sum + cpuOf(pid), 0)];
  }
}

async function ran(folder: string, kind: Kind, count: number, round: number): Promise<Ran> {
  const place = new Place(folder, `${kind}${count}-${round}`);
  const isDetached = kind === 'terminal';
  if (isDetached) await place.ask('--bg', ...place.options(), 'hello');
  else await place.turn('hello');
  const id = await place.sessionId();
  const open = { watch: openWatches, page: openPages, stream: openStreams, terminal: openTerminals };
  const followers = count === 0 ? [] : await open[kind](place, count, id);
  const pids = followers.flatMap(({ pid }) => pid ?? []);
  await settled(pids);
  const before = pids.map(cpuOf);
  const turn = await (isDetached ? place.send(id) : place.turn('-c', 'go'));
  const found = await Promise.all(followers.map((follower) => follower.counted()));
  const followersS = sum(pids.map((pid, at) => cpuOf(pid) - (before[at] ?? 0)));
  for (const follower of followers) follower.close();
  for (const child of place.children) child.kill('SIGKILL');
  if (isDetached) await place.ask('stop', id);
  return {
    ...turn,
    followersS,
    missing: sum(found.map(({ missing }) => missing)),
    doubled: sum(found.map(({ doubled }) => doubled)),
  };
}

interface Row extends Ran {
  readonly kind: Kind;
  readonly count: number;
  readonly alone: Turn;
  /** What the owner does for each of many followers. */
  readonly ownerEachS: number;
}

/** The CPU time of a follower against that of the owner of a turn alone. What the owner does for it counts as its own. */
const shareOf = ({ followersS, count, ownerEachS, alone }: Row): number =>
  count === 0 ? 0 : (followersS / count + ownerEachS) / alone.cpuS;

const turnsOf = ({ ms, alone }: Row): number => ms / alone.ms;

function print(rows: readonly Row[]): void {
  console.log('followers     turn s   ×     owner CPU s   followers CPU s   share   missing   doubled');
  for (const row of rows)
    console.log(
      [
        `${row.count} ${row.kind}`.padEnd(12),
        (row.ms / 1000).toFixed(1).padStart(7),
        turnsOf(row).toFixed(2).padStart(6),
        row.cpuS.toFixed(2).padStart(12),
        row.followersS.toFixed(2).padStart(17),
        `${(shareOf(row) * 100).toFixed(0)} %`.padStart(9),
        String(row.missing).padStart(8),
        String(row.doubled).padStart(9),
      ].join(' '),
    );
}

function medianOf(runs: readonly Ran[]): Ran {
  const middle = (figure: (run: Ran) => number): number => median(runs.map(figure));
  return {
    cpuS: middle((run) => run.cpuS),
    ms: middle(({ ms }) => ms),
    followersS: middle(({ followersS }) => followersS),
    missing: sum(runs.map(({ missing }) => missing)),
    doubled: sum(runs.map(({ doubled }) => doubled)),
  };
}

await measure(async (folder) => {
  const cases = kinds.flatMap((kind) => [0, 1, many].map((count) => ({ kind, count, runs: [] as Ran[] })));
  for (let round = 0; round < rounds; round++)
    for (const { kind, count, runs } of cases) runs.push(await ran(folder, kind, count, round));
  const rows = cases.map(({ kind, count, runs }): Row => {
    const ofKind = (wanted: number): Ran =>
      medianOf(cases.find((other) => other.kind === kind && other.count === wanted)?.runs ?? []);
    const alone = ofKind(0);
    return { kind, count, ...medianOf(runs), alone, ownerEachS: Math.max(0, ofKind(many).cpuS - alone.cpuS) / many };
  });
  print(rows);
  const most = Math.max(...rows.map(shareOf));
  const slowest = Math.max(...rows.map(turnsOf));
  const wrong = sum(rows.map(({ missing, doubled }) => missing + doubled));
  return {
    line:
      `followers: ${calls} calls, ${availableParallelism()} cores; a follower takes at most ${(most * 100).toFixed(0)} % of ` +
      `the owner's CPU, ${many} make a turn at most ${slowest.toFixed(2)} times as long; ${wrong} texts missing or doubled`,
    ok: most <= mostShare && slowest <= mostTurns && wrong === 0,
  };
});
