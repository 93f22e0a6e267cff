import { startServer } from '../../features/team-store/start-server.js';
import { measure } from '../reliability/bench.js';
import {
  type EndedRun,
  formatCodes,
  type Home,
  isChainWhole,
  newHome,
  runProgram,
} from '../reliability/program-runs.js';

/** `npm run t:machines -- [seconds]`: two machines, which are two homes, with one PostgreSQL of a team continue one session
 * at once, for so long. A machine that cannot write it continues in a copy. Then both send what is left. Prints how many
 * prompts of runs that ended well the server lacks, and ends with 1 where it lacks one, has one twice in a session, or has
 * a broken chain. */
const [seconds = 600] = process.argv.slice(2).map(Number);

interface Sent extends EndedRun {
  readonly prompt: string;
}

async function talk(home: Home, name: string, session: string, until: number): Promise<readonly Sent[]> {
  const sent: Sent[] = [];
  while (performance.now() < until) {
    const prompt = `prompt ${name} ${sent.length}`;
    sent.push({ prompt, ...(await runProgram(home, '-p', '-r', session, prompt)) });
  }
  return sent;
}

const server = await startServer({ durable: true });
try {
  await measure(async (folder) => {
    const database = await server.database();
    const turns = [{ calls: [{ name: 'bash', arguments: { command: 'echo 1' } }] }, { text: 'Done.' }];
    const settings = { store: { url: server.url(database, 'alice') } };
    const names = ['one', 'two'];
    const homes = names.map((name) => newHome(folder, name, turns, settings));
    const [first] = homes;
    if (!first) throw new Error('there is no home');
    await runProgram(first, '-p', 'the beginning');
    await runProgram(first, 'db', 'push');
    const { output } = await runProgram(first, 'sessions', 'list', '--json');
    const session = (JSON.parse(output) as readonly { readonly id: string }[])[0]?.id ?? '';
    const until = performance.now() + seconds * 1000;
    const sent = (await Promise.all(homes.map((home, at) => talk(home, names[at] ?? '', session, until)))).flat();
    const syncs: EndedRun[] = [];
    // What the first one gets of the second one comes with the second time.
    for (const home of [...homes, ...homes]) syncs.push(await runProgram(home, 'db', 'sync'));
    const rows = await server.sql<{ readonly content: string; readonly most: number }>(
      database,
      `SELECT content, max(n)::int AS most FROM (
         SELECT content, session_id, count(*) AS n FROM agent.events WHERE kind = 'user' GROUP BY content, session_id
       ) AS counted GROUP BY content`,
    );
    const times = new Map(rows.map(({ content, most }) => [content, most]));
    const done = sent.filter(({ code }) => code === 0);
    const lost = done.filter(({ prompt }) => !times.has(prompt));
    const doubled = sent.filter(({ prompt }) => (times.get(prompt) ?? 0) > 1);
    const [count] = await server.sql<{ readonly sessions: number; readonly events: number }>(
      database,
      'SELECT count(DISTINCT session_id)::int AS sessions, count(*)::int AS events FROM agent.events',
    );
    const chains = [];
    for (const home of homes) chains.push(await isChainWhole(home));
    const remote = { ...first, env: { ...first.env, AGENT_STORE_MODE: 'remote' } };
    chains.push(await isChainWhole(remote));
    for (const line of new Set(sent.map(({ errors }) => shape(errors.split('\n')[0] ?? ''))))
      if (line) console.log(line);
    const whole = chains.every(Boolean);
    return {
      line:
        `machines: 2 on one session for ${seconds} s: ${sent.length} prompts (exit ${formatCodes(sent)}), ` +
        `${count?.events ?? 0} events of ${count?.sessions ?? 0} sessions on the server, ${lost.length} prompts lost, ` +
        `${doubled.length} doubled, chains ${whole ? 'whole' : 'BROKEN'}; sync exit ${formatCodes(syncs)}`,
      ok: lost.length === 0 && doubled.length === 0 && whole && syncs.every(({ code }) => code === 0),
    };
  });
} finally {
  await server.stop();
}

/** Returns a line without the ids in it. */
function shape(line: string): string {
  return line.replaceAll(/\b[0-9A-Z]{26}\b/g, '<id>');
}
