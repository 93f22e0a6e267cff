import { parseJson } from '../../kernel/core/json.js';
import { addAll } from '../../kernel/core/lists.js';
import { createHash } from 'node:crypto';
import { readdirSync, type Stats } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { statsAt } from '../../kernel/disk/path-stats.js';
import { isRecord } from '../../kernel/core/json.js';
import { readBounded } from '../../kernel/disk/bounded-file.js';
import { commandsIn } from './command-files.js';
import { expandTemplate } from './expand-template.js';
import {
  type FileOrigin,
  filesIn,
  type FoundFile,
  type FoundPath,
  type LeftOutFile,
  nameIn,
  type SearchedFolder,
  withVariables,
} from '../../kernel/config/found-files.js';
import { type FileHead, type KeptHeads, openKeptHeads } from '../../kernel/config/kept-heads.js';
import { type FrontMatter, markdownText, oneLine, readFrontMatter } from '../../kernel/config/front-matter.js';
import type { ProjectPart } from '../../kernel/config/project.js';
import { readCommandFields, type CommandFields, turnLines } from './turn-fields.js';
import { unusedFields } from './unused-fields.js';

/** Instructions for one kind of work: a folder with a `SKILL.md`. Source: agentskills.io, "Specification"
 * (2026-08-09). */
export interface Skill extends CommandFields {
  readonly name: string;
  /** One line: what it does, and when to use it. */
  readonly description: string;
  /** Of the `SKILL.md`. */
  readonly path: string;
  readonly origin: FileOrigin;
  readonly place: SearchedFolder;
  readonly argumentHint: string | null;
  /** `forModel`: the model may use it. `forUser`: the user may use it. */
  readonly forModel: boolean;
  readonly forUser: boolean;
  /** Fields that have no effect here. */
  readonly unused: readonly string[];
}

export interface FoundSkills {
  /** The first of each name. */
  readonly skills: readonly Skill[];
  /** The skills that another one of the same name hides. */
  readonly shadowed: readonly Skill[];
  /** The files that are no skills. */
  readonly leftOut: readonly LeftOutFile[];
  /** Sentences. */
  readonly problems: readonly string[];
}

/** The mistakes that are found while skills are read. */
interface Mistakes {
  readonly problems: string[];
  readonly leftOut: LeftOutFile[];
}

/** The fields are within the first bytes of a file; the body is read when the skill is used. */
const maxHeadBytes = 4096;
const maxDescription = 1024;
const maxSkillBytes = 1024 * 1024;

/** Finds the skills of these places. Accepts skills with small mistakes and adds a sentence about each. A skill
 * without a description has its first paragraph, as in Claude Code. */
export function skillsIn(places: readonly SearchedFolder[], heads: KeptHeads = openKeptHeads(null)): FoundSkills {
  const skills = new Map<string, Skill>();
  const shadowed: Skill[] = [];
  const mistakes: Mistakes = { problems: [], leftOut: [] };
  const versions = new Map<string, Stats>();
  const skillFile = ({ path, isFolder }: FoundPath): string | null => {
    const file = join(path, 'SKILL.md');
    const stats = isFolder ? statsAt(file) : null;
    if (stats?.isFile() !== true) return null;
    versions.set(file, stats);
    return file;
  };
  for (const place of places)
    for (const file of filesIn(place, skillFile)) {
      const stats = versions.get(file.path);
      const skill = stats ? readSkill(file, headOf(file.path, stats, heads), mistakes) : null;
      if (skill && skills.has(skill.name)) shadowed.push(skill);
      else if (skill) skills.set(skill.name, skill);
    }
  heads.save();
  return { skills: [...skills.values()], shadowed, ...mistakes };
}

const skillName = /^(?=.{1,64}$)[\p{L}\p{M}\p{N}_-]+(?:\.[\p{L}\p{M}\p{N}_-]+)*$/u;

