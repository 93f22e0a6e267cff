import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, place, script, type Place } from './program.js';
import { openScreen, type Screen } from './terminal.js';

/** Room for the path of a temporary folder and what is said of it. */
const wide = { columns: 200 };
const asking = { approval: 'never', system_prompt: 'Speak plainly.' };

function project(settings: unknown = asking): Place {
  return place({
    '.agent/config.json': JSON.stringify(settings),
    '.git/HEAD': 'ref: refs/heads/main\n',
    'keep.txt': 'x',
  });
}

interface Answer {
  readonly directory: string;
  readonly sha256: string;
  readonly trusted: boolean;
}
const answers = (at: Place): readonly Answer[] =>
  (JSON.parse(readFileSync(join(at.home, '.agent/trust.json'), 'utf8')) as { directories: Answer[] }).directories;

async function approvalSaid(at: Place): Promise<string> {
  return (await agent(at, ['config', 'get', 'approval'])).stdout.trim();
}

async function leave(screen: Screen): Promise<void> {
  screen.type('/exit\r');
  expect(await screen.exited).toBe(0);
}

test('the REPL asks once, before anything else; no is the default and is remembered', async () => {
  const at = project();
  const first = openScreen(at, [], wide);
  const question = await first.until(/\[y\/N\]/);
  expect(question).toContain('approval = "never"\n  system_prompt = "Speak plainly."');
  expect(question).not.toContain('❯');
  expect(existsSync(join(at.home, '.agent'))).toBe(false);
  first.type('\r');
  await first.until(
    /not trusted; ignored: approval, system_prompt[\s\S]*❯|❯[\s\S]*not trusted; ignored: approval, system_prompt/,
  );
  await leave(first);
  expect([await approvalSaid(at), answers(at).map((entry) => entry.trusted)]).toEqual(['dangerous', [false]]);
  const second = openScreen(at, [], wide);
  await second.until(/❯/);
  expect(second.text()).not.toContain('[y/N]');
  await leave(second);
});

test('who types while the question comes answers nothing; all of it is the draft afterwards', async () => {
  const screen = openScreen(project(), [], wide);
  for (const key of 'why yesterday you yes') {
    screen.type(key);
    await new Promise((resolve) => {
      setTimeout(resolve, 120);
    });
  }
  await screen.until(/\[y\/N\]/);
  screen.type('n\r');
  await screen.until(/❯ why yesterday you yes/);
  await screen.until(/not trusted; ignored/);
});

test('a yes holds for exactly that file, in every command; one changed byte asks again', async () => {
  const at = project();
  const first = openScreen(at, [], wide);
  await first.until(/\[y\/N\]/);
  first.type('y\r');
  await first.until(/❯/);
  await leave(first);
  expect([
    await approvalSaid(at),
    answers(at)[0]?.directory,
    statSync(join(at.home, '.agent/trust.json')).mode & 0o777,
  ]).toEqual(['never', at.work, 0o600]);
  const file = at.file('.agent/config.json', `${JSON.stringify(asking)}\n`);
  expect(await approvalSaid(at)).toBe('dangerous');
  const second = openScreen(at, [], wide);
  await second.until(/\[y\/N\]/);
  writeFileSync(file, JSON.stringify({ approval: 'never', max_tool_turns: 1000 })); // changed while the question stands
  second.type('y\r');
  await second.until(/not trusted; ignored: approval, max_tool_turns/);
  await leave(second);
  expect(await approvalSaid(at)).toBe('dangerous');
});

test('what was typed before the question stands there answers nothing', async () => {
  const at = project();
  const screen = openScreen(at, [], wide);
  screen.type('y\ry\ry');
  await screen.until(/\[y\/N\]/);
  screen.type('\r');
  await screen.until(/not trusted[\s\S]*❯ y\n {2}y\n {2}y$/);
  screen.type('\x03');
  await leave(screen);
  expect(answers(at).map((entry) => entry.trusted)).toEqual([false]);
});

