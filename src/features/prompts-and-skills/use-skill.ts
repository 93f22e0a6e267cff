import { isError, parseEnvelope } from '../../kernel/core/envelope.js';
import { createTimeline, type Event, knownEvent } from '../../kernel/core/event.js';
import { isRecord } from '../../kernel/core/json.js';
import { didYouMean } from '../../kernel/core/text.js';
import type { Tool, ToolContext, ToolOutcome } from '../../kernel/core/tool.js';
import { defineTool, failed, succeeded } from '../../kernel/tools/define-tool.js';
import { oneLine } from '../../kernel/config/front-matter.js';
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
    async run({ name, arguments: args = '' }, { session, signal }) {
      const skills = (await find()).skills.filter(({ forModel }) => forModel);
      const skill = skills.find((other) => other.name === name);
      const written = skill ? skillMessage(skill, { args, isFile: () => false }) : null;
      if (skill && written === null) return failed('not_found', `The skill ${name} cannot be read: ${skill.path}`);
      if (!skill || written === null || typeof written === 'string') {
        const names = skills.map((other) => other.name);
        return failed('not_found', `There is no skill ${name}. ${didYouMean(name, names)} Known: ${names.join(', ')}.`);
      }
      // A model runs commands by calls of its own, which are seen and judged one by one.
      const literal = written.calls.length > 0 ? plainMessage(skill, args) : written;
      return await useLoaded(skill, literal?.text([]) ?? '', args, { session, signal });
    },
  });
  return { ...tool, toolset };
}

/** Uses the settings of a skill for the rest of the turn. Its work is done here, or by a sub-agent. */
async function useLoaded(
  skill: Skill,
  text: string,
  args: string,
  { session, signal }: Pick<ToolContext, 'session' | 'signal'>,
): Promise<ToolOutcome> {
  const source = { name: `skill:${skill.name}`, sha256: readSkillText(skill)?.sha256 ?? '' };
  await session.useSettings?.(skill.turn, source);
  if (skill.delegate === null || !session.runAgent) return loaded(skill, text, args, session.recent());
  return await session.runAgent({ agent: skill.delegate, prompt: text, description: skill.name }, signal);
}

/** The result of loading a skill. A text that the conversation holds already is not given twice. */
function loaded(skill: Skill, text: string, args: string, events: readonly Event[]): ToolOutcome {
  const { name } = skill;
  const isPlain = text === plainMessage(skill, args)?.text([]);
  const whole = isPlain ? (plainMessage(skill, '')?.text([]) ?? text) : text;
  if (!isLoaded(name, whole, events)) return succeeded(`skill ${name}`, { output: text, keep: `skill ${name}` });
  const output = `Skill ${name} is already loaded above.${added(args)}`;
  return succeeded(`skill ${name}, already loaded`, { output });
}

interface Use {
  readonly args: string;
  readonly isFile: (path: string) => boolean;
}

/** Returns the message for the model when a skill is used. Only a skill that uses arguments gets them in its text and
 * has commands run: the code examples of others look the same. Null if the skill is gone; a sentence if it cannot be
 * filled in. */
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
  return { calls: [], text: () => `${headOf(skill, text)}\n\n${text.body}${added(args)}` };
}

function added(args: string): string {
  return args === '' ? '' : `\n\nARGUMENTS: ${args}`;
}

/** Returns true if the conversation still has this text of a skill: a compaction or a rewind may have removed it. */
function isLoaded(name: string, text: string, events: readonly Event[]): boolean {
  const timeline = createTimeline();
  for (const event of events.flatMap((raw) => knownEvent(raw) ?? [])) timeline.add(event);
  const counting = timeline.events();
  const compaction = counting.findLast(({ kind }) => kind === 'compaction');
  if (compaction?.content?.includes(text) === true) return true;
  const from = compaction?.kind === 'compaction' ? compaction.data.to_seq : 0;
  return counting.some((event) => {
    if (event.seq <= from) return false;
    if (event.kind === 'user') return event.data?.command !== undefined && event.content.startsWith(text);
    if (event.kind !== 'tool_result' || event.data.name !== 'skill') return false;
    const envelope = parseEnvelope(event.data.output);
    return !isError(envelope) && envelope.keep === `skill ${name}` && envelope.output.startsWith(text);
  });
}

/** Returns a note on skills that a session does not know yet; none if it knows all. */
export function newSkills(skills: readonly Skill[], events: readonly Event[]): readonly string[] {
  const told = events.flatMap(({ kind, content, data }) =>
    kind === 'system' || (kind === 'user' && isRecord(data) && data.note === true) ? [content ?? ''] : [],
  );
  const fresh = skills.filter(({ name }) => !told.some((text) => new RegExp(`^- ${name}(?::|$)`, 'm').test(text)));
  if (fresh.length === 0) return [];
  const lines = fresh.slice(0, maxNews).map(({ name, description }) => oneLine(`- ${name}: ${description}`, maxLine));
  return [['There are new skills. Load one with skill if it fits the request:', ...lines].join('\n')];
}

/** The most skills that are announced at once; the others come before the next message. */
const maxNews = 20;

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
    'Instructions for particular work. If one fits the request, call skill with its name before you start, and follow it as far as the user wants.';
  return { text: ['# Skills', '', head, '', ...lines].join('\n'), cut };
}
