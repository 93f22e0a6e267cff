import { test } from 'vitest';
import { openRepl } from '../ui/repl-harness.js';
import { expectScreen } from './expect-screen.js';

const modes = ['dangerous', 'mutating', 'always', 'plan'];

test('Shift-Tab goes round the approval modes, and the draft stays', async () => {
  let at = 0;
  const status = () => ({ model: 'offline', approval: modes[at] ?? '', sandbox: 'off', directory: '~/thing' });
  const nextMode = (): void => {
    at = (at + 1) % modes.length;
  };
  const harness = openRepl({ columns: 80, rows: 10, status, nextMode });
  harness.type('a draft');
  for (let presses = 1; presses <= modes.length; presses++) {
    harness.type('\x1b[Z');
    await expectScreen(harness, `mode-${modes[at]}`);
  }
});

test.each([40, 80, 120])('what the model does and has left to do, in one line, at %i columns', async (columns) => {
  const harness = openRepl({ columns, rows: 12 });
  harness.type('go\r');
  const items = [
    { text: 'read the code', status: 'done' },
    { text: 'write the parser \x1b[31mfor all of the seven kinds of lines that there are', status: 'active' },
  ];
  harness.session.call('c1', 'todo(2 items)', JSON.stringify({ items }));
  harness.session.start('c1');
  harness.session.append({
    kind: 'tool_result',
    content: '2 of 2',
    data: { tool_call_id: 'c1', name: 'todo', output: '{"output":"kept"}', success: true, duration_ms: 1 },
  });
  await expectScreen(harness, `todo-${columns}`);
  await harness.session.end();
  await expectScreen(harness, `todo-idle-${columns}`);
});
