import { expect, test } from 'vitest';
import type { SlashCommand } from '../../src/kernel/console/slash-command.js';
import type { RunShell } from '../../src/ui/repl-options.js';
import type { Form } from '../../src/kernel/core/form.js';
import type { AgentEvent } from '../../src/kernel/core/session-port.js';
import { createFakeSession, type FakeSession, question } from './fake-session.js';
import { facts, type Harness, openRepl, shown } from './repl-harness.js';

/** Work that the test ends. */
interface Held {
  readonly work: Promise<void>;
  end(error?: Error): void;
}

function held(): Held {
  let end: Held['end'] = () => undefined;
  const work = new Promise<void>((resolve, reject) => {
    end = (error) => {
      if (error) reject(error);
      else resolve();
    };
  });
  return {
    work,
    end: (error) => {
      end(error);
    },
  };
}

interface Rig {
  readonly harness: Harness;
  readonly session: FakeSession;
  readonly held: Held;
  /** Names of the commands that ran, in order, with the messages that were sent. */
  readonly ran: string[];
}

/** Text goes to the session, and commands write their names down, so both have one order. */
async function open(plain: boolean): Promise<Rig> {
  const ran: string[] = [];
  const hold = held();
  const session = createFakeSession();
  const { submit } = session;
  session.submit = (text) => {
    ran.push(text);
    return submit(text);
  };
  const command = (name: string, run: SlashCommand['run']): SlashCommand => ({ name, description: '', run });
  const runShell: RunShell = async (line, { signal }) => {
    ran.push(`!${line}`);
    if (line !== 'sleep') return { exitCode: 0 };
    signal.addEventListener('abort', () => {
      hold.end();
    });
    await hold.work;
    return { exitCode: 0 };
  };
  const items = [{ label: 'one', value: 1 }];
  const commands: readonly SlashCommand[] = [
    command('mark', async () => void ran.push('/mark')),
    { ...command('rest', async () => void ran.push('/rest')), waits: true },
    command('probe', () => hold.work),
    command('list', async (_argument, context) => void (await context.pick({ title: 'Which', items }))),
    command('view', async (_argument, context) => void (await context.page('Title', 'text'))),
    command('secret', async (_argument, context) => void (await context.hidden({ title: 'Key', rows: [] }))),
    command('ask', async (_argument, context) => {
      await hold.work;
      context.send('of the command');
    }),
    command('compact', async (_argument, context) => {
      context.signal.addEventListener('abort', () => {
        session.interrupt();
      });
      // The session is busy, and no turn of a message runs.
      await session.submit('(summary)').then(() => undefined);
    }),
  ];
  const harness = openRepl({ session, commands, runShell, facts: { ...facts, plain } });
  await harness.settle();
  return { harness, session, held: hold, ran };
}

async function enter({ harness }: Rig, ...lines: readonly string[]): Promise<void> {
  for (const line of lines) {
    harness.type(line);
    harness.type(harness.options.terminal.facts.plain ? '\n' : '\r');
  }
  await harness.settle();
}

const esc = (rig: Rig): void => {
  if (rig.harness.options.terminal.facts.plain) rig.harness.repl.interrupt();
  else rig.harness.type('\x1b');
  rig.harness.tick(600);
};

/** Every way to be busy while keys still reach the input. `first`: what runs meanwhile, as `ran` shows it. */
const busy: readonly {
  readonly name: string;
  readonly first: readonly string[];
  begin(rig: Rig): Promise<void>;
  end(rig: Rig, failed: boolean): Promise<void> | void;
}[] = [
  {
    name: 'a turn',
    first: ['first'],
    begin: (rig) => enter(rig, 'first'),
    end: ({ session }, failed) =>
      failed ? session.end('failed', { code: 'internal', message: 'down' }) : session.end(),
  },
  {
    name: 'a compaction',
    first: ['(summary)'],
    begin: (rig) => enter(rig, '/compact'),
    end: ({ session }, failed) => session.end(failed ? 'failed' : 'completed'),
  },
  {
    name: 'a command that waits for a server',
    first: [],
    begin: (rig) => enter(rig, '/probe'),
    end: ({ held: { end } }, failed) => {
      end(failed ? new Error('no answer') : undefined);
    },
  },
  {
    name: 'a command of the user',
    first: ['!sleep'],
    begin: (rig) => enter(rig, '!sleep'),
    end: ({ held: { end } }, failed) => {
      end(failed ? new Error('no shell') : undefined);
    },
  },
];

const forms = [false, true] as const;

