// npm run t:brought -- [rounds]      the cost of 300 skills, 100 commands, 100 agents, 10 servers (200 tools) and 20 hooks
// at the start
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { spawn } from '@lydell/node-pty';
import { triedServer } from '../../features/mcp/tried-server.js';
import { openModel } from './model.js';
import { median, type Place, runProgram } from './program.js';

declare const AGENT_ROOT: string;

const rounds = Number(process.argv[2] ?? 9);
/** A `hello` contains the first request. */
const most = { hello: 1.3, prompt: 1.15, request: 1.3 };
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'agent-brought-')));
const model = await openModel();

/** A home with nothing in it, or with everything that people bring along. */
async function home(name: string, brought: boolean): Promise<Place> {
  const place = { home: join(folder, name), work: join(folder, `${name}-work`), modelUrl: model.url };
  const settings = join(place.home, '.agent');
  for (const path of [place.home, place.work, settings]) mkdirSync(path, { recursive: true });
  if (!brought) return place;
  const servers = Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`server${index}`, server(index)]));
  writeFileSync(join(settings, 'mcp.json'), JSON.stringify({ mcpServers: servers }));
  for (const [path, text] of broughtFiles(settings)) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  for (const server of Object.keys(servers)) await runProgram(place, ['mcp', 'test', server]);
  return place;
}

/** The files of skills, commands, agents and hooks. */
function* broughtFiles(settings: string): Generator<readonly [path: string, text: string]> {
  for (let index = 0; index < 300; index++)
    yield [
      join(settings, 'skills', `skill-${index}`, 'SKILL.md'),
      `---\nname: skill-${index}\ndescription: Does the work of kind ${index}, for files of that kind: use it when one is named.\n---\n${'Step one.\n'.repeat(100)}`,
    ];
  for (let index = 0; index < 100; index++) {
    yield [join(settings, 'commands', `do-${index}.md`), `---\ndescription: Does ${index}\n---\nDo $1.\n`];
    yield [
      join(settings, 'agents', `agent-${index}.md`),
      `---\nname: agent-${index}\ndescription: Reviews part ${index}\ntools: Read, Grep\n---\nYou review.\n`,
    ];
  }
  const hooks = Array.from({ length: 20 }, (_, index) => ({
    matcher: `Tool${index}`,
    hooks: [{ type: 'command', command: `echo ${index}` }],
  }));
  yield [join(settings, 'hooks.json'), JSON.stringify({ hooks: { PostToolUse: hooks } })];
}

function server(index: number): object {
  const at = join(folder, `server${index}`);
  mkdirSync(at);
  const { entry, list } = triedServer(at);
  list(
    Array.from({ length: 20 }, (_, tool) => ({
      name: `do_${index}_${tool}`,
      description: `Does thing ${tool} of server ${index} and says what became of it.`,
      inputSchema: {
        type: 'object',
        properties: { path: { type: 'string', description: 'Where.' }, count: { type: 'integer', minimum: 1 } },
        required: ['path'],
      },
    })),
  );
  return entry;
}

/** Milliseconds from the start of the REPL until its prompt is on the terminal. */
function promptMs({ home: where, work, modelUrl }: Place): Promise<number> {
  const startedAt = performance.now();
  const terminal = spawn(process.execPath, [join(AGENT_ROOT, 'bin/agent.js')], {
    cols: 120,
    rows: 40,
    cwd: work,
    env: {
      PATH: process.env['PATH'],
      HOME: where,
      AGENT_HOME: join(where, '.agent'),
      LANG: 'C.UTF-8',
      TERM: 'xterm-256color',
      OPENAI_API_KEY: 'none',
      OPENAI_BASE_URL: modelUrl,
      AGENT_MODEL: 'openai/m',
    },
  });
  return new Promise((resolve) => {
    let seen = '';
    let tookMs = 0;
    terminal.onData((chunk) => {
      seen += chunk;
      if (tookMs > 0 || !seen.includes('❯')) return;
      tookMs = performance.now() - startedAt;
      terminal.kill('SIGTERM');
    });
    terminal.onExit(() => {
      resolve(tookMs);
    });
  });
}

interface Figures {
  readonly hello: number[];
  readonly request: number[];
  readonly prompt: number[];
  bytes: number;
}

async function measure(place: Place, into: Figures): Promise<void> {
  model.play(() => ({ text: 'Hello.' }));
  const { wallMs, startedAt } = await runProgram(place, ['-p', 'hi']);
  const [first] = model.seen;
  into.hello.push(wallMs);
  into.request.push((first?.arrivedAt ?? 0) - startedAt);
  into.prompt.push(await promptMs(place));
  into.bytes = first?.bytes ?? 0;
}

try {
  const places = [await home('plain', false), await home('brought', true)] as const;
  const none = (): Figures => ({ hello: [], request: [], prompt: [], bytes: 0 });
  const [plain, brought] = [none(), none()];
  for (let round = 0; round <= rounds; round++) {
    const warm = round === 0;
    await measure(places[0], warm ? none() : plain);
    await measure(places[1], warm ? none() : brought);
  }
  let held = true;
  for (const what of ['hello', 'request', 'prompt'] as const) {
    const [without, having] = [median(plain[what]), median(brought[what])];
    held &&= having <= most[what] * without;
    console.log(
      `${what.padEnd(8)} ${without.toFixed(1)} → ${having.toFixed(1)} ms, ${(having / without).toFixed(2)} (at most ${most[what]})`,
    );
  }
  console.log(
    `first request ${plain.bytes} → ${brought.bytes} B; medians of ${rounds}, interleaved, node ${process.version}`,
  );
  console.log(readFileSync('/proc/loadavg', 'utf8').trim());
  process.exitCode = held ? 0 : 1;
} finally {
  model.close();
  rmSync(folder, { recursive: true, force: true });
}
