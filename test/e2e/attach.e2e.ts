import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { binary, place, script, type Place } from './program.js';
import { openProgram, openScreen, type Screen } from './terminal.js';

const idle = /❯ Ask anything/;
const slow = [
  { calls: [{ name: 'bash', arguments: { command: 'echo started; sleep 4; echo x >> count.txt' } }] },
  { text: 'The command has ended.' },
  { text: 'Second answer.' },
  { text: 'Third answer.' },
];

interface Row {
  readonly kind: string;
  readonly content: string;
}

function events(at: Place): readonly Row[] {
  const db = new Database(join(at.home, '.agent/agent.db'), { readonly: true });
  try {
    return db.prepare<[], Row>('SELECT kind, content FROM events ORDER BY session_id, seq').all();
  } finally {
    db.close();
  }
}

const typed = (at: Place): readonly string[] =>
  events(at)
    .filter(({ kind }) => kind === 'user')
    .map(({ content }) => content);

function socketsOf(at: Place): readonly string[] {
  const folder = join(at.home, '.agent/live');
  return existsSync(folder) ? readdirSync(folder) : [];
}

/** Waits for the socket of a session, which opens a moment after its screen. */
async function running(at: Place): Promise<string> {
  for (let tries = 0; tries < 400; tries++) {
    const [socket] = socketsOf(at);
    if (socket !== undefined) return socket.replace('.sock', '');
    await new Promise((resolve) => {
      setTimeout(resolve, 25);
    });
  }
  throw new Error('no session runs');
}

/** The process that runs the session, ended with the test. */
function pidOf(at: Place, id: string): number {
  const db = new Database(join(at.home, '.agent/agent.db'), { readonly: true });
  const row = db.prepare<[string], { readonly pid: number }>('SELECT pid FROM leases WHERE session_id = ?').get(id);
  db.close();
  const pid = row?.pid ?? 0;
  onTestFinished(() => {
    if (pid > 0) spawnSync('kill', ['-9', String(pid)]);
  });
  return pid;
}

async function pair(at: Place, args: readonly string[]): Promise<readonly [Screen, Screen, number]> {
  const owner = openScreen(at, args);
  await owner.until(idle);
  const pid = pidOf(at, await running(at));
  const client = openScreen(at, ['attach'], { columns: 60 });
  await client.until(idle);
  return [owner, client, pid];
}

test('two terminals show one session; each message is sent once, and a question is answered from either', async () => {
  const at = place({ 'build/x': '' });
  const [owner, client] = await pair(at, [
    '-m',
    script(at, [
      { calls: [{ name: 'bash', arguments: { command: 'rm -rf build; sleep 2' } }] },
      { text: 'Removed it.' },
      { text: 'Then this.' },
    ]),
  ]);
  client.type('clean up\r');
  await owner.until(/Run this command\?/);
  await client.until(/Run this command\?[^]*Arrows and Enter only/);
  client.type('\x1b[A');
  await client.until(/❯ Preview/);
  client.type('\x1b[A');
  await client.until(/❯ Yes, once/);
  client.type('\r');
  await owner.until(/… bash rm -rf build/);
  owner.type('from the first\r');
  await owner.until(/next: from the first/);
  client.type('from the second\r');
  await client.until(/next:[^]*from the second/);
  await owner.until(/Then this\.|Removed it\.[^]*❯$/);
  await client.until(/Removed it\./);
  expect(
    typed(at)
      .join('|')
      .match(/clean up|from the first|from the second/g),
  ).toEqual(['clean up', 'from the first', 'from the second']);
});

test('a terminal leaves, is stopped and runs programs without disturbing the session of another process', async () => {
  const at = place({});
  const owner = openScreen(at, ['-m', script(at, slow)]);
  await owner.until(idle);
  pidOf(at, await running(at));
  const shell = openProgram(at, 'bash', ['--norc', '-i'], { env: { PS1: 'shell> ' } });
  await shell.until(/shell>$/);
  shell.type(`${process.execPath} ${binary} attach\r`);
  await shell.until(idle);
  shell.type('go\r');
  await owner.until(/… bash echo started/);
  shell.type('\x1a');
  await shell.until(/Stopped/);
  shell.type('fg\r');
  await shell.until(/The command has ended\.[^]*❯$/);
  shell.resize(70, 25);
  shell.type('!i stty size; echo "on $(tty)" > tty.txt\r');
  await owner.until(/! stty size|tty\.txt/);
  await shell.until(/25 70/);
  shell.type('\x04');
  await shell.until(/shell>$/);
  owner.type('more\r');
  await owner.until(/Second answer\./);
  expect(readFileSync(join(at.work, 'count.txt'), 'utf8')).toBe('x\n');
  expect(owner.text()).not.toContain('25 70');
});

