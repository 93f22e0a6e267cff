// npm run t:telemetry -- [rounds]      what a collector costs: none, one that answers, one that is gone, one that hangs
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openModel } from './model.js';
import { median, type Place, runProgram } from './program.js';

const rounds = Number(process.argv[2] ?? 9);
const turns = 20;
// A file of its own for each turn: equal calls with equal results would end the turn.
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'agent-telemetry-')));
const model = await openModel();
const servers: ReturnType<typeof createServer>[] = [];

/** A collector that takes requests, and answers them or not. */
async function collector(answers: boolean): Promise<string> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => answers && response.end('{}'));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function home(name: string, endpoint: string | null): Place {
  const place = { home: join(folder, name), work: join(folder, `${name}-work`), modelUrl: model.url };
  for (const path of [join(place.home, '.agent'), place.work]) mkdirSync(path, { recursive: true });
  for (let turn = 0; turn < turns; turn++)
    writeFileSync(join(place.work, `read-${turn}.txt`), `line ${turn} to read\n`.repeat(20));
  const settings = endpoint === null ? {} : { telemetry: { otlp_endpoint: endpoint } };
  writeFileSync(join(place.home, '.agent', 'config.json'), JSON.stringify(settings));
  return place;
}

interface Figures {
  readonly hello: number[];
  readonly request: number[];
  readonly turn: number[];
  readonly ending: number[];
  bytes: number;
}

async function measure(place: Place, into: Figures): Promise<void> {
  model.play(() => ({ text: 'Hello.' }));
  const hello = await runProgram(place, ['-p', 'hi']);
  const [first] = model.seen;
  into.hello.push(hello.wallMs);
  into.request.push((first?.arrivedAt ?? 0) - hello.startedAt);
  into.ending.push(hello.startedAt + hello.wallMs - (first?.answeredAt ?? 0));
  into.bytes = first?.bytes ?? 0;
  model.play((answered) =>
    answered < turns ? { tool: 'file_read', args: { path: `read-${answered}.txt` } } : { text: 'Done.' },
  );
  await runProgram(place, ['-p', 'go']);
  const times = model.seen.slice(1).map(({ arrivedAt }, index) => arrivedAt - (model.seen[index]?.answeredAt ?? 0));
  into.turn.push(median(times));
}

try {
  const places = {
    off: home('off', null),
    answers: home('answers', await collector(true)),
    gone: home('gone', 'http://127.0.0.1:9'),
    hangs: home('hangs', await collector(false)),
  };
  const none = (): Figures => ({ hello: [], request: [], turn: [], ending: [], bytes: 0 });
  const all = Object.entries(places).map(([name, place]) => ({ name, place, figures: none() }));
  for (let round = 0; round <= rounds; round++)
    for (const { place, figures } of all) await measure(place, round === 0 ? none() : figures);
  const base = all[0]?.figures ?? none();
  console.log('| collector | hello | to the request | a turn | answer to end | first request |');
  console.log('| --- | --: | --: | --: | --: | --: |');
  for (const { name, figures } of all) {
    const cells = (['hello', 'request', 'turn', 'ending'] as const).map((what) => {
      const ms = median(figures[what]);
      return `${ms.toFixed(ms < 10 ? 2 : 0)} ms, ${(ms / median(base[what])).toFixed(2)}`;
    });
    console.log(`| ${[name, ...cells, `${figures.bytes} B`].join(' | ')} |`);
  }
  console.log(`medians of ${rounds}, interleaved, node ${process.version}; ${readFileSync('/proc/loadavg', 'utf8')}`);
} finally {
  model.close();
  for (const server of servers) server.closeAllConnections();
  for (const server of servers) server.close();
  rmSync(folder, { recursive: true, force: true });
}
