import { statSync } from 'node:fs';
import { measure } from './bench.js';
import {
  askDatabase,
  countEvents,
  type EndedRun,
  formatCodes,
  type Home,
  isChainWhole,
  newHome,
  runProgram,
} from './program-runs.js';

/** `npm run t:writers -- [seconds] [writers]`: so many `agent -p` at any time on one database, for so long, with search,
 * stats, audit and sql beside them, one after the other. Each run writes the same events. Prints what is lost or doubled,
 * and ends with 1 where something is, or where a command failed. */
const [seconds = 300, writers = 20] = process.argv.slice(2).map(Number);
const calls = 5;
const readers = [
  ['search', 'Text'],
  ['stats'],
  ['audit', '--limit', '20'],
  ['sql', 'SELECT count(*) FROM events'],
  ['sessions', 'list'],
] as const;

async function write(home: Home, until: number, runs: EndedRun[]): Promise<void> {
  while (performance.now() < until) runs.push(await runProgram(home, '-p', 'go'));
}

interface Read extends EndedRun {
  readonly name: string;
}

async function read(home: Home, until: number): Promise<readonly Read[]> {
  const reads: Read[] = [];
  for (let at = 0; performance.now() < until; at++) {
    const args = readers[at % readers.length] ?? readers[0];
    reads.push({ name: args[0], ...(await runProgram(home, ...args)) });
  }
  return reads;
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

await measure(async (folder) => {
  const turns = Array.from({ length: calls }, (_, at) => ({
    text: `Text ${at}.`,
    calls: [{ name: 'bash', arguments: { command: `echo ${at}` } }],
  }));
  const home = newHome(folder, 'home', [...turns, { text: 'The end.' }]);
  await runProgram(home, '-p', 'go');
  const each = countEvents(home);
  const until = performance.now() + seconds * 1000;
  const runs: EndedRun[] = [];
  let mostWalBytes = 0;
  const looking = setInterval(() => {
    mostWalBytes = Math.max(mostWalBytes, sizeOf(`${home.database}-wal`));
  }, 500);
  const [reads] = await Promise.all([
    read(home, until),
    ...Array.from({ length: writers }, () => write(home, until, runs)),
  ]);
  clearInterval(looking);
  const sessions = askDatabase(home, 'SELECT count(*), max(seq) FROM events GROUP BY session_id').map(([n, last]) => ({
    n: Number(n),
    last: Number(last),
  }));
  const expected = runs.length + 1;
  const lost = (expected - sessions.length) * each + sessions.reduce((sum, { n }) => sum + Math.max(0, each - n), 0);
  const doubled = sessions.reduce((sum, { n, last }) => sum + Math.max(0, n - each) + Math.max(0, n - last), 0);
  const whole = await isChainWhole(home);
  const failedReads = reads.filter(({ code }) => code !== 0);
  for (const { name, errors } of failedReads) console.log(`${name} failed: ${errors.trim().split('\n')[0] ?? ''}`);
  const warned = runs.filter(({ errors }) => errors !== '');
  for (const { errors } of warned.slice(0, 3)) console.log(errors.trim());
  const slowest = Math.max(0, ...reads.map(({ ms }) => ms));
  return {
    line:
      `writers: ${writers} for ${seconds} s: ${runs.length} runs (exit ${formatCodes(runs)}), ` +
      `${sessions.reduce((sum, { n }) => sum + n, 0)} events, ${lost} lost, ${doubled} doubled, ` +
      `chains ${whole ? 'whole' : 'BROKEN'}, ${warned.length} runs with a warning, WAL at most ` +
      `${(mostWalBytes / 1e6).toFixed(1)} MB; ${reads.length} reads, ${failedReads.length} failed, ` +
      `the slowest ${(slowest / 1000).toFixed(1)} s`,
    ok: lost === 0 && doubled === 0 && whole && failedReads.length === 0 && runs.every(({ code }) => code === 0),
  };
});