function readSkill({ path, place }: FoundFile, head: FileHead, { problems, leftOut }: Mistakes): Skill | null {
  const folder = basename(dirname(path));
  const leaveOut = (reason: string, sentence = `${path} ${reason}`): null => {
    problems.push(`${sentence}; the skill is not loaded.`);
    leftOut.push({ name: nameIn(place, folder), path, origin: place.origin, reason });
    return null;
  };
  if (head.problem !== null) return leaveOut(head.problem);
  const { fields, opening } = head;
  const description = fields.get('description')?.trim() || opening;
  if (description === '') return leaveOut('has no description and no text');
  const given = (fields.get('name') ?? folder).normalize('NFC');
  const name = skillName.test(given) ? given : folder.normalize('NFC').replaceAll(/\s+/g, '-');
  if (!skillName.test(name)) {
    const reason = 'neither the name nor the folder can be typed';
    return leaveOut(reason, `${path}: ${reason}`);
  }
  if (given !== folder.normalize('NFC') || !/^[a-z\d-]+$/.test(given))
    problems.push(
      `${path}: the name "${oneLine(given, 64)}" should match its folder ("${folder}") and have only a-z, 0-9 and -. The skill is loaded anyway.`,
    );
  return {
    name: nameIn(place, name),
    description: oneLine([description, fields.get('when_to_use') ?? ''].join(' '), maxDescription),
    path,
    origin: place.origin,
    place,
    ...readCommandFields(fields, 'skill'),
    argumentHint: shortField(fields, 'argument-hint'),
    forModel: !isSet(fields, 'disable-model-invocation', 'true'),
    forUser: !isSet(fields, 'user-invocable', 'false'),
    unused: unusedFields(fields),
  };
}