test('/bg lets the terminal go in the middle of a call, and the session is there again after the shell has ended', async () => {
  const at = place({});
  const shell = openProgram(at, 'bash', ['--norc', '-i'], { env: { PS1: 'shell> ' } });
  await shell.until(/shell>$/);
  shell.type(`${process.execPath} ${binary} -m ${script(at, slow)}\r`);
  await shell.until(idle);
  shell.type('go\r');
  await shell.until(/… bash echo started/);
  const pid = pidOf(at, await running(at));
  shell.type('/bg\r');
  await shell.until(/continues in the background: agent attach[^]*shell>$/);
  shell.type('stty -a | grep -o -- "-*icanon"; sleep 1; jobs\r');
  await shell.until(/^icanon[^]*Running/m);
  shell.pty.kill('SIGHUP');
  await shell.exited;
  expect(readdirSync(`/proc/${pid}/fd`).length).toBeGreaterThan(0);
  expect(execFileSync('ls', ['-l', `/proc/${pid}/fd`], { encoding: 'utf8' })).not.toMatch(/\/dev\/(?:pts|tty)/);
  const again = openScreen(at, ['-c']);
  await again.until(/The command has ended\./);
  again.type('more\r');
  await again.until(/Second answer\./);
  again.type('\x04');
  expect(await again.exited).toBe(0);
  await again.until(/Resume with: agent -r/);
  expect(readFileSync(join(at.work, 'count.txt'), 'utf8')).toBe('x\n');
});

/** The session runs in a process other than `pid`, without a terminal, and is shown whole by a new one. */
async function continuedElsewhere(at: Place, pid: number, shows: RegExp): Promise<void> {
  const id = await running(at);
  const next = pidOf(at, id);
  expect([existsSync(`/proc/${pid}`), next === pid]).toEqual([false, false]);
  expect(execFileSync('ls', ['-l', `/proc/${next}/fd`], { encoding: 'utf8' })).not.toMatch(/\/dev\/(?:pts|tty)/);
  const again = openScreen(at, ['attach']);
  await again.until(shows);
  again.type('more\r');
  await again.until(/Second answer\./);
  expect(readFileSync(join(at.work, 'count.txt'), 'utf8')).toBe('x\n');
}

test('/bg without a shell in the middle of a turn: the session continues in a new process at the end of the turn', async () => {
  const at = place({});
  const owner = openScreen(at, ['-m', script(at, slow)]);
  await owner.until(idle);
  owner.type('/bg\r');
  await owner.until(/the session has no message\s+yet/);
  owner.type('go\r');
  await owner.until(/… bash echo started/);
  const pid = pidOf(at, await running(at));
  owner.type('/bg\r');
  await owner.until(/in a new process once\s+this turn has ended\. Esc cancels that/);
  owner.type('\x1b');
  await owner.until(/\/bg was cancelled/);
  owner.type('/bg\r');
  expect(await owner.exited).toBe(0);
  await owner.until(/The command has ended\.[^]*continues in the background: agent attach/);
  await continuedElsewhere(at, pid, /The command has ended\./);
});

test('/bg in a script: an idle session continues in a new process, and the script continues', async () => {
  const at = place({});
  const line = `${process.execPath} ${binary} -m ${script(at, slow)}; echo "code $?"; exec cat`;
  const shell = openProgram(at, 'sh', ['-c', line]);
  await shell.until(idle);
  const pid = pidOf(at, await running(at));
  shell.type('go\r');
  await shell.until(/The command has ended\./);
  const client = openScreen(at, ['attach']);
  await client.until(/The command has ended\./);
  shell.type('/bg\r');
  await shell.until(/other terminals show this\s+session/);
  client.type('\x04');
  await client.exited;
  shell.type('/bg\r');
  await shell.until(/continues in the background: agent attach[^]*code 0/);
  await continuedElsewhere(at, pid, /The command has ended\./);
});

test('the process is killed: the terminals say so, one continues the session and the other attaches to it', async () => {
  const at = place({});
  const [, client, pid] = await pair(at, ['-m', script(at, slow)]);
  const third = openScreen(at, ['attach']);
  await third.until(idle);
  client.type('go\r');
  await third.until(/… bash echo started/);
  process.kill(pid, 'SIGKILL');
  await client.until(/has ended unexpectedly[^]*It may or may not/);
  await third.until(/has ended unexpectedly[^]*It may or may not/);
  third.type('are you there\r');
  await client.until(/❯ are you there[^]*\S+ answer\.|The command has ended\./);
  await third.until(/❯ are you there/);
  expect(typed(at).filter((text) => text === 'are you there')).toHaveLength(1);
  expect(typed(at).filter((text) => text === 'go')).toHaveLength(1);
  pidOf(at, await running(at));
});

