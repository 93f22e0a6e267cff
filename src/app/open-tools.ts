import { hiddenFiles } from './hidden-files.js';
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { CliError, type DoctorCheck, exit } from '../kernel/console/command.js';
import { fail, ok } from '../kernel/console/doctor-check.js';
import type { Origin } from '../kernel/config/layers.js';
import { isSwitchedOff, type LoadedConfig } from '../kernel/config/load.js';
import { type ConfigProblem, fileProblem, issueProblem, readConfigFile } from '../kernel/config/settings-file.js';
import { type Issue, keyText } from '../kernel/config/settings-schema.js';
import type { ToolSpec } from '../kernel/core/event.js';
import { isRecord } from '../kernel/core/json.js';
import { nearestName } from '../kernel/core/text.js';
import type { Registry, Sandbox, Tool } from '../kernel/core/tool.js';
import { createSecretPaths } from '../kernel/permissions/guarded-paths.js';
import type { Background } from '../kernel/tools/bash.js';
import { type BuiltinOptions, builtinTools, inTestMode } from '../kernel/tools/builtin.js';
import { atExit } from '../kernel/tools/process/at-exit.js';
import { shellOf } from '../kernel/tools/process/shell-file.js';
import { type Confine, createProcessRunner, type ProcessRunner } from '../kernel/tools/process/runner.js';
import { createRegistry } from '../kernel/tools/registry.js';
import { loadOnce } from '../kernel/core/runtime.js';
import type { Rehearsals } from '../kernel/tools/rehearsal/open-rehearsals.js';
import { openSandbox as openKernelSandbox } from '../kernel/tools/sandbox/open-sandbox.js';
import type { SandboxRequest } from '../kernel/tools/sandbox/sandbox-request.js';
import { ownKeys, secretVariables } from '../kernel/secrets/known-secrets.js';
import type { Settings } from '../kernel/console/run-settings.js';
import { type Catalogue, createCatalogue, offeredTools, toolsNamed } from './open-toolsets.js';
import { features, featureToolsets, toolsets } from './features.js';
import type { ConfiguredModel, ToolsetHost, ToolsHost, ToolsPart } from '../kernel/console/feature.js';
import { Parts } from '../kernel/console/parts.js';
import { ownShell } from '../kernel/console/own-shell.js';
import { commandEnv } from '../kernel/config/sections.js';
import { resolveProvider } from '../kernel/providers/catalog.js';
import { configuredModel, providerChoice, unpricedModel } from './model-resolution.js';
import { loadVerdict } from '../kernel/permissions/shell/load-verdict.js';

/** Loads rehearsals, which a run without commands does not need. */
const loadRehearsals = () => import('../kernel/tools/rehearsal/open-rehearsals.js');

/** The tools of this run, and the processes that they have started. */
export interface RunTools {
  readonly registry: Registry;
  readonly catalogue: Catalogue;
  /** Starts them. */
  readonly processes: ProcessRunner;
  /** Offers tools of these names, too, unless somebody has switched their set off. */
  readonly offer: (names: readonly string[]) => Promise<void>;
  /** The parts that features have opened for the tools. */
  readonly parts: Parts;
  /** Opens the tools of files and commands for another directory, with a sandbox around it. Rejects where the sandbox
   * does not hold. */
  readonly toolsAt: (cwd: string, sandboxed: Sandbox) => Promise<ToolsElsewhere>;
  /** Ends the processes that still run, and the connections to servers. */
  readonly close: () => Promise<void>;
}

/** The tools of files and commands, for a directory that is not that of the run. */
interface ToolsElsewhere {
  readonly tools: readonly Tool[];
  /** Ends the processes that still run. */
  close(): Promise<void>;
}

type ToolSource = ToolsHost['settings'];
/** Null: commands run without a sandbox. */
type Sandboxed = Pick<RunSandbox, 'confine'> | null;

