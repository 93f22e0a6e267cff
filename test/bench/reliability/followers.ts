import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { followPage, type FollowedPage } from '../../e2e/pages.js';
import { measure, rounds } from './bench.js';

/** `npm run t:followers -- [calls]`: one turn of many calls by the built program, with 0, 1 and 10 followers, as
 * `agent watch` and as pages of one `agent serve`. Prints the CPU time of the owner and of each follower (without its
 * start), how long the turn takes, and what the followers lack or have twice. */
declare const AGENT_ROOT: string;

const program = join(AGENT_ROOT, 'bin/agent.js');
const mostShare = 0.25;
const mostTurns = 2;

interface Ran {
  readonly turnMs: number;
  readonly ownerS: number;
  /** Of each process that follows, without its start. */
  readonly followerS: readonly number[];
  readonly missing: number;
  readonly doubled: number;
}

/** The CPU time that a process has used, in seconds; with `field` 13 that of its children. Linux counts in 1/100 s. */
function cpuS(stat: string, field: 11 | 13 = 11): number {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[field]) + Number(fields[field + 1])) / 100;
}

const cpuOf = ({ pid }: ChildProcess): number => cpuS(readFileSync(`/proc/${pid}/stat`, 'latin1'));

class Place {
  readonly work: string;
  readonly env: Readonly<Record<string, string>>;
  readonly children: ChildProcess[] = [];

  constructor(folder: string, name: string) {
    this.work = join(folder, name);
    this.env = { PATH: process.env.PATH ?? '', HOME: this.work, AGENT_HOME: join(this.work, 'a') };
    mkdirSync(this.work);
  }

  /** Runs a turn. The shell outlives it and prints the CPU time of its children. */
  async turn(
    turns: readonly object[],
    args: readonly string[],
  ): Promise<{ readonly cpu: number; readonly ms: number }> {
    writeFileSync(join(this.work, 'script.json'), JSON.stringify({ turns }));
    const script = 'node "$0" "$@" >/dev/null; cat /proc/$$/stat >&2';
    const model = `offline/${join(this.work, 'script.json')}`;
    const start = performance.now();
    const argv = ['-c', script, program, '-p', '-m', model, '--max-tool-turns', '100000', ...args];
    const child = spawn('sh', argv, { cwd: this.work, env: this.env, stdio: ['ignore', 'ignore', 'pipe'] });
    let errors = '';
    child.stderr.setEncoding('utf8').on('data', (part: string) => {
      errors += part;
    });
    await new Promise((resolve) => child.on('close', resolve));
    return { cpu: cpuS(errors.trim().split('\n').at(-1) ?? '', 13), ms: performance.now() - start };
  }

  /** Starts a command that goes on. `until` resolves once its output satisfies a test. */
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
function counted(calls: number, timesOf: (text: string) => number) {
  const times = Array.from({ length: calls }, (_, at) => timesOf(`Text number ${at} is`));
  return { missing: times.filter((found) => found === 0).length, doubled: times.filter((found) => found > 1).length };
}

async function ran(folder: string, kind: 'watch' | 'page', followers: number, calls: number): Promise<Ran> {
  const place = new Place(folder, `${kind}${followers}`);
  writeFileSync(join(place.work, 'long.txt'), 'hello\n'.repeat(calls + 10));
  await place.turn([{ text: 'Hi.' }], ['hello']);
  const watches = kind === 'watch' ? Array.from({ length: followers }, () => place.start('watch')) : [];
  for (const watch of watches) await watch.until((text) => text.includes('Hi.'));
  const serve = kind === 'page' && followers > 0 ? place.start('serve') : null;
  const pages: FollowedPage[] = [];
  if (serve) {
    const address = new URL((await serve.until((text) => text.includes('\n'))).split('\n')[0] ?? '');
    const list = place.start('sessions', 'list', '--json');
    const listed = JSON.parse(await list.until((text) => text.trim().endsWith(']'))) as { readonly id: string }[];
    for (let page = 0; page < followers; page++) pages.push(await followPage(address, listed[0]?.id ?? ''));
  }
  const processes = [...watches.map(({ child }) => child), ...(serve ? [serve.child] : [])];
  const before = processes.map(cpuOf);
  const turns = Array.from({ length: calls }, (_, at) => ({
    text: `Text number ${at} is **here**.`,
    calls: [{ name: 'file_read', arguments: { path: 'long.txt', offset: at + 1, limit: 3 } }],
  }));
  // The script counts the answers of the session.
  const { cpu, ms } = await place.turn([{ text: 'Hi.' }, ...turns, { text: 'The end.' }], ['-c', 'go']);
  const found = [
    ...(await Promise.all(watches.map(({ until }) => until((text) => text.includes('The end.'))))).map((text) =>
      counted(calls, (part) => text.split(part).length - 1),
    ),
    ...(await Promise.all(
      pages.map(async (page) => {
        await page.until(({ entries }) => [...entries.values()].some((html) => html.includes('The end.')));
        return counted(calls, (part) => page.updates.filter(({ html }) => html.includes(part)).length);
      }),
    )),
  ];
  // All pages are served by one process.
  const shared = Math.max(1, pages.length);
  const followerS = processes.map((child, at) => (cpuOf(child) - (before[at] ?? 0)) / shared);
  for (const page of pages) page.close();
  for (const child of place.children) child.kill('SIGKILL');
  return {
    turnMs: ms,
    ownerS: cpu,
    followerS,
    missing: found.reduce((sum, { missing }) => sum + missing, 0),
    doubled: found.reduce((sum, { doubled }) => sum + doubled, 0),
  };
}

await measure(async (folder) => {
  const calls = rounds(500);
  const alone = await ran(folder, 'watch', 0, calls);
  const rows = [{ followers: 'none', ...alone }];
  for (const kind of ['watch', 'page'] as const)
    for (const count of [1, 10])
      rows.push({ followers: `${count} ${kind}`, ...(await ran(folder, kind, count, calls)) });
  const shareOf = ({ followerS, ownerS }: Ran): number => Math.max(0, ...followerS) / ownerS;
  console.log('followers   turn s   ×     owner CPU s   a follower CPU s   share   missing   doubled');
  for (const row of rows)
    console.log(
      [
        row.followers.padEnd(10),
        (row.turnMs / 1000).toFixed(1).padStart(7),
        (row.turnMs / alone.turnMs).toFixed(2).padStart(6),
        row.ownerS.toFixed(2).padStart(12),
        Math.max(0, ...row.followerS)
          .toFixed(2)
          .padStart(18),
        `${(shareOf(row) * 100).toFixed(0)} %`.padStart(9),
        String(row.missing).padStart(8),
        String(row.doubled).padStart(9),
      ].join(' '),
    );
  const most = Math.max(...rows.map(shareOf));
  const slowest = Math.max(...rows.map(({ turnMs }) => turnMs / alone.turnMs));
  const wrong = rows.reduce((sum, { missing, doubled }) => sum + missing + doubled, 0);
  return {
    line:
      `followers: ${calls} calls; a follower takes at most ${(most * 100).toFixed(0)} % of the owner's CPU, ` +
      `ten make a turn ${slowest.toFixed(2)} times as long; ${wrong} texts missing or doubled`,
    ok: most <= mostShare && slowest <= mostTurns && wrong === 0,
  };
});
