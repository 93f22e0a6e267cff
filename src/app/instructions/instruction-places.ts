import { existsSync, realpathSync } from 'node:fs';
import { dirname, join, isAbsolute } from 'node:path';
import { filesIn } from '../../kernel/config/found-files.js';
import { isFolder } from '../../kernel/config/project.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { statsAt } from '../../kernel/disk/path-stats.js';
import { createSecretPaths } from '../../kernel/permissions/guarded-paths.js';

/** The program that a file of instructions is written for. `own`: this one, from the user's folder; `project`: an
 * `AGENTS.md`, which many programs read. */
export type InstructionOrigin = 'own' | 'project' | 'claude-code' | 'codex' | 'gemini' | 'cursor';

/** The folders that instructions are read from. */
export interface InstructionPlace {
  /** Absolute, links resolved. */
  readonly cwd: string;
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The user's folder of this program. */
  readonly userDir: string;
  /** No file of instructions is read. */
  readonly isBare?: boolean;
  /** Returns true for a file that `fs.deny` keeps from being read. */
  readonly isSecret: (path: string) => boolean;
  /** Files that a change under review brings. Absolute, links resolved. */
  readonly underReview?: readonly string[];
}

/** A file that may hold instructions. */
export interface Candidate {
  readonly path: string;
  readonly origin: InstructionOrigin;
  /** The folder, links resolved, that the file must be in; null for a file of the user. */
  readonly within: string | null;
  /** `importing`: its `@path` imports are resolved, as those of a rule of Claude Code are. */
  readonly form: 'text' | 'importing' | 'claude-rule' | 'cursor-rule';
  /** The folder that the globs of a rule start from. */
  readonly base: string;
}

export function instructionPlace({
  cwd,
  config,
  home,
  env,
  isBare = false,
  underReview,
}: Pick<Settings, 'cwd' | 'config' | 'home' | 'env' | 'isBare' | 'underReview'>): InstructionPlace {
  let secrets: ReturnType<typeof createSecretPaths> | null = null;
  return {
    cwd,
    home,
    env,
    isBare,
    userDir: dirname(config.files.config),
    isSecret: (path) => (secrets ??= createSecretPaths(config.fs.deny, home)).matches(path),
    ...(underReview === undefined ? {} : { underReview }),
  };
}

/** Returns the folders from the root of the repository down to `cwd`. `root`: where the files must be, links resolved. */
export function projectFolders(cwd: string): { readonly root: string; readonly folders: readonly string[] } {
  const root = repositoryRoot(cwd);
  const folders = [cwd];
  for (let at = cwd; root !== null && at !== root; at = dirname(at)) folders.unshift(dirname(at));
  // A session that is imported may be of a directory that is gone.
  return { root: existsSync(cwd) ? realpathSync(root ?? cwd) : cwd, folders };
}

/** Returns the nearest folder at or above `cwd` that holds `.git`, or null. */
export function repositoryRoot(cwd: string): string | null {
  // An imported session may be of a directory of Windows.
  if (!isAbsolute(cwd)) return null;
  for (let at = cwd; ; at = dirname(at)) {
    if (existsSync(join(at, '.git'))) return at;
    if (dirname(at) === at) return null;
  }
}

/** Returns the user's files, for this program and others. Source: code.claude.com/docs/en/memory, developers.openai.com
 * "Custom instructions with AGENTS.md", geminicli.com/docs/cli/gemini-md (2026-11-28). */
export function userCandidates({ cwd, home, env, userDir }: InstructionPlace): readonly Candidate[] {
  const { root } = projectFolders(cwd);
  const own = { within: null, base: root };
  const claude = env['CLAUDE_CONFIG_DIR'] || join(home, '.claude');
  const codex = env['CODEX_HOME'] || join(home, '.codex');
  const override = join(codex, 'AGENTS.override.md');
  const ofCodex = (statsAt(override)?.size ?? 0) > 0 ? override : join(codex, 'AGENTS.md');
  const gemini = join(env['GEMINI_CLI_HOME'] || home, '.gemini/GEMINI.md');
  return [
    { ...own, path: join(userDir, 'AGENTS.md'), origin: 'own', form: 'text' },
    { ...own, path: join(claude, 'CLAUDE.md'), origin: 'claude-code', form: 'importing' },
    ...claudeRules(join(claude, 'rules'), own),
    { ...own, path: ofCodex, origin: 'codex', form: 'text' },
    { ...own, path: gemini, origin: 'gemini', form: 'importing' },
  ];
}

/** Returns the files of one folder of a project. `root`: of the project, links resolved. */
export function folderCandidates(folder: string, root: string): readonly Candidate[] {
  const here = { within: root, base: folder };
  const claude = { ...here, origin: 'claude-code', form: 'importing' } as const;
  return [
    { ...here, path: join(folder, 'AGENTS.md'), origin: 'project', form: 'text' },
    { ...claude, path: join(folder, 'CLAUDE.md') },
    { ...claude, path: join(folder, 'CLAUDE.local.md') },
    { ...claude, path: join(folder, '.claude/CLAUDE.md') },
    ...claudeRules(join(folder, '.claude/rules'), here),
    { ...here, path: join(folder, 'GEMINI.md'), origin: 'gemini', form: 'importing' },
    { ...here, path: join(folder, '.cursorrules'), origin: 'cursor', form: 'text' },
    ...rulesIn(join(folder, '.cursor/rules'), /(?:\.mdc|(?:^|\/)RULE\.md)$/i, root).map((path): Candidate => ({
      ...here,
      path,
      origin: 'cursor',
      form: 'cursor-rule',
    })),
  ];
}

function claudeRules(folder: string, where: Pick<Candidate, 'within' | 'base'>): readonly Candidate[] {
  return rulesIn(folder, /\.md$/i, where.within).map((path) => ({
    ...where,
    path,
    origin: 'claude-code',
    form: 'claude-rule',
  }));
}

/** Returns the files of a folder of rules. A folder that is a link out of `root` is returned and not entered: reading it
 * says why it is not used. */
function rulesIn(folder: string, pattern: RegExp, root: string | null): readonly string[] {
  if (!isFolder(folder)) return [];
  const leadsOut = (path: string): boolean => root !== null && !isBelow(resolved(path), root);
  if (leadsOut(folder)) return [folder];
  return filesIn({ folder, origin: 'project', root: null }, ({ path, name, isFolder: entersFolder }) => {
    if (entersFolder) return leadsOut(path) ? path : null;
    return pattern.test(name) ? path : null;
  }).map(({ path }) => path);
}

/** Returns the path with its links resolved, or the path itself where nothing is there. */
export function resolved(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** Returns true for `folder` and everything below it. Both are absolute. */
export function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}