interface ToolboxHost extends Pick<ToolsetHost, 'approval' | 'ports' | 'notify'> {
  readonly sandbox: Sandboxed;
  readonly inRepl?: boolean;
}

/** Opens the tools of this run. `chosen`: `--tools` (names or toolsets), or false for `--no-tools`. Processes of tools
 * end with this process at the latest. */
export async function openToolbox(
  settings: ToolSource,
  chosen: string | boolean | undefined,
  { sandbox, inRepl = false, ...host }: ToolboxHost,
): Promise<RunTools> {
  const { config } = settings;
  const marker = { name: '_AGENT_RUN', value: randomUUID() };
  const processes = runnerIn(sandbox, marker);
  const cancelExit = atExit(() => {
    processes.killNow();
  });
  await recoverKept(config);
  const registry = createRegistry({
    maxOutputBytes: config.limits.maxOutputBytes,
    timeoutMs: config.limits.toolTimeoutMs,
    now: () => performance.now(),
  });
  const parts = new Parts();
  const onTimeout = config.exec.onTimeout ?? (inRepl ? 'background' : 'stop');
  const shellTool = (background: Background) =>
    coreTools(settings, { processes, parts }, { background, onTimeout }).find(isShell);
  const { notify } = host;
  const isOn = (set: string): boolean => isSwitchedOn(set, settings, chosen);
  const opened = await openToolsParts({ settings, processes, marker, isOn, registry, parts, shellTool, notify });
  const catalogue = createCatalogue(coreTools(settings, { processes, parts }), {
    settings,
    processes,
    ...host,
    isNamed: (set) => [...config.tools.toolsets, ...String(chosen).split(/[^\w-]+/)].includes(set),
    parts,
    model: modelFacts(settings),
    hiddenFiles: () => hiddenFiles(settings),
  });
  await refuseStrayLimits(settings, catalogue);
  const register = (tools: readonly Tool[]): void => {
    const joined = opened.reduce((all, part) => part.joined?.(all) ?? all, tools);
    for (const tool of settings.testMode ? inTestMode(joined) : joined)
      if (!registry.get(tool.name)) registry.register(tool, config.tools.limits[tool.name]);
  };
  register(await offeredTools(catalogue, setsOfRun(settings, inRepl), chosen));
  return {
    registry,
    catalogue,
    processes,
    offer: async (names) => {
      const missing = names.filter((name) => !registry.get(name));
      await catalogue.find(missing);
      const tools = await toolsNamed(catalogue, new Set(missing));
      register(tools.filter(({ toolset }) => !isSwitchedOff(toolset.name, settings.loaded)));
      for (const part of opened) register((await part.named?.(missing)) ?? []);
    },
    parts,
    toolsAt: (cwd, sandboxed) => openToolsAt({ ...settings, cwd }, { sandboxed, marker, parts, opened }),
    close: async () => {
      await Promise.all([...opened.map(async (part) => await part.close?.()), processes.killBackground()]);
      cancelExit();
    },
  };
}

interface Elsewhere {
  readonly sandboxed: Sandbox;
  readonly marker: { readonly name: string; readonly value: string };
  readonly parts: Parts;
  readonly opened: readonly ToolsPart[];
}

/** Opens the tools of files and commands for the directory of `settings`. */
async function openToolsAt(settings: ToolSource, host: Elsewhere): Promise<ToolsElsewhere> {
  const confine = await openSandbox(settings, host.sandboxed);
  const processes = runnerIn(confine ? { confine } : null, host.marker);
  const cancelExit = atExit(() => {
    processes.killNow();
  });
  const tools = coreTools(settings, { processes, parts: host.parts });
  const joined = host.opened.reduce((all, part) => part.joined?.(all) ?? all, tools);
  return {
    tools: settings.testMode ? inTestMode(joined) : joined,
    close: async () => {
      await processes.killBackground();
      cancelExit();
    },
  };
}

