import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { projects } from '../../src/app/project-files.js';
import { agentPaths } from '../../src/kernel/config/settings-file.js';
import { openTrustFile } from '../../src/kernel/config/trust-file.js';
import { agent, place, repl, script } from './inside.js';

type Place = ReturnType<typeof place>;

const answers = ['One.', 'Two.', 'Three.'].map((text) => ({ text }));

function write(folder: string, path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

const pirate = '---\nname: Pirate Mode\ndescription: Talks like a pirate\n---\nSay arr.\n';

/** Returns the system prompt of the newest session. */
async function prompt(at: Place): Promise<string> {
  const { stdout } = await agent(at, ['sessions', 'list', '--json']);
  const id = (JSON.parse(stdout) as { id: string }[])[0]?.id ?? '';
  const shown = JSON.parse((await agent(at, ['sessions', 'show', id, '--json'])).stdout) as { content: string }[];
  return shown[0]?.content ?? '';
}

const style = (name: string): readonly string[] => ['--set', `output_style=${name}`];

test('the chosen style is in the prompt of a new session, and stays in one that is resumed', async () => {
  const at = place();
  write(at.home, '.claude/output-styles/pirate.md', pirate);
  const model = script(at, answers);
  const begun = await agent(at, ['-p', '-m', model, ...style('pirate mode'), 'go']);
  expect(begun).toMatchObject({ code: 0, stderr: '' });
  const first = await prompt(at);
  expect(first).toMatch(/\n\n# Output style: Pirate Mode\n\nSay arr\.$/);
  expect(first).not.toMatch(/Be brief|run the tests/);
  write(at.home, '.claude/output-styles/pirate.md', pirate.replace('arr', 'ahoy'));
  for (const more of [[], style('learning'), style('pirate mode')])
    expect(await agent(at, ['-p', '-m', model, '-c', ...more, 'on'])).toMatchObject({ code: 0, stderr: '' });
  expect(await prompt(at)).toBe(first);
});

test('the first line of the stream names the style for programs of Claude Code', async () => {
  const at = place();
  const run = async (...more: readonly string[]): Promise<unknown> => {
    const stream = ['-p', '-m', script(at, answers), '--dialect', 'claude', '--output-format', 'stream-json', ...more];
    return JSON.parse((await agent(at, [...stream, 'go'])).stdout.split('\n')[0] ?? '');
  };
  expect(await run(...style('explanatory'))).toMatchObject({ subtype: 'init', output_style: 'explanatory' });
  expect(await run()).toMatchObject({ output_style: 'default' });
});

test('a style that keeps the coding instructions leaves them; default and none change nothing', async () => {
  const at = place();
  const model = script(at, answers);
  await agent(at, ['-p', '-m', model, ...style('Explanatory'), 'go']);
  expect(await prompt(at)).toMatch(/run the tests[^]*# Output style: explanatory/);
  const prompts: string[] = [];
  for (const more of [[], style('default')]) {
    await agent(at, ['-p', '-m', model, ...more, 'go']);
    prompts.push(await prompt(at));
  }
  expect(prompts[0]).toBe(prompts[1]);
  expect(prompts[0]).toContain('- Be brief. Say what you did');
});

test('a name that no style has is reported, and none is used', async () => {
  const at = place();
  const { code, stderr } = await agent(at, ['-p', '-m', script(at, answers), ...style('explanatry'), 'go']);
  expect([code, stderr]).toEqual([
    0,
    'agent: There is no output style explanatry. Did you mean explanatory? ' +
      'Known: default, explanatory, learning. None is used.\n',
  ]);
  expect(await prompt(at)).not.toContain('# Output style');
  write(at.home, '.claude/output-styles/empty.md', '---\nname: empty\n---\n');
  const empty = await agent(at, ['-p', '-m', script(at, answers), ...style('empty'), 'go']);
  expect(empty.stderr).toMatch(/The output style empty cannot be used: .*empty\.md has no text\. None is used\.\n/);
});

test('styles are listed and shown with where they come from; those of a project count once it is trusted', async () => {
  const at = place({ '.git/HEAD': '' });
  write(at.home, '.claude/output-styles/pirate.md', pirate);
  write(at.home, '.agent/output-styles/empty.md', '---\nname: empty\n---\n');
  write(at.work, '.claude/output-styles/team.md', '---\nkeep-coding-instructions: true\n---\n# Team\n\nSay we.\n');
  const rows = async (): Promise<unknown> =>
    JSON.parse((await agent(at, ['output-styles', 'list', '--json'])).stdout) as unknown;
  const team = { name: 'team', origin: 'project', path: join(at.work, '.claude/output-styles/team.md') };
  expect(await rows()).toEqual([
    {
      name: 'Pirate Mode',
      origin: 'claude-code',
      path: join(at.home, '.claude/output-styles/pirate.md'),
      active: true,
      reason: null,
      description: 'Talks like a pirate',
      keep_coding_instructions: false,
    },
    ...['default', 'explanatory', 'learning'].map((name) =>
      expect.objectContaining({ name, origin: 'program', path: null, active: true, reason: null }),
    ),
    expect.objectContaining({ name: 'empty', origin: 'user', active: false, reason: 'has no text' }),
    { ...team, active: false, reason: 'not trusted; review it with agent config trust' },
  ]);
  expect((await agent(at, ['output-styles', 'show', 'team'])).stderr).toContain('there is no output style `team`');
  const { config, trust } = agentPaths(at.env, at.home);
  const files = await projects.files({ cwd: at.work, home: at.home, config: { files: { config } as never } });
  expect(files?.files).toMatchObject([{ kind: 'output-styles', bytes: 55, lines: ['output style team: Team'] }]);
  if (files) openTrustFile(trust).files.record(files, true, 1);
  expect(await rows()).toContainEqual(expect.objectContaining({ ...team, active: true, reason: null }));
  expect((await agent(at, ['output-styles', 'show', 'team'])).stdout).toContain('Say we.');
  await agent(at, ['-p', '-m', script(at, answers), ...style('team'), 'go']);
  expect(await prompt(at)).toContain('# Output style: team\n\n# Team\n\nSay we.');
});

test('/output-style chooses the style of the next session and saves it; the open session keeps its own', async () => {
  const at = place();
  const model = script(at, answers);
  await repl(
    at,
    ['-m', model],
    [
      ['/output-style nothing', 'There is no output style nothing'],
      ['go', 'One.'],
      ['/output-style learning', /Output style learning, from the next session on .*Saved as the default\./],
      ['on', 'Two.'],
    ],
  );
  expect(await prompt(at)).not.toContain('# Output style');
  expect(JSON.parse(readFileSync(agentPaths(at.env, at.home).config, 'utf8'))).toMatchObject({
    output_style: 'learning',
  });
  await repl(
    at,
    ['-m', model],
    [
      ['/output-style explanatory --session', 'For this session only.'],
      ['/clear', '❯'],
      ['go', 'One.'],
    ],
  );
  expect(await prompt(at)).toContain('# Output style: explanatory');
  await agent(at, ['-p', '-m', model, 'go']);
  expect(await prompt(at)).toContain('# Output style: learning');
});
