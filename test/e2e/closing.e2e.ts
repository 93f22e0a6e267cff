import type { ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, place, script, type Place } from './program.js';
import { openScreen } from './terminal.js';

/** Whatever was started with this place's home or works in it, zombies left out: our program, its tools, and what these left behind. */
function alive(at: Place): readonly string[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).flatMap((id) => {
    try {
      const belongs = readFileSync(`/proc/${id}/environ`, 'latin1').includes(at.home) || readlinkSync(`/proc/${id}/cwd`).startsWith(at.work);
      return belongs ? [`${id} ${readFileSync(`/proc/${id}/cmdline`, 'latin1').replaceAll('\0', ' ')}`] : [];
    } catch {
      return []; // ended meanwhile
    }
  });
}

async function noneLeft(at: Place, deadlineMs = 10_000): Promise<readonly string[]> {
  for (const until = performance.now() + deadlineMs; performance.now() < until;) {
    if (alive(at).length === 0) return [];
    await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
  return alive(at);
}

/** Commands as a model may leave them: plain, deaf to signals, with children in the background, out of their group, holding the pipes. */
const commands: readonly string[] = [
  'echo begun; sleep 600',
  'trap "" HUP TERM INT; echo begun; while :; do sleep 600; done',
  'sleep 600 & sleep 600 & echo begun; wait',
  'setsid sleep 600 & echo begun; sleep 600',
  '(trap "" HUP TERM; setsid sh -c "sleep 600; sleep 600" >/dev/null 2>&1 &); nohup sleep 600 >/dev/null 2>&1 & echo begun; sleep 600',
  'echo begun; yes > /dev/null',
];
const commandOf = (n: number): string => commands[n % commands.length] ?? '';
const calling = (at: Place, command: string): string => script(at, [{ calls: [{ name: 'bash', arguments: { command } }] }, { text: 'Done.' }]);

/** Sends the signal once the command has made its mark. */
function whenBegun(at: Place, signal: NodeJS.Signals): (child: ChildProcess) => void {
  return (child) => {
    const timer = setInterval(() => {
      if (!readdirSync(at.work).includes('begun')) return;
      clearInterval(timer);
      child.kill(signal);
    }, 20);
    child.once('close', () => { clearInterval(timer); });
  };
}

test('thirty terminals closed in the middle of a command leave no process behind', async () => {
  const left: (readonly string[])[] = [];
  let closed = 0;
  for (let batch = 0; batch < 10; batch++) {
    await Promise.all([0, 1, 2].map(async (n) => {
      const at = place();
      const screen = openScreen(at, ['--approval', 'never', '-m', calling(at, commandOf(batch * 3 + n)), 'go']);
      await screen.until(/\nbegun/);
      (screen.pty as unknown as { destroy(): void }).destroy();
      left.push(await noneLeft(at));
      closed++;
    }));
  }
  console.log(`closed terminals: ${closed}, processes left: ${left.flat().length}`);
  expect([closed, left.flat()]).toEqual([30, []]);
}, 240_000);

test.each([['SIGTERM', 143], ['SIGHUP', 129], ['SIGINT', 130]] as const)('headless, %s ends the command, its children and the program: %i', async (signal, wanted) => {
  for (const command of commands) {
    const at = place();
    const { code, stdout } = await agent(at, ['-p', '--approval', 'never', '-m', calling(at, command.replace('echo begun', `touch ${join(at.work, 'begun')}`)), '--output-format', 'json', 'go'], {
      onStart: whenBegun(at, signal),
    });
    expect([command, code, JSON.parse(stdout), await noneLeft(at)]).toEqual([command, wanted, expect.objectContaining({ status: 'interrupted' }), []]);
  }
}, 120_000);

test('a call by hand that is ended leaves nothing behind either', async () => {
  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT'] as const) {
    const at = place();
    const { code } = await agent(at, ['tools', 'call', 'bash', JSON.stringify({ command: `setsid sleep 600 & touch ${join(at.work, 'begun')}; sleep 600` }), '--approval', 'never'], {
      onStart: whenBegun(at, signal),
    });
    expect([code, await noneLeft(at)]).toEqual([{ SIGTERM: 143, SIGHUP: 129, SIGINT: 130 }[signal], []]);
  }
});

test('what a command leaves in the background ends with the program', async () => {
  const at = place();
  const { code, stdout } = await agent(at, ['-p', '--approval', 'never', '-m', calling(at, 'sleep 600 & setsid sleep 600 >/dev/null 2>&1 & echo hi'), '--output-format', 'stream-json', 'go']);
  expect([code, await noneLeft(at)]).toEqual([0, []]);
  expect(stdout).toMatch(/\\"background\\":[12]/);
});

test('a flood of output ends the command, not the program', async () => {
  const at = place();
  const { code, stdout } = await agent(at, ['-p', '--approval', 'never', '-m', calling(at, 'cat /dev/zero'), '--output-format', 'stream-json', 'go']);
  expect([code, await noneLeft(at)]).toEqual([0, []]);
  expect(stdout).toMatch(/268435456|256 MiB/);
  expect(stdout.length).toBeLessThan(20_000_000);
}, 60_000);
