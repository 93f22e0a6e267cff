import { existsSync, readdirSync, statSync } from 'node:fs';
import { createConnection, createServer } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, binary, place } from './program.js';
import { openProgram, openScreen } from './terminal.js';

const turns = [
  { text: 'I make it.', calls: [{ name: 'bash', arguments: { command: 'rm -rf old && echo made > made.txt' } }] },
  { text: 'It is **made**.' },
  { text: 'Nothing more to do.' },
];

test('a second terminal shows a session as it goes on, and may answer its questions', async () => {
  const at = place({ 'script.json': JSON.stringify({ turns }), 'old/file': 'x' });
  const repl = openScreen(at, ['-m', `offline/${join(at.work, 'script.json')}`]);
  await repl.until(/❯/);
  repl.type('make it\r');
  await repl.until(/Run this command/);

  const other = openScreen(at, ['watch', '--answer']);
  await other.until(/Run this command\?  Dangerous: deletes recursively[^]*rm -rf old[^]*Type y \(yes\)/);
  expect(existsSync(join(at.work, 'made.txt'))).toBe(false);
  other.type('maybe\r');
  await other.until(/Type y, s or n/);
  other.type('y\r');
  await repl.until(/It is made\./);
  await other.until(/Answered\.[^]*✔ bash rm -rf old && echo made > made\.txt[^]*you allowed it[^]*made/);
  expect(existsSync(join(at.work, 'made.txt'))).toBe(true);

  const reader = openScreen(at, ['watch']);
  await reader.until(/make it[^]*It is made\.[^]*The session is running\./);
  repl.type('go on\r');
  await reader.until(/go on[^]*Nothing more to do\./);
  repl.type('\x04');
  expect(await repl.exited).toBe(0);
  await reader.until(/The session ended/);
  for (const screen of [other, reader]) {
    screen.type('\x03');
    expect(await screen.exited).toBe(130);
  }
  expect(readdirSync(join(at.home, '.agent', 'live'))).toEqual([]);
});

test('what listens is for this user alone, and nothing that comes there approves what was not shown', async () => {
  const at = place({ 'script.json': JSON.stringify({ turns }), 'old/file': 'x' });
  const repl = openScreen(at, ['-m', `offline/${join(at.work, 'script.json')}`]);
  await repl.until(/❯/);
  repl.type('make it\r');
  await repl.until(/Run this command/);
  const folder = join(at.home, '.agent', 'live');
  const [name = ''] = readdirSync(folder);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
  const socket = createConnection(join(folder, name));
  const hello = JSON.stringify({ type: 'hello', client: 'watch' });
  socket.write(`${hello}\nno JSON\n{"type":"nothing"}\n{"type":"answer","ref":"1","id":"none","answer":"once"}\n`);
  const heard = await new Promise<string>((resolve) => {
    let text = '';
    socket.on('data', (chunk) => {
      text += String(chunk);
      if (text.includes('"done"')) resolve(text);
    });
  });
  const [state = ''] = heard.split('\n');
  const { questions } = JSON.parse(state) as { readonly questions: readonly { readonly id: string }[] };
  for (const shown of ['', 'f00'])
    socket.write(
      `${JSON.stringify({ type: 'answer', ref: `r${shown}`, id: questions[0]?.id, answer: 'once', shown, source: 'watch' })}\n`,
    );
  await new Promise((resolve) => {
    socket.on('data', (chunk) => {
      if (String(chunk).includes('"rf00"')) resolve(null);
    });
  });
  socket.destroy();
  repl.type('\x1b');
  await repl.until(/denied|rejected|No/i);
  repl.type('\x04');
  await repl.exited;
  expect(existsSync(join(at.work, 'made.txt'))).toBe(false);

  const server = createServer((client) => {
    const facts = { ...(JSON.parse(state) as { readonly facts: object }).facts };
    client.write(`${JSON.stringify({ type: 'state', busy: true, questions: [], text: '', after: 0, facts })}\n`);
    client.write('no JSON\n{"type":"nothing"}\n{"type":"text","text":"\\u001b]0;title\\u0007shown","after":99}\n');
  });
  await new Promise<void>((resolve) => {
    server.listen(join(folder, name), resolve);
  });
  const screen = openScreen(at, ['watch']);
  await screen.until(/shown/);
  expect(screen.raw()).not.toContain('\x1b]0;title');
  screen.type('\x03');
  expect(await screen.exited).toBe(130);
  server.close();
  expect((await agent(at, ['watch', 'nobody'])).code).toBe(7);
});

test.each([
  { name: 'in a terminal', isTerminal: true },
  { name: 'through a pipe', isTerminal: false },
])(
  'each text is shown once, in order, as Markdown, by followers that come at different moments, $name',
  async ({ isTerminal }) => {
    const steps = Array.from({ length: 60 }, (_, at) => ({
      text: `Step ${at} is **made**.`,
      // The second follower has to come before the end.
      delay_ms: 50,
      calls: [{ name: 'bash', arguments: { command: `echo call ${at}` } }],
    }));
    const script = JSON.stringify({ turns: [{ text: 'Hi.' }, ...steps, { text: 'All is done.' }] });
    const at = place({ 'script.json': script });
    const model = `offline/${join(at.work, 'script.json')}`;
    expect((await agent(at, ['-p', '-m', model, 'hello'])).code).toBe(0);
    const [program, args] = isTerminal
      ? [process.execPath, [binary, 'watch']]
      : ['/bin/sh', ['-c', `"$0" "$1" watch | cat`, process.execPath, binary]];
    const first = openProgram(at, program, args);
    await first.until(/Hi\./);
    const run = agent(at, ['-p', '-c', '-m', model, '--approval', 'never', '--max-tool-turns', '200', 'go']);
    await first.until(/Step 10 is made/);
    const second = openProgram(at, program, args);
    expect((await run).code).toBe(0);
    for (const screen of [first, second]) {
      await screen.until(/All is done\.[^]*The session ended/);
      const shown = screen.lines().join('\n');
      const numbers = [...shown.matchAll(/^Step (\d+) is made\.$|^✔ bash echo call (\d+)(?: ·.*)?$/gm)].map(
        ([, step, call]) => Number(step ?? call) + (call === undefined ? 0 : 0.5),
      );
      const last = steps.flatMap((_, step) => [step, step + 0.5]);
      expect(numbers).toEqual(screen === first ? last : last.slice(-numbers.length));
      expect(shown.match(/All is done/g)).toHaveLength(1);
      screen.type('\x03');
    }
  },
);
