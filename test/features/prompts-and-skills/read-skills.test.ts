import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readFrontMatter } from '../../../src/kernel/config/front-matter.js';
import {
  type FoundSkills,
  hashSkill,
  readSkillText,
  skillsIn,
} from '../../../src/features/prompts-and-skills/read-skills.js';
import { skillsBlock } from '../../../src/features/prompts-and-skills/use-skill.js';

function folder(files: Readonly<Record<string, string>> = {}): string {
  const root = mkdtempSync(join(tmpdir(), 'agent-skills-'));
  onTestFinished(() => {
    rmSync(root, { recursive: true, force: true });
  });
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  return root;
}

function found(root: string): FoundSkills {
  return skillsIn([{ folder: root, origin: 'project', root }]);
}

test.each([
  ['UTF-16', Buffer.from('\ufeff---\nname: s\ndescription: d\n---\nbody', 'utf16le')],
  ['UTF-16, the other way', Buffer.from('\ufeff---\nname: s\ndescription: d\n---\nbody', 'utf16le').swap16()],
  ['UTF-16 without a mark', Buffer.from('---\nname: s\ndescription: d\n---\nbody', 'utf16le')],
  ['a byte order mark', '\ufeff---\nname: s\ndescription: d\n---\nbody'],
  ['blank lines before', '\n \r\n---\nname: s\ndescription: d\n---\nbody'],
  ['a comment before', '<!-- made by x -->\n---\nname: s\ndescription: d\n---\nbody'],
  ['a mark and comments of several lines', '\ufeff<!-- a\nb -->\n<!-- c -->\n---\nname: s\ndescription: d\n---\nbody'],
  ['quoted keys', '---\n"name": s\n\'description\': "d"\n---\nbody'],
  ['capital letters', '---\nName: s\nDESCRIPTION: d\n---\nbody'],
])('a skill with %s is read', (_what, text) => {
  const root = folder({ 's/SKILL.md': '' });
  writeFileSync(join(root, 's', 'SKILL.md'), text);
  const { skills, problems } = found(root);
  expect([skills.map(({ name, description }) => [name, description]), problems]).toEqual([[['s', 'd']], []]);
  expect(readSkillText({ path: join(root, 's', 'SKILL.md') })?.body).toBe('body');
});

test('two rules in a text are no fields, and a key of two words stays', () => {
  expect(readFrontMatter('\n---\nnothing here\n---\nb').body).toBe('\n---\nnothing here\n---\nb');
  expect([...readFrontMatter('---\ndisallowedTools: a\nAllowed-Tools: b\n---\n').fields.keys()]).toEqual([
    'disallowedTools',
    'allowed-tools',
  ]);
});

test('a skill that could not be loaded is not offered, and why is said', () => {
  const root = folder({ 'huge/SKILL.md': `---\nname: huge\ndescription: d\n---\n${'x'.repeat(1024 * 1024)}` });
  const { skills, problems } = found(root);
  expect(skills).toEqual([]);
  expect(problems.join()).toMatch(/huge\/SKILL\.md has 10486\d\d bytes, over 1048576; the skill is not loaded\.$/);
});

test.each([
  ['a colon', 'description: Use when: the user says: so', 'Use when: the user says: so'],
  ['double quotes', String.raw`description: "a \"b\": c\td" # why`, 'a "b": c\td'],
  ['single quotes', "description: 'it''s'", "it's"],
  ['a lone quote', 'description: the user\'s "own', 'the user\'s "own'],
  ['a folded text', 'description: >-\n  one\n  two\n\n  three', 'one two three'],
  ['a literal text', 'description: |\n  one\n    two', 'one\n  two'],
  ['lines that go on', 'description: one\n  two', 'one two'],
  ['a list', 'description:\n  - a\n  - "b"', 'a, b'],
  ['a list on a line', 'description: [a, "b"]', 'a, b'],
  ['a list without an indent', 'description:\n- a\n- b', 'a, b'],
  ['keys below it', 'description:\n  en: a', ''],
  ['nothing', 'description:', ''],
  ['the first of two', 'description: a\ndescription: b', 'a'],
  ['other keys', 'metadata:\n  description: x\ndescription: a', 'a'],
])('a field with %s', (_what, head, expected) => {
  for (const ending of ['\n', '\r\n'])
    for (const mark of ['', '\uFEFF']) {
      const text = `${mark}---\n${head}\n---\n\nBody\n---\nmore\n`.replaceAll('\n', ending);
      const { fields, body } = readFrontMatter(text);
      expect([fields.get('description')?.replaceAll(/\n(?=three)/g, ' '), body]).toEqual([
        expected,
        'Body\n---\nmore\n',
      ]);
    }
});

test('a file without fields, or with fields that never end, is all body', () => {
  expect(readFrontMatter('Body\n---\n')).toEqual({ fields: new Map(), body: 'Body\n---\n' });
  expect(readFrontMatter('---\nname: a\n')).toEqual({ fields: new Map(), body: '---\nname: a\n' });
});

