import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { agent, lines, type Place } from '../e2e/program.js';
import type { Turn } from '../e2e/model-server.js';
import { openScreen, type Screen } from '../e2e/terminal.js';
import { bash, cutBehind, limitedPlace, limitedServer, limitStates, type LimitedServer, rows } from './usage-limits.js';

const turns = [bash('echo one >> work.log'), bash('echo two >> work.log'), { text: 'All done.' }];

const work = ({ work: folder }: Place): readonly string[] =>
  existsSync(join(folder, 'work.log')) ? readFileSync(join(folder, 'work.log'), 'utf8').trim().split('\n') : [];

/** The number of results that a request contains. */
const resultsIn = (body: unknown): number => JSON.stringify(body).split('"type":"tool_result"').length - 1;

/** The session is whole: what was typed is there once, every call ran once, and the work is done. */
function expectOnce(at: Place, message: string): void {
  const all = rows(at);
  const typed = all.filter(({ kind, data }) => kind === 'user' && data?.['note'] !== true);
  expect([message, typed.map(({ content }) => content)]).toEqual([message, ['go']]);
  expect([message, work(at)]).toEqual([message, ['one', 'two']]);
  const results = all.filter(({ kind }) => kind === 'tool_result');
  expect([message, results.length]).toEqual([message, 2]);
  expect([message, all.filter(({ kind, content }) => kind === 'assistant' && content === 'All done.').length]).toEqual([
    message,
    1,
  ]);
}

test('a headless run that is killed at any line of its wait continues it once', { timeout: 300_000 }, async () => {
  const states = ['reached', 'set', 'continued'];
  for (const [index, state] of states.entries()) {
    let wasKilled = (): void => undefined;
    const killed = new Promise<void>((resolve) => {
      wasKilled = resolve;
    });
    // Nothing is answered behind the limit before the first run is dead, which may take a moment on a busy machine.
    const answer = (body: unknown): Turn => {
      const done = resultsIn(body);
      return { ...(turns[done] ?? { text: 'End of script.' }), ...(done > 0 ? { after: killed } : {}) };
    };
    const at = limitedPlace(await limitedServer(answer, { 1: 2 }));
    const line = `"type":"limit","state":"${state}"`;
    const first = await agent(at, ['-p', '--output-format', 'stream-json', '--wait-for-limit', 'go'], {
      onStdout: (text, child) => {
        if (text.includes(line)) child.kill('SIGKILL');
      },
    });
    wasKilled();
    expect([state, first.signal]).toEqual([state, 'SIGKILL']);
    cutBehind(at, state);
    expect(limitStates(at)).toEqual(states.slice(0, index + 1));
    const again = await agent(at, ['-p', '--output-format', 'json', '-c', '--wait-for-limit']);
    expect([state, again.code, lines(again.stdout).at(-1)?.['text']]).toEqual([state, 0, 'All done.']);
    expectOnce(at, state);
    const third = await agent(at, ['-p', '-c', '--wait-for-limit']);
    expect([state, third.code]).toEqual([state, 2]);
  }
});

const asked = /Wait until [\d:]+ and continue \(w\)/;
/** Keys count once the hint of the dialog is there. */
const open = /Enter or a number/;

async function begun(at: Place): Promise<Screen> {
  const screen = openScreen(at);
  await screen.until(/\/help/);
  screen.type('go\r');
  await screen.until(asked);
  await screen.until(open);
  return screen;
}

async function waiting(at: Place): Promise<Screen> {
  const screen = await begun(at);
  screen.type('w');
  await screen.until(/usage limit until [\d:]+, \d+:\d\d left, Esc stops/);
  return screen;
}

async function left(screen: Screen): Promise<void> {
  screen.type('\x04');
  await screen.exited;
}

test('a REPL waits, counts down and continues; Esc ends a wait', { timeout: 120_000 }, async () => {
  const server = await limitedServer(turns, { 1: 3 });
  const at = limitedPlace(server);
  const screen = await waiting(at);
  await screen.until(/All done\./);
  await left(screen);
  expectOnce(at, 'waited');
  expect(limitStates(at)).toEqual(['reached', 'set', 'continued']);

  const other = limitedPlace(await limitedServer(turns, { 1: 600 }));
  const ended = await waiting(other);
  ended.type('\x1b');
  await ended.until(/The wait for the usage limit was ended/);
  await left(ended);
  expect(limitStates(other)).toEqual(['reached', 'set', 'ended']);
});

test(
  'a REPL that is killed while it asks asks again; one that waits continues the countdown',
  { timeout: 120_000 },
  async () => {
    const server = await limitedServer(turns, { 1: 12 });
    const at = limitedPlace(server);
    const first = await begun(at);
    first.pty.kill('SIGKILL');
    await first.exited;
    const second = openScreen(at, ['-c']);
    await second.until(asked);
    await second.until(open);
    second.type('w');
    await second.until(/usage limit until/);
    second.pty.kill('SIGKILL');
    await second.exited;
    expect(limitStates(at)).toEqual(['reached', 'set']);
    const third = openScreen(at, ['-c']);
    await third.until(/usage limit until [\d:]+, \d+:\d\d left/);
    await third.until(/All done\./);
    await left(third);
    expectOnce(at, 'killed');
    expect(limitStates(at)).toEqual(['reached', 'set', 'continued']);
    expect(server.answered()).toBe(3);
  },
);

