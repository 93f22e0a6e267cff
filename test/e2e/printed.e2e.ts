import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, binary, place, script, type Place } from './program.js';
import { openProgram } from './terminal.js';

/** What would rename the window, set the clipboard, turn text around or hide it; in strings of JSON and CSV as well. */
const evil = 'evil\u001b[31m\u001b]0;pwned\u0007\u009b2J\u009d52;c;cm0=\u0007\u007f\u202e\u{e0041}\ufff9\u3164,end';
const hidden = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202e\ufff9\u3164]|[\u{e0000}-\u{e0fff}]/u;

/** A session in a directory with a hostile name, whose model says and calls hostile things. */
async function hostileRecord(): Promise<{ readonly at: Place; readonly id: string }> {
  const outer = place();
  const work = join(outer.work, evil.replace('/', ''));
  mkdirSync(work);
  const at = { ...outer, work };
  const model = script(outer, [
    {
      text: `said ${evil}`,
      calls: [
        { name: `tool${evil}`, arguments: {} },
        { name: 'bash', arguments: { command: `printf '%s' '${evil.replaceAll("'", '')}'` } },
      ],
    },
    { text: `done ${evil}` },
  ]);
  await agent(at, ['-p', '-m', model, '--approval', 'never', `look ${evil}`]);
  const [session] = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as readonly {
    readonly id: string;
    readonly cwd: string;
  }[];
  expect(session?.cwd).toBe(work);
  return { at, id: session?.id ?? '' };
}

const people = (id: string): readonly (readonly string[])[] => [
  ['sessions', 'list'],
  ['sessions', 'show', id],
  ['sessions', 'prune', '--older-than', '1970-01-02'],
  ['sessions', 'prune', '--older-than', '2999-01-01'],
  ['search', 'look'],
  ['audit'],
  ['audit', 'suggest-rules'],
  ['audit', 'verify'],
  ['stats'],
  ['sql', 'SELECT content FROM events'],
  ['replay', id, '--instant'],
  ['replay', id, '--verify'],
  ['sessions', 'export', id],
  ['sessions', 'export', id, '--format', 'html'],
  ['tools', 'list'],
  ['config', 'show'],
  ['config', 'trust', '--list'],
  ['doctor'],
  ['undo', 'all'],
];
const json = (id: string): readonly (readonly string[])[] => [
  ['sessions', 'list', '--json'],
  ['sessions', 'show', id, '--json'],
  ['sessions', 'prune', '--older-than', '2999-01-01', '--json'],
  ['search', 'look', '--json'],
  ['audit', '--json'],
  ['stats', '--json'],
  ['sql', 'SELECT content FROM events', '--json'],
  ['replay', id, '--verify', '--json'],
  ['tools', 'call', 'bash', `{"command":${JSON.stringify(`echo '${evil}'`)}}`, '--approval', 'never'],
];
const csvAndJson = (id: string): readonly (readonly string[])[] => [
  ['audit', '--csv'],
  ['sql', 'SELECT content FROM events', '--csv'],
  ['sessions', 'show', id, '--as', 'openai-chat'],
  ['sessions', 'export', id, '--format', 'jsonl'],
];

test('no listing lets what is on record steer a terminal, not even through a pager', async () => {
  const { at, id } = await hostileRecord();
  for (const args of [...people(id), ...json(id)]) {
    const { stdout, stderr } = await agent(at, args);
    expect([args.join(' '), hidden.exec(stdout)?.[0], hidden.exec(stderr)?.[0]]).toEqual([
      args.join(' '),
      undefined,
      undefined,
    ]);
  }
  for (const args of json(id))
    expect(JSON.stringify(JSON.parse((await agent(at, args)).stdout))).toMatch(/evil|\[\]|"tool"/);
}, 180_000);

/** A terminal whose program has ended is closed after 200 ms, whether all was read or not. */
const staying = 'node "$@"; echo that is all; read line';

test('on a terminal CSV, request bodies and exports are safe too, and byte for byte in a file', async () => {
  const { at, id } = await hostileRecord();
  const data = csvAndJson(id);
  for (const args of [...data, ...people(id).slice(0, 2), ...json(id).slice(0, 2)]) {
    const screen = openProgram(at, 'sh', ['-c', staying, 'sh', binary, ...args], { columns: 200 });
    await screen.until(/that is all/);
    screen.pty.kill('SIGKILL');
    expect([args.join(' '), hidden.exec(screen.raw())?.[0]]).toEqual([args.join(' '), undefined]);
    if (data.includes(args) || args.includes('show')) expect(screen.raw()).toContain('evil');
  }
  expect((await agent(at, ['sql', 'SELECT content FROM events WHERE seq = 3', '--csv'])).stdout).toContain(evil);
  const file = join(at.home, 'out.jsonl');
  await agent(at, ['sessions', 'export', id, '-o', file]);
  expect(
    readFileSync(file, 'utf8')
      .split('\n')
      .map((line) => (line === '' ? '' : JSON.stringify(JSON.parse(line))))
      .join('\n'),
  ).toContain('\u202e');
}, 180_000);
