import { readdirSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { test } from 'vitest';
import { findCommands } from '../../../src/features/prompts-and-skills/command-files.js';
import { expandTemplate } from '../../../src/features/prompts-and-skills/expand-template.js';
import { readSkillText, skillsIn } from '../../../src/features/prompts-and-skills/read-skills.js';
import { turnRow } from '../../../src/features/prompts-and-skills/turn-fields.js';
import { expectReadings, formsFolder, type Reading, useOf } from '../../brought-forms.js';

/** Expands a text for the arguments `one two`: returns the commands that run, and the text with their outputs. */
function expanded(body: string): unknown {
  const made = expandTemplate(body, { args: 'one two', isFile: (path) => path === 'docs/style.md' });
  if (typeof made === 'string') return made;
  const calls = made.calls.map(({ name, arguments: args }) => `${name} ${args}`);
  return { calls, text: made.text(calls.map(() => 'OUTPUT')) };
}

test('skills in the forms of other programs are read', () => {
  const folder = formsFolder('skills');
  const found = skillsIn([{ folder, origin: 'project', root: folder }]);
  const forms = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /(?:^|\/)(?:SKILL|README)\.md$/i.test(name),
  );
  const readings = forms.map((form): readonly [string, Reading] => {
    const path = join(folder, form);
    const skill = found.skills.find((one) => one.path === path);
    const problems = found.problems.flatMap((problem) =>
      problem.startsWith(path) ? [problem.slice(path.length).replace(/^:? /, '')] : [],
    );
    const name = relative(folder, dirname(path));
    if (!skill) return [name, { use: useOf(false, problems), problems }];
    const { name: called, description, argumentHint, forModel, forUser } = skill;
    const unused = [...skill.unused, ...skill.problems];
    const text = readSkillText(skill);
    const facts = {
      name: called,
      description,
      turn: turnRow(skill),
      argumentHint,
      forModel,
      forUser,
      files: text?.files,
    };
    return [name, { use: useOf(true, unused), ...facts, body: expanded(text?.body ?? ''), unused, problems }];
  });
  expectReadings('skills', Object.fromEntries(readings));
});

test('commands in the forms of other programs are read', () => {
  const folder = formsFolder('commands');
  const found = findCommands([{ folder, origin: 'project', root: folder }]);
  const forms = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\.(?:md|toml)$/.test(name),
  );
  const readings = forms.map((form): readonly [string, Reading] => {
    const path = join(folder, form);
    const command = found.commands.find((one) => one.path === path);
    const problems = found.leftOut.flatMap((left) => (left.path === path ? [left.reason] : []));
    if (!command) return [form, { use: useOf(false, problems), problems }];
    const { name, description, argumentHint } = command;
    const unused = [...command.unused, ...command.problems];
    const facts = { name, description, turn: turnRow(command), argumentHint, text: expanded(command.body) };
    return [form, { use: useOf(true, unused), ...facts, unused }];
  });
  expectReadings('commands', Object.fromEntries(readings));
});
