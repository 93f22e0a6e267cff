import { parseJson } from '../../kernel/core/json.js';
import { addAll } from '../../kernel/core/lists.js';
import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
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
  type LeftOutFile,
  nameIn,
  type SearchedFolder,
  withVariables,
} from '../../kernel/config/found-files.js';
import { type FrontMatter, markdownText, oneLine, readFrontMatter } from '../../kernel/config/front-matter.js';
import type { ProjectPart } from '../../kernel/config/project.js';

/** Instructions for one kind of work: a folder with a `SKILL.md`. Source: agentskills.io, "Specification"
 * (2026-08-09). */
export interface Skill {
  readonly name: string;
  /** One line: what it does, and when to use it. */
  readonly description: string;
  /** Of the `SKILL.md`. */
  readonly path: string;
  readonly origin: FileOrigin;
  readonly place: SearchedFolder;
  /** The tools as written. They grant nothing. */
  readonly allowedTools: string | null;
  readonly argumentHint: string | null;
  /** `forModel`: the model may use it. `forUser`: the user may use it. */
  readonly forModel: boolean;
  readonly forUser: boolean;
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

/** Finds the skills of these places. Accepts skills with small mistakes and adds a sentence about each. Leaves out a
 * skill without a description, because the model could not know when to use it. */
export function skillsIn(places: readonly SearchedFolder[], heads: HeadCache = new Map()): FoundSkills {
  const skills = new Map<string, Skill>();
  const shadowed: Skill[] = [];
  const mistakes: Mistakes = { problems: [], leftOut: [] };
  for (const place of places)
    for (const file of filesIn(place, skillFile)) {
      const skill = readSkill(file, mistakes, heads);
      if (skill && skills.has(skill.name)) shadowed.push(skill);
      else if (skill) skills.set(skill.name, skill);
    }
  return { skills: [...skills.values()], shadowed, ...mistakes };
}

function skillFile({ path, isFolder }: { readonly path: string; readonly isFolder: boolean }): string | null {
  const file = join(path, 'SKILL.md');
  return isFolder && statsAt(file)?.isFile() === true ? file : null;
}

const skillName = /^[\p{L}\p{M}\p{N}_-]{1,64}$/u;

function readSkill({ path, place }: FoundFile, { problems, leftOut }: Mistakes, heads: HeadCache): Skill | null {
  const folder = basename(dirname(path));
  const leaveOut = (reason: string, sentence = `${path} ${reason}`): null => {
    problems.push(`${sentence}; the skill is not loaded.`);
    leftOut.push({ name: nameIn(place, folder), path, origin: place.origin, reason });
    return null;
  };
  const unreadable = fileProblem(path);
  if (unreadable !== null) return leaveOut(unreadable);
  const { fields } = headOf(path, heads);
  const description = fields.get('description') ?? '';
  if (description.trim() === '') return leaveOut('has no description');
  const given = (fields.get('name') ?? folder).normalize('NFC');
  const name = skillName.test(given) ? given : folder.normalize('NFC');
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
    allowedTools: shortField(fields, 'allowed-tools'),
    argumentHint: shortField(fields, 'argument-hint'),
    forModel: !isSet(fields, 'disable-model-invocation', 'true'),
    forUser: !isSet(fields, 'user-invocable', 'false'),
  };
}

/** Says why the text of a skill could not be given, or returns null. */
function fileProblem(path: string): string | null {
  const size = statsAt(path)?.size ?? 0;
  if (size > maxSkillBytes) return `has ${size} bytes, over ${maxSkillBytes}`;
  const found = readBounded(path, { maxBytes: 1, longer: 'start', links: 'follow' });
  return found.kind === 'refused' ? `cannot be read: ${found.reason}` : null;
}

/** The fields of files, by path, for as long as a file keeps its time and its size. */
export type HeadCache = Map<string, { readonly version: string; readonly head: FrontMatter }>;

function headOf(path: string, heads: HeadCache): FrontMatter {
  const stats = statsAt(path);
  const version = `${stats?.mtimeMs} ${stats?.size}`;
  const known = heads.get(path);
  if (known?.version === version) return known.head;
  const head = readHead(path);
  heads.set(path, { version, head });
  return head;
}

function readHead(path: string): FrontMatter {
  const read = (maxBytes: number): FrontMatter => {
    const found = readBounded(path, { maxBytes, longer: 'start', links: 'follow' });
    return readFrontMatter(found.kind === 'read' ? markdownText(found.bytes) : '');
  };
  const head = read(maxHeadBytes);
  return head.fields.size > 0 ? head : read(16 * maxHeadBytes);
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

const maxHashed = 200;

/** Hashes all files of a skill (hex): the instructions name the others. Null where there are over 200, or one over 1
 * MiB: nobody looks through them. */
export function hashSkill({
  path,
}: Pick<Skill, 'path'>): { readonly sha256: string; readonly files: number; readonly bytes: number } | null {
  const folder = dirname(path);
  const names = namesBelow(folder);
  if (names.length > maxHashed) return null;
  const hash = createHash('sha256');
  let bytes = 0;
  for (const name of names) {
    const found = readBounded(join(folder, name), { maxBytes: maxSkillBytes, longer: 'refuse', links: 'follow' });
    if (found.kind !== 'read') return null;
    hash.update(`${name}\0${found.bytes.length}\n`).update(found.bytes);
    bytes += found.bytes.length;
  }
  return { sha256: hash.digest('hex'), files: names.length, bytes };
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
    ...commandsIn(commands).map(({ path, sha256, bytes, name, description, body }): ProjectPart => ({
      kind: 'commands',
      path,
      sha256,
      bytes,
      lines: [`command /${name}: ${description}`],
      runs: runsOf(body),
    })),
    ...[...found.skills, ...found.shadowed].map((skill): ProjectPart => {
      const whole = hashSkill(skill);
      const others = whole === null ? 'files that cannot all be looked at' : `${whole.files - 1} more files`;
      return {
        kind: 'skills',
        path: skill.path,
        sha256: whole?.sha256 ?? `unknown ${Math.random()}`,
        bytes: whole?.bytes ?? 0,
        lines: [`skill ${skill.name}: ${skill.description} (${others})`],
        runs: runsOf(readSkillText(skill)?.body ?? ''),
      };
    }),
  ];
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
