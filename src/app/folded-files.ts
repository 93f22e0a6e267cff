import { createHash } from 'node:crypto';
import { dirname, relative } from 'node:path';
import type { PartKind, ProjectFiles, ProjectPart } from '../kernel/config/project.js';
import { spelledOut } from '../kernel/core/text.js';
import { counted } from '../kernel/tools/define-tool.js';

/** The files of a project, as a question about trust shows them. */
export interface ShownFiles {
  /** The files that are listed with all their lines. */
  readonly whole: readonly string[];
  /** Folders of files that are too many to list at once. */
  readonly folders: readonly FoldedFolder[];
}

/** Files of one folder, shown as one line that can be opened. */
export interface FoldedFolder {
  /** The folder with counts, size and hash. */
  readonly line: string;
  /** Each file with its lines. */
  readonly opened: readonly string[];
}

/** The plural forms of kinds. What runs without a model is never folded. */
const nouns: Readonly<
  Record<Exclude<PartKind, 'hooks' | 'servers' | 'permissions'>, readonly [one: string, several: string]>
> = {
  instructions: ['file of instructions', 'files of instructions'],
  skills: ['skill', 'skills'],
  commands: ['command', 'commands'],
  agents: ['agent', 'agents'],
  'output-styles': ['output style', 'output styles'],
};

const maxListedCharacters = 20_000;
const maxFolders = 40;

/** Lists all files with their lines. Where that is too long to read, hooks and servers stay whole and the others are
 * folded by folder. */
export function shownFiles({ directory, files }: Omit<ProjectFiles, 'sha256'>): ShownFiles {
  const all = files.flatMap((file) => fileLines(directory, file));
  if (all.join('').length <= maxListedCharacters) return { whole: all, folders: [] };
  const isFolded = ({ kind }: ProjectPart): boolean => Object.hasOwn(nouns, kind);
  return {
    whole: files.filter((file) => !isFolded(file)).flatMap((file) => fileLines(directory, file)),
    folders: [...byFolder(directory, files.filter(isFolded))].map(([folder, inside]) => ({
      line: `${spelledOut(folder)}: ${folderFacts(inside)}`,
      opened: inside.flatMap((file) => fileLines(directory, file)),
    })),
  };
}

function fileLines(directory: string, { path, sha256, lines, runs = [] }: ProjectPart): readonly string[] {
  return [
    `  ${spelledOut(relative(directory, path))} (sha256 ${sha256.slice(0, 16)})`,
    ...[...lines, ...runs.map((command) => `runs: ${command}`)].map((line) => `      ${spelledOut(line)}`),
  ];
}

/** Groups files by their folder. Where those are too many, the deepest folders join the ones above them. */
function byFolder(directory: string, files: readonly ProjectPart[]): ReadonlyMap<string, readonly ProjectPart[]> {
  const folderOf = ({ path, kind }: ProjectPart): readonly string[] => {
    const folder = dirname(path);
    const parts = relative(directory, kind === 'skills' ? dirname(folder) : folder).split('/');
    return parts[0] === '' ? ['.'] : parts;
  };
  const paths = files.map((file) => ({ file, folder: folderOf(file) }));
  let depth = paths.reduce((most, { folder }) => Math.max(most, folder.length), 1);
  const grouped = (): ReadonlyMap<string, readonly ProjectPart[]> => {
    const groups = new Map<string, ProjectPart[]>();
    for (const { file, folder } of paths) {
      const name = folder.slice(0, depth).join('/');
      groups.set(name, [...(groups.get(name) ?? []), file]);
    }
    return groups;
  };
  let groups = grouped();
  while (groups.size > maxFolders && depth > 1) {
    depth--;
    groups = grouped();
  }
  return groups;
}

function folderFacts(files: readonly ProjectPart[]): string {
  const counts = Object.entries(nouns).flatMap(([kind, [one, several]]) => {
    const { length } = files.filter((file) => file.kind === kind);
    return length === 0 ? [] : [counted(length, one, several)];
  });
  const runs = files.filter((file) => (file.runs ?? []).length > 0).length;
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const hash = createHash('sha256');
  for (const { path, sha256 } of files) hash.update(`${path}\0${sha256}\n`);
  return [
    ...counts,
    ...(runs > 0 ? [`${runs} of them ${runs === 1 ? 'runs' : 'run'} shell commands`] : []),
    `${Math.max(1, Math.round(bytes / 1024))} KiB (sha256 ${hash.digest('hex').slice(0, 16)})`,
  ].join(', ');
}
