import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { agent, place, script } from './program.js';
import { openScreen } from './terminal.js';

test('on a fresh machine the prompt opens, the tools work, and the session comes back', async () => {
  const at = place({ 'README.md': '# Title\n', 'docs/a.md': 'x\n' });
  const first = openScreen(at);
  await first.until(/No model connected yet[\s\S]*❯/);
  first.type('list **/*.md\r');
  const listed = await first.until(/2 files match/);
  expect(listed).toMatch(/✔ glob \*\*\/\*\.md · 2 files.*\nREADME\.md\ndocs\/a\.md/);
  first.type('run ls -a\r');
  await first.until(/ls -a succeeded/);
  first.type('/exit\r');
  expect(await first.exited).toBe(0);

  const second = openScreen(at, ['-c']);
  await second.until(/ls -a succeeded[\s\S]*❯/);
  second.type('read README.md\r');
  await second.until(/✔ read README\.md · 1 line[\s\S]*# Title/);
  second.type('/exit\r');
  expect(await second.exited).toBe(0);
});

test('the terminal is never wiped, and what stood on it stays', async () => {
  const at = place();
  const screen = openScreen(
    at,
    ['-m', script(at, [{ text: Array.from({ length: 120 }, (_, n) => `line ${n} of the answer\n\n`).join('') }]), 'go'],
    { columns: 80, rows: 24 },
  );
  const text = await screen.until(/line 119 of the answer[\s\S]*❯/);
  for (let n = 0; n < 120; n++) expect(text.split(`line ${n} of the answer`)).toHaveLength(2);
  expect(screen.raw()).not.toMatch(/\x1b\[[23]J/);
});

test('an interrupt stops a running command and gives the prompt back', async () => {
  const at = place();
  const asleep = `sleep 300.${process.pid}`;
  const screen = openScreen(at, [
    '-m',
    script(at, [{ calls: [{ name: 'bash', arguments: { command: `echo begun; ${asleep}` } }] }, { text: 'Second.' }]),
    'go',
  ]);
  await screen.until(/begun/);
  screen.type('\x1b');
  await screen.until(/Interrupted/);
  screen.type('go on\r');
  await screen.until(/Second\./);
  expect(execFileSync('ps', ['-eo', 'args']).toString().split('\n')).not.toContain(asleep);
});

test.each([
  ['Esc', '\x1b'],
  ['Ctrl-C', '\x03'],
])("%s ends a command of one's own with all it started, and the program stays", async (_name, key) => {
  const at = place();
  const asleep = `sleep 301.${process.pid}`;
  const screen = openScreen(at, []);
  await screen.until(/❯/);
  screen.type(`!echo begun; ${asleep}\r`);
  await screen.until(/^begun/m);
  screen.type(key);
  await screen.until(/\[stopped\]/);
  expect(execFileSync('ps', ['-eo', 'args']).toString().split('\n')).not.toContain(asleep);
  screen.type('still here');
  await screen.until(/❯ still here/);
});

test('a draft that was thrown away stays away, one that was kept comes back and says so', async () => {
  const at = place();
  const again = async (keys: readonly string[], ready: RegExp): Promise<string> => {
    const screen = openScreen(at, []);
    const text = await screen.until(ready);
    for (const key of keys) {
      screen.type(key);
      if (key.length > 1) await screen.until(new RegExp(`❯ ${key}`));
    }
    await screen.exited;
    return text;
  };
  await again(['STALE one', '\x03', '\x03'], /❯/);
  expect(await again(['STALE two', '\x15', '\x04'], /❯ Ask anything/)).not.toContain('STALE');
  const screen = openScreen(at, []);
  expect(await screen.until(/❯ Ask anything/)).not.toContain('STALE');
  screen.type('half a thought');
  await screen.until(/❯ half a thought/);
  screen.pty.kill('SIGTERM');
  await screen.exited;
  expect(await again(['\x15', '\x04'], /Draft from \d\d:\d\d; Ctrl-U clears it\.[^]*❯ half a thought/)).not.toContain(
    'STALE',
  );
});

test('settings are kept where that is wished, /clear says what it did, and leaving says how to come back', async () => {
  const at = place({ 'a.md': 'x' });
  const screen = openScreen(at, [], { columns: 120 });
  await screen.until(/❯/);
  screen.type('list **/*.md\r');
  await screen.until(/1 file match/);
  screen.type('/approval mutating\r');
  await screen.until(/For this session only; make it the default with \/approval\s+mutating\s+--keep\./);
  screen.type('/approval mutating --keep\r');
  await screen.until(/Saved to .*config\.json: approval =\s+"mutating"/s);
  screen.type('/config\r');
  await screen.until(/Settings[^]*Filter: /);
  screen.type('approval');
  await screen.until(/❯ approval +"mutating" · your settings/);
  screen.type('\u001b');
  await screen.until(/Saved to [^]*❯$/);
  screen.type('/clear\r');
  await screen.until(/New session\. \/resume [0-9A-Za-z-]{13} returns/);
  screen.type('list **/*.md\r');
  await screen.until(/returns to the previous[^]*1 file match[^]*❯$/);
  screen.type('/exit\r');
  await screen.exited;
  const [, id = ''] = /Resume with: agent -r (\S+)/.exec(screen.text()) ?? [];
  expect((await agent(at, ['-p', '-r', id, 'list **/*.md'])).code).toBe(0);
  expect((await agent(at, ['config', 'get', 'approval'])).stdout).toBe('mutating\n');
});

test('a dangerous command waits for a yes, and no is the default', async () => {
  const at = place({ 'keep/file': 'x' });
  const model = script(at, [
    { calls: [{ name: 'bash', arguments: { command: 'rm -rf keep' } }] },
    { text: 'Then not.' },
    { calls: [{ name: 'bash', arguments: { command: 'rm -rf keep' } }] },
    { text: 'Gone.' },
  ]);
  const screen = openScreen(at, ['-m', model, 'go']);
  const asked = await screen.until(/Run this command\?/);
  expect(asked).toContain('rm -rf keep');
  expect(asked).toMatch(/❯ No/);
  await screen.until(/Arrows and Enter only/);
  screen.type('\r');
  await screen.until(/Then not\./);
  expect(screen.text()).toContain('The user denied this.');
  screen.type('\x03');
});

test('a second Ctrl-C leaves, and the terminal is given back as it was', async () => {
  const at = place();
  const screen = openScreen(at, ['-m', script(at, [{ text: 'Hello.' }])]);
  await screen.until(/❯/);
  screen.type('\x03');
  screen.type('\x03');
  expect(await screen.exited, screen.raw()).toBe(0);
  expect(screen.raw().endsWith('\x1b[?25h')).toBe(true);
});

test('a message that waits in the queue survives a kill, and comes back into the input', async () => {
  const at = place();
  const first = openScreen(at, ['-m', script(at, [{ delay_ms: 60_000 }]), 'go']);
  await first.until(/Esc stops/);
  first.type('then look at that\r');
  await first.until(/next: then look at that/);
  first.type('and at this\x1b\r');
  await first.until(/after this turn: and at this/);
  process.kill(first.pty.pid, 'SIGKILL');
  await first.exited;
  const model = script(at, [{ text: 'Second.' }]);
  const second = openScreen(at, ['-c', '-m', model]);
  await second.until(
    /2 messages that were not sent are back in the input\.[\s\S]*❯ then look at that\n *\n {2}and at this/,
  );
  second.type('\r');
  await second.until(/Second\./);
  second.type('\x04');
  expect(await second.exited).toBe(0);
  const third = openScreen(at, ['-c', '-m', model]);
  await third.until(/Second\.[\s\S]*❯/);
  expect(third.text()).not.toContain('never sent');
});

test('a title that is given before the first word is the title of the session', async () => {
  const at = place();
  const screen = openScreen(at);
  await screen.until(/❯/);
  screen.type('/rename a name of mine\r');
  await screen.until(/a name of mine[^]*❯ *$/);
  screen.type('run echo hello\r');
  await screen.until(/succeeded[^]*❯$/m);
  screen.type('/exit\r');
  await screen.exited;
  expect(JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout)).toMatchObject([
    { title: 'a name of mine' },
  ]);
});