test('headless nobody is asked: it is ignored with a notice, and works', async () => {
  const at = project({ ...asking, model: 'offline/x.json', base_url: 'http://127.0.0.1:1' });
  const model = script(at, [
    { calls: [{ name: 'bash', arguments: { command: 'rm -rf keep.txt' } }] },
    { text: 'Done.' },
  ]);
  const { code, stdout, stderr } = await agent(at, ['-p', '-m', model, 'go']);
  expect([code, stdout]).toEqual([6, 'Done.\n']);
  expect(stderr).toMatch(/\.agent\/config\.json is not trusted; ignored: approval, system_prompt, model, base_url\./);
  expect([existsSync(join(at.work, 'keep.txt')), existsSync(join(at.home, '.agent/trust.json'))]).toEqual([
    true,
    false,
  ]);
});

test('trust in a directory is not trust in a repository inside it', async () => {
  const at = project();
  const screen = openScreen(at, ['config', 'trust']);
  await screen.until(/\[y\/N\]/);
  screen.type('yes\r');
  expect(await screen.exited).toBe(0);
  at.file('inner/.agent/config.json', JSON.stringify(asking));
  at.file('inner/.git/HEAD', '');
  const inner = { ...at, work: join(at.work, 'inner') };
  expect([await approvalSaid(at), await approvalSaid(inner)]).toEqual(['never', 'dangerous']);
});

test('config trust asks again, lists, and takes back; without a terminal it does not ask', async () => {
  const at = project();
  expect(await agent(at, ['config', 'trust'])).toMatchObject({
    code: 2,
    stderr: 'agent: trust is only asked about in a terminal\nRun agent config trust in one.\n',
  });
  for (const [typed, wanted] of [
    ['n', false],
    ['y', true],
  ] as const) {
    const screen = openScreen(at, ['config', 'trust']);
    await screen.until(/\[y\/N\]/);
    screen.type(`${typed}\r`);
    expect(await screen.exited).toBe(0);
    expect(JSON.parse((await agent(at, ['config', 'trust', '--list', '--json'])).stdout)).toMatchObject([
      { directory: at.work, trusted: wanted },
    ]);
  }
  expect((await agent(at, ['config', 'trust', '--revoke'])).stdout).toBe(
    `Nothing is remembered any more of ${at.work}.\n`,
  );
  expect([await approvalSaid(at), (await agent(at, ['config', 'trust', '--list', '--json'])).stdout]).toEqual([
    'dangerous',
    '[]\n',
  ]);
});

test('one changed byte of a tool of the project asks again before anything else; a no leaves it out for good', async () => {
  const at = place({
    '.agent/tools/hello/tool.json': JSON.stringify({
      name: 'hello',
      description: 'Hello.',
      command: ['sh', './run.sh'],
    }),
    '.agent/tools/hello/run.sh': 'echo hello',
  });
  const allowed = await agent(at, ['tools', 'add', '.agent/tools/hello']);
  const [, sha256 = ''] = /sha256 (\w{64})/.exec(allowed.stdout) ?? [];
  await agent(at, ['tools', 'add', '.agent/tools/hello', '--sha256', sha256]);
  const plain = openScreen(at, ['--tools', '+custom'], wide);
  await plain.until(/❯/);
  expect(plain.text()).not.toContain('[y/N]');
  await leave(plain);
  writeFileSync(join(at.work, '.agent/tools/hello/run.sh'), 'echo changed');
  const yes = openScreen(at, ['--tools', '+custom'], wide);
  expect(await yes.until(/\[y\/N\]/)).toMatch(/has changed since you allowed it[\s\S]*runs sh \/.*run\.sh/);
  yes.type('y\r');
  await yes.until(/❯/);
  yes.type('/tools\r');
  await yes.until(/hello[\s\S]*custom/);
  await leave(yes);
  writeFileSync(join(at.work, '.agent/tools/hello/run.sh'), 'echo changed again');
  const no = openScreen(at, ['--tools', '+custom'], wide);
  await no.until(/\[y\/N\]/);
  no.type('\r');
  await no.until(/the current files were not allowed[\s\S]*❯|❯[\s\S]*the current files were not allowed/);
  await leave(no);
  const later = openScreen(at, ['--tools', '+custom'], wide);
  await later.until(/❯/);
  expect(later.text()).not.toContain('[y/N]');
  await leave(later);
});

