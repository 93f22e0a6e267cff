import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { projects } from '../../src/app/project-files.js';
import { openTrustFile } from '../../src/kernel/config/trust-file.js';
import { agentPaths } from '../../src/kernel/config/settings-file.js';
import { agent, lines, place, repl, script } from './inside.js';

type At = ReturnType<typeof place>;

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

const pdf = '---\nname: pdf\ndescription: Reads PDFs: all of them\n---\nUse pdftotext, and never guess.\n';
const using = [{ calls: [{ name: 'skill', arguments: { name: 'pdf', arguments: 'a.pdf' } }] }, { text: 'Done.' }];

interface Logged {
  readonly kind: string;
  readonly content: string;
  readonly data: { readonly output?: string; readonly tools?: readonly { readonly name: string }[] };
}

/** The events of the newest session. */
async function events(at: At): Promise<readonly Logged[]> {
  const [{ id }] = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as [{ readonly id: string }];
  const exported = await agent(at, ['sessions', 'export', id, '--format', 'jsonl']);
  return lines(exported.stdout).filter((line) => line.type === 'event') as never;
}

async function trust(at: At): Promise<void> {
  const settings = { cwd: at.work, home: at.home, config: { files: agentPaths(at.env, at.home) } };
  const files = await projects.files(settings);
  if (files === null) throw new Error('nothing to trust');
  openTrustFile(settings.config.files.trust).files.record(files, true, 1);
}

test('a model is told of skills, and loads one; the record has it', async () => {
  const at = place();
  write(join(at.home, '.agents/skills/pdf/SKILL.md'), pdf);
  write(join(at.home, '.agents/skills/pdf/scripts/read.py'), '');
  expect(await agent(at, ['-p', '-m', script(at, using), 'go'])).toMatchObject({ code: 0, stderr: '' });
  const log = await events(at);
  expect(log[0]?.content).toContain('- pdf: Reads PDFs: all of them');
  expect(log[1]?.data.tools?.map(({ name }) => name).at(-1)).toBe('skill');
  const { output } = JSON.parse(log.find(({ kind }) => kind === 'tool_result')?.data.output ?? '') as {
    output: string;
  };
  expect(output).toBe(
    `[Skill pdf. Paths in it start at ${at.home}/.agents/skills/pdf. Beside its SKILL.md: scripts/read.py]\n\n` +
      'Use pdftotext, and never guess.\n\nARGUMENTS: a.pdf',
  );
});

test('without skills, without tools and with tools that are named, nothing is said of them', async () => {
  const at = place();
  await agent(at, ['-p', '-m', script(at, using), 'go']);
  const before = await events(at);
  expect(before[1]?.data.tools?.map(({ name }) => name)).not.toContain('skill');
  write(join(at.home, '.claude/skills/pdf/SKILL.md'), pdf);
  for (const tools of [['--no-tools'], ['--tools', 'glob']]) {
    await agent(at, ['-p', ...tools, '-m', script(at, using), 'go']);
    expect(JSON.stringify((await events(at)).slice(0, 2))).not.toMatch(/skill/i);
  }
});

test('skills of a project are not in a request before they are trusted, and not after a changed byte', async () => {
  const at = place({ '.git/HEAD': 'ref: refs/heads/main\n' });
  write(join(at.work, '.claude/skills/pdf/SKILL.md'), pdf);
  const opening = async (): Promise<string> => {
    await agent(at, ['-p', '-m', script(at, using), 'go']);
    return JSON.stringify((await events(at)).slice(0, 2));
  };
  expect(await opening()).not.toMatch(/skill|pdf/i);
  await trust(at);
  expect(await opening()).toContain('- pdf: Reads PDFs');
  write(join(at.work, '.claude/skills/pdf/run.sh'), 'curl x | sh\n');
  expect(await opening()).not.toMatch(/skill|pdf/i);
});

test('a resumed session sends the same bytes, also when a skill has gone', async () => {
  const at = place();
  const file = join(at.home, '.claude/skills/pdf/SKILL.md');
  write(file, pdf);
  await agent(at, ['-p', '-m', script(at, using), 'go']);
  const before = (await events(at)).slice(0, 2);
  write(file, pdf.replace('PDFs', 'other things'));
  await agent(at, ['-p', '-c', '-m', script(at, [{ text: 'Again.' }]), 'on']);
  const after = await events(at);
  expect(after.slice(0, 2)).toEqual(before);
  expect(after.filter(({ kind }) => kind === 'system' || kind === 'tools')).toHaveLength(2);
});

test('a skill is used by hand, and listed with what it asks for', async () => {
  const at = place();
  write(
    join(at.home, '.claude/skills/ship/SKILL.md'),
    '---\nname: ship\ndescription: ships\nargument-hint: <where>\nallowed-tools: Bash(*)\ndisable-model-invocation: true\n---\n' +
      'Ship to $1. !`echo fast`\n',
  );
  const finished = await repl(
    at,
    ['-m', script(at, [{ text: 'Shipped.' }])],
    [
      ['/skills', 'runs without approval: Bash(*)'],
      ['/skill:ship moon', 'Shipped.'],
    ],
  );
  expect(finished.stdout).toContain('ship (claude-code, only by hand): ships');
  const log = await events(at);
  expect(log[0]?.content).not.toContain('ship');
  expect(log.find(({ kind }) => kind === 'user')?.content).toMatch(/^\[Skill ship\..*\]\n\nShip to moon\. fast$/);
});

test('a skill that cannot be used is told of, also where there is no other', async () => {
  const at = place();
  write(join(at.home, '.agents', 'skills', 'bare', 'SKILL.md'), '---\nname: bare\n---\n');
  const go = async (...more: readonly string[]): Promise<string> =>
    (await agent(at, ['-p', '-m', script(at, [{ text: 'Done.' }]), ...more, 'hi'])).stderr;
  expect(await go()).toContain('bare/SKILL.md has no description and no text; the skill is not loaded.');
  write(join(at.home, '.agents', 'skills', 'pdf', 'SKILL.md'), pdf);
  expect(await go()).toContain('bare/SKILL.md has no description and no text; the skill is not loaded.');
});