test(
  'a REPL that is killed when the wait is over continues when it is opened again',
  { timeout: 120_000 },
  async () => {
    const slow = turns.map((turn, at) => (at === 1 ? { ...turn, delayMs: 3000 } : turn));
    const server = await limitedServer(slow, { 1: 1 });
    const at = limitedPlace(server);
    const first = await waiting(at);
    await first.until(/The usage limit is over/);
    first.pty.kill('SIGKILL');
    await first.exited;
    expect(limitStates(at)).toEqual(['reached', 'set', 'continued']);
    const second = openScreen(at, ['-c']);
    await second.until(/All done\.|End of script/);
    await left(second);
    expect(rows(at).filter(({ kind, data }) => kind === 'user' && data?.['note'] !== true)).toHaveLength(1);
    expect(new Set(work(at)).size).toBe(work(at).length);
  },
);

/** Resolves once the session has its last answer. */
async function answered(at: Place, server: LimitedServer): Promise<void> {
  await vi.waitFor(
    () => {
      expect(rows(at).some(({ kind, content }) => kind === 'assistant' && content === 'All done.')).toBe(true);
      expect(server.answered()).toBe(3);
    },
    { timeout: 60_000, interval: 100 },
  );
}

test.each(['SIGHUP', '/exit'])(
  'the session continues without its terminal after %s',
  { timeout: 120_000 },
  async (end) => {
    const server = await limitedServer(turns, { 1: 5 });
    const at = limitedPlace(server);
    const screen = await waiting(at);
    if (end === 'SIGHUP') screen.pty.kill('SIGHUP');
    else screen.type(`${end}\r`);
    await screen.exited;
    if (end !== 'SIGHUP') expect(screen.text()).toContain('continues in the background until');
    expect(limitStates(at)).toEqual(['reached', 'set']);
    await answered(at, server);
    expectOnce(at, end);
    expect(limitStates(at)).toEqual(['reached', 'set', 'continued']);
  },
);

test(
  'a session that is opened again before the end continues the countdown there, and once',
  { timeout: 120_000 },
  async () => {
    const server = await limitedServer(turns, { 1: 10 });
    const at = limitedPlace(server);
    const first = await waiting(at);
    first.pty.kill('SIGHUP');
    await first.exited;
    const second = openScreen(at, ['-c']);
    await second.until(/usage limit until [\d:]+, \d+:\d\d left/);
    await second.until(/All done\./);
    // The process that waits in the background comes a moment later and finds nothing to do.
    await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(server.retryAt() + 5000), { timeout: 20_000 });
    await left(second);
    expectOnce(at, 'opened again');
    expect([limitStates(at), server.answered()]).toEqual([['reached', 'set', 'continued'], 3]);
  },
);

interface Running {
  readonly session_id: string;
  readonly state: string;
}

async function running(at: Place): Promise<readonly Running[]> {
  return JSON.parse((await agent(at, ['ps', '--json'])).stdout) as readonly Running[];
}

/** Each look starts a process, so this does not spin. */
async function untilState(at: Place, state: string | undefined): Promise<void> {
  while ((await running(at))[0]?.state !== state);
}

/** A session whose first request meets a limit, and whose call after it needs approval; its terminal is gone. */
async function leftBehind(options: readonly string[]): Promise<Place> {
  const server = await limitedServer([bash('touch made'), { text: 'All done.' }], { 0: 4 });
  const at = limitedPlace(server, { approval: 'mutating' });
  const screen = openScreen(at, options);
  await screen.until(/\/help/);
  screen.type('go\r');
  await screen.until(asked);
  await screen.until(open);
  screen.type('w');
  await screen.until(/usage limit until [\d:]+, \d+:\d\d left, Esc stops/);
  await left(screen);
  return at;
}

test(
  'a call that needs approval after a wait without a terminal waits for it, and the session ends with its turn',
  { timeout: 120_000 },
  async () => {
    const at = await leftBehind([]);
    await untilState(at, 'waiting_for_approval');
    expect(existsSync(join(at.work, 'made'))).toBe(false);
    const screen = openScreen(at, ['attach']);
    await screen.until(/touch made/);
    await screen.until(/Enter select/);
    screen.type('y');
    await screen.until(/All done\./);
    await left(screen);
    expect(existsSync(join(at.work, 'made'))).toBe(true);
    await untilState(at, undefined);
    expect(limitStates(at)).toEqual(['reached', 'set', 'continued']);
  },
);

test(
  'an approval that does not come in time is denied, and the process ends by itself',
  { timeout: 120_000 },
  async () => {
    const at = await leftBehind(['--approval-timeout', '3s']);
    await vi.waitFor(() => expect(rows(at).some(({ content }) => content === 'All done.')).toBe(true), {
      timeout: 60_000,
      interval: 200,
    });
    expect(existsSync(join(at.work, 'made'))).toBe(false);
    await untilState(at, undefined);
  },
);