test('commands of a project are asked about once, all together; one changed byte asks again', async () => {
  const at = place({
    '.git/HEAD': 'ref: refs/heads/main\n',
    '.claude/commands/deploy.md': '---\ndescription: ships it\n---\nShip $1. !`echo fast`\n',
    '.agents/skills/pdf/SKILL.md': '---\nname: pdf\ndescription: Reads PDFs\n---\nUse pdftotext.\n',
    'keep.txt': 'x',
  });
  const trusted = async (): Promise<unknown> =>
    JSON.parse((await agent(at, ['config', 'trust', '--list', '--json'])).stdout);
  const first = openScreen(at, [], wide);
  const question = await first.until(/\[y\/N\]/);
  expect(question).toContain('command /deploy: ships it\n      runs: echo fast\n');
  expect(question).toContain('skill pdf: Reads PDFs (0 more files)');
  first.type('\r');
  await first.until(/2 files of this project are not trusted/);
  first.type('/deploy now\r');
  await first.until(/There is no command \/deploy/);
  await leave(first);
  expect(await trusted()).toMatchObject([{ directory: at.work, trusted: false }]);
  const again = openScreen(at, ['config', 'trust'], wide);
  await again.until(/\[y\/N\]/);
  again.type('y\r');
  expect(await again.exited).toBe(0);
  const second = openScreen(at, ['-m', script(at, [{ text: 'Shipped.' }])], wide);
  await second.until(/❯/);
  second.type('/deploy now\r');
  await second.until(/Shipped\./);
  expect(second.text()).toContain('/deploy now');
  await leave(second);
  at.file('.claude/commands/deploy.md', '---\ndescription: ships it\n---\nShip $1, twice.\n');
  const third = openScreen(at, [], wide);
  await third.until(/\[y\/N\]/);
  third.type('\r');
  await third.until(/❯/);
  await leave(third);
  expect(await trusted()).toMatchObject([{ directory: at.work, trusted: false }]);
});

test('900 files are asked about by folder; a folder opens before the answer, and the yes holds', async () => {
  const commands = Array.from({ length: 900 }, (_, index): readonly [string, string] => [
    `.claude/commands/cmd-${index}.md`,
    `---\ndescription: does the thing number ${index} of the project\n---\nDo it.\n`,
  ]);
  const hooks = { PreToolUse: [{ matcher: 'Bash', hooks: [{ type: 'command', command: 'echo never >&2; exit 2' }] }] };
  const at = place({
    '.git/HEAD': 'ref: refs/heads/main\n',
    ...Object.fromEntries(commands),
    '.claude/settings.json': JSON.stringify({ hooks }),
  });
  const screen = openScreen(at, ['config', 'trust'], { ...wide, env: { NO_COLOR: '1' } });
  const question = await screen.until(/\[y\/N\] \(1: list a folder, l: list the folders\)/);
  expect(question).toContain('hook PreToolUse (Bash) runs: echo never >&2; exit 2');
  expect(question).toMatch(/ {2}1 {2}\.claude\/commands: 900 commands, \d+ KiB \(sha256 \w{16}\)/);
  expect(question).not.toContain('command /cmd-899');
  screen.type('1\r');
  await screen.until(/command \/cmd-899: does the thing number 899[\s\S]*\[y\/N\]/);
  screen.type('y\r');
  await screen.until(/Trusted until one of the files changes/);
  expect(await screen.exited).toBe(0);
  const model = script(at, [{ calls: [{ name: 'bash', arguments: { command: 'ls' } }] }, { text: 'Done.' }]);
  await agent(at, ['-p', '-m', model, 'go']);
  const sessions = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as [{ id: string }];
  const log = (await agent(at, ['sessions', 'export', sessions[0].id, '--format', 'jsonl'])).stdout;
  expect(log).toContain('Denied by a hook: never');
  expect(JSON.parse((await agent(at, ['commands', 'list', '--json'])).stdout)).toHaveLength(900);
});