async function openToolsParts(host: ToolsHost): Promise<readonly ToolsPart[]> {
  const parts = await Promise.all(features.map(async (feature) => await feature.openTools?.(host)));
  return parts.flatMap((part) => part ?? []);
}

function modelFacts(settings: ToolSource): ConfiguredModel {
  return {
    unpriced: () => unpricedModel(settings),
    canSearch: () => {
      const model = resolveProvider(providerChoice(settings, configuredModel(settings)));
      return model.ok && model.endpoint.search !== undefined;
    },
  };
}

function runnerIn(sandbox: Sandboxed, marker: { readonly name: string; readonly value: string }): ProcessRunner {
  return createProcessRunner({
    watched: true,
    marker,
    get confine() {
      return sandbox?.confine;
    },
  });
}

function isShell({ toolset }: Tool): boolean {
  return toolset.name === 'exec';
}

/** Throws a `CliError` for limits of a tool that does not exist. */
async function refuseStrayLimits({ config, loaded }: ToolSource, catalogue: Catalogue): Promise<void> {
  await catalogue.find(Object.keys(config.tools.limits));
  const [problem] = await unknownToolLimits(
    loaded,
    catalogue.sets.flatMap(({ tools }) => tools),
  );
  if (problem) throw new CliError(exit.usage, problem.message, problem.hint);
}

/** Returns true for a set of the settings that `--tools` does not take away, and for one that it adds. */
function isSwitchedOn(set: string, { config }: ToolSource, chosen: string | boolean | undefined): boolean {
  const items = String(chosen)
    .split(',')
    .map((item) => item.trim());
  return items.includes(`+${set}`) || (config.tools.toolsets.includes(set) && !items.includes(`-${set}`));
}

/** Returns the sets that are switched on: those of the settings, the user's own tools where there are some, and in a
 * REPL what it offers by itself. Source: contracts 10, "Custom tools". */
function setsOfRun({ config, loaded }: ToolSource, inRepl: boolean): readonly string[] {
  return toolsets.flatMap((set) => {
    const lazy = featureToolsets.find(({ name }) => name === set.name);
    const isOffered = (inRepl && set.inRepl === true) || lazy?.isOffered?.(config.files) === true;
    const isOn = config.tools.toolsets.includes(set.name) || (isOffered && !isSwitchedOff(set.name, loaded));
    return isOn ? [set.name] : [];
  });
}

function coreTools(
  settings: ToolSource,
  { processes, parts }: { readonly processes: ProcessRunner; readonly parts: Parts },
  inBackground: Pick<BuiltinOptions, 'background' | 'onTimeout'> = {},
): readonly Tool[] {
  const { config } = settings;
  const env = commandEnv(settings);
  return builtinTools({
    processes,
    ...inBackground,
    env,
    protectedEnv: secretVariables(env, ownKeys(config)),
    shell: shellOf(env),
    addedPath: () => parts.find(ownShell)?.addedPath() ?? [],
    hiddenFiles: () => hiddenFiles(settings),
    rehearsals: openedRehearsals(settings, processes),
    maxReadBytes: config.fs.maxBytes,
    encoding: config.fs.encoding,
    modelOutputBytes: config.limits.modelOutputBytes,
    timeoutS: config.exec.timeoutS,
    maxTimeoutS: config.exec.maxTimeoutS,
  });
}

/** Opens what runs commands on a copy-on-write view, with the first of them. */
function openedRehearsals(
  { cwd, directories, home, env, config }: Place,
  processes: ProcessRunner,
): () => Promise<Rehearsals> {
  const opened = loadOnce(async () => {
    const [{ createRehearsals }, { namesSecret }] = await Promise.all([loadRehearsals(), loadVerdict()]);
    const secrets = createSecretPaths(config.fs.deny, home);
    return createRehearsals({
      processes,
      workspace: cwd,
      ...(directories ? { directories: directories.list } : {}),
      home,
      path: commandEnv({ env, config })['PATH'] ?? '',
      isSecret: (path) => secrets.matches(path),
      isSecretVariable: namesSecret,
      journals: journalsOf(config),
    });
  });
  return () => opened.get();
}

