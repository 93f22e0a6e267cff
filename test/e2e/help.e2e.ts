import { expect, test } from 'vitest';
import { agent, place } from './program.js';
import { openScreen } from './terminal.js';

test('help on any command is in groups and no line is longer than 100 columns, also on a narrower terminal', async () => {
  const at = place();
  const whole = await agent(at, ['--help']);
  for (const heading of [
    'Model:',
    'Session:',
    'Headless:',
    'Sessions and the record:',
    'Take back:',
    'Tools, models and settings:',
  ])
    expect(whole.stdout).toContain(`\n${heading}\n`);
  expect(whole.stdout).not.toMatch(/^.{101}/m);
  expect((await agent(at, ['help'])).stdout).toBe(whole.stdout);
  const audit = await agent(at, ['help', 'audit']);
  expect([audit.code, audit.stdout]).toEqual([0, (await agent(at, ['audit', '--help'])).stdout]);
  expect(audit.stdout).toMatch(/Options:[^]*--csv[^]*-h, --help[^]*Commands:\n/);
  expect((await agent(at, ['help', 'sessions', 'list'])).stdout).toMatch(/Usage: agent sessions list .*[^]*--page <n>/);
  for (const name of whole.stdout.match(/(?<=^  )[a-z]+(?= )/gm) ?? [])
    expect((await agent(at, ['help', name])).stdout).not.toMatch(/^.{101}/m);
  expect(await agent(at, ['help', 'sessions', 'lst'])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/no command `sessions lst`\nDid you mean list\?/) as string,
  });
  expect(await agent(at, ['version'])).toEqual(await agent(at, ['--version']));
  const narrow = openScreen(at, ['--help'], { columns: 80 });
  await narrow.exited;
  expect(narrow.raw()).not.toMatch(/[^\r\n]{81}/);
}, 120_000);

test('one word that is nearly a command is no prompt unless that is said', async () => {
  const at = place();
  expect(await agent(at, ['sesions'])).toMatchObject({
    code: 2,
    stdout: '',
    stderr:
      'agent: `sesions` is not a command; did you mean `agent sessions`?\nA prompt of that one word needs -- before it: agent -- sesions\n',
  });
  expect(await agent(at, ['-m', 'offline', 'sesions', 'are', 'lost'])).toMatchObject({ code: 2, stdout: '' });
  for (const args of [
    ['-m', 'offline', '--', 'sesions'],
    ['-m', 'offline', '--', 'sesions', 'are', 'lost'],
    ['-m', 'offline', '-p', 'sesions'],
    ['-m', 'offline', 'hello'],
  ]) {
    expect(await agent(at, args)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('offline provider') as string,
    });
  }
  const refused = openScreen(at, ['docter']);
  await refused.until(/did you mean `agent doctor`\? Send it as a prompt\? \[y\/N\]/);
  refused.type('\r');
  expect([await refused.exited, refused.text()]).toEqual([2, expect.stringContaining('agent -- docter')]);
  const sent = openScreen(at, ['docter']);
  await sent.until(/\[y\/N\]/);
  sent.type('y\r');
  await sent.until(/❯ docter[^]*I am the offline provider/);
});

test('a server on this machine needs no key', async () => {
  const { stdout } = await agent(place(), ['providers']);
  expect(stdout.match(/^(?:ollama|lmstudio) .*no key needed/gm)?.length).toBe(2);
  expect(stdout).toMatch(/^openai .*OPENAI_API_KEY is not set/m);
});
