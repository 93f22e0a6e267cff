import { readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { binary, place, script, type Place } from './program.js';
import { openProgram, openScreen, type Screen } from './terminal.js';

/** The status above the prompt: the REPL is there, not only its first frame. */
const prompt = /work.*\n❯ *(?:Ask anything.*)?$/;
const running = [{ calls: [{ name: 'bash', arguments: { command: 'echo begun; sleep 30' } }] }, { text: 'Done.' }];
const streaming = [{ text: 'word '.repeat(20_000) }];
const asking = [{ calls: [{ name: 'bash', arguments: { command: 'sudo true' } }] }, { text: 'Done.' }];

/** Runs the program below a shell that has job control, and notes what `stty -a` says before and after. */
function openBelowShell(at: Place, args: readonly string[], afterwards = ''): Screen {
  const command = `set -m; stty -a >before; "$0" "$@"; echo "left $?"; ${afterwards} stty -a >after; echo over`;
  return openProgram(at, 'bash', ['--norc', '-c', command, process.execPath, binary, ...args], {
    env: { EDITOR: 'sh ./editor', VISUAL: '' },
  });
}

function processOf(screen: Screen): number {
  const children = readFileSync(`/proc/${screen.pty.pid}/task/${screen.pty.pid}/children`, 'utf8').trim().split(' ');
  return Number(children.at(-1));
}

/** A process that is stopped when the shell above it ends would stay behind. */
function endAfterwards(id: number): void {
  onTestFinished(() => {
    for (const name of ['SIGKILL', 'SIGCONT'] as const)
      try {
        process.kill(id, name);
      } catch {
        /* it has ended */
      }
  });
}

interface Way {
  readonly turns?: readonly unknown[];
  readonly args?: readonly string[];
  readonly afterwards?: string;
  readonly left: number;
  readonly act: (screen: Screen) => Promise<void>;
}

const signal =
  (name: NodeJS.Signals, when: RegExp) =>
  async (screen: Screen): Promise<void> => {
    await screen.until(when);
    process.kill(processOf(screen), name);
  };
const keys =
  (text: string, when: RegExp) =>
  async (screen: Screen): Promise<void> => {
    await screen.until(when);
    screen.type(text);
  };

const ways: readonly (readonly [name: string, way: Way])[] = [
  ['/exit', { left: 0, act: keys('/exit\r', prompt) }],
  ['Ctrl-D on an empty line', { left: 0, act: keys('\x04', prompt) }],
  ['Ctrl-C twice', { left: 0, act: keys('\x03\x03', prompt) }],
  ['Ctrl-C twice while a command runs', { left: 0, turns: running, args: ['go'], act: keys('\x03\x03', /begun/) }],
  ['Ctrl-C twice while text streams', { left: 0, turns: streaming, args: ['go'], act: keys('\x03\x03', /word word/) }],
  ['SIGTERM', { left: 143, act: signal('SIGTERM', prompt) }],
  ['SIGTERM while text streams', { left: 143, turns: streaming, args: ['go'], act: signal('SIGTERM', /word word/) }],
  [
    'SIGTERM while a question is open',
    { left: 143, turns: asking, args: ['go'], act: signal('SIGTERM', /Run this command\?[\s\S]*say why/) },
  ],
  ['SIGHUP', { left: 129, act: signal('SIGHUP', prompt) }],
  ['SIGINT from elsewhere', { left: 130, act: signal('SIGINT', prompt) }],
  ['SIGTERM before the REPL is loaded', { left: 143, act: signal('SIGTERM', /❯/) }],
  ['SIGINT before the REPL is loaded', { left: 130, act: signal('SIGINT', /❯/) }],
  [
    'an editor that fails, then Ctrl-D',
    {
      left: 0,
      act: async (screen) => {
        await screen.until(prompt);
        screen.type('x\x07');
        await screen.until(/edited[\s\S]*❯ x *$/);
        screen.type('\x15\x04');
      },
    },
  ],
  [
    'a configuration that is wrong',
    {
      left: 2,
      args: ['--set', 'approval=nonsense'],
      act: async () => {
        /* It leaves by itself. */
      },
    },
  ],
  [
    'a session that is not there',
    {
      left: 7,
      args: ['-c'],
      act: async () => {
        /* It leaves by itself. */
      },
    },
  ],
  [
    'Ctrl-Z, then back, then /exit',
    {
      left: 147,
      afterwards: 'stty -a >stopped; fg >/dev/null; echo "again $?";',
      act: async (screen) => {
        await screen.until(prompt);
        screen.type('\x1a');
        await screen.until(/left 147[\s\S]*❯ *$/);
        screen.type('/exit\r');
        await screen.until(/again 0/);
      },
    },
  ],
  ...(
    [
      ['killed while stopped', 'kill %1', 143],
      ['hung up on and continued while stopped', 'kill -HUP %1; kill -CONT %1', 129],
      ['sent to the background, and killed there', 'bg >/dev/null; kill %1', 143],
    ] as const
  ).map(([name, commands, code]): readonly [string, Way] => [
    `Ctrl-Z, then ${name}`,
    {
      left: 147,
      afterwards: `${commands}; wait -f %1; echo "ended $?";`,
      act: async (screen) => {
        await screen.until(prompt);
        endAfterwards(processOf(screen));
        screen.type('\x1a');
        await screen.until(new RegExp(`ended ${code}`));
      },
    },
  ]),
];

test.each(ways)(
  'the terminal is given back as it was: %s',
  async (_name, { turns = [{ text: 'Hello.' }], args = [], afterwards, left, act }) => {
    const at = place({ editor: 'echo edited; exit 1\n' });
    const screen = openBelowShell(at, ['-m', script(at, turns), ...args], afterwards);
    await act(screen);
    await screen.until(/over$/);
    expect(screen.text()).toContain(`left ${left}`);
    const stty = (name: string): string => readFileSync(`${at.work}/${name}`, 'utf8');
    expect(stty('after')).toBe(stty('before'));
    if (afterwards?.includes('stopped')) expect(stty('stopped')).toBe(stty('before'));
    const bytes = screen.raw();
    for (const [on, off] of [
      ['\x1b[?2004h', '\x1b[?2004l'],
      ['\x1b[>5u', '\x1b[<u'],
      ['\x1b[?25l', '\x1b[?25h'],
      ['\x1b[?2026h', '\x1b[?2026l'],
      ['\x1b[22;0t', '\x1b[23;0t'],
    ] as const) {
      expect(bytes.lastIndexOf(off), JSON.stringify(on)).toBeGreaterThanOrEqual(bytes.lastIndexOf(on));
    }
  },
);

test('Ctrl-Z does not stop a program that no shell could continue', async () => {
  const at = place();
  const screen = openScreen(at, ['-m', script(at, [{ text: 'Hello.' }])]);
  await screen.until(prompt);
  screen.type('\x1a');
  await screen.until(/Not suspended: agent was not started by a shell/);
  screen.type('hi\r');
  await screen.until(/Hello\./);
});