test('the process is killed: the frame that it drew is gone, and the notice breaks between words', async () => {
  const at = place({});
  const owner = openScreen(at, ['-m', script(at, slow)]);
  await owner.until(idle);
  const pid = pidOf(at, await running(at));
  const [narrow, wide] = [
    openScreen(at, ['attach'], { columns: 40 }),
    openScreen(at, ['attach'], { columns: 60 }),
  ] as const;
  for (const screen of [narrow, wide]) await screen.until(idle);
  owner.type('go\r');
  for (const screen of [narrow, wide]) await screen.until(/working \d+s, Esc stops/);
  process.kill(pid, 'SIGKILL');
  for (const screen of [narrow, wide]) await screen.until(/ended\s+unexpectedly[^]*asks: dangerous/);
  const lastLines = (screen: Screen, count: number): readonly string[] => {
    const lines = screen.text().split('\n');
    const from = lines.findIndex((line) => line.startsWith('agent: the process'));
    return lines.slice(from - 2, from + count);
  };
  expect(lastLines(narrow, 3)).toEqual([
    '❯ go',
    '',
    'agent: the process of this session has',
    'ended unexpectedly. The session',
    'continues here.',
  ]);
  expect(lastLines(wide, 2)).toEqual([
    '❯ go',
    '',
    'agent: the process of this session has ended unexpectedly.',
    'The session continues here.',
  ]);
  for (const screen of [narrow, wide]) expect(screen.text()).not.toContain('working');
  pidOf(at, await running(at));
});

test('a client is killed in the middle of a turn, and the session does not notice', async () => {
  const at = place({});
  const [owner, client] = await pair(at, ['-m', script(at, slow)]);
  client.type('go\r');
  await owner.until(/… bash echo started/);
  client.type('half a dr');
  client.pty.kill('SIGKILL');
  await owner.until(/The command has ended\./);
  owner.type('/new\r');
  await owner.until(/New session/);
});

test('/new at an attached terminal opens a session in its own process', async () => {
  const at = place({});
  const [owner, client, pid] = await pair(at, ['-m', script(at, slow)]);
  owner.type('go\r');
  await client.until(/… bash echo started/);
  owner.type('/new\r');
  await owner.until(/another terminal shows this session/);
  client.type('/new\r');
  await client.until(/agent 0\.1\.0[^]*agent 0\.1\.0/);
  await owner.until(/The command has ended\./);
  for (let tries = 0; socketsOf(at).length < 2 && tries < 200; tries++)
    await new Promise((resolve) => {
      setTimeout(resolve, 25);
    });
  expect(socketsOf(at)).toHaveLength(2);
  process.kill(pid, 0);
});

test('agent --bg prints the id of the session, works without a terminal and denies what nobody approves in time', async () => {
  const at = place({ 'build/x': '' });
  const asking = [{ calls: [{ name: 'bash', arguments: { command: 'rm -rf build' } }] }, { text: 'Not removed.' }];
  const args = [binary, '--bg', '--approval-timeout', '1s', '-m', script(at, asking), 'clean up'];
  const started = spawnSync(process.execPath, args, { cwd: at.work, env: at.env, encoding: 'utf8' });
  expect([started.status, started.stderr]).toEqual([0, '']);
  const id = started.stdout.trim();
  expect(id).toMatch(/^[0-9A-Z]{26}$/);
  const pid = pidOf(at, id);
  const screen = openScreen(at, ['attach', id.slice(0, 13)]);
  await screen.until(/Not removed\./);
  expect(screen.text()).toMatch(/It was not answered within 1 s/);
  expect(existsSync(join(at.work, 'build/x'))).toBe(true);
  screen.type('\x04');
  await screen.exited;
  for (let tries = 0; existsSync(`/proc/${pid}`) && tries < 400; tries++)
    await new Promise((resolve) => {
      setTimeout(resolve, 25);
    });
  expect(existsSync(`/proc/${pid}`)).toBe(false);
});

test('a question of the model that nobody answers in time ends, and the terminal that shows it closes it', async () => {
  const at = place({});
  const questions = [{ question: 'Which colour?', options: [{ label: 'Red' }, { label: 'Blue' }] }];
  const asking = [{ calls: [{ name: 'ask_user', arguments: { questions } }] }, { text: 'I chose red.' }];
  const args = [binary, '--bg', '--approval-timeout', '4s', '-m', script(at, asking), 'paint it'];
  const started = spawnSync(process.execPath, args, { cwd: at.work, env: at.env, encoding: 'utf8' });
  expect([started.status, started.stderr]).toEqual([0, '']);
  pidOf(at, started.stdout.trim());
  const screen = openScreen(at, ['attach', started.stdout.trim()]);
  await screen.until(/Which colour\?/);
  await screen.until(/I chose red\.[^]*❯/);
  expect(screen.text()).not.toMatch(/❯ 1\. Red/);
  const results = events(at).filter(({ kind }) => kind === 'tool_result');
  expect(results).toMatchObject([{ content: expect.stringMatching(/^Not answered in time: .* within 4 s/) as string }]);
  screen.type('\x04');
  await screen.exited;
});

test('agent --bg reports an error of the start with its exit code', () => {
  const at = place({});
  const run = (...args: readonly string[]) =>
    spawnSync(process.execPath, [binary, ...args], { cwd: at.work, env: at.env, encoding: 'utf8' });
  const [none, unknown] = [run('--bg'), run('--bg', '-r', '01ZZZZZZZZZZZ')];
  expect([none.status, none.stdout, unknown.status, unknown.stdout]).toEqual([2, '', 7, '']);
  expect(unknown.stderr).toContain('01ZZZZZZZZZZZ');
});
