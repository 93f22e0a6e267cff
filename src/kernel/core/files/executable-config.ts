/** A file or folder that some program obeys unasked: the program runs it, or takes from it the names of programs to
 * run. `path` is relative. One that ends with `/` is a folder with everything in it, and `*` is any characters but
 * `/`. */
export interface Obeyed {
  readonly path: string;
  /** Ordinary commands write it: a sandboxed command may do so, and its result names the file. */
  readonly everyday?: true;
}

const obeyed = (...paths: readonly string[]): readonly Obeyed[] => paths.map((path) => ({ path }));
const written = (...paths: readonly string[]): readonly Obeyed[] => paths.map((path) => ({ path, everyday: true }));

/** Files that programs obey in the folder of a project. The one list for the questions of the file tools, for the files
 * that a sandboxed command cannot write, and for the changes that the result of a command names. */
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
  ...obeyed('.hg/hgrc', '.jj/repo/config.toml', '.lefthook.yml', '.lefthook.yaml', '.helix/', '.agents/'),
  ...obeyed('opencode.json', 'opencode.jsonc', 'crush.json', '.crush.json', '.mise.toml', 'mise.toml', '.mise/'),
  ...obeyed('.pnpmfile.cjs', '.pnpmfile.mjs', '.yarn/releases/', '.yarn/plugins/', '.mvn/extensions.xml'),
  ...obeyed('.mvn/jvm.config', '.mvn/maven.config', 'rust-toolchain.toml', 'rust-toolchain'),
  ...obeyed('.Renviron', '.Rprofile', '.iex.exs', '.irbrc', '.pryrc'),
  ...written('sitecustomize.py', 'usercustomize.py', 'conftest.pth', 'site-packages/*.pth'),
];

/** Files that git obeys in the folder of a repository: `.git`, one below `.git/modules` or `.git/worktrees`, or one
 * that is a repository itself. Not `HEAD`, `index`, `refs`, `logs` and `objects`, which every commit writes and which
 * run nothing. */
export const obeyedInRepositories: readonly Obeyed[] = [
  ...obeyed('config', 'config.worktree', 'hooks/', 'commondir', 'gitdir', 'info/attributes', 'info/grafts'),
  ...obeyed('objects/info/alternates', 'objects/info/http-alternates', 'remotes/', 'branches/'),
  // A rebase or a pick that stops leaves its remaining steps here, which may run commands.
  ...written('rebase-merge/git-rebase-todo', 'sequencer/todo'),
];

/** A setting of a configuration file: `section.name` or `section.subsection.name`, section and name in lower case. */
export interface Setting {
  readonly key: string;
  readonly value: string | null;
}

const settingToken = new RegExp(
  [
    String.raw`[\s;#]`,
    String.raw`\[(?<section>[A-Za-z0-9.-]*)(?:[^\S\n]+"(?<inner>(?:[^"\\\n]|\\[^\n])*)")?\]`,
    String.raw`(?<name>[A-Za-z][A-Za-z0-9-]*)[ \t]*` +
      String.raw`(?:=(?<value>(?:"(?:[^"\\\n]|\\[tbn"\\]|\\\r?\n)*"|\\[tbn"\\]|\\\r?\n|[^"\\\n;#])*)|(?=\r?\n|$))`,
  ].join('|'),
  'y',
);
const escapes: Readonly<Record<string, string>> = { t: '\t', b: '\b', n: '\n', '\\': '\\', '"': '"' };

/** Reads a configuration as git does. Returns null for most of the texts that git refuses.
 * Source: git-config(1), "Syntax", and config.c of git 2.39. */
export function parseSettings(source: string): readonly Setting[] | null {
  const settings: Setting[] = [];
  const tokens = new RegExp(settingToken);
  let section = '';
  for (let at = 0; at < source.length; at = tokens.lastIndex) {
    tokens.lastIndex = at;
    const token = tokens.exec(source);
    if (token === null) return null;
    const { section: outer, inner, name, value } = token.groups ?? {};
    if (token[0] === ';' || token[0] === '#') tokens.lastIndex = lineEnd(source, tokens.lastIndex);
    if (outer !== undefined) section = outer.toLowerCase() + (inner === undefined ? '' : `.${unescaped(inner)}`);
    if (name === undefined) continue;
    if (section === '') return null;
    settings.push({ key: `${section}.${name.toLowerCase()}`, value: value === undefined ? null : plainValue(value) });
  }
  return settings;
}

/** The value without its quotes and escapes. The next token makes sure that a comment or the end of the line
 * follows. */
function plainValue(written: string): string {
  return written.replace(/"|\\\r?\n|\\(.)/g, (_all, escaped?: string) => escapes[escaped ?? ''] ?? '').trim();
}

function unescaped(subsection: string): string {
  return subsection.replace(/\\(.)/g, '$1');
}

function lineEnd(source: string, from: number): number {
  const end = source.indexOf('\n', from);
  return end < 0 ? source.length : end;
}
