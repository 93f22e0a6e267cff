import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type ModelServer, modelServer, type Turn } from './model-server.js';
import { place, type Place } from './program.js';
import { openScreen, type Screen } from './terminal.js';

/** Notes its start and each line that is typed, and has children that ignore signals or left its session. */
const reader = `#!/bin/sh
trap '' HUP TERM
echo started >> starts.log
setsid sleep 86399 &
nohup sleep 86398 >/dev/null 2>&1 &
echo READY
while read -r line; do echo "$line" >> typed.log; echo "got $line"; done
`;

const calls = (name: string, input: unknown): Turn => ({ calls: [{ name, arguments: input }] });

/** What the model answers, by what the newest message says. */
function answers({ messages, input }: Readonly<Record<string, unknown>>): Turn {
  const last = JSON.stringify(((messages ?? input) as readonly unknown[]).at(-1));
  if (last.includes('open it')) return calls('bash', { command: 'sh reader.sh', background: true, terminal: true });
  if (last.includes('type one')) return calls('jobs', { id: 1, write: 'one\n' });
  if (last.includes('list them')) return calls('jobs', {});
  return { text: last.includes('There are no jobs') ? 'NO-JOBS.' : 'ANSWERED.' };
}

function open(at: Place, server: ModelServer, args: readonly string[] = []): Screen {
  const env = { OPENAI_API_KEY: 'sk-of-a-test', OPENAI_BASE_URL: `${server.url}/v1` };
  return openScreen(at, ['--tools', '+jobs', ...args], { env });
}

/** Processes that work in the folder of the project. */
function processesIn({ work }: Place): readonly string[] {
  return readdirSync('/proc').filter((id) => {
    try {
      return /^\d+$/.test(id) && readlinkSync(`/proc/${id}/cwd`) === work;
    } catch {
      return false; // it has ended
    }
  });
}

async function untilTrue(holds: () => boolean): Promise<void> {
  await expect.poll(holds, { timeout: 20_000, interval: 20 }).toBe(true);
}

const text = (at: Place, file: string): string =>
  existsSync(join(at.work, file)) ? readFileSync(join(at.work, file), 'utf8') : '';

/** What was done until the program is killed, and what the model is told about the job then. */
const states: Readonly<
  Record<string, { reach(screen: Screen, at: Place): Promise<void>; typed: string; told?: RegExp }>
> = {
  'while the call that opens the terminal runs': {
    reach: async (_screen, at) => {
      await untilTrue(() => text(at, 'starts.log') !== '');
    },
    typed: '',
    told: /nterrupted/,
  },
  'while the job waits for input': {
    reach: async (screen) => {
      await screen.until(/ANSWERED\.[^]*❯/);
    },
    typed: '',
  },
  'while the permission prompt of a write is open': {
    reach: async (screen) => {
      await screen.until(/ANSWERED\.[^]*❯/);
      screen.type('type one\r');
      await screen.until(/types "one\\n" into job 1/);
    },
    typed: '',
  },
  'once text was typed': {
    reach: async (screen, at) => {
      await screen.until(/ANSWERED\.[^]*❯/);
      screen.type('type one\r');
      await screen.until(/types "one\\n" into job 1/);
      await screen.until(/Arrows and Enter only/);
      screen.type('\x1b[A\r');
      await untilTrue(() => text(at, 'typed.log') !== '');
    },
    typed: 'one\n',
  },
};

test.each(Object.entries(states))(
  'kill -9 %s: no process stays, nothing runs twice, and the model is told that the job has ended',
  async (_name, { reach, typed, told = /Note: job 1 has ended, because the program exited/ }) => {
    const server = await modelServer(answers);
    const at = place({ 'reader.sh': reader });
    const screen = open(at, server);
    await screen.until(/Ask anything/);
    screen.type('open it\r');
    await reach(screen, at);
    expect(processesIn(at).length).toBeGreaterThan(1);
    process.kill(screen.pty.pid, 'SIGKILL');
    await screen.exited;
    await untilTrue(() => processesIn(at).length === 0);

    const again = open(at, server, ['-c']);
    await again.until(/(?:open it|\/show N)[^]*❯/);
    again.type('list them\r');
    await again.until(/NO-JOBS\./);
    expect(JSON.stringify(server.requests.at(-2)?.body)).toMatch(told);
    expect([text(at, 'starts.log'), text(at, 'typed.log')]).toEqual(['started\n', typed]);
    again.type('\x04');
    await again.exited;
    expect(processesIn(at)).toEqual([]);
  },
);
