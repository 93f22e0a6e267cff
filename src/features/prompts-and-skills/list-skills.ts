import {
  type Aside,
  checkVerb,
  inactiveFiles,
  inactiveLines,
  listedFile,
  type List,
  type Listing,
  listVerb,
  showVerb,
  unknownName,
} from '../../kernel/console/listed-files.js';
import type { CheckedFiles } from '../../kernel/console/feature.js';
import { asideNotices, countingPlaces, placesHere } from '../../kernel/config/project.js';
import type { CommandHandler } from '../../kernel/console/command.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { namesToCheck } from '../../kernel/console/work-problems.js';
import { sanitize } from '../../kernel/core/sanitize.js';
import { openCommands } from './prompts-and-skills-start.js';
import type { FoundSkills, Skill } from './read-skills.js';
import { readSkillText, skillsIn } from './read-skills.js';
import { turnLines, turnRow } from './turn-fields.js';
import { unusedLine } from './unused-fields.js';
import * as texts from './prompt-texts.js';

function skillListing({ skills, shadowed, leftOut, problems, untrusted, aside }: SkillsHere): Listing {
  const inactive = inactiveFiles({ shadowed, leftOut, untrusted });
  return {
    rows: [...skills.map(skillRow), ...inactive],
    lines: [...skills.flatMap((skill) => skillLines(skill)), ...inactiveLines(inactive)],
    problems: [...problems, ...aside.map(({ message }) => message)],
  };
}

function skillRow(skill: Skill): Readonly<Record<string, unknown>> {
  const { description, argumentHint, forModel, forUser, unused } = skill;
  const who = { for_model: forModel, for_user: forUser };
  return { ...listedFile(skill, null), description, ...turnRow(skill), argument_hint: argumentHint, ...who, unused };
}

function skillLines(skill: Skill): readonly string[] {
  const { name, description, path, origin, forModel, forUser, unused } = skill;
  const who = forModel ? (forUser ? '' : ', only for the model') : ', only by hand';
  return [`${name} (${origin}${who}): ${description}`, `  ${path}`, ...turnLines(skill), ...unusedLine(unused)];
}

/** `untrusted`: the skills of a project that is not trusted. */
interface SkillsHere extends FoundSkills, Aside {
  readonly untrusted: readonly Skill[];
}

async function findSkills(settings: Settings): Promise<SkillsHere> {
  return {
    ...(await openCommands(settings, () => Promise.resolve(texts)).skills()),
    untrusted: skillsIn((await placesHere(settings, 'skills')).aside).skills,
    aside: await asideNotices(settings),
  };
}

/** Returns the mistakes in files of commands and skills, and their fields that have no effect. */
export async function checkTextFiles(settings: Settings): Promise<CheckedFiles> {
  const { skills, problems } = await openCommands(settings, () => Promise.resolve(texts)).skills();
  const commands = texts.commandsIn(await countingPlaces(settings, 'commands'));
  const ignored = [...commands, ...skills].flatMap(({ path, unused }) =>
    unused.length === 0 ? [] : [`${path}: ${unused.join(', ')} ${unused.length === 1 ? 'is' : 'are'} ignored.`],
  );
  const unclear = [...commands, ...skills].flatMap((file) =>
    file.problems.map((problem) => `${file.path}: ${problem}`),
  );
  const tools = [...commands, ...skills].flatMap(({ path, turn }) =>
    namesToCheck(turn).map((name) => ({ path, name })),
  );
  return { problems: [...problems, ...ignored, ...unclear], tools };
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
  return { row: { ...skillRow(skill), text }, lines: [...skillLines(skill), '', text ?? '(it cannot be read)'] };
});

export const checkSkills: CommandHandler = checkVerb('agent skills check', 'skills', skillsOf);
