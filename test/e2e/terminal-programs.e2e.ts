import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { binary, place, script, type Place } from './program.js';
import { openProgram, openScreen } from './terminal.js';

/** A program that draws on the alternate screen, reads keys without echo, and can be killed. */
const screenProgram = `#!/bin/sh
printf '\\033[?1049h\\033[2J\\033[HSIZE '; stty size
stty -echo -icanon
printf 'READY '
key=$(dd bs=1 count=1 2>/dev/null)
[ "$key" = k ] && kill -9 $$
stty sane
printf '\\033[?1049l'
echo "got $key" > result.txt
`;

const asking = `#!/bin/sh
printf 'Password: ' > /dev/tty
stty -echo < /dev/tty; read secret < /dev/tty; stty echo < /dev/tty
echo; echo "welcome $1"
`;

function recorded(at: Place): string {
  const db = new Database(join(at.home, '.agent/agent.db'), { readonly: true });
  try {
    return JSON.stringify(db.prepare('SELECT kind, content, data_json FROM events').all());
  } finally {
    db.close();
  }
}

test('a program of the user gets the terminal, and the screen, the keys and the new size come back', async () => {
  const at = place({ 'prog.sh': screenProgram });
  const screen = openScreen(at, ['-m', script(at, [{ text: 'Seen.' }])]);
  await screen.until(/Ask anything/);
  screen.type('!i sh prog.sh\r');
  await screen.until(/SIZE 30 100[^]*READY/);
  screen.resize(60, 20);
  // The program reads one key. The others may be part of a password.
  screen.type('xhunter2-unread\r');
  await screen.until(/! sh prog\.sh[^]*❯/);
  screen.type('typed after');
  await screen.until(/❯ typed after$/);
  expect(readFileSync(join(at.work, 'result.txt'), 'utf8')).toBe('got x\n');
  expect(screen.text()).not.toContain('READY');
  screen.type('\x15!i sh prog.sh\r');
  await screen.until(/SIZE 20 60[^]*READY/);
  screen.type('k');
  await screen.until(/\[exit 137\][^]*❯/);
  screen.type('go\r');
  await screen.until(/Seen\./);
  expect(recorded(at)).toContain('$ sh prog.sh\\n(in the terminal; its output is not recorded)\\n[exit code 0]');
  expect([recorded(at).includes('hunter2'), screen.raw().includes('hunter2')]).toEqual([false, false]);
});

test('Ctrl-C ends the program alone, and a password that it asks for is recorded nowhere', async () => {
  const at = place({ sudo: asking });
  const screen = openScreen(at, ['-m', script(at, [{ text: 'Seen.' }])]);
  await screen.until(/Ask anything/);
  screen.type('!i echo ready; sleep 60\r');
  await screen.until(/^ready/m);
  screen.type('\x03');
  await screen.until(/\[exit 130\][^]*❯/);
  screen.type('!chmod +x sudo; PATH=.:$PATH sudo apt\r');
  await screen.until(/Password:/);
  screen.type('hunter2-secret\r');
  await screen.until(/welcome apt[^]*❯/);
  screen.type('go\r');
  await screen.until(/Seen\./);
  expect(recorded(at)).toContain('welcome apt');
  expect([recorded(at).includes('hunter2'), screen.raw().includes('hunter2')]).toEqual([false, false]);
});

/** Waits for a key without echo, and notes its number, its starts and whether it was hung up. */
const waiting = `#!/bin/sh
trap 'stty sane; echo hung >> ends.txt; exit 1' HUP
echo started >> starts.txt
stty -echo -icanon
echo 'WAITS'
while :; do sleep 0.05; done
`;

test('kill -9 of the program hangs up what has the terminal; the session resumes and runs nothing again', async () => {
  const at = place({ 'waits.sh': waiting });
  const model = script(at, [{ text: 'First answer.' }, { text: 'Second answer.' }]);
  const shell = `node "$0" "$@"; until [ -e ends.txt ]; do sleep 0.05; done; stty -a; echo "the shell is back"`;
  const screen = openProgram(at, 'bash', ['-c', shell, binary, '-m', model]);
  await screen.until(/Ask anything/);
  screen.type('go\r');
  await screen.until(/First answer\./);
  screen.type('!i sh waits.sh\r');
  await screen.until(/^WAITS/m);
  screen.type('hunter2-killed');
  process.kill(ownerOf(screen.pty.pid), 'SIGKILL');
  await screen.until(/ echo [^]*the shell is back/);
  expect(readFileSync(join(at.work, 'ends.txt'), 'utf8')).toBe('hung\n');
  const again = openScreen(at, ['-c', '-m', model]);
  await again.until(/First answer\.[^]*❯/);
  again.type('on\r');
  await again.until(/Second answer\./);
  expect(readFileSync(join(at.work, 'starts.txt'), 'utf8')).toBe('started\n');
  expect([recorded(at).includes('hunter2'), recorded(at).includes('Second answer.')]).toEqual([false, true]);
});

/** Returns the process that a shell waits for. */
function ownerOf(shell: number): number {
  return Number(readFileSync(`/proc/${shell}/task/${shell}/children`, 'utf8').trim().split(' ')[0]);
}
