// npm run t:first-answer -- [folder of peers]   from a fresh home to a first answer in a pseudo-terminal: keys (a paste
// is one) and screens that ask, up to the prompt that takes the question. The server answers the right key alone. Peers
// are counted from FOLDER/pi and FOLDER/opencode, installed with npm; what is not there is skipped.
import { spawn } from '@lydell/node-pty';
import xterm from '@xterm/headless';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

declare const AGENT_ROOT: string;

const rightKey = 'sk-or-v1-right-0123456789abcdef0123456789abcdef';
const paste = `\x1b[200~${rightKey}\x1b[201~`;
const enter = '\r';
const down = '\x1b[B';
const answer = 'A real answer.';
const longestWaitMs = 40_000;

/** What is on the screen before these keys are typed. `asks`: the screen asks for something to connect a model. */
interface Step {
  readonly shows: RegExp;
  readonly keys: readonly string[];
  readonly asks?: true;
}

interface Program {
  readonly name: string;
  /** Where it would be installed. */
  readonly folder: string;
  readonly command: readonly [program: string, ...args: readonly string[]];
  /** Settings that put the server in the place of OpenRouter, by their path below the home. */
  readonly files: (url: string) => Readonly<Record<string, unknown>>;
  readonly env: (url: string) => Readonly<Record<string, string>>;
  readonly steps: readonly Step[];
  /** The prompt that takes the first question. */
  readonly ready: RegExp;
}

const peers = process.argv[2] ?? '';
const letters = (word: string): readonly string[] => [...word];

const programs: readonly Program[] = [
  {
    name: 'agent',
    folder: AGENT_ROOT,
    command: [process.execPath, join(AGENT_ROOT, 'bin/agent.js')],
    files: () => ({}),
    env: (url) => ({ OPENROUTER_BASE_URL: url }),
    steps: [
      { shows: /Enter on the empty line connects one[^]*❯/, keys: [enter] },
      { shows: /Connect a model:/, keys: [enter], asks: true },
      { shows: /Key of OpenRouter:/, keys: [paste], asks: true },
      { shows: /\(47 characters\)/, keys: [enter] },
      { shows: /Model of OpenRouter:/, keys: [enter], asks: true },
      { shows: /Start with it from now on:/, keys: [enter], asks: true },
    ],
    ready: /Now using openrouter/,
  },
  {
    name: 'pi',
    folder: join(peers, 'pi/node_modules/@mariozechner/pi-coding-agent'),
    command: [join(peers, 'pi/node_modules/.bin/pi')],
    files: (url) => ({ '.pi/agent/models.json': { providers: { openrouter: { baseUrl: url } } } }),
    env: () => ({ PI_OFFLINE: '1' }),
    steps: [
      { shows: /\/login/, keys: letters('/login') },
      { shows: /→ login/, keys: [enter] },
      { shows: /API key/i, keys: [down, enter], asks: true },
      { shows: /Select provider|OpenAI/i, keys: letters('openr'), asks: true },
      { shows: /OpenRouter/, keys: [enter] },
      { shows: /Enter .*key/i, keys: [paste], asks: true },
      { shows: /0123456789abcdef/, keys: [enter] },
    ],
    ready: /Saved API key|saved/i,
  },
  {
    name: 'opencode',
    folder: join(peers, 'opencode/node_modules/opencode-ai'),
    command: [join(peers, 'opencode/node_modules/.bin/opencode')],
    files: (url) => ({ '.config/opencode/opencode.json': { provider: { openrouter: { options: { baseURL: url } } } } }),
    env: () => ({ OPENCODE_DISABLE_AUTOUPDATE: '1' }),
    steps: [
      { shows: /Ask anything/, keys: letters('/connect') },
      { shows: /Connect provider/i, keys: [enter] },
      { shows: /Search/, keys: letters('openr'), asks: true },
      { shows: /OpenRouter/, keys: [enter] },
      { shows: /API key/i, keys: [paste], asks: true },
      { shows: /0123456789abcdef/, keys: [enter] },
      { shows: /Favorite/, keys: letters('kimi'), asks: true },
      { shows: /Kimi/, keys: [enter] },
      { shows: /Select variant/i, keys: [enter], asks: true },
    ],
    ready: /Kimi[^]*Ask anything|Ask anything[^]*Kimi/,
  },
];

