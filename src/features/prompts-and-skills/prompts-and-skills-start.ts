import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { statsAt } from '../../kernel/disk/path-stats.js';
import type { Event } from '../../kernel/core/event.js';
import type { Expand } from '../../kernel/core/session-port.js';
import type { MenuCommand, PromptListing, RunHost, RunPart } from '../../kernel/console/feature.js';
import type { CommandFile } from './command-files.js';
import type { SearchedFolder } from '../../kernel/config/found-files.js';
import { type AgentNames, agentNames } from '../../kernel/console/agent-names-port.js';
import type { FoundSkills } from './read-skills.js';
import type { Registry } from '../../kernel/core/tool.js';
import {
  asideNotices,
  type AsideNotice,
  countingPlaces,
  type Here,
  isFolder,
  type ProjectPart,
  projectPlaces,
  type TrustedHere,
} from '../../kernel/config/project.js';
import { withNamedPaths } from './mentioned-paths.js';
import type * as texts from './prompt-texts.js';

/** Loads the code of commands in files and skills, which a run without any does not need. */
type LoadTexts = () => Promise<typeof texts>;

/** Commands in files, and skills: the user's own, those of a trusted project, and those that come with the program. */
export interface OwnCommands {
  /** Lists the commands of files outside the program, and the skills that the user may use. */
  list(): Promise<readonly MenuCommand[]>;
  readonly skills: () => Promise<FoundSkills>;
  readonly expand: Expand;
}

/** The directory that commands and skills are searched from. `commandNames`: names that are taken. */
interface CommandHere extends TrustedHere {
  readonly commandNames: readonly string[];
}

const startsWithName = /^([/$])([\p{L}\p{N}][\p{L}\p{M}\p{N}_:.-]*)(?:\s+([^]*))?$/u;

/** Looks at the disk each time it is asked: a file that has changed counts at once. */
export function openCommands(
  settings: CommandHere,
  load: LoadTexts,
  agents: AgentNames = () => Promise.resolve([]),
): OwnCommands {
  const taken = new Set(settings.commandNames);
  const find = async (): Promise<readonly CommandFile[]> => {
    const { commandsIn } = await load();
    const own = commandsIn(await countingPlaces(settings, 'commands')).filter(({ name }) => !taken.has(name));
    return [...commandsIn([ofProgram()]), ...own];
  };
  const skills = async (): Promise<FoundSkills> => {
    const places = await countingPlaces(settings, 'skills');
    if (places.length === 0) return { skills: [], shadowed: [], leftOut: [], problems: [] };
    const { openKeptHeads, skillsIn } = await load();
    return skillsIn(places, openKeptHeads(settings.config.files.cache));
  };
  const isFile = (path: string): boolean => statsAt(resolve(settings.cwd, path))?.isFile() === true;
  return {
    skills,
    list: async () => {
      const places = await countingPlaces(settings, 'commands');
      const own = places.length === 0 ? [] : (await find()).filter(({ origin }) => origin !== 'program');
      const used = (await skills()).skills.filter(({ forUser }) => forUser);
      return [...own, ...used.map((skill) => ({ ...skill, name: `skill:${skill.name}` }))];
    },
    expand: async (message) => {
      if (!/^[/$]/.test(message.trim())) return withNamedPaths(message, settings.cwd);
      const [, sign, typed, given = ''] = startsWithName.exec(message.trim()) ?? [];
      if (typed === undefined) return null;
      const name = typed.normalize('NFC');
      const args = given.trim();
      // `$name` is a skill or nothing: `$PATH is too long` is a message.
      if (sign === '$') return await useSkill(await skills(), `skill:${name}`, { args, isFile, load, agents });
      const command = (await find()).find((other) => other.name === name);
      if (!command)
        return taken.has(name) ? null : await useSkill(await skills(), name, { args, isFile, load, agents });
      const { expandTemplate, turnExpansion } = await load();
      const expanded = expandTemplate(command.body, { args, isFile });
      if (typeof expanded === 'string') return `/${name} was not sent: ${expanded}`;
      const own = await turnExpansion(name, command, agents);
      return { ...expanded, ...own, command: { name, args, sha256: command.sha256 } };
    },
  };
}

/** A skill by hand: `/skill:name`, or `/name` where that is nothing else. */
async function useSkill(
  { skills }: FoundSkills,
  name: string,
  {
    load,
    agents,
    ...use
  }: {
    readonly args: string;
    readonly isFile: (path: string) => boolean;
    readonly load: LoadTexts;
    readonly agents: AgentNames;
  },
): ReturnType<Expand> {
  const skill = skills.find((other) => other.forUser && other.name === name.replace(/^skill:/, ''));
  if (!skill) return null;
  const { skillMessage, readSkillText, turnExpansion } = await load();
  const written = skillMessage(skill, use);
  if (written === null) return `/${name} was not sent: ${skill.path} cannot be read`;
  if (typeof written === 'string') return `/${name} was not sent: ${written}`;
  const sha256 = readSkillText(skill)?.sha256 ?? '';
  const own = await turnExpansion(name, skill, agents);
  return { ...written, ...own, command: { name, args: use.args, sha256 } };
}

