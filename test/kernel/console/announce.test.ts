import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createProcessRunner } from '../../../src/kernel/tools/process/runner.js';
import { announce, type AnnounceOptions, desktopCommand } from '../../../src/kernel/console/announce.js';

const folder = mkdtempSync(join(tmpdir(), 'agent-announce-'));
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

const options: AnnounceOptions = {
  command: [],
  env: { PATH: process.env.PATH ?? '' },
  platform: 'linux',
  cwd: folder,
  processes: createProcessRunner({ marker: { name: '_AGENT_RUN', value: 'announce-test' } }),
};
const oven = { title: 'Reminder', text: 'Take the pizza out of the oven' };

test("the user's own program gets the text on standard input and is never a shell's", async () => {
  const file = join(folder, 'heard $(x)');
  expect(await announce({ ...options, command: ['tee', file] }, oven)).toBe(null);
  expect(readFileSync(file, 'utf8')).toBe('Reminder\nTake the pizza out of the oven\n');
});

test('a program that fails, or is not there, is said and never thrown', async () => {
  expect(await announce({ ...options, command: ['false'] }, oven)).toBe('false ended with exit code 1');
  expect(await announce({ ...options, command: ['/no/such/program'] }, oven)).toMatch(/could not be started/);
  expect(await announce(options, oven)).toMatch(/there is no desktop here/);
});

test('a program that does not end is ended by the signal', async () => {
  const stop = new AbortController();
  const telling = announce({ ...options, command: ['sleep', '60'] }, oven, stop.signal);
  stop.abort();
  expect(await telling).toBe('sleep was stopped');
});

const display = { DISPLAY: ':0' };
test.each([
  ['win32', display, oven, null],
  ['linux', {}, oven, null],
  [
    'linux',
    display,
    { title: 'Reminder', text: '-x <b>1 & 2</b>\nsecond line' },
    ['notify-send', '--app-name=agent', '--', 'agent: Reminder', '-x &lt;b&gt;1 &amp; 2&lt;/b&gt;…'],
  ],
  [
    'linux',
    display,
    { title: 'agent', text: 'agent asks you something' },
    ['notify-send', '--app-name=agent', '--', 'agent', 'agent asks you something'],
  ],
  ['linux', { DBUS_SESSION_BUS_ADDRESS: 'unix:x' }, oven, expect.arrayContaining([oven.text]) as unknown],
  [
    'darwin',
    {},
    { title: 'Reminder', text: '" & do shell script "id' },
    expect.arrayContaining(['osascript', 'agent: Reminder', '" & do shell script "id']) as unknown,
  ],
] as const)('on %s with %j the desktop is told of %j', (platform, env, said, argv) => {
  expect(desktopCommand({ platform, env }, said)).toEqual(argv);
});
