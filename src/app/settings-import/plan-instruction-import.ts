import { realpathSync } from 'node:fs';
import { basename, join } from 'node:path';
import { readForeignSettings } from '../../kernel/config/foreign-settings.js';
import { filesIn } from '../../kernel/config/found-files.js';
import { markdownText, readFrontMatter } from '../../kernel/config/front-matter.js';
import { replaceFile } from '../../kernel/config/settings-file.js';
import { ownFolder } from '../../kernel/console/import-files.js';
import {
  type Importer,
  type ImportHost,
  type ImportItem,
  type ImportPlan,
  type ImportProgram,
  planSource,
  programTitles,
  skipItem,
  type SourcePlace,
  unreadableSource,
} from '../../kernel/console/importer.js';
import { foldersOfProgram, foreignTarget, opencodeFiles, projectRoots } from '../../kernel/console/program-folders.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { readBounded } from '../../kernel/disk/bounded-file.js';

/** Imports instructions of other programs into `AGENTS.md` of the user. */
export const instructionImporter: Importer = {
  kind: 'instructions',
  plan: (host) => Promise.resolve(planInstructions(host)),
};

interface InstructionFiles {
  /** The file of the user, below the folder of the program. */
  readonly user: readonly string[];
  /** The files and folders of a project, below its root. */
  readonly project: readonly string[];
  /** They are used where they are. */
  readonly inPlace: 'all' | 'project' | 'none';
}

/** Sources: the documentation of the programs on instructions, memory and rules, read 2026-11. */
const programs: Readonly<Partial<Record<ImportProgram, InstructionFiles>>> = {
  'claude-code': {
    user: ['CLAUDE.md', 'rules'],
    project: ['CLAUDE.md', 'CLAUDE.local.md', '.claude/CLAUDE.md', '.claude/rules'],
    inPlace: 'all',
  },
  codex: { user: ['AGENTS.md'], project: [], inPlace: 'all' },
  gemini: { user: ['GEMINI.md'], project: ['GEMINI.md'], inPlace: 'all' },
  cursor: { user: [], project: ['.cursorrules', '.cursor/rules'], inPlace: 'project' },
  opencode: { user: ['AGENTS.md'], project: [], inPlace: 'none' },
  qwen: { user: ['QWEN.md'], project: ['QWEN.md'], inPlace: 'none' },
  pi: { user: ['AGENTS.md'], project: [], inPlace: 'none' },
  vscode: { user: ['prompts'], project: ['.github/copilot-instructions.md', '.github/instructions'], inPlace: 'none' },
  zed: { user: [], project: ['.rules'], inPlace: 'none' },
};

function planInstructions({ settings, programs: wanted }: ImportHost): readonly ImportPlan[] {
  const target = createInstructionImport(settings);
  return wanted.flatMap((program) => {
    const files = programs[program];
    if (!files) return [];
    const own = foldersOfProgram(program, settings)
      .filter(({ scope }) => scope === 'user')
      .flatMap(({ folder }) => files.user.map((name) => ({ path: join(folder, name), scope: 'user' as const })));
    const ofProject = projectRoots(settings).flatMap((folder) =>
      files.project.map((name) => ({ path: join(folder, name), scope: 'project' as const })),
    );
    const plans = [...own, ...ofProject].flatMap(({ path, scope }) => {
      const inPlace = files.inPlace === 'all' || files.inPlace === scope;
      return planPath({ program, kind: 'instructions', path, scope }, inPlace, target);
    });
    return program === 'opencode' ? [...plans, ...planListed(settings)] : plans;
  });
}

function planPath(place: SourcePlace, inPlace: boolean, target: InstructionImport): readonly ImportPlan[] {
  const isRule = (path: string): boolean =>
    place.program === 'vscode' ? /(?:^|[.-])instructions\.md$/.test(path) : /\.mdc?$/.test(path);
  const found = filesIn({ folder: place.path, origin: 'user', root: null }, ({ path, isFolder }) =>
    !isFolder && isRule(path) ? path : null,
  ).map(({ path }) => path);
  const paths = found.length > 0 ? found : [place.path];
  const items = paths.flatMap((path) => itemsOf(place, path, inPlace, target));
  return items.length === 0 ? [] : [planSource(place, items)];
}