/** Finishes or takes back changes of a rehearsed command that a killed program was keeping. */
async function recoverKept(config: Settings['config']): Promise<void> {
  const journals = journalsOf(config);
  if (!existsSync(journals) || readdirSync(journals).length === 0) return;
  const { recoverRehearsals } = await loadRehearsals();
  await recoverRehearsals(journals);
}

/** The folder for changes of rehearsed commands that are being kept. */
function journalsOf({ files }: Pick<Settings['config'], 'files'>): string {
  return join(files.data, 'keeping');
}

/** Returns a problem for each limit of a tool that does not exist: with a slip in the name the tool would have no
 * limit. `tools`: the names of all tools, also those that are switched off. Limits of a project without trust are
 * ignored. */
export async function unknownToolLimits(
  { config, origins, project }: LoadedConfig,
  tools: readonly string[],
): Promise<readonly ConfigProblem[]> {
  const problems: ConfigProblem[] = [];
  for (const name of Object.keys(config.tools.limits)) {
    const issue = unknownToolLimit(name, tools);
    const key = keyText(['tools', 'limits', name]);
    const origin = Object.entries(origins).find(([other]) => other === key || other.startsWith(`${key}.`))?.[1];
    if (issue === null || (origin?.kind === 'project' && project?.trusted !== true)) continue;
    problems.push(await problemAt(origin, issue));
  }
  return problems;
}

/** Returns the issue of a limit for a tool that does not exist, else null. */
export function unknownToolLimit(name: string, tools: readonly string[]): Issue | null {
  if (tools.includes(name)) return null;
  const meant = nearestName(name, tools);
  return {
    path: ['tools', 'limits', name],
    reason: 'is not a tool',
    unknown: true,
    nearest: meant === null ? null : keyText(['tools', 'limits', meant]),
  };
}

async function problemAt(origin: Origin | undefined, issue: Issue): Promise<ConfigProblem> {
  if (origin?.kind !== 'user' && origin?.kind !== 'project')
    return issueProblem(origin?.kind === 'environment' ? origin.variable : '--set', issue);
  const content = readConfigFile(origin.file);
  return content.kind === 'text'
    ? await fileProblem(origin.file, content.text, issue)
    : issueProblem(origin.file, issue);
}

/** Returns the names of all tools of the program, also of those that are switched off. */
export function toolNames(): readonly string[] {
  const none = {
    env: {},
    protectedEnv: [],
    shell: 'sh',
    maxReadBytes: 1,
    encoding: null,
    modelOutputBytes: 1,
    timeoutS: 1,
    maxTimeoutS: 1,
  };
  const processes = createProcessRunner({ marker: { name: '_AGENT_RUN', value: '' } });
  return [
    ...builtinTools({ ...none, processes }).map((tool) => tool.name),
    ...featureToolsets.flatMap(({ tools }) => tools ?? []),
  ];
}

/** Returns the descriptions of the tools that a model is sent. This program checks each call against the whole schema, so
 * the schemas of its own tools leave out rules that calls hardly ever break: they would cost tokens in every request. */
export function toolSpecs(registry: Registry): readonly ToolSpec[] {
  return registry.list().map(({ name, description, input_schema, toolset }) => ({
    name,
    description,
    input_schema: ownSets.has(toolset.name) ? shortSchema(input_schema) : input_schema,
  }));
}

/** The sets whose tools this program brings. */
const ownSets: ReadonlySet<string> = new Set(
  toolsets
    .filter((set) => !featureToolsets.some(({ name, tools }) => name === set.name && tools === null))
    .map(({ name }) => name),
);

/** No other arguments, no empty texts or lists, no numbers below 0 or 1. */
function isUnsaid(key: string, value: unknown): boolean {
  if (key === 'additionalProperties') return value === false;
  return ['minLength', 'minItems', 'minimum'].includes(key) && (value === 0 || value === 1);
}