/** Opens what commands in files and skills do in a run. */
export async function openPromptPart({ settings, options, parts }: RunHost, load: LoadTexts): Promise<RunPart> {
  const commands = openCommands(settings, load, async () => (await parts.find(agentNames)?.()) ?? []);
  const { skills } = commands;
  let atStart = mayOffer(options.tools) ? await skills() : null;
  const isOffered = atStart?.skills.some(({ forModel }) => forModel) === true;
  /** The first session begins right after this. */
  const found = async (): Promise<FoundSkills> => {
    const known = atStart;
    atStart = null;
    return known ?? (await skills());
  };
  return {
    expand: async (message) => await commands.expand(message),
    tools: isOffered ? [(await load()).skillTool(skills)] : [],
    listing: async (registry, windowTokens) => await listing(settings, registry, windowTokens, { load, found }),
    namedTexts: async (names) => await skillTexts(settings, names, load),
    menu: async () => {
      let written = await commands.list();
      return {
        commands: () => written,
        refresh: async () => {
          written = await commands.list();
        },
      };
    },
    ...(isOffered ? { news: async (events) => await skillNews(events, skills, load) } : {}),
  };
}

/** Returns true unless `--tools` names all that is offered. */
function mayOffer(chosen: string | boolean | undefined): boolean {
  return chosen !== false && (typeof chosen !== 'string' || /^\s*[+-]/.test(chosen));
}

/** Returns notes on skills that have come since: the session has not read of them in its prompt or in a note. */
async function skillNews(
  events: readonly Event[],
  find: OwnCommands['skills'],
  load: LoadTexts,
): Promise<readonly string[]> {
  if (events.length === 0) return []; // its prompt, which is sent now, lists them
  const { skills } = await find();
  const offered = skills.filter(({ forModel }) => forModel);
  if (offered.length === 0) return [];
  return (await load()).newSkills(offered, events);
}

/** Returns what a new session reads of skills, and what the user reads of them. */
async function listing(
  settings: CommandHere,
  registry: Registry,
  windowTokens: number | null,
  { load, found: find }: { readonly load: LoadTexts; readonly found: OwnCommands['skills'] },
): Promise<PromptListing> {
  const unusable = await unusableNames(settings, load);
  const aside = [...(await asideNotices(settings)), ...unusable];
  const found = await find();
  const problems = found.problems.map((message) => ({ level: 'warn', code: 'skills', message }) as const);
  if (!registry.get('skill')) {
    // Where there are skills, the user has switched the tool off; where there are none, what is wrong is the reason.
    const isOff = found.skills.some(({ forModel }) => forModel);
    return { text: '', notices: [...aside, ...(isOff ? [] : problems)] };
  }
  const { skillsBlock } = await load();
  const { text, cut } = skillsBlock(found, windowTokens);
  const message = `The descriptions of ${cut} skills do not fit; the model gets only their names.`;
  const shortened = cut > 0 ? [{ level: 'warn', code: 'skills', message } as const] : [];
  return { text, notices: [...aside, ...problems, ...shortened] };
}

async function unusableNames(settings: TrustedHere, load: LoadTexts): Promise<readonly AsideNotice[]> {
  const places = await countingPlaces(settings, 'commands');
  if (places.length === 0) return [];
  const { unusableCommands } = await load();
  return unusableCommands(places).map((message) => ({ level: 'warn', code: 'commands', message }) as const);
}

/** Returns the texts of these skills, for a sub-agent that knows them from the beginning. Others are left out. */
async function skillTexts(
  settings: CommandHere,
  names: readonly string[],
  load: LoadTexts,
): Promise<readonly string[]> {
  if (names.length === 0) return [];
  const { skills } = await openCommands(settings, load).skills();
  const { plainMessage } = await load();
  return names.flatMap((name) => {
    const skill = skills.find((other) => other.name === name);
    return (skill ? plainMessage(skill, '')?.text([]) : null) ?? [];
  });
}

/** The folder of the commands that come with the program. The sources and the bundle lie at different depths. */
function ofProgram(): SearchedFolder {
  const above = ['../../..', '../..', '..'].map((up) =>
    fileURLToPath(new URL(`${up}/config/prompts`, import.meta.url)),
  );
  return { folder: above.find(isFolder) ?? '', origin: 'program', root: null };
}

/** Returns the commands and skills of a project. */
export async function textParts(here: Here, load: LoadTexts): Promise<readonly ProjectPart[]> {
  const [commands, skills] = [projectPlaces(here, 'commands'), projectPlaces(here, 'skills')];
  if (commands.length + skills.length === 0) return [];
  const { partsOf } = await load();
  return partsOf({ commands, skills });
}
