import { didYouMean } from '../../core/text.js';
import type { Tool } from '../../core/tool.js';
import { defineTool, failed, succeeded } from '../../tools/define-tool.js';
import { oneLine } from '../front-matter.js';
import { expandTemplate, type ExpandedTemplate } from './expand-template.js';
import { type FoundSkills, readSkillText, type Skill } from './read-skills.js';

const toolset = { name: 'skills', on: true, about: 'Offer skills.' };

/** `skill`: the instructions of one skill. They are marked to be kept when the conversation is compacted. */
export function skillTool(find: () => Promise<FoundSkills>): Tool {
  const tool = defineTool({
    name: 'skill',
    otherNames: ['Skill', 'activate_skill'],
    effect: 'read',
    description: 'Returns the instructions of a skill.',
    schema: {
      type: 'object',
      properties: { name: { type: 'string' }, arguments: { type: 'string' } },
      required: ['name'],
      additionalProperties: false,
    },
    judge: () => ({ risk: 'read-only', reasons: [] }),
    async run({ name, arguments: args = '' }) {
      const skills = (await find()).skills.filter(({ forModel }) => forModel);
      const skill = skills.find((other) => other.name === name);
      const written = skill ? skillMessage(skill, { args, isFile: () => false }) : null;
      if (!skill || written === null || typeof written === 'string') {
        const names = skills.map((other) => other.name);
        return failed('not_found', `There is no skill ${name}. ${didYouMean(name, names)} Known: ${names.join(', ')}.`);
      }
      // A model runs commands by calls of its own, which are seen and judged one by one.
      const literal = written.calls.length > 0 ? plainMessage(skill, args) : written;
      return succeeded(`skill ${name}`, { output: literal?.text([]) ?? '', keep: `skill ${name}` });
    },
  });
  return { ...tool, toolset };
}

interface Use {
  readonly args: string;
  readonly isFile: (path: string) => boolean;
}

/** What a model is told when a skill is used. Only a skill that says so takes arguments in its text and has commands
 * run: others show code that looks the same. Null where it is gone; a sentence where it cannot be filled in. */
export function skillMessage(skill: Skill, { args, isFile }: Use): ExpandedTemplate | string | null {
  const text = readSkillText(skill);
  if (text === null) return null;
  const takesArguments = skill.argumentHint !== null || text.body.includes('$ARGUMENTS');
  if (!takesArguments) return plainMessage(skill, args);
  const expanded = expandTemplate(text.body, { args, isFile });
  if (typeof expanded === 'string') return expanded;
  return { calls: expanded.calls, text: (outputs) => `${headOf(skill, text)}\n\n${expanded.text(outputs)}` };
}

/** The text of a skill as it is written. Null where it is gone. */
export function plainMessage(skill: Skill, args: string): ExpandedTemplate | null {
  const text = readSkillText(skill);
  if (text === null) return null;
  const added = args === '' ? '' : `\n\nARGUMENTS: ${args}`;
  return { calls: [], text: () => `${headOf(skill, text)}\n\n${text.body}${added}` };
}

function headOf(
  { name }: Skill,
  { folder, files }: { readonly folder: string; readonly files: readonly string[] },
): string {
  const beside = files.length === 0 ? '' : ` Beside its SKILL.md: ${files.join(', ')}`;
  return `[Skill ${name}. Paths in it start at ${folder}.${beside}]`;
}

const maxLine = 250;
const maxBlock = 8000;
/** Of the model's context window, in characters: 2 % of the tokens, at four characters each. */
const windowShare = 0.02 * 4;

/** Lists the skills for the system prompt; '' where there are none. Where the descriptions take more room than they
 * may, the last ones stand without: `cut` says how many. */
export function skillsBlock(
  { skills }: FoundSkills,
  windowTokens: number | null,
): { readonly text: string; readonly cut: number } {
  const offered = skills.filter(({ forModel }) => forModel);
  if (offered.length === 0) return { text: '', cut: 0 };
  const room = Math.min(maxBlock, windowTokens === null ? maxBlock : windowTokens * windowShare);
  const full = offered.map(({ name, description }) => oneLine(`- ${name}: ${description}`, maxLine));
  let length = offered.reduce((sum, { name }) => sum + name.length + 3, 0);
  let cut = 0;
  const lines = full.map((line, index) => {
    const short = `- ${offered[index]?.name ?? ''}`;
    if (length + line.length - short.length <= room) {
      length += line.length - short.length;
      return line;
    }
    cut++;
    return short;
  });
  const head =
    'Instructions for particular work. Where one fits the request, call skill with its name before you begin, and ' +
    'follow what it says as far as the user wants that.';
  return { text: ['# Skills', '', head, '', ...lines].join('\n'), cut };
}