function shortSchema<T>(schema: T): T {
  if (Array.isArray(schema)) return schema.map((part: unknown) => shortSchema(part)) as T;
  if (!isRecord(schema)) return schema;
  const kept = Object.entries(schema).filter(([key, value]) => !isUnsaid(key, value));
  return Object.fromEntries(kept.map(([key, value]) => [key, shortSchema(value)])) as T;
}

type Place = Pick<Settings, 'cwd' | 'env' | 'home' | 'config'> & Partial<Pick<Settings, 'directories'>>;

/** Opens the sandbox of this run and tries it once with the profile of commands. Returns undefined where none is
 * configured. Throws a `CliError` with exit code 2 where it does not hold: nothing runs then. */
export async function openSandbox(
  settings: Pick<Settings, 'log'> & Place,
  sandbox: Sandbox = settings.config.policy.sandbox,
): Promise<Confine | undefined> {
  if (sandbox === 'off') return undefined;
  const opened = await openKernelSandbox(request(settings, sandbox));
  if (!opened.ok) throw new CliError(exit.usage, opened.problem, opened.fix);
  settings.log({ at: 'sandbox', message: opened.detail, sandbox, tools: opened.tools });
  return opened.confine;
}

/** The sandbox of a run, which a resumed session may need although the settings have none. */
export interface RunSandbox {
  /** Undefined: no command of this run is in a sandbox so far. */
  readonly confine: Confine | undefined;
  /** Opens a sandbox where none is open. Rejects as `openSandbox` does. */
  need(sandbox: Sandbox): Promise<void>;
}

export async function openRunSandbox(settings: Pick<Settings, 'log'> & Place): Promise<RunSandbox> {
  let confine = await openSandbox(settings);
  return {
    get confine() {
      return confine;
    },
    need: async (sandbox) => {
      confine ??= await openSandbox(settings, sandbox);
    },
  };
}

/** Checks the sandbox for `agent doctor` with the real profile. Where no sandbox is configured, a failure is only a
 * warning. */
export async function checkSandbox(place: Place): Promise<DoctorCheck> {
  const { sandbox } = place.config.policy;
  const opened = await openKernelSandbox(request(place, sandbox === 'off' ? 'workspace' : sandbox));
  if (!opened.ok)
    return { ...fail('sandbox', opened.problem, opened.fix), status: sandbox === 'off' ? 'warn' : 'fail' };
  const tools = opened.tools.length === 0 ? '' : `; shown read-only besides the system: ${opened.tools.join(', ')}`;
  const root =
    process.getuid?.() === 0
      ? "; running as root, so root's files stay readable where they are visible; run as an ordinary user instead"
      : '';
  return ok('sandbox', `${opened.detail}${tools}${root}`);
}

/** Says whether commands can be rehearsed, for `agent doctor`, and if not, what to install or to allow. */
export async function checkRehearsals(place: Place): Promise<DoctorCheck> {
  const processes = createProcessRunner({ marker: { name: '_AGENT_DOCTOR', value: String(process.pid) } });
  const problem = await (await openedRehearsals(place, processes)()).problem();
  if (problem === null) return ok('rehearsals', 'commands can run on a copy of the files before you are asked');
  const without = 'approval modes that ask, ask for every command that is not on the short list of safe ones';
  return { ...fail('rehearsals', `${problem.problem}; ${without}`, problem.fix), status: 'warn' };
}

function request({ cwd, directories, env, home, config }: Place, sandbox: SandboxRequest['sandbox']): SandboxRequest {
  const secrets = createSecretPaths(config.fs.deny, home);
  return {
    sandbox,
    workspace: cwd,
    ...(directories ? { directories: directories.list } : {}),
    home,
    env,
    passes: Object.keys(config.exec.env),
    isSecret: (path) => secrets.matches(path),
  };
}
