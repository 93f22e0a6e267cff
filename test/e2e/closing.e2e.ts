import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, binary, place, script, type Place } from './program.js';
import { openScreen } from './terminal.js';

interface Process {
  readonly id: string;
  readonly line: string;
  readonly environment: string;
  readonly folder: string;
}

/** All live processes that we may look into, zombies left out. */
function processes(): readonly Process[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((id) => {
      try {
        const read = (file: string): string => readFileSync(`/proc/${id}/${file}`, 'latin1').replaceAll('\0', ' ');
        return [{ id, line: read('cmdline'), environment: read('environ'), folder: readlinkSync(`/proc/${id}/cwd`) }];
      } catch {
        return []; // ended meanwhile
      }
    });
}

/** Whatever was started with this place's home or works in it: our program, its tools, and what these left behind. */
function alive(at: Place): readonly Process[] {
  return processes().filter(({ environment, folder }) => environment.includes(at.home) || folder.startsWith(at.work));
}

/** By these the program's watchdog is found too, which has neither home nor folder of ours. */
function runsOf(at: Place): readonly string[] {
  return [...new Set(alive(at).flatMap(({ environment }) => /\b_AGENT_RUN=(\S+)/.exec(environment)?.[1] ?? []))];
}

async function noneLeft(at: Place, runs: readonly string[] = [], deadlineMs = 60_000): Promise<readonly string[]> {
  const left = (): readonly Process[] => [
    ...alive(at),
    ...processes().filter(({ line }) => runs.some((run) => line.includes(run))),
  ];
  for (const until = performance.now() + deadlineMs; performance.now() < until;) {
    if (left().length === 0) return [];
    await new Promise((resolve) => {
      setTimeout(resolve, 50);
    });
  }
  return left().map(({ id, line }) => `${id} ${line}`);
}

/** Commands as a model may leave them: plain, deaf to signals, with children in the background, out of their group,
 * holding the pipes. */
const commands: readonly string[] = [
  'echo begun; sleep 600',
  'trap "" HUP TERM INT; echo begun; while :; do sleep 600; done',
  'sleep 600 & sleep 600 & echo begun; wait',
  'setsid sleep 600 & echo begun; sleep 600',
  '(trap "" HUP TERM; setsid sh -c "sleep 600; sleep 600" >/dev/null 2>&1 &); nohup sleep 600 >/dev/null 2>&1 & echo begun; sleep 600',
  'echo begun; yes > /dev/null',
];
const commandOf = (n: number): string => commands[n % commands.length] ?? '';
const calling = (at: Place, command: string): string =>
  script(at, [{ calls: [{ name: 'bash', arguments: { command } }] }, { text: 'Done.' }]);

/** Sends the signal once the command has made its mark; `look` comes before. */
function whenBegun(
  at: Place,
  signal: NodeJS.Signals,
  look: () => void = () => undefined,
): (child: ChildProcess) => void {
  return (child) => {
    const timer = setInterval(() => {
      if (!readdirSync(at.work).includes('begun')) return;
      clearInterval(timer);
      look();
      child.kill(signal);
    }, 20);
    child.once('close', () => {
      clearInterval(timer);
    });
  };
}

/** `TERMINALS=100` closes more of them; each takes about half a second of both cores. */
const terminals = Number(process.env['TERMINALS'] ?? 20);
const atOnce = 6;

test(`${terminals} terminals closed in the middle of a command leave no process behind`, async () => {
  const left: (readonly string[])[] = [];
  let closed = 0;
  let next = 0;
  const closeSome = async (): Promise<void> => {
    for (let n = next++; n < terminals; n = next++) {
      const at = place();
      const screen = openScreen(at, ['--approval', 'never', '-m', calling(at, commandOf(n)), 'go']);
      await screen.until(/\nbegun/);
      const runs = runsOf(at);
      (screen.pty as unknown as { destroy(): void }).destroy();
      left.push(runs.length === 1 ? await noneLeft(at, runs) : [`${runs.length} runs`]);
      closed++;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, closeSome));
  console.log(`closed terminals: ${closed}, processes left: ${left.flat().length}`);
  expect([closed, left.flat()]).toEqual([terminals, []]);
}, 480_000);

test('kill -9 of the program ends its command, the children of it, and what earlier commands left behind', async () => {
  const left: (readonly string[])[] = [];
  for (const command of [...commands, 'env -i sleep 600 & echo begun; sleep 600']) {
    const at = place();
    const begun = command.replace('echo begun', `touch ${join(at.work, 'begun')}`);
    const calls = [
      'nohup sleep 600 >/dev/null 2>&1 & setsid sleep 600 >/dev/null 2>&1 & env -i sleep 600 & echo earlier',
      begun,
    ].map((text) => ({ calls: [{ name: 'bash', arguments: { command: text } }] }));
    let runs: readonly string[] = [];
    const { signal } = await agent(
      at,
      ['-p', '--approval', 'never', '-m', script(at, [...calls, { text: 'Done.' }]), 'go'],
      {
        onStart: whenBegun(at, 'SIGKILL', () => {
          runs = runsOf(at);
        }),
      },
    );
    left.push(
      [signal, runs.length].join() === 'SIGKILL,1' ? await noneLeft(at, runs) : [`${signal}, ${runs.length} runs`],
    );
  }
  expect(left.flat()).toEqual([]);
}, 120_000);

