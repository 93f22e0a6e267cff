import { chmodSync, lstatSync, mkdirSync, readdirSync, realpathSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { userFolders } from '../../kernel/config/project.js';
import { makeWholeFolder } from '../../kernel/console/import-files.js';
import {
  type Importer,
  type ImportHost,
  type ImportItem,
  type ImportPlan,
  type ImportProgram,
  planSource,
  skipItem,
} from '../../kernel/console/importer.js';
import {
  foldersOfProgram,
  foreignTarget,
  isReadInPlace,
  type ProgramFolder,
} from '../../kernel/console/program-folders.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { readBounded } from '../../kernel/disk/bounded-file.js';
import { statsAt } from '../../kernel/disk/path-stats.js';
import { skillsIn } from './read-skills.js';

/** Imports skills of other programs into `skills` of the user. */
export const skillImporter: Importer = { kind: 'skills', plan: (host) => Promise.resolve(planSkills(host)) };

/** The folders of skills, below those of the programs. Sources: their documentation on skills, read 2026-11. */
const folders: Readonly<Partial<Record<ImportProgram, readonly string[]>>> = {
  'claude-code': ['skills'],
  codex: ['skills'],
  gemini: ['skills'],
  opencode: ['skill', 'skills'],
  cursor: ['skills'],
  vscode: ['skills'],
  pi: ['skills'],
  qwen: ['skills'],
};

function planSkills({ settings, programs }: ImportHost): readonly ImportPlan[] {
  const target = createSkillImport(settings);
  return programs.flatMap((program) =>
    foldersOfProgram(program, settings).flatMap((place) =>
      (folders[program] ?? []).flatMap((name) =>
        planFolder(program, { ...place, folder: join(place.folder, name) }, settings, target),
      ),
    ),
  );
}

function planFolder(
  program: ImportProgram,
  { folder, scope }: ProgramFolder,
  settings: Settings,
  target: SkillImport,
): readonly ImportPlan[] {
  const { skills, shadowed, leftOut } = skillsIn([{ folder, origin: 'user', root: null }]);
  const inPlace = program === 'claude-code' && (scope === 'project' || isReadInPlace(dirname(folder), settings));
  const items = [
    ...[...skills, ...shadowed].map(({ name, path }): ImportItem => {
      if (inPlace) return { name, state: 'exists' };
      return path.startsWith(join(folder, '.system/'))
        ? skipItem(name, 'it comes with the program')
        : target.item(name, dirname(path));
    }),
    ...leftOut.map(({ name, reason }) => skipItem(name, reason)),
  ];
  return items.length === 0 ? [] : [planSource({ program, kind: 'skills', path: folder, scope }, items)];
}

interface SkillImport {
  item(name: string, folder: string): ImportItem;
}

function createSkillImport(settings: Settings): SkillImport {
  const used = userFolders(settings, 'skills').map(({ folder }) => folder);
  const [target = ''] = used;
  const foreign = foreignTarget(target, settings);
  const planned = new Map<string, string>();
  return {
    item: (name, folder) => {
      const skill = basename(folder);
      const same = [
        ...used.map((place) => join(place, skill)),
        ...(planned.has(skill) ? [planned.get(skill) ?? ''] : []),
      ];
      const there = same.find((place) => statsAt(join(place, 'SKILL.md')) !== null);
      if (there !== undefined && headOf(there) === headOf(folder)) return { name, state: 'exists' };
      if (there !== undefined) return skipItem(name, `${there} is another skill of this name`);
      if (foreign !== null) return skipItem(name, foreign);
      const files = filesOf(folder);
      if (typeof files === 'string') return skipItem(name, files);
      planned.set(skill, folder);
      return {
        name,
        state: 'take',
        take: () => {
          copySkill(files, join(target, skill));
        },
      };
    },
  };
}

const maxSkillBytes = 32 * 1024 * 1024;
const maxFiles = 1000;

/** Returns the text of the `SKILL.md`. */
function headOf(folder: string): string | null {
  const found = readBounded(join(folder, 'SKILL.md'), { maxBytes: 1024 * 1024, longer: 'refuse', links: 'follow' });
  return found.kind === 'read' ? found.bytes.toString('latin1') : null;
}

interface SkillFile {
  readonly from: string;
  /** Below the folder of the skill. */
  readonly name: string;
  readonly size: number;
  readonly mode: number;
}

/** Lists the files of a skill; a text says why it cannot be copied. What git keeps of the folder is no part of it. */
function filesOf(folder: string): readonly SkillFile[] | string {
  try {
    return filesBelow(folder);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function filesBelow(folder: string): readonly SkillFile[] | string {
  const root = realpathSync(folder);
  const files: SkillFile[] = [];
  const pending = [''];
  for (let above = pending.pop(); above !== undefined; above = pending.pop())
    for (const entry of readdirSync(join(root, above)).toSorted()) {
      const name = join(above, entry);
      if (entry === '.git') continue;
      if (lstatSync(join(root, name)).isDirectory()) {
        pending.push(name);
        continue;
      }
      const file = skillFileAt(root, name);
      if (typeof file === 'string') return file;
      files.push(file);
      if (files.length > maxFiles) return tooLarge;
    }
  return files.reduce((sum, { size }) => sum + size, 0) > maxSkillBytes ? tooLarge : files;
}

const tooLarge = `it has more than ${maxFiles} files or ${maxSkillBytes / 1024 / 1024} MiB`;

function skillFileAt(root: string, name: string): SkillFile | string {
  const from = landing(join(root, name), root);
  const stats = from === null ? null : statsAt(from);
  if (from === null || stats === null) return `${name} is a link out of its folder`;
  if (!stats.isFile()) return `${name} is not a regular file`;
  return { from, name, size: stats.size, mode: (stats.mode & 0o100) === 0 ? 0o600 : 0o700 };
}

/** Returns where a path leads; null where that is outside of `root`. */
function landing(path: string, root: string): string | null {
  if (!lstatSync(path).isSymbolicLink()) return path;
  try {
    const landed = realpathSync(path);
    return landed.startsWith(`${root}/`) ? landed : null;
  } catch {
    return null;
  }
}

function copySkill(files: readonly SkillFile[], target: string): void {
  makeWholeFolder(target, (draft) => {
    for (const { from, name, mode } of files) {
      const found = readBounded(from, { maxBytes: maxSkillBytes, longer: 'refuse', links: 'refuse' });
      if (found.kind !== 'read') throw new Error(`${from} cannot be read`);
      mkdirSync(dirname(join(draft, name)), { recursive: true, mode: 0o700 });
      writeFileSync(join(draft, name), found.bytes, { flag: 'wx' });
      chmodSync(join(draft, name), mode);
    }
  });
}
