import { test } from 'vitest';
import { greeting } from '../../src/frontends/repl/opening.js';
import { assistant } from '../ui/fake-session.js';
import { facts, openRepl } from '../ui/repl-harness.js';
import { expectScreen } from './expect-screen.js';

test('the first start, where no model is found', async () => {
  const harness = openRepl({
    columns: 90,
    rows: 20,
    greeting: greeting(
      { provider: 'offline', api: 'offline', model: 'offline' },
      { provider: null, model: null },
      { directory: '~/thing', branch: 'main', approval: 'dangerous' },
      'Shift-Tab',
    ),
  });
  await expectScreen(harness, 'first-run');
});

test('what a tool prints may colour its text and nothing else', async () => {
  const harness = openRepl({ columns: 72, rows: 16, facts: { ...facts, colors: 256 } });
  harness.type('show it\r');
  harness.session.call('c1', 'bash(command="cat evil.txt")');
  harness.session.start('c1');
  harness.session.result('c1', 'exit 0', {
    output:
      '\x1b[2J\x1b[H\x1b[31mred\x1b[0m\x1b]0;your title\x07 \x1b]52;c;cm0=\x07and\rover\n\x1b[5Aup \u202egnp.exe\u202c zero\u200bwidth\x9b31m',
  });
  harness.session.stream('A link: \x1b]8;;https://evil.test\x07good.test\x1b]8;;\x07');
  harness.session.append(assistant('A link: good.test'));
  await harness.session.end();
  await expectScreen(harness, 'untrusted');
});

test('wide characters, marks that combine and text from right to left', async () => {
  const harness = openRepl({ columns: 44, rows: 24 });
  harness.type('日本語で書く 👩‍👩‍👧 é\r');
  const text =
    '| 名前 | value |\n|---|---:|\n| 東京タワー | 333 |\n| naïve café | 7 |\n| 👍🏽 ok | 12 |\n\n- שלום עולם\n- مرحبا بالعالم\n- é, ñ: combined\n';
  harness.session.stream(text);
  harness.session.append(assistant(text));
  await harness.session.end();
  await expectScreen(harness, 'wide');
});

test('a request that is sent again, and one that is interrupted', async () => {
  const harness = openRepl({ columns: 72, rows: 16 });
  harness.type('go on\r');
  harness.session.stream('The first words');
  harness.session.emit({
    type: 'retry_scheduled',
    attempt: 2,
    maxRetries: 5,
    delayMs: 8_000,
    reason: 'the server answered 529 (overloaded)',
  });
  harness.tick(2_100);
  await expectScreen(harness, 'retry');
  harness.session.stream('The first words once more, and then');
  harness.tick(40);
  harness.type('\x1b');
  harness.tick(60);
  await expectScreen(harness, 'interrupted');
});