/** Answers whoever has the right key: a list of models, and a sentence. */
async function keyedServer(): Promise<{ readonly url: string; close(): void }> {
  const server = createServer((request, response) => {
    request.resume();
    const send = (status: number, type: string, body: string): void => {
      response.writeHead(status, { 'content-type': type }).end(body);
    };
    if (request.headers.authorization !== `Bearer ${rightKey}`)
      send(401, 'application/json', '{"error":{"message":"no"}}');
    else if (request.method === 'GET')
      send(200, 'application/json', '{"data":[{"id":"anthropic/claude-sonnet-5","context_length":1000000}]}');
    else
      send(
        200,
        'text/event-stream',
        `${chunk({ role: 'assistant', content: answer }, null)}${chunk({}, 'stop')}data: [DONE]\n\n`,
      );
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

function chunk(delta: object, finish: string | null): string {
  const choices = [{ index: 0, delta, finish_reason: finish }];
  return `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices })}\n\n`;
}

interface Counted {
  readonly keys: number;
  readonly screens: number;
}

async function count({ command: [file, ...args], files, env, steps, ready }: Program, url: string): Promise<Counted> {
  const home = mkdtempSync(join(tmpdir(), 'first-answer-'));
  for (const [path, value] of Object.entries(files(url))) {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), JSON.stringify(value));
  }
  const work = join(home, 'work');
  mkdirSync(work);
  const terminal = new xterm.Terminal({ cols: 100, rows: 30, allowProposedApi: true });
  const plain = { PATH: process.env['PATH'] ?? '', HOME: home, TERM: 'xterm-256color', LANG: 'C.UTF-8', ...env(url) };
  const pty = spawn(file, [...args], { name: 'xterm-256color', cols: 100, rows: 30, cwd: work, env: plain });
  pty.onData((bytes) => {
    terminal.write(bytes);
  });
  terminal.onData((reply) => {
    pty.write(reply);
  });
  const text = (): string => {
    const { active } = terminal.buffer;
    const rows = Array.from({ length: active.length }, (_, row) => active.getLine(row)?.translateToString(true) ?? '');
    return rows.join('\n').trimEnd();
  };
  const until = async (shows: RegExp): Promise<void> => {
    const endMs = performance.now() + longestWaitMs;
    while (!shows.test(text())) {
      if (performance.now() > endMs) throw new Error(`${String(shows)} never came. The screen:\n${text()}`);
      await pause(50);
    }
  };
  try {
    for (const { shows, keys } of steps) {
      await until(shows);
      for (const key of keys) {
        await pause(keyPauseMs);
        pty.write(key);
      }
    }
    await until(ready);
    await pause(keyPauseMs);
    pty.write('hello');
    await pause(keyPauseMs);
    pty.write(enter);
    await until(new RegExp(answer));
    const keys = steps.reduce((sum, step) => sum + step.keys.length, 0);
    return { keys, screens: steps.filter(({ asks }) => asks).length };
  } finally {
    pty.kill('SIGKILL');
    rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** A person who types fast, and time for a screen that opens. */
const keyPauseMs = 150;

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });
}

function versionOf(folder: string): string {
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { readonly version: string };
  return version;
}

const server = await keyedServer();
for (const program of programs) {
  if (!existsSync(program.command[0]) || !existsSync(program.folder)) {
    process.stdout.write(
      `${program.name}: skipped, it is not installed in ${peers === '' ? 'a folder given' : peers}\n`,
    );
    continue;
  }
  const name = `${program.name} ${versionOf(program.folder)}`;
  const counted = await count(program, server.url).catch((error: unknown) => String(error));
  if (typeof counted === 'string') {
    process.stdout.write(`${name}: no answer; ${counted}\n`);
    if (program.name === 'agent') process.exitCode = 1;
    continue;
  }
  const { keys, screens } = counted;
  process.stdout.write(`${name}: ${keys} keys, ${screens} screens that ask, then an answer
`);
}
server.close();
