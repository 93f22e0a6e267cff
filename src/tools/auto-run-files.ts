import { lstatSync, readdirSync, type Stats } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Programs obey these without being asked: hooks, editors, other agents, continuous integration, our own settings. Relative to a workspace; folders with all that is in them. */
export const autoRunPlaces: readonly string[] = [
  '.agent', '.vscode', '.idea', '.zed', '.devcontainer', '.husky', '.githooks', '.claude', '.cursor', '.codex', '.gemini', '.windsurf', '.mcp.json', '.claude.json',
  '.gitlab-ci.yml', '.circleci', '.github/workflows', '.github/actions', '.pre-commit-config.yaml',
];
const watchedPlaces: readonly string[] = [...autoRunPlaces, '.git/hooks', '.git/config', '.git/config.worktree', '.envrc', '.devcontainer.json', 'lefthook.yml', '.cursorrules'];
const maxEntries = 500;

/** Looks at what programs would obey in a workspace; the function returned looks again and gives what is new or other than it was: relative paths in order. Not in
 *  the home directory, where these folders hold what such programs, ours too, write all the time. */
export function watchAutoRunFiles(workspace: string): () => readonly string[] {
  if (workspace === homedir()) return () => [];
  const before = look(workspace);
  return () => [...look(workspace)].filter(([path, state]) => before.get(path) !== state).map(([path]) => path).toSorted();
}

function look(workspace: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const place of watchedPlaces) visit(workspace, place, found);
  return found;
}

function visit(workspace: string, path: string, found: Map<string, string>): void {
  const stats = statsOf(join(workspace, path));
  if (!stats || found.size >= maxEntries) return;
  if (!stats.isDirectory()) {
    found.set(path, `${stats.ino} ${stats.size} ${stats.mtimeMs} ${stats.ctimeMs}`);
    return;
  }
  for (const name of namesIn(join(workspace, path))) if (!name.endsWith('.sample')) visit(workspace, `${path}/${name}`, found);
}

function statsOf(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined; // below something that is no folder, or not ours to look at
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