const maxBytes = 64 * 1024;

function itemsOf(place: SourcePlace, path: string, inPlace: boolean, target: InstructionImport): readonly ImportItem[] {
  const name = basename(path);
  const found = readBounded(path, { maxBytes, longer: 'refuse', links: 'follow' });
  // A folder without any of these files is a place where there is nothing.
  if (found.kind === 'missing' || (found.kind === 'refused' && path === place.path && !name.includes('.'))) return [];
  if (found.kind === 'refused') return [skipItem(name, found.reason)];
  if (inPlace) return [{ name, state: 'exists' }];
  if (place.scope === 'project') return [skipItem(name, 'it is about one project: copy it into AGENTS.md there')];
  return textItems(place, path, markdownText(found.bytes), target);
}

function textItems(
  { program }: SourcePlace,
  path: string,
  text: string,
  target: InstructionImport,
): readonly ImportItem[] {
  const { fields, body } = readFrontMatter(text);
  const files = fields.get('applyTo')?.trim() ?? '**';
  if (files !== '**' && files !== '**/*') return [skipItem(basename(path), `it is only about ${files}`)];
  return body.trim() === '' ? [] : [target.item(program, path, body.trim())];
}

/** The files that `instructions` of `opencode.json` lists. */
function planListed(settings: Settings): readonly ImportPlan[] {
  return opencodeFiles(settings).flatMap(({ path, scope }): readonly ImportPlan[] => {
    const place: SourcePlace = { program: 'opencode', kind: 'instructions', path, scope };
    try {
      const listed = readForeignSettings(path)?.['instructions'];
      const names: readonly unknown[] = Array.isArray(listed) ? listed : [];
      const items = names.map((name) => skipItem(String(name), 'name it in AGENTS.md, so that the model reads it'));
      return items.length === 0 ? [] : [planSource(place, items)];
    } catch (error) {
      return [unreadableSource(place, 'file', error)];
    }
  });
}

interface InstructionImport {
  item(program: ImportProgram, path: string, text: string): ImportItem;
}

/** Adds texts to `AGENTS.md` of the user, each below a heading that names its source. */
function createInstructionImport(settings: Settings): InstructionImport {
  const file = join(ownFolder(settings), 'AGENTS.md');
  const foreign = foreignTarget(file, settings);
  const live = ['.claude/CLAUDE.md', '.codex/AGENTS.md', '.gemini/GEMINI.md'].map((name) => join(settings.home, name));
  let size = ownText(file).length;
  const planned: string[] = [];
  return {
    item: (program, path, text) => {
      const name = basename(path);
      const heading = `# From ${programTitles[program]} (${shortPath(path, settings.home)})`;
      const isUsed = [file, ...live].some((other) => isSameFile(path, other) || ownText(other).includes(text));
      if (isUsed || ownText(file).includes(heading) || planned.includes(text)) return { name, state: 'exists' };
      if (foreign !== null) return skipItem(name, foreign);
      const section = `${heading}\n\n${text}\n`;
      size += section.length + 1;
      if (size > maxBytes) return skipItem(name, `AGENTS.md would be longer than ${maxBytes / 1024} KiB`);
      planned.push(text);
      return {
        name,
        state: 'take',
        take: () => {
          addSection(file, heading, section);
        },
      };
    },
  };
}

function shortPath(path: string, home: string): string {
  return path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
}

function ownText(file: string): string {
  const found = readBounded(file, { maxBytes: 16 * 1024 * 1024, longer: 'refuse', links: 'follow' });
  return found.kind === 'read' ? found.bytes.toString('utf8') : '';
}

function addSection(file: string, heading: string, section: string): void {
  const found = readBounded(file, { maxBytes: 16 * 1024 * 1024, longer: 'refuse', links: 'follow' });
  if (found.kind === 'refused') throw new Error(`${file} cannot be changed: ${found.reason}`);
  const before = found.kind === 'read' ? found.bytes.toString('utf8') : '';
  if (!before.includes(heading)) replaceFile(file, before === '' ? section : `${before.trimEnd()}\n\n${section}`);
}

function isSameFile(one: string, other: string): boolean {
  try {
    return realpathSync(one) === realpathSync(other);
  } catch {
    return false;
  }
}