test('skills are found, also with faults, and what is wrong is said', () => {
  const root = folder({
    'pdf/SKILL.md':
      '---\nname: pdf\ndescription: Reads PDFs: all\nwhen_to_use: always\nallowed-tools: Bash(*)\n---\nUse it.',
    'pdf/scripts/read.py': 'print()',
    'pdf/inner/SKILL.md': '---\ndescription: inside of another\n---\n',
    'more/deep/er/SKILL.md': '---\nname: Other Name\ndescription: deep\n---\n',
    'quiet/SKILL.md': '---\nname: quiet\ndescription: by hand\ndisable-model-invocation: true\n---\n',
    'inner/SKILL.md': '---\nname: inner\ndescription: for the model\nuser-invocable: false\n---\n',
    'none/SKILL.md': '---\nname: none\n---\n',
    'plain/SKILL.md': '# Checks\n\nRuns the\nchecks.\n\nMore.',
    'long/SKILL.md': `---\nlicense: ${'x'.repeat(5000)}\ndescription: behind a long field\n---\n`,
    'zz/pdf/SKILL.md': '---\nname: pdf\ndescription: a second\n---\n',
  });
  const { skills, shadowed, problems } = found(root);
  expect(skills.map(({ name, description, forModel, forUser }) => [name, description, forModel, forUser])).toEqual([
    ['inner', 'for the model', true, false],
    ['long', 'behind a long field', true, true],
    ['pdf', 'Reads PDFs: all always', true, true],
    ['plain', 'Runs the checks.', true, true],
    ['quiet', 'by hand', false, true],
    ['er', 'deep', true, true],
  ]);
  expect(skills[2]?.turn.allow).toEqual(['Bash(*)']);
  expect(shadowed.map(({ description }) => description)).toEqual(['a second']);
  expect(problems).toEqual([
    `${root}/none/SKILL.md has no description and no text; the skill is not loaded.`,
    `${root}/more/deep/er/SKILL.md: the name "Other Name" should match its folder ("er") and have only a-z, 0-9 and -. The skill is loaded anyway.`,
  ]);
  expect(readSkillText({ path: join(root, 'pdf/SKILL.md') })).toMatchObject({
    body: 'Use it.',
    files: ['inner/SKILL.md', 'scripts/read.py'],
  });
});

test('a link out of the project is not a skill, one inside is; nor is a file over 1 MiB', () => {
  const outside = folder({ 'x/SKILL.md': '---\ndescription: outside\n---\n' });
  const root = folder({
    'real/a/SKILL.md': '---\ndescription: inside\n---\n',
    'big/SKILL.md': `---\ndescription: big\n---\n${'x'.repeat(1_100_000)}`,
  });
  symlinkSync(join(outside, 'x'), join(root, 'out'));
  symlinkSync(join(root, 'real/a'), join(root, 'linked'));
  symlinkSync(join(root, 'gone'), join(root, 'dangling'));
  const { skills } = found(root);
  expect(skills.map(({ name }) => name)).toEqual(['linked', 'a']);
  expect(readSkillText({ path: join(root, 'big/SKILL.md') })).toBeNull();
});

test('one changed byte in any file of a skill changes its hash', () => {
  const root = folder({ 'a/SKILL.md': '---\ndescription: a\n---\n', 'a/run.sh': 'echo 1\n' });
  const skill = { path: join(root, 'a/SKILL.md') };
  const before = hashSkill(skill);
  expect(hashSkill(skill)).toEqual(before);
  writeFileSync(join(root, 'a/run.sh'), 'echo 2\n');
  expect(hashSkill(skill)?.sha256).not.toBe(before?.sha256);
  expect(before?.files).toBe(2);
});

test('a file of a skill that cannot be read or is huge counts by its state, so its hash stays the same', () => {
  const root = folder({ 'a/SKILL.md': '---\ndescription: a\n---\n', 'a/huge.bin': '' });
  const skill = { path: join(root, 'a/SKILL.md') };
  truncateSync(join(root, 'a/huge.bin'), 17 * 1024 * 1024);
  symlinkSync(join(root, 'gone'), join(root, 'a/dead'));
  execFileSync('mkfifo', [join(root, 'a/pipe')]);
  const before = hashSkill(skill);
  expect(before).toMatchObject({ files: 4 });
  expect(hashSkill(skill)).toEqual(before);
  truncateSync(join(root, 'a/huge.bin'), 18 * 1024 * 1024);
  expect(hashSkill(skill)?.sha256).not.toBe(before?.sha256);
});

test('a file at any depth of a skill is a part of its hash, and counts', () => {
  const deep = `a/${'d/'.repeat(12)}run.sh`;
  const root = folder({ 'a/SKILL.md': '---\ndescription: a\n---\n', [deep]: 'echo 1\n' });
  const skill = { path: join(root, 'a/SKILL.md') };
  const before = hashSkill(skill);
  expect(before?.files).toBe(2);
  writeFileSync(join(root, deep), 'echo 2\n');
  expect(hashSkill(skill)?.sha256).not.toBe(before?.sha256);
});

test('the catalogue has a limit, and names stand there in any case', () => {
  const root = folder(
    Object.fromEntries(
      [...Array(60).keys()].map((n) => [`s${n}/SKILL.md`, `---\ndescription: ${'does things '.repeat(40)}\n---\n`]),
    ),
  );
  const all = found(root);
  const wide = skillsBlock(all, null);
  expect(
    Math.max(
      ...wide.text
        .split('\n')
        .slice(4)
        .map((line) => line.length),
    ),
  ).toBe(250);
  expect(wide.text.length).toBeLessThan(8300);
  expect(wide.cut).toBeGreaterThan(0);
  const narrow = skillsBlock(all, 32_000);
  expect(narrow.text.length).toBeLessThan(2560 + 300);
  for (let n = 0; n < 60; n++) expect(narrow.text).toContain(`- s${n}`);
  expect(skillsBlock({ skills: [], shadowed: [], leftOut: [], problems: [] }, null)).toEqual({ text: '', cut: 0 });
});
