/** A file or folder that some program obeys without being asked: it runs what is in it, or takes settings from it that
 * name what to run. `path` is relative; one that ends with `/` is a folder with all that is in it, and `*` stands for
 * any characters but `/`. */
export interface Obeyed {
  readonly path: string;
  /** Ordinary commands write it: a sandboxed one may, and its result names it. */
  readonly everyday?: true;
}

const obeyed = (...paths: readonly string[]): readonly Obeyed[] => paths.map((path) => ({ path }));
const written = (...paths: readonly string[]): readonly Obeyed[] => paths.map((path) => ({ path, everyday: true }));

/** What programs obey in the folder of a project. The one list: from it come what the file tools ask about, what the
 * sandbox keeps a command from writing, and what the result of a command names as changed. */
export const obeyedInProjects: readonly Obeyed[] = [
  ...obeyed('.agent/', '.husky/', '.githooks/', '.pre-commit-config.yaml', 'lefthook.yml', 'lefthook.yaml', '.envrc'),
  ...obeyed('.vscode/', '*.code-workspace', '.idea/', '.zed/', '.fleet/', '.devcontainer/', '.devcontainer.json'),
  ...obeyed(
    '.claude/',
    '.cursor/',
    '.codex/',
    '.gemini/',
    '.windsurf/',
    '.continue/',
    '.roo/',
    '.cline/',
    '.opencode/',
  ),
  ...obeyed('.kiro/', '.junie/', '.goose/', '.amp/', '.qwen/', '.augment/', '.trae/', '.clinerules/', '.cursorrules'),
  ...obeyed('.windsurfrules', '.mcp.json', '.claude.json', 'mcp.json', '.aider.conf.yml'),
  ...obeyed('.github/workflows/', '.github/actions/', '.gitea/workflows/', '.forgejo/workflows/', '.gitlab-ci.yml'),
  ...obeyed(
    '.woodpecker/',
    '.woodpecker.yml',
    '.circleci/',
    '.buildkite/',
    '.travis.yml',
    '.drone.yml',
    '.appveyor.yml',
  ),
  ...obeyed('.cirrus.yml', 'Jenkinsfile', 'azure-pipelines.yml', 'azure-pipelines.yaml', 'bitbucket-pipelines.yml'),
  ...obeyed('bitbucket-pipelines.yaml', '.npmrc', '.pnpmrc', '.yarnrc', '.yarnrc.yml', 'bunfig.toml', '.bunfig.toml'),
  ...obeyed(
    '.cargo/config.toml',
    '.cargo/config',
    '.exrc',
    '.vimrc',
    '.nvimrc',
    '.lvimrc',
    '.nvim.lua',
    '.dir-locals.el',
  ),
  ...obeyed('.gdbinit', '.lldbinit'),
  ...written('sitecustomize.py', 'usercustomize.py', 'conftest.pth', 'site-packages/*.pth'),
];

/** What git obeys in the folder of a repository: `.git`, one below `.git/modules` or `.git/worktrees`, or one that is a
 * repository itself. Not `HEAD`, `index`, `refs`, `logs` and `objects`, which every commit writes and which run
 * nothing. */
export const obeyedInRepositories: readonly Obeyed[] = [
  ...obeyed('config', 'config.worktree', 'hooks/', 'commondir', 'gitdir', 'info/attributes', 'info/grafts'),
  ...obeyed('objects/info/alternates', 'objects/info/http-alternates', 'remotes/', 'branches/'),
  // A rebase or a pick that stops leaves what is still to be done, and lines that run commands are part of that.
  ...written('rebase-merge/git-rebase-todo', 'sequencer/todo'),
];