/** A server that is deaf to TERM and to the end of its input, and writes its number to a file. */
const deafServer = `
import { writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
process.on('SIGTERM', () => {});
setInterval(() => {}, 1000);
writeFileSync(process.argv[2], String(process.pid));
const results = {
  initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'deaf', version: '1' } },
  'tools/list': { tools: [{ name: 'nothing', inputSchema: { type: 'object' } }] },
};
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] ?? {} }));
});
`;

test('at the end commands in the background and servers are ended together, with one wait', async () => {
  const at = place({ 'server.mjs': deafServer });
  const [server, seen] = [join(at.work, 'server'), join(at.work, 'seen')];
  mkdirSync(join(at.home, '.agent'));
  const deaf = { command: process.execPath, args: [join(at.work, 'server.mjs'), server] };
  writeFileSync(join(at.home, '.agent/mcp.json'), JSON.stringify({ mcpServers: { deaf } }));
  // At TERM it writes whether the server is still there: it is, unless the waits follow each other.
  const job = `trap 'kill -0 $(cat ${server}) && echo together >>${seen}' TERM; while :; do sleep 0.05; done`;
  const model = script(at, [
    { calls: [{ name: 'tool_run', arguments: { tool: 'mcp__deaf__nothing', arguments: {} } }] },
    { calls: [{ name: 'bash', arguments: { command: `(${job}) >/dev/null 2>&1 &` } }] },
    { text: 'Done.' },
  ]);
  const { code } = await agent(at, ['-p', '--approval', 'never', '-m', model, 'go']);
  expect([code, readFileSync(seen, 'utf8'), await noneLeft(at)]).toEqual([0, expect.stringMatching(/^together\n/), []]);
});

/** A program with the official MCP client that has our tools run a command, and waits for it. */
const client = (command: string): string => `
import { Client } from ${JSON.stringify(import.meta.resolve('@modelcontextprotocol/client'))};
import { StdioClientTransport } from ${JSON.stringify(import.meta.resolve('@modelcontextprotocol/client/stdio'))};
const server = { command: process.execPath, args: [${JSON.stringify(binary)}, '--approval', 'never', 'mcp', 'serve'] };
const client = new Client({ name: 'killed', version: '1' });
await client.connect(new StdioClientTransport({ ...server, env: { ...process.env } }));
await client.callTool({ name: 'bash', arguments: { command: ${JSON.stringify(command)} } });
`;

test('kill -9 of an MCP client ends our server and the command that it asked for', async () => {
  const left: (readonly string[])[] = [];
  for (const command of commands) {
    const at = place();
    const begun = command.replace('echo begun', `touch ${join(at.work, 'begun')}`);
    const file = at.file('client.mjs', client(begun));
    let runs: readonly string[] = [];
    const child = spawn(process.execPath, [file], { cwd: at.work, env: at.env, stdio: 'ignore' });
    whenBegun(at, 'SIGKILL', () => {
      runs = runsOf(at);
    })(child);
    await once(child, 'close');
    left.push(runs.length === 1 ? await noneLeft(at, runs) : [`${runs.length} runs`]);
  }
  console.log(`killed clients: ${left.length}, processes left: ${left.flat().length}`);
  expect(left.flat()).toEqual([]);
}, 120_000);

test.each([
  ['SIGTERM', 143],
  ['SIGHUP', 129],
  ['SIGINT', 130],
] as const)(
  'headless, %s ends the command, its children and the program: %i',
  async (signal, wanted) => {
    for (const command of commands) {
      const at = place();
      const { code, stdout } = await agent(
        at,
        [
          '-p',
          '--approval',
          'never',
          '-m',
          calling(at, command.replace('echo begun', `touch ${join(at.work, 'begun')}`)),
          '--output-format',
          'json',
          'go',
        ],
        {
          onStart: whenBegun(at, signal),
        },
      );
      expect([command, code, JSON.parse(stdout), await noneLeft(at)]).toEqual([
        command,
        wanted,
        expect.objectContaining({ status: 'interrupted' }),
        [],
      ]);
    }
  },
  120_000,
);

test('a call by hand that is ended leaves nothing behind either', async () => {
  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT'] as const) {
    const at = place();
    const { code } = await agent(
      at,
      [
        'tools',
        'call',
        'bash',
        JSON.stringify({ command: `setsid sleep 600 & touch ${join(at.work, 'begun')}; sleep 600` }),
        '--approval',
        'never',
      ],
      {
        onStart: whenBegun(at, signal),
      },
    );
    expect([code, await noneLeft(at)]).toEqual([{ SIGTERM: 143, SIGHUP: 129, SIGINT: 130 }[signal], []]);
  }
});

test('what a command leaves in the background ends with the program', async () => {
  const at = place();
  const { code, stdout } = await agent(at, [
    '-p',
    '--approval',
    'never',
    '-m',
    calling(at, 'sleep 600 & setsid sleep 600 >/dev/null 2>&1 & echo hi'),
    '--output-format',
    'stream-json',
    'go',
  ]);
  expect([code, await noneLeft(at)]).toEqual([0, []]);
  expect(stdout).toMatch(/\\"background\\":[12]/);
});

test('a flood of output ends the command, not the program', async () => {
  const at = place();
  const { code, stdout } = await agent(at, [
    '-p',
    '--approval',
    'never',
    '-m',
    calling(at, 'cat /dev/zero'),
    '--output-format',
    'stream-json',
    'go',
  ]);
  expect([code, await noneLeft(at)]).toEqual([0, []]);
  expect(stdout).toMatch(/268435456|256 MiB/);
  expect(stdout.length).toBeLessThan(20_000_000);
}, 60_000);
