import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { startServer } from '../../features/team-store/start-server.js';
import { measure } from '../reliability/bench.js';
import { countEvents, formatCodes, newHome, runProgram } from '../reliability/program-runs.js';

/** `npm run t:full -- [runs] [seconds] [busy]`: so many headless runs at once with the PostgreSQL of a team, on a machine
 * that is busy with other processes (20 for each core). Prints how many of their events are on the server when the last
 * run ends, and after so many seconds at most. Ends with 1 where some are missing by then. */
const [runs = 20, longestS = 60, busy = 20 * availableParallelism()] = process.argv.slice(2).map(Number);
const calls = 10;

const server = await startServer({ durable: true });
const spinning = Array.from({ length: busy }, () => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }));
try {
  await measure(async (folder) => {
    const database = await server.database();
    const turns = Array.from({ length: calls }, (_, index) => ({
      text: `Text ${index}.`,
      calls: [{ name: 'bash', arguments: { command: `echo ${index}` } }],
    }));
    const settings = { store: { url: server.url(database, 'alice') } };
    const home = newHome(folder, 'home', [...turns, { text: 'The end.' }], settings);
    const count = async (sql: string): Promise<number> =>
      (await server.sql<{ readonly n: number }>(database, sql))[0]?.n ?? 0;
    const sent = (): Promise<number> => count('SELECT count(*)::int AS n FROM agent.events');
    const begun = performance.now();
    const ended = await Promise.all(Array.from({ length: runs }, () => runProgram(home, '-p', 'go')));
    const endedAt = performance.now();
    const written = countEvents(home);
    const atEnd = await sent();
    let later = atEnd;
    while (later < written && performance.now() - endedAt < longestS * 1000) {
      await wait(500);
      later = await sent();
    }
    const laterS = (performance.now() - endedAt) / 1000;
    const doubled = await count(
      'SELECT count(*)::int AS n FROM (SELECT 1 FROM agent.events GROUP BY session_id, seq HAVING count(*) > 1) AS d',
    );
    const share = (part: number): string => `${((100 * part) / written).toFixed(0)} %`;
    return {
      line:
        `full machine: ${runs} runs beside ${busy} busy processes in ${((endedAt - begun) / 1000).toFixed(0)} s ` +
        `(exit ${formatCodes(ended)}); ${atEnd} of ${written} events (${share(atEnd)}) on the server at the end, ` +
        `${later} (${share(later)}) after ${laterS.toFixed(1)} s, ${doubled} doubled`,
      ok: ended.every(({ code }) => code === 0) && later === written && doubled === 0,
    };
  });
} finally {
  for (const child of spinning) child.kill('SIGKILL');
  await server.stop();
}