for (const plain of forms)
  for (const way of busy)
    for (const ending of ['succeeds', 'fails', 'is cancelled'] as const)
      test(`${plain ? 'plain' : 'screen'}: what is typed during ${way.name} runs once and in order when it ${ending}`, async () => {
        const rig = await open(plain);
        await way.begin(rig);
        const isTurn = way.name === 'a turn';
        await enter(rig, 'one', isTurn ? '/rest' : '/mark', 'two');
        expect(rig.ran).toEqual(way.first);
        if (ending === 'is cancelled') esc(rig);
        else await way.end(rig, ending === 'fails');
        await rig.harness.settle();
        if (isTurn && ending === 'is cancelled') {
          // Interrupting a turn gives its queue back to the user.
          expect(rig.ran).toEqual(way.first);
          return;
        }
        expect(rig.ran).toEqual([...way.first, 'one']);
        await rig.session.end();
        await rig.harness.settle();
        expect(rig.ran).toEqual([...way.first, 'one', isTurn ? '/rest' : '/mark', 'two']);
        await rig.session.end();
        await rig.harness.settle();
        await enter(rig, 'three');
        expect(rig.ran.slice(-2)).toEqual(['two', 'three']);
        expect(rig.session.takeQueue()).toEqual([]);
      });

/** Dialogs take the keys: the program itself sends meanwhile. */
for (const plain of forms)
  for (const name of plain ? ['list', 'secret'] : ['list', 'view', 'secret'])
    test(`${plain ? 'plain' : 'screen'}: a message that comes while /${name} is open is sent when it closes`, async () => {
      const rig = await open(plain);
      await enter(rig, `/${name}`);
      rig.harness.repl.submit('meanwhile');
      await rig.harness.settle();
      expect(rig.ran).toEqual([]);
      if (plain) esc(rig);
      else {
        rig.harness.tick(1000);
        rig.harness.type('\x1b');
        rig.harness.tick(60);
      }
      await rig.harness.settle();
      expect(rig.ran).toEqual(['meanwhile']);
    });

for (const plain of forms) {
  test(`${plain ? 'plain' : 'screen'}: the message of a command goes before what was typed while it ran`, async () => {
    const rig = await open(plain);
    await enter(rig, '/ask', 'typed');
    rig.held.end();
    await rig.harness.settle();
    expect(rig.ran).toEqual(['of the command\n\ntyped']);
  });

  test(`${plain ? 'plain' : 'screen'}: /exit does not wait`, async () => {
    const rig = await open(plain);
    await enter(rig, '/probe', '/exit');
    expect(rig.harness.exits()).toBe(1);
  });

  test(`${plain ? 'plain' : 'screen'}: what is typed while another session is opened goes to that one`, async () => {
    const other = createFakeSession();
    const gate = held();
    const rig = await open(plain);
    const commands: SlashCommand[] = [
      {
        name: 'open',
        description: '',
        run: async (_argument, context) => {
          await gate.work;
          context.attach(other);
        },
      },
    ];
    const harness = openRepl({ session: rig.session, commands, facts: { ...facts, plain } });
    await enter({ ...rig, harness }, '/open', 'to the other');
    gate.end();
    await harness.settle();
    expect([rig.ran, other.submitted]).toEqual([[], ['to the other']]);
  });

  test(`${plain ? 'plain' : 'screen'}: a message sent at the end of a turn does not overtake a command that waits`, async () => {
    const rig = await open(plain);
    await enter(rig, 'first', '/rest', 'later');
    expect(rig.session.takeQueue()).toEqual([
      { text: '/rest', when: 'after', typed: true, screen: 1 },
      { text: 'later', when: 'after', screen: 1 },
    ]);
  });
}

const whichForm: Form = {
  from: 'the model',
  message: '',
  fields: [{ name: 'which', question: 'Which one?', kind: 'text', required: true }],
};

test.each<readonly [string, AgentEvent, AgentEvent]>([
  [
    'a question',
    { type: 'approval_requested', question: question('c1', 'bash', { command: 'make' }) },
    { type: 'approval_resolved', callId: 'c1', answer: 'deny' },
  ],
  ['a form', { type: 'form_opened', id: 'f1', form: whichForm }, { type: 'form_closed', id: 'f1' }],
])('the time in which %s waits for the user is not working time', async (_name, opened, closed) => {
  const harness = openRepl();
  await harness.settle();
  harness.type('go\r');
  harness.tick(3_000);
  harness.session.emit(opened);
  harness.tick(24_000);
  expect(shown(harness.terminal).join('\n')).not.toContain('working');
  harness.session.emit(closed);
  await harness.settle();
  expect(shown(harness.terminal).join('\n')).toContain('working 3s');
  harness.tick(2_000);
  await harness.settle();
  expect(shown(harness.terminal).join('\n')).toContain('working 5s');
  void harness.session.end();
  harness.type('again\r');
  await harness.settle();
  expect(shown(harness.terminal).join('\n')).toContain('working 0s');
});

test('a wait for a usage limit counts down in the status line, until it is over', async () => {
  const { harness, session } = await open(false);
  harness.type('go\r');
  await harness.settle();
  const row = async (event: AgentEvent): Promise<string> => {
    session.emit(event);
    harness.tick(40);
    await harness.settle();
    return shown(harness.terminal).join('\n');
  };
  const until = Date.now() + 3_723_000;
  expect(await row({ type: 'limit_waiting', until, provider: 'anthropic' })).toMatch(
    /usage limit until (?:\w{3} \d+ \w{3}, )?\d\d:\d\d, 1:02:0\d left, Esc stops/,
  );
  expect(await row({ type: 'limit_ended', continued: true })).not.toContain('usage limit');
});
