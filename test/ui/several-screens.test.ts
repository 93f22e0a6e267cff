import { expect, test } from 'vitest';
import type { CommandContext } from '../../src/kernel/console/slash-command.js';
import { createFakeSession } from './fake-session.js';
import { openRepl, shown, soleTurns } from './repl-harness.js';

const enter = '\r';

function open(staysOpen: () => boolean = () => true) {
  const session = createFakeSession();
  const turns = soleTurns(session, staysOpen);
  const screen = (options: Parameters<typeof openRepl>[0] = {}) => openRepl({ session, turns, ...options });
  return { session, turns, screen };
}

test('what is typed on several screens while a turn runs is sent once, in the order in which it was typed', async () => {
  const { session, screen } = open();
  const [one, other] = [screen(), screen({ columns: 50 })];
  one.type(`first${enter}`);
  one.type(`second${enter}`);
  other.type(`third${enter}`);
  one.type(`fourth${enter}`);
  await session.end();
  await one.settle();
  expect(session.submitted).toEqual(['first', 'second\n\nthird\n\nfourth']);
  await session.end();
  await other.settle();
  expect(session.submitted).toHaveLength(2);
  expect(session.takeQueue()).toEqual([]);
});

test('both screens show the queue and the answer, each in its own width', async () => {
  const { session, screen } = open();
  const [one, other] = [screen({ columns: 60 }), screen({ columns: 30 })];
  one.type(`go${enter}`);
  other.type(`and then this${enter}`);
  session.stream('An answer that is longer than the narrow one of the two screens.');
  for (const each of [one, other]) await each.settle();
  expect(shown(one.terminal).join('\n')).toContain('and then this');
  expect(shown(one.terminal).join('\n')).toContain('An answer that is longer than the narrow one of the two');
  expect(shown(other.terminal).join('\n')).toContain('An answer that is longer than');
});

test('each screen has its own draft, and interrupting gives back only what was queued there', async () => {
  const { session, screen } = open();
  const [one, other] = [screen(), screen()];
  one.type(`go${enter}`);
  one.type(`mine${enter}`);
  other.type(`yours${enter}`);
  other.type('half a dr');
  one.type('\x1b');
  one.tick(200);
  await one.settle();
  await other.settle();
  expect(session.submitted).toEqual(['go', 'yours']);
  expect(shown(one.terminal).join('\n')).toContain('❯ mine');
  expect(shown(other.terminal).join('\n')).toContain('❯ half a dr');
});

test('a command that waits runs on the screen where it was typed, and on another one if that has left', async () => {
  const { session, screen } = open();
  const ran: string[] = [];
  const waiting = (name: string) => ({
    name: 'later',
    description: 'waits',
    waits: true as const,
    run: async (argument: string, _context: CommandContext) => {
      ran.push(`${argument} on ${name}`);
    },
  });
  const one = screen({ commands: [waiting('one')] });
  const other = screen({ commands: [waiting('other')] });
  one.type(`go${enter}`);
  one.type(`/later first${enter}`);
  other.type(`/later second${enter}`);
  await one.settle();
  expect(ran).toEqual([]);
  other.repl.exit();
  await session.end();
  await one.settle();
  expect(ran).toEqual(['first on one', 'second on one']);
});

test('a screen that runs a command holds up what it queued itself, and not what others send', async () => {
  const { session, screen } = open();
  let finish = (): void => undefined;
  const slow = {
    name: 'slow',
    description: 'takes long',
    run: () =>
      new Promise<void>((resolve) => {
        finish = resolve;
      }),
  };
  const [one, other] = [screen({ commands: [slow] }), screen()];
  one.type(`/slow${enter}`);
  one.type(`after it${enter}`);
  other.type(`at once${enter}`);
  await one.settle();
  expect(session.submitted).toEqual(['at once']);
  await session.end();
  await one.settle();
  expect(session.submitted).toEqual(['at once']);
  finish();
  await one.settle();
  expect(session.submitted).toEqual(['at once', 'after it']);
});

test('the queue runs when the last screen has left, and a message from elsewhere starts a turn without a screen', async () => {
  const { session, turns, screen } = open();
  const one = screen();
  one.type(`go${enter}`);
  one.type(`queued${enter}`);
  one.repl.exit();
  expect(session.interrupts()).toBe(0);
  await session.end();
  await one.settle();
  expect(session.submitted).toEqual(['go', 'queued']);
  await session.end();
  turns.deliver({ text: '/exit is text here', when: 'after' });
  expect(session.submitted.at(-1)).toBe('/exit is text here');
});

test('a screen that begins in the middle of a turn shows the call, the question, the text and the queue', async () => {
  const { session, screen } = open();
  const one = screen();
  one.type(`go${enter}`);
  session.call('c1', 'bash(command="make all")');
  session.start('c1');
  session.emit({ type: 'tool_output', callId: 'c1', chunk: 'compiling\n' });
  one.type(`waits here${enter}`);
  await one.settle();
  const other = screen();
  other.tick(1_500);
  await other.settle();
  const rows = shown(other.terminal).join('\n');
  expect(rows).toContain('make all');
  expect(rows).toContain('waits here');
  expect(other.options.turns.screens()).toBe(2);
  session.result('c1', 'done', { output: 'compiled\n', exit_code: 0 });
  session.stream('The text so far');
  const third = screen();
  await third.settle();
  expect(shown(third.terminal).join('\n')).toContain('The text so far');
});

test('another session that one screen opens is shown on all of them', async () => {
  const { turns, screen } = open();
  const [one, other] = [screen(), screen()];
  const next = createFakeSession();
  next.append({ kind: 'user', content: 'from before', data: null });
  turns.attach(next);
  for (const each of [one, other]) {
    await each.settle();
    expect(shown(each.terminal).join('\n')).toContain('from before');
  }
  other.type(`here${enter}`);
  expect(next.submitted).toEqual(['here']);
});
