import {
  type Aside,
  checkVerb,
  type List,
  type Listing,
  listVerb,
  showVerb,
  unknownName,
} from '../../kernel/console/listed-files.js';
import { asideNotices } from '../../kernel/config/project.js';
import type { CommandHandler } from '../../kernel/console/command.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { sanitize } from '../../kernel/core/sanitize.js';
import { openCommands } from './prompts-and-skills-start.js';
import type { FoundSkills, Skill } from './read-skills.js';
import { readSkillText } from './read-skills.js';
import * as texts from './prompt-texts.js';

function skillListing({ skills, shadowed, problems, aside }: FoundSkills & Aside): Listing {
  return {
    rows: [...skills.map((skill) => skillRow(skill, false)), ...shadowed.map((skill) => skillRow(skill, true))],
    lines: [
      ...skills.flatMap((skill) => skillLines(skill)),
      ...shadowed.map(({ name, path }) => `${name}: hidden by the one above, ${path}`),
    ],
    problems: [...problems, ...aside.map(({ message }) => message)],
  };
}

function skillRow(skill: Skill, hidden: boolean): Readonly<Record<string, unknown>> {
  const { name, description, path, origin, allowedTools, argumentHint, forModel, forUser } = skill;
  const who = { for_model: forModel, for_user: forUser };
  return { name, description, path, origin, allowed_tools: allowedTools, argument_hint: argumentHint, ...who, hidden };
}

function skillLines({ name, description, path, origin, allowedTools, forModel, forUser }: Skill): readonly string[] {
  const who = forModel ? (forUser ? '' : ', only for the model') : ', only by hand';
  return [
    `${name} (${origin}${who}): ${description}`,
    `  ${path}`,
    ...(allowedTools === null ? [] : [`  asks for ${allowedTools}, which has no effect`]),
  ];
}

async function findSkills(settings: Settings): Promise<FoundSkills & Aside> {
  return {
    ...(await openCommands(settings, () => Promise.resolve(texts)).skills()),
    aside: await asideNotices(settings),
  };
}

const noSkills =
  'There are no skills. A skill is a folder with a SKILL.md in ~/.agents/skills, ~/.claude/skills, or .agents/skills of a project.';

const skillsOf: List = async ({ settings }) => {
  const listed = skillListing(await findSkills(await settings()));
  return listed.rows.length > 0 ? listed : { ...listed, lines: [noSkills] };
};

export const listSkills: CommandHandler = listVerb('agent skills list --json', skillsOf);

export const skills: CommandHandler = {
  ...listSkills,
  slash: async (_argument, { screen, settings }) => {
    const { lines, problems } = skillListing(await findSkills(settings));
    if (lines.length + problems.length === 0) screen.notice('info', noSkills);
    else screen.print(sanitize([...lines, ...problems].join('\n')));
  },
};

export const showSkill: CommandHandler = showVerb('agent skills show review', async ({ settings }, name) => {
  const { skills } = await findSkills(await settings());
  const skill = skills.find((one) => one.name === name);
  if (!skill)
    throw unknownName(
      'skill',
      name,
      skills.map((one) => one.name),
    );
  const text = readSkillText(skill)?.body ?? null;
  return { row: { ...skillRow(skill, false), text }, lines: [...skillLines(skill), '', text ?? '(it cannot be read)'] };
});

export const checkSkills: CommandHandler = checkVerb('agent skills check', 'skills', skillsOf);
