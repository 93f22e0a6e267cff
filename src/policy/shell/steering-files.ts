import { parseJson } from '../../core/json.js';
import type { PathFacts } from '../guarded-paths.js';
import { type Arg, change, danger, type Finding, type Invocation } from './invocation.js';

/** A file by which a tool is told what to run, to load or to ask. */
interface Steering {
  readonly file: string;
  /** Whether its text does so; without it, that the file is there is enough. */
  readonly steers?: (text: string) => boolean;
  /** In the home directory it is the user's own. */
  readonly own?: true;
}

const maxBytes = 65_536;
type Steerings = readonly Steering[];

function present(...files: readonly string[]): Steerings {
  return files.map((file) => ({ file }));
}

function matching(pattern: RegExp, ...files: readonly string[]): Steerings {
  return files.map((file) => ({ file, steers: (text) => pattern.test(text) }));
}

function own(steerings: Steerings): Steerings {
  return steerings.map((steering) => ({ ...steering, own: true }));
}

/** Where nothing but comments and lines of this kind is known to be harmless. */
function unless(line: RegExp, file: string): Steerings {
  const harmless = (one: string): boolean => /^\s*(?:[#;].*)?$/.test(one) || line.test(one);
  return [{ file, own: true, steers: (text) => !text.split(/\r?\n/).every(harmless) }];
}

/** Texts, any of which may stand in a regular expression. */
function either(...texts: readonly string[]): string {
  return texts.join(' ').split(' ').join('|');
}

/** Settings of cargo and rustup by which even `cargo tree` starts a program of choice. */
const cargoSettings = new RegExp(
  [
    '(?:^|[\\s{,.["\'])(?:rustc(?:-\\w+)*|runner|linker|[\\w-]*credential-[\\w-]+' +
      '|include|path|command|rustdoc)["\']?\\s*=',
    '(?:^|[\\s[."\'])(?:alias|env|credential|host)["\']?\\s*[\\].={]',
    '\\\\u',
  ].join('|'),
  'im',
);

const npmKeys = either(
  'save-exact save-prefix save engine-strict fund audit audit-level package-lock legacy-peer-deps lockfile yes color',
  'strict-peer-dependencies auto-install-peers shamefully-hoist loglevel progress update-notifier node-linker hoist',
  'prefer-offline ignore-scripts fetch-retries link-workspace-packages prefer-workspace-packages resolution-mode',
  'public-hoist-pattern\\[\\]',
);
const npmRegistry = 'registry\\s*=\\s*"?https://registry\\.(?:npmjs\\.org|yarnpkg\\.com)/?"?';
const npmSettings = new RegExp(`^(?:(?:${npmKeys})\\s*=\\s*[\\w.~^*@/-]*|${npmRegistry})\\s*$`);

const yarnKeys = either(
  'nodeLinker enableTelemetry enableGlobalCache compressionLevel enableScripts defaultSemverRangePrefix nmMode',
  'nmHoistingLimits preferInteractive enableProgressBars enableImmutableInstalls checksumBehavior enableColors',
  'enableMessageNames enableHyperlinks',
);
const yarnSettings = new RegExp(`^(?:${yarnKeys}):\\s*[\\w.^~"'-]*\\s*$`);

const workspaceKeys = either(
  'packages catalogs? (?:only|never|ignored)BuiltDependencies overrides patchedDependencies packageExtensions',
  'peerDependencyRules allowedDeprecatedVersions (?:publicH|h)oistPattern shamefullyHoist nodeLinker savePrefix',
  '(?:link|prefer)WorkspacePackages saveWorkspaceProtocol autoInstallPeers strictPeerDependencies catalogMode',
  'minimumReleaseAge\\w* updateConfig resolutionMode',
);
const workspaceLine = new RegExp(`^(?:[\\s-]|#|$|(?:${workspaceKeys}):)`);

/** A workspace of pnpm whose outermost keys are all known to run nothing. */
function steersWorkspace(text: string): boolean {
  const lines = text.split(/\r?\n/);
  const first = lines.find((line) => /^\s*[^#\s]/.test(line)) ?? '';
  return !/^(?:\w|$)/.test(first) || !lines.every((line) => workspaceLine.test(line));
}

/** A package file that has its package manager fetched from an address, not by a version from the registry. */
function fetchesManager(text: string): boolean {
  try {
    const file = parseJson(text) as { readonly packageManager?: unknown; readonly devEngines?: unknown };
    const { packageManager: manager, devEngines } = file;
    const plain = manager === undefined || (typeof manager === 'string' && /^[\w-]+@\d[\w.+-]*$/.test(manager));
    return !plain || /:\/\/|\bfile:/.test(JSON.stringify(devEngines ?? {}));
  } catch {
    return true;
  }
}

const npm = unless(npmSettings, '.npmrc');
const corepack: Steerings = [{ file: 'package.json', steers: fetchesManager }, ...present('.corepack.env')];
const virtual = [
  ...present('.venv/pyvenv.cfg', '.venv/bin/python', '.venv/bin/python3'),
  ...matching(/\//, '.python-version'),
];

/** Files that tools obey in the folder where they run and in the folders above it, even for `--version`. */
const table: Readonly<Record<string, Steerings>> = {
  // asdf and mise stand before any program and may be sent to one of the folder
  any: own([
    ...matching(/\bpath:/, '.tool-versions'),
    ...matching(/path|exec|hooks|\\u/i, 'mise.toml', '.mise.toml', '.config/mise.toml', '.mise/config.toml'),
  ]),
  npm,
  pnpm: [
    ...npm,
    ...corepack,
    ...present('.pnpmfile.cjs', '.pnpmfile.mjs', '.pnpmfile.js', 'pnpmfile.js'),
    { file: 'pnpm-workspace.yaml', steers: steersWorkspace },
  ],
  yarn: [
    ...npm,
    ...corepack,
    ...unless(/^(?:save-prefix|network-timeout|lastUpdateCheck)\s+[\w."^~]*$/, '.yarnrc'),
    ...unless(yarnSettings, '.yarnrc.yml'),
    ...present('.env.yarn'),
  ],
  bun: [...npm, ...own(present('bunfig.toml'))],
  cargo: [
    ...own(matching(cargoSettings, '.cargo/config.toml', '.cargo/config')),
    ...matching(cargoSettings, 'rust-toolchain.toml'),
    ...matching(/path|command|^\s*[./~]/im, 'rust-toolchain'),
  ],
  maven: present('.mvn/jvm.config', '.mvn/maven.config', '.mvn/extensions.xml', '.mvn/settings.xml'),
  gradle: [
    ...matching(/java|jvm|toolchain|\\u/i, 'gradle.properties'),
    ...present('gradle/gradle-daemon-jvm.properties'),
  ],
  sbt: present('.jvmopts', '.sbtopts', '.sbtrc', 'build.sbt', 'project/build.properties'),
  vagrant: present('Vagrantfile', 'vagrantfile'),
  ruby: [
    ...present('Gemfile', 'gems.rb', 'Gemfile.lock', 'bin/rails', 'script/rails', 'Podfile'),
    ...present('fastlane/Fastfile', 'fastlane/Pluginfile'),
    ...own(present('.bundle/config', '.bundle/plugin/index', '.rspec')),
  ],
  poetry: [...virtual, ...present('poetry.toml'), ...matching(/requires-plugins|\\u/i, 'pyproject.toml')],
  venv: virtual,
  flake8: matching(/local-plugins|\bpaths\b/i, '.flake8', 'setup.cfg', 'tox.ini'),
  pylint: matching(
    /init-hook|load-plugins|\\u/i,
    'pylintrc',
    '.pylintrc',
    'pylintrc.toml',
    '.pylintrc.toml',
    'pyproject.toml',
    'setup.cfg',
    'tox.ini',
  ),
  tox: present('toxfile.py'),
  ansible: present('ansible.cfg'),
  bazel: own(present('.bazelversion', '.bazeliskrc', '.bazelrc', 'tools/bazel')),
  dotnet: matching(/paths|\\u/i, 'global.json'),
  composer: present('composer.json'),
  nx: present('nx.json', 'node_modules/nx/package.json'),
  turbo: present('turbo.json', 'turbo.jsonc', 'node_modules/turbo/package.json'),
  serverless: present(
    'serverless.yml',
    'serverless.yaml',
    'serverless.json',
    'serverless.js',
    'serverless.ts',
    'node_modules/serverless/package.json',
  ),
  amplify: present('amplify/.config/project-config.json', 'amplify/cli.json'),
  mercurial: present('.hg/hgrc', '.hg/requires'),
  ack: own(present('.ackrc', '_ackrc')),
  erlang: own(present('.erlang')),
};

const members: Readonly<Record<string, string>> = {
  npm: 'npm npx cnpm',
  pnpm: 'pnpm pnpx',
  yarn: 'yarn',
  bun: 'bun bunx',
  maven: 'mvn',
  gradle: 'gradle',
  sbt: 'sbt',
  cargo: 'cargo rustc rustup rust-analyzer cargo-clippy',
  ruby: 'bundle bundler jekyll rails rspec rake pod fastlane',
  vagrant: 'vagrant',
  poetry: 'poetry',
  flake8: 'flake8',
  pylint: 'pylint',
  tox: 'tox',
  ansible: 'ansible',
  bazel: 'bazel',
  dotnet: 'dotnet',
  composer: 'composer',
  nx: 'nx',
  turbo: 'turbo',
  serverless: 'serverless sls',
  amplify: 'amplify',
  mercurial: 'hg',
  ack: 'ack',
  erlang: 'elixir iex mix',
};
const families = new Map(
  Object.entries(members).flatMap(([family, names]) => names.split(' ').map((name) => [name, family] as const)),
);

/** The family of tools that obey the same files: `any` for those that obey none of their own. */
function familyOf(name: string): string {
  return families.get(name) ?? 'any';
}

/** Those of the families that some file steers, in one of the folders or above it. */
export async function steeredFamilies(
  relies: ReadonlySet<string>,
  folders: readonly string[],
  facts: PathFacts,
): Promise<ReadonlySet<string>> {
  const places = new Set(folders.flatMap(upwards));
  const steered = await Promise.all(
    [...relies]
      .filter((family) => family in table)
      .map(async (family) => {
        const steerings = [...(table[family] ?? []), ...(table['any'] ?? [])];
        const asked = steerings.flatMap((steering) => [...places].map((folder) => steers(steering, folder, facts)));
        const found = await Promise.all(asked);
        return found.includes(true) ? [family] : [];
      }),
  );
  return new Set(steered.flat());
}

function upwards(folder: string): readonly string[] {
  const names = folder.split('/').filter(Boolean);
  return [...names.keys(), names.length].map((count) => `/${names.slice(0, count).join('/')}`);
}

/** A file that cannot be followed, or not be read whole, counts as steering. */
async function steers(steering: Steering, folder: string, facts: PathFacts): Promise<boolean> {
  if (steering.own === true && folder === facts.home) return false;
  const landed = await facts.landing(`${folder === '/' ? '' : folder}/${steering.file}`);
  if (landed === null) return true;
  const found = await facts.readWhole(landed, maxBytes);
  if (typeof found === 'string') return found === 'refused';
  return steering.steers?.(new TextDecoder().decode(found)) ?? true;
}

/** Judges a question to a service or a tool: read-only if its words are known. The output of another command in it
 * would be sent away. */
export function asks(call: Invocation, args: readonly Arg[] = call.args): readonly Finding[] {
  if (args.some((arg) => arg.substitution === 'any')) return danger(call, 'sends the output of a command away');
  return args.some((arg) => arg.dynamic && arg.substitution !== 'names')
    ? change(call, 'takes words that are known only when it runs')
    : [];
}

/** Judges a question to a tool that obeys files of the folder: read-only if there are none. */
export function asksTool(call: Invocation, family = familyOf(call.name)): readonly Finding[] {
  const { scan } = call;
  scan.relies.add(family);
  const steered = scan.folders.lost || scan.context.steered.has(family);
  return steered ? change(call, 'obeys files of the folder, which may name a program') : asks(call);
}

/** Judges a question to git: read-only if the repository's own configuration names no program. */
export function asksRepository(call: Invocation): readonly Finding[] {
  const { args, scan } = call;
  if (args.some((arg) => arg.dynamic && arg.substitution !== 'names'))
    return change(call, 'takes words that are known only when it runs');
  if (args.some(({ text }) => /^--sub\w*=diff$/.test(text))) return change(call, 'runs git in each submodule');
  scan.relies.add('git');
  return scan.context.plainGit ? [] : change(call, 'may run programs that the repository names in its configuration');
}

/** The texts of the words, joined for patterns. */
export function wordsOf(args: readonly Arg[]): string {
  return args.map(({ text }) => text).join(' ');
}
