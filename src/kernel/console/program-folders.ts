import { realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { upToRoot } from '../config/load.js';
import type { ImportProgram, SourcePlace } from './importer.js';

/** The variables and folders that decide where programs keep their files. */
export interface ProgramPlace {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly cwd: string;
}

/** Returns the folders of the user's files, by program. Sources: the documentation of the programs, November 2026. */
function userFolders({ env, home }: ProgramPlace): Readonly<Record<ImportProgram, readonly string[]>> {
  const given = (name: string): string | null => (env[name]?.trim() ? (env[name] ?? null) : null);
  const config = given('XDG_CONFIG_HOME') ?? join(home, '.config');
  const support = join(home, 'Library', 'Application Support');
  return {
    'claude-code': [given('CLAUDE_CONFIG_DIR')?.split(',')[0] ?? join(home, '.claude')],
    codex: [given('CODEX_HOME') ?? join(home, '.codex')],
    gemini: [join(given('GEMINI_CLI_HOME') ?? home, '.gemini')],
    opencode: [join(config, 'opencode')],
    cursor: [join(home, '.cursor')],
    vscode: [join(config, 'Code', 'User'), join(support, 'Code', 'User')],
    'claude-desktop': [join(config, 'Claude'), join(support, 'Claude')],
    zed: [join(config, 'zed')],
    pi: [given('PI_CODING_AGENT_DIR') ?? join(home, '.pi', 'agent')],
    qwen: [given('QWEN_HOME') ?? join(home, '.qwen')],
  };
}

/** The folders of a project, by program. */
const projectFolders: Readonly<Record<ImportProgram, readonly string[]>> = {
  'claude-code': ['.claude'],
  codex: ['.codex'],
  gemini: ['.gemini'],
  opencode: ['.opencode'],
  cursor: ['.cursor'],
  vscode: ['.github', '.vscode'],
  'claude-desktop': [],
  zed: ['.zed'],
  pi: ['.pi'],
  qwen: ['.qwen'],
};

/** A folder of a program. */
export interface ProgramFolder {
  readonly folder: string;
  readonly scope: SourcePlace['scope'];
}

/** Returns the folders of a program: the user's own before those of the project. */
export function foldersOfProgram(program: ImportProgram, place: ProgramPlace): readonly ProgramFolder[] {
  const own = userFolders(place)[program].map((folder): ProgramFolder => ({ folder, scope: 'user' }));
  const ofProject = projectRoots(place).flatMap((root) =>
    projectFolders[program].map((name): ProgramFolder => ({ folder: join(root, name), scope: 'project' })),
  );
  return [...own, ...ofProject];
}

/** Returns the folders from the working directory up to the root of the project. The home of the user is none. */
export function projectRoots({ cwd, home }: Pick<ProgramPlace, 'cwd' | 'home'>): readonly string[] {
  return upToRoot(cwd).filter((folder) => realPath(folder) !== realPath(home));
}

/** Returns the files of settings of opencode. */
export function opencodeFiles(place: ProgramPlace): readonly Pick<SourcePlace, 'path' | 'scope'>[] {
  const roots = projectRoots(place).map((folder): ProgramFolder => ({ folder, scope: 'project' }));
  return [...foldersOfProgram('opencode', place), ...roots].flatMap(({ folder, scope }) =>
    ['opencode.json', 'opencode.jsonc'].map((name) => ({ path: join(folder, name), scope })),
  );
}

/** Returns true for the folder of Claude Code whose files are used where they are. */
export function isReadInPlace(folder: string, { home }: Pick<ProgramPlace, 'home'>): boolean {
  return folder === join(home, '.claude');
}

/** Returns why a file or folder of this program must not be written to, or null: it is a link to files of another
 * program, which stay as they are. */
export function foreignTarget(path: string, place: ProgramPlace): string | null {
  const landed = landedPath(path);
  const others = Object.values(userFolders(place)).flat().map(landedPath);
  const within = others.find((folder) => landed === folder || landed.startsWith(`${folder}/`));
  return within === undefined ? null : `${path} is a link into ${within}, which belongs to another program`;
}

/** Returns a path with the links of the part that exists resolved. */
function landedPath(path: string): string {
  const real = realPath(path);
  return real !== path || dirname(path) === path
    ? real
    : join(landedPath(dirname(path)), path.slice(dirname(path).length));
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