/** Returns the first paragraph of a text, which describes a skill without a description, or its first heading. */
function firstParagraph(body: string): string {
  const blocks = body.split(/\n\s*\n/).map((block) => block.trim());
  const heading = blocks.find((block) => block !== '') ?? '';
  return blocks.find((block) => /^[^#\s<]/.test(block)) ?? heading.replace(/^#+\s*/, '');
}

function headOf(path: string, stats: Stats, heads: KeptHeads): FileHead {
  return heads.of(path, stats, () => {
    const isTooLarge = stats.size > maxSkillBytes;
    return isTooLarge ? noHead(`has ${stats.size} bytes, over ${maxSkillBytes}`) : readHead(path, maxHeadBytes);
  });
}

function readHead(path: string, maxBytes: number): FileHead {
  const found = readBounded(path, { maxBytes, longer: 'start', links: 'follow' });
  if (found.kind === 'refused') return noHead(`cannot be read: ${found.reason}`);
  const { fields, body } = readFrontMatter(found.kind === 'read' ? markdownText(found.bytes) : '');
  const isWhole = fields.size > 0 || found.kind === 'missing' || found.size <= maxBytes || maxBytes > maxHeadBytes;
  if (!isWhole) return readHead(path, 16 * maxHeadBytes);
  return { fields, opening: oneLine(firstParagraph(body), maxDescription), problem: null };
}

function noHead(problem: string): FileHead {
  return { fields: new Map(), opening: '', problem };
}

function shortField(fields: FrontMatter['fields'], key: string): string | null {
  const value = fields.get(key)?.trim() ?? '';
  return value === '' ? null : oneLine(value, 200);
}

function isSet(fields: FrontMatter['fields'], key: string, value: string): boolean {
  return fields.get(key)?.trim().toLowerCase() === value;
}

/** The text of a skill, and what lies beside it. */
export interface SkillText {
  readonly body: string;
  readonly folder: string;
  /** At most 50, below the folder. */
  readonly files: readonly string[];
  /** Of the `SKILL.md`, hex. */
  readonly sha256: string;
}

const maxListed = 50;

/** Reads a skill for use; null where it is gone or over 1 MiB. */
export function readSkillText({
  path,
  place = {},
}: {
  readonly path: string;
  readonly place?: Pick<SearchedFolder, 'variables'>;
}): SkillText | null {
  const found = readBounded(path, { maxBytes: maxSkillBytes, longer: 'refuse', links: 'follow' });
  if (found.kind !== 'read') return null;
  const folder = dirname(path);
  return {
    body: withVariables(place, readFrontMatter(markdownText(found.bytes)).body.trim()),
    folder,
    files: namesBelow(folder)
      .filter((name) => name !== 'SKILL.md')
      .slice(0, maxListed),
    sha256: createHash('sha256').update(found.bytes).digest('hex'),
  };
}

const maxHashed = 5000;
const maxHashedBytes = 16 * 1024 * 1024;

/** Hashes all files of a skill (hex): the instructions name the others. A file over 16 MiB, or one that cannot be read,
 * counts by what the file system says of it. Null where there are over 5,000 files. */
export function hashSkill({
  path,
}: Pick<Skill, 'path'>): { readonly sha256: string; readonly files: number; readonly bytes: number } | null {
  const folder = dirname(path);
  const names = namesBelow(folder);
  if (names.length > maxHashed) return null;
  const hash = createHash('sha256');
  let bytes = 0;
  for (const name of names) {
    const file = join(folder, name);
    const found = readBounded(file, { maxBytes: maxHashedBytes, longer: 'refuse', links: 'follow' });
    const content = found.kind === 'read' ? found.bytes : factsOf(file);
    hash.update(`${name}\0${content.length}\n`).update(content);
    bytes += content.length;
  }
  return { sha256: hash.digest('hex'), files: names.length, bytes };
}

function factsOf(file: string): string {
  const stats = statsAt(file);
  return stats === null ? 'missing' : [stats.ino, stats.size, stats.mtimeMs, stats.ctimeMs].join(' ');
}

/** The files below a folder, by name, at most one more than are hashed; links are files. */
function namesBelow(folder: string, above = ''): readonly string[] {
  const names: string[] = [];
  const entries = readdirSync(folder, { withFileTypes: true }).toSorted((one, other) =>
    one.name < other.name ? -1 : 1,
  );
  for (const entry of entries) {
    if (names.length > maxHashed) break;
    const name = above === '' ? entry.name : `${above}/${entry.name}`;
    if (entry.isDirectory()) addAll(names, namesBelow(join(folder, entry.name), name));
    else if (!entry.isDirectory()) names.push(name);
  }
  return names;
}

/** Lists the commands and skills of a project. A skill that cannot be looked through has a hash that no answer fits. */
export function partsOf({
  commands,
  skills,
}: {
  readonly commands: readonly SearchedFolder[];
  readonly skills: readonly SearchedFolder[];
}): readonly ProjectPart[] {
  const found = skillsIn(skills);
  return [
    ...commandsIn(commands).map((command): ProjectPart => ({
      kind: 'commands',
      path: command.path,
      sha256: trustedHash(command.sha256, command),
      bytes: command.bytes,
      lines: [`command /${command.name}: ${command.description}`, ...partLines(command)],
      runs: runsOf(command.body),
    })),
    ...[...found.skills, ...found.shadowed].map((skill): ProjectPart => {
      const whole = hashSkill(skill);
      const others = whole === null ? 'files that cannot all be looked at' : `${whole.files - 1} more files`;
      return {
        kind: 'skills',
        path: skill.path,
        sha256: trustedHash(whole?.sha256 ?? `unknown ${Math.random()}`, skill),
        bytes: whole?.bytes ?? 0,
        lines: [`skill ${skill.name}: ${skill.description} (${others})`, ...partLines(skill)],
        runs: runsOf(readSkillText(skill)?.body ?? ''),
      };
    }),
  ];
}

function partLines(fields: CommandFields): readonly string[] {
  return turnLines(fields).map((line) => line.trim());
}

/** Returns the hash that an answer about trust is for. An answer from before files could allow calls does not hold for a
 * file that does. */
function trustedHash(sha256: string, { turn: { allow } }: CommandFields): string {
  if (allow.length === 0) return sha256;
  return createHash('sha256')
    .update(`${sha256}\nallows ${JSON.stringify(allow)}`)
    .digest('hex');
}

/** The commands in a text that run when it is expanded. */
function runsOf(body: string): readonly string[] {
  const expanded = expandTemplate(body, { args: '', isFile: () => false });
  if (typeof expanded === 'string') return [];
  return expanded.calls.map((call) => {
    const given: unknown = parseJson(call.arguments);
    return isRecord(given) ? String(given.command) : '';
  });
}
