import { homeDirectory } from './home-directory.js';
import { addAll } from '../kernel/core/lists.js';
import {
  appendFileSync,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fstatSync,
  openSync,
  readSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { dirname, isAbsolute, resolve } from 'node:path';
import { CliError, exit } from '../kernel/console/command.js';
import { openStoredKeys } from '../kernel/secrets/stored-keys.js';
import { loadConfig, type ProjectFile } from '../kernel/config/load.js';
import type { Config } from '../kernel/config/sections.js';
import { agentPaths, ensurePrivateDirectory, type Environment } from '../kernel/config/settings-file.js';
import type { Rule } from '../kernel/core/policy.js';
import type { Log } from '../kernel/core/runtime.js';
import { optionSettings, type RootOptions } from '../kernel/console/options.js';
import { printError } from '../kernel/console/print.js';
import {
  commandSecrets,
  keptSecret,
  type Secret,
  knownSecrets,
  openSecretKey,
  ownKeys,
  plainGuard,
} from '../kernel/secrets/known-secrets.js';
import type { QuestionPort } from '../kernel/console/feature.js';
import { withClaudeRules } from './claude-permissions.js';
import { features } from './features.js';
import { projects } from './project-files.js';
import { openTrustFile } from '../kernel/config/trust-file.js';
import type { Notice, Settings } from '../kernel/console/run-settings.js';
import { loadPermissions } from './open-policy.js';
import { givenAgents, givenServers } from './given-objects.js';
import { openDirectories } from './extra-directories.js';
import { runKeyCommand } from '../kernel/secrets/key-commands.js';
import { openKeyring } from '../kernel/secrets/keyring.js';
import type { ProjectFiles } from '../kernel/config/project.js';
import { askForFiles as askForFilesOnTerminal, askForTrust, terminalQuestion } from './trust.js';

const maxPromptBytes = 256 * 1024;

/** Reads the configuration. `trusted`: the hash of a project's settings that the user has just trusted. Throws a
 * `CliError` with exit code 2 for the first problem. */
export async function readSettings(options: Partial<RootOptions>, trusted?: string): Promise<Settings> {
  const cwd = workingDirectory(options.cwd);
  const env = process.env;
  const home = homeDirectory(env);
  const isTrusted = trustedBefore(env, home);
  const loaded = await loadConfig({
    env,
    cwd,
    home,
    flags: settingFlags(options, cwd),
    set: options.set ?? [],
    projectTrusted: (project) => project.sha256 === trusted || isTrusted(project),
  });
  const [problem] = loaded.problems;
  if (problem) throw new CliError(exit.usage, problem.message, problem.hint);
  const stored = await Promise.all(features.map(async (feature) => await feature.storedSecrets?.(loaded.config.files)));
  const secrets = [...secretsOf(env, loaded.config), ...stored.flatMap((found) => found ?? [])];
  const notices = loaded.notices.map((notice): Notice => ({ level: 'warn', ...notice }));
  addAll(notices, await ruleNotices(loaded.config.policy.rules.allow));
  const keys = await openStoredKeys({
    file: loaded.config.files.keys,
    ephemeral: options.ephemeral === true,
    keyring: async () => openKeyring(env),
    onKey: (provider, key) => {
      addAll(secrets, keptSecret(provider, key));
    },
    onProblem: (message) => {
      notices.push({ level: 'warn', code: 'stored_keys', message });
    },
    runCommand: (command) => runKeyCommand(command, env),
  });
  if (options.test === true) addAll(notices, testNotices(env.TEST_ALLOW));
  const guard = plainGuard(env, secrets, loaded.config.secrets);
  const log = createLogFile(
    options.ephemeral ? null : loaded.config.files.log,
    (line) => guard.json(line),
    options.debug ? printErrorLine : null,
  );
  const claude = await withClaudeRules({ cwd, home, config: loaded.config, projects });
  addAll(notices, claude.problems);
  return {
    env,
    loaded,
    ...claude.settings,
    commandNames: options.commandNames ?? [],
    notices,
    log,
    keys: { ...keys, ofInstallation: openSecretKey(options.ephemeral ? null : loaded.config.files.data) },
    secrets,
    guard,
    rateLimits: new Map(),
    servedWindows: new Map(),
    testMode: options.test === true && env.TEST_ALLOW !== '1',
    ephemeral: options.ephemeral === true,
    directories: openDirectories(claude.directories, options.addDir, { cwd, home, notices }),
    ...(await runParts(options, cwd)),
  };
}

function printErrorLine(line: string): void {
  printError(`${line}\n`);
}

function secretsOf(env: NodeJS.ProcessEnv, config: Config): readonly Secret[] {
  return [...knownSecrets(env, ownKeys(config)), ...commandSecrets(config.exec.env)];
}

/** Returns the servers of `--mcp-config` and the agents of `--agents`. */
async function runParts(
  { mcpConfig = [], strictMcpConfig: isStrict = false, agents, bare = false }: Partial<RootOptions>,
  cwd: string,
): Promise<Pick<Settings, 'givenServers' | 'onlyGivenServers' | 'givenAgents' | 'isBare'>> {
  return {
    ...(agents === undefined ? {} : { givenAgents: await givenAgents(agents, cwd) }),
    ...(bare ? { isBare: true } : {}),
    ...(mcpConfig.length === 0 ? {} : { givenServers: await givenServers(mcpConfig, cwd) }),
    ...(isStrict || bare ? { onlyGivenServers: true } : {}),
  };
}

/** Returns a notice for a value of `TEST_ALLOW` that does not count. */
function testNotices(value: string | undefined): readonly Notice[] {
  if (value === undefined || ['', '0', '1'].includes(value)) return [];
  const message = `TEST_ALLOW=${value} has no effect: only TEST_ALLOW=1 lets tools run under --test.`;
  return [{ level: 'warn', code: 'test_allow', message }];
}

/** Returns whether the user has trusted exactly these settings of that directory. */
export function trustedBefore(env: Environment, home: string): (project: ProjectFile) => boolean {
  return (project) => openTrustFile(agentPaths(env, home).trust).answerFor(project)?.trusted === true;
}

/** Returns the directory to work in, links resolved. Throws a `CliError` where there is none. */
export function workingDirectory(given: string | undefined): string {
  const path = givenDirectory(given);
  if (!existsSync(path))
    throw new CliError(exit.usage, `there is no directory ${path}`, 'Give -C an existing directory.');
  if (!statSync(path).isDirectory())
    throw new CliError(exit.usage, `${path} is not a directory`, 'Give -C a directory.');
  return realpathSync(path);
}

/** Returns warnings about allow rules that allow nothing, so that the user knows why their commands still prompt. */
async function ruleNotices(allow: readonly Rule[]): Promise<readonly Notice[]> {
  if (allow.length === 0) return [];
  const { unheededAllow } = await loadPermissions();
  return unheededAllow(allow).map((message) => ({ level: 'warn', code: 'rule_not_heeded', message }));
}

/** Returns the absolute path of `-C`, or of the directory of the shell. Throws a `CliError` where that one is gone. */
export function givenDirectory(given: string | undefined): string {
  return given !== undefined && isAbsolute(given) ? resolve(given) : resolve(startingDirectory(), given ?? '.');
}

/** Throws a `CliError` where the shell's directory was removed: it has no name any more. */
function startingDirectory(): string {
  try {
    return process.cwd();
  } catch {
    throw new CliError(
      exit.usage,
      'the current directory no longer exists',
      'Change to a directory that exists (cd ..) and start again.',
    );
  }
}

/** Returns the options as settings, by key. */
export function settingFlags(options: Partial<RootOptions>, cwd: string): Readonly<Record<string, unknown>> {
  const { systemPrompt, replaceSystemPrompt } = options;
  return {
    ...optionSettings(options),
    ...trustFlags(options),
    ...(systemPrompt === undefined ? {} : { system_prompt: promptText('--system-prompt', systemPrompt, cwd) }),
    ...(replaceSystemPrompt === undefined
      ? {}
      : { replace_system_prompt: promptText('--replace-system-prompt', replaceSystemPrompt, cwd) }),
  };
}

/** Returns the settings with the system prompt of this run, as `--system-prompt` would give it. */
export function withSystemPrompt(settings: Settings, systemPrompt: string): Settings {
  const { config, loaded } = settings;
  return {
    ...settings,
    loaded: { ...loaded, origins: { ...loaded.origins, system_prompt: { kind: 'flag' } } },
    config: { ...config, request: { ...config.request, systemPrompt } },
  };
}

/** Returns the settings of approval and sandbox that the options give. `--safe` sets both; an option for one of them
 * wins over it. */
function trustFlags({ approval, sandbox, safe, set = [] }: Partial<RootOptions>): Readonly<Record<string, string>> {
  const implied = (key: string, value: string): string | undefined =>
    safe && !set.some((item) => item.startsWith(`${key}=`)) ? value : undefined;
  const [asked, held] = [approval ?? implied('approval', 'mutating'), sandbox ?? implied('sandbox', 'workspace')];
  return { ...(asked === undefined ? {} : { approval: asked }), ...(held === undefined ? {} : { sandbox: held }) };
}

/** Reads a text, or the file that `@` names. Throws a `CliError` (2) where it cannot be read. */
export function promptText(option: string, given: string, cwd: string): string {
  if (!given.startsWith('@')) return given;
  const path = resolve(cwd, given.slice(1));
  let bytes: Buffer;
  try {
    bytes = readStart(path, maxPromptBytes + 1);
  } catch (error) {
    throw new CliError(
      exit.usage,
      `${option}: ${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
      'Name a readable file after the @.',
    );
  }
  if (bytes.length > maxPromptBytes)
    throw new CliError(
      exit.usage,
      `${option}: ${path} is larger than ${maxPromptBytes / 1024} KiB`,
      'Use a shorter file: it is sent with every request.',
    );
  return bytes.toString().replace(/^\uFEFF/, '');
}

/** Reads at most `maxBytes` from the start of a file or pipe: a device may have no end. */
function readStart(path: string, maxBytes: number): Buffer {
  const descriptor = openSync(path, 'r');
  const bytes = Buffer.alloc(maxBytes);
  try {
    let length = 0;
    for (let got = -1; got !== 0 && length < maxBytes; length += got)
      got = readSync(descriptor, bytes, length, maxBytes - length, null);
    return bytes.subarray(0, length);
  } finally {
    closeSync(descriptor);
  }
}

/** The terminal before there is an input. */
interface TypedKeys {
  /** Gives the terminal back, and returns the keys that were typed. */
  withdraw(): readonly (Uint8Array | string)[];
}

/** `typed`: keys that were typed before the REPL had an input, in order. */
interface AskedSettings {
  readonly settings: Settings;
  /** Files of the project or of other programs were trusted just now. */
  readonly isTrusted?: boolean;
  readonly typed: readonly Uint8Array[];
}

/** Reads the configuration for a user at a terminal. If a project has settings that need trust, the user is asked
 * before any of them counts, once for each content of the file. */
export async function askForSettings(options: RootOptions, early: TypedKeys | null): Promise<AskedSettings> {
  const asked = await askForFiles(await askForProject(options, early), early);
  const settings = await readAgain(options, asked);
  const typed = [...asked.typed];
  const openQuestion = async (): Promise<QuestionPort> => {
    for (const chunk of early?.withdraw() ?? []) typed.push(unsent(chunk));
    return terminalQuestion(process.stdin, (chunk) => {
      typed.push(unsent(chunk));
    });
  };
  for (const feature of features) await feature.askAgain?.(settings, options.tools, openQuestion);
  return { settings, typed };
}

/** Reads the settings once more where an answer has added permission rules to them. */
async function readAgain(options: RootOptions, { settings, isTrusted = false }: AskedSettings): Promise<Settings> {
  if (!isTrusted) return settings;
  const { project } = settings.loaded;
  const read = await readSettings(options, project?.trusted === true ? project.file.sha256 : undefined);
  const said = settings.notices.filter(({ code }) => code === 'trust_not_saved');
  return { ...read, notices: [...read.notices, ...said] };
}

/** Asks about commands, skills and hooks of the project, and about hooks of other programs in the home folder, once for
 * each content of them. */
async function askForFiles(given: AskedSettings, early: TypedKeys | null): Promise<AskedSettings> {
  if (given.settings.isBare === true) return given;
  const first = await askForSet(given, await projects.files(given.settings), early);
  return await askForSet(first, await projects.userFiles(given.settings), early);
}

async function askForSet(
  given: AskedSettings,
  files: ProjectFiles | null,
  early: TypedKeys | null,
): Promise<AskedSettings> {
  const { settings } = given;
  if (files === null || projects.answerFor(settings, files) !== null) return given;
  const typed = [...given.typed, ...(early?.withdraw().map(unsent) ?? [])];
  const port = terminalQuestion(process.stdin, (chunk) => {
    typed.push(unsent(chunk));
  });
  const answer = await askForFilesOnTerminal(files, port);
  if (answer === 'unanswered') return { ...given, typed };
  const notices = remembered(() => {
    openTrustFile(settings.config.files.trust).files.record(files, answer === 'yes', Date.now());
  });
  const isTrusted = given.isTrusted === true || answer === 'yes';
  return { settings: { ...settings, notices: [...settings.notices, ...notices] }, typed, isTrusted };
}

async function askForProject(options: RootOptions, early: TypedKeys | null): Promise<AskedSettings> {
  const settings = await readSettings(options);
  const { project } = settings.loaded;
  if (!project || project.trusted || project.wanted.length === 0) return { settings, typed: [] };
  const answers = openTrustFile(settings.config.files.trust);
  if (answers.answerFor(project.file) !== null) return { settings, typed: [] };
  const typed = early?.withdraw().map(unsent) ?? [];
  const answer = await askForTrust(
    project,
    terminalQuestion(process.stdin, (chunk) => {
      typed.push(unsent(chunk));
    }),
  );
  if (answer === 'unanswered') return { settings, typed };
  const notices = remembered(() => {
    answers.record(project.file, answer === 'yes', Date.now());
  });
  const settled = answer === 'yes' ? await readSettings(options, project.file.sha256) : settings;
  return { settings: { ...settled, notices: [...settled.notices, ...notices] }, typed };
}

/** Turns Enter into a new line of the draft: nothing is sent that the user has not seen in the input. */
function unsent(chunk: Uint8Array | string): Uint8Array {
  return Buffer.from(chunk).map((byte) => (byte === 0x0d ? 0x0a : byte));
}

function remembered(record: () => void): readonly Notice[] {
  try {
    record();
    return [];
  } catch (error) {
    return [
      {
        level: 'warn',
        code: 'trust_not_saved',
        message: `The answer could not be saved and applies to this run only: ${error instanceof Error ? error.message : String(error)}`,
      },
    ];
  }
}

/** Appends a line to a regular file, made with mode 0600. Throws for anything else: to open a named pipe that nothing
 * reads would wait without end, and a link would change a file that is no log. */
function appendLine(path: string, line: string): void {
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_WRONLY } = constants;
  const descriptor = openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600);
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) throw new Error('it is not a regular file');
    if ((stats.mode & 0o077) !== 0) fchmodSync(descriptor, 0o600);
    appendFileSync(descriptor, `${line}\n`);
  } finally {
    closeSync(descriptor);
  }
}

/** Opens the log file: JSON lines, 0600, its folder 0700, made with the first entry. Failures are ignored; without a
 * path nothing is written. */
function createLogFile(
  path: string | null,
  mask: (text: string) => string,
  mirror: ((line: string) => void) | null,
): Log {
  let ready = false;
  return ({ detail, ...entry }) => {
    if (detail && mirror === null) return;
    const line = mask(JSON.stringify({ time: new Date().toISOString(), ...entry }));
    mirror?.(line);
    if (path === null) return;
    try {
      if (!ready) {
        ensurePrivateDirectory(dirname(path));
        ready = true;
      }
      appendLine(path, line);
    } catch {
      /* nowhere to say so: the log is the place for such things */
    }
  };
}
