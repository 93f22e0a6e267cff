import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isProxyVariable } from '../kernel/network/proxies.js';
import { createProcessRunner } from '../kernel/tools/process/runner.js';
import { CliError, type CommandLine, exit, type CommandHandler } from '../kernel/console/command.js';
import type { Settings } from '../kernel/console/run-settings.js';
import { programFolder } from '../kernel/console/program-folder.js';
import { version, versionLine } from '../kernel/console/version.js';

const packageName = 'agent-shell';

/** The method by which the program was installed on this machine. */
export interface Installation {
  /** In words, to stand behind "installed". */
  readonly how: string;
  /** The programs that upgrade it, one after the other. Empty: the user does it, as `how` says. */
  readonly commands: readonly (readonly string[])[];
  /** The working directory of the commands. */
  readonly cwd: string;
}

const globalManagers: readonly (readonly [pattern: RegExp, manager: string, command: readonly string[]])[] = [
  [/[/\\]pnpm[/\\](?:global|.*[/\\]global)[/\\]/, 'pnpm', ['pnpm', 'add', '--global']],
  [/[/\\]\.bun[/\\]install[/\\]global[/\\]/, 'bun', ['bun', 'add', '--global']],
  [/[/\\]yarn[/\\](?:.*[/\\])?global[/\\]/i, 'yarn', ['yarn', 'global', 'add']],
  [/[/\\]\.?volta[/\\]/i, 'volta', ['volta', 'install']],
];
/** A package of Homebrew lies in the Cellar, under its name there; what its npm installs does not. */
const cellar = /[/\\]Cellar[/\\](?<formula>[^/\\]+)[/\\]/;
const projectManagers: readonly (readonly [lock: string, command: readonly string[]])[] = [
  ['pnpm-lock.yaml', ['pnpm', 'add']],
  ['yarn.lock', ['yarn', 'add']],
  ['bun.lock', ['bun', 'add']],
  ['bun.lockb', ['bun', 'add']],
];

const newestPackage = `${packageName}@latest`;

/** Returns how the program in the folder `root` was installed. It reads no file and asks nobody. */
export function installationOf(root: string): Installation {
  if (existsSync(join(root, '.git')))
    return {
      how: `as a git checkout (${root})`,
      commands: [
        ['git', '-C', root, 'pull', '--ff-only'],
        ['npm', '--prefix', root, 'ci'],
        ['npm', '--prefix', root, 'run', 'build'],
      ],
      cwd: root,
    };
  if (/[/\\]_npx[/\\]/.test(root))
    return { how: `for one run by npx (${root}); npx ${newestPackage} starts the newest`, commands: [], cwd: root };
  return managedInstallation(root) ?? npmInstallation(root);
}

/** Returns how a package manager of its own kind keeps the program for this user, or null. */
function managedInstallation(root: string): Installation | null {
  const formula = cellar.exec(root)?.groups?.['formula'];
  if (formula !== undefined)
    return { how: `with Homebrew (${root})`, commands: [['brew', 'upgrade', formula]], cwd: root };
  const [, manager, command] = globalManagers.find(([pattern]) => pattern.test(root)) ?? [];
  if (manager === undefined || command === undefined) return null;
  return { how: `with ${manager}, for this user (${root})`, commands: [[...command, newestPackage]], cwd: root };
}

function npmInstallation(root: string): Installation {
  const at = root.search(/[/\\]node_modules[/\\]/);
  const above = at < 0 ? null : root.slice(0, at);
  if (above !== null && existsSync(join(above, 'package.json'))) {
    const [, add] = projectManagers.find(([lock]) => existsSync(join(above, lock))) ?? ['', ['npm', 'install']];
    return { how: `as a dependency of the project in ${above}`, commands: [[...add, newestPackage]], cwd: above };
  }
  if (above === null || !existsSync(join(above, 'node_modules')))
    return { how: `in a way that is not known here (${root}): install it again as you did`, commands: [], cwd: root };
  return {
    how: `with npm, globally (${root})`,
    commands: [['npm', 'install', '--global', '--prefix', above.replace(/[/\\]lib$/, ''), newestPackage]],
    cwd: root,
  };
}

/** `agent upgrade`. The network is used with `--check` and `--yes` alone. */
export const upgrade: CommandHandler = {
  line: {
    example: 'agent upgrade --check',
    options: (command) =>
      command
        .option('--check', 'ask the registry of npm for the newest version')
        .option('--yes', 'run what upgrades it'),
    run: async (line, _args, { check, yes }: { check?: boolean; yes?: boolean }) => {
      const { out } = line;
      const installation = installationOf(programFolder());
      out.print(`agent ${versionLine}, installed ${installation.how}.\n`);
      if (check) out.print(`${await comparedText(line, installation)}\n`);
      for (const command of installation.commands) out.print(`To upgrade: ${shellText(command)}\n`);
      if (!yes) {
        const [first, ...more] = installation.commands;
        if (first) out.print(`agent upgrade --yes runs ${more.length > 0 ? 'them' : 'that'}.\n`);
        return exit.done;
      }
      for (const command of installation.commands) await runShown(line, installation, command);
      return exit.done;
    },
  },
};

async function comparedText(line: CommandLine, { cwd }: Installation): Promise<string> {
  const { exitCode, output, errors } = await run(line, ['npm', 'view', packageName, 'version'], cwd, () => undefined);
  const newest = output.trim();
  if (exitCode === 0 && /^\d+\.\d+\.\d+/.test(newest))
    return isNewer(newest, version) ? `Version ${newest} is out.` : 'That is the newest version.';
  const reason = /E404/.test(errors) ? `it has no package ${packageName}` : (errors.trim().split('\n')[0] ?? '');
  throw new CliError(
    exit.failed,
    `the registry did not tell the newest version: ${reason}`,
    'npm config get registry says which one is asked.',
  );
}

/** Compares two versions by their numbers; one with a suffix comes before the same without. */
export function isNewer(one: string, other: string): boolean {
  const parts = (version: string): readonly number[] => [
    ...version
      .replace(/[-+].*$/, '')
      .split('.')
      .map((part) => Number(part) || 0),
    version.includes('-') ? 0 : 1,
  ];
  const [a, b] = [parts(one), parts(other)];
  const at = a.findIndex((part, index) => part !== b[index]);
  return at >= 0 && (a[at] ?? 0) > (b[at] ?? 0);
}

async function runShown(line: CommandLine, { cwd }: Installation, command: readonly string[]): Promise<void> {
  line.out.print(`$ ${shellText(command)}\n`);
  const { exitCode } = await run(line, command, cwd, (text) => {
    line.out.print(text);
  });
  if (exitCode !== 0)
    throw new CliError(
      exit.failed,
      `${shellText(command)} ended with exit code ${exitCode}`,
      'What it printed says why; agent is as it was, or run the command by hand.',
    );
}

interface Ended {
  readonly exitCode: number;
  readonly output: string;
  readonly errors: string;
}

const longestMs = 900_000;
const maxBytes = 16 * 1024 * 1024;

/** Runs a program of the user, without keys of providers. The proxies stay, with their passwords. */
async function run(
  line: CommandLine,
  [file = '', ...args]: readonly string[],
  cwd: string,
  onText: (text: string) => void,
): Promise<Ended> {
  const said = { stdout: '', stderr: '' };
  const processes = createProcessRunner({ marker: { name: '_AGENT_UPGRADE', value: String(process.pid) } });
  const result = await processes.run({
    file,
    args,
    cwd,
    env: withoutKeys(await line.settings()),
    sandbox: 'off',
    signal: new AbortController().signal,
    timeoutMs: longestMs,
    maxTotalBytes: maxBytes,
    onOutput: (chunk, stream) => {
      said[stream] += chunk.toString();
      onText(chunk.toString());
    },
  });
  if (result.ended === 'not_started')
    throw new CliError(
      exit.failed,
      `${file} could not be started: ${result.error}`,
      `Install ${file}, or use another way.`,
    );
  return { exitCode: result.exitCode, output: said.stdout, errors: said.stderr };
}

function withoutKeys({ env, secrets }: Pick<Settings, 'env' | 'secrets'>): Record<string, string> {
  const keys = new Set(secrets.map(({ name }) => name));
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) =>
      value === undefined || (keys.has(name) && !isProxyVariable(name)) ? [] : [[name, value]],
    ),
  );
}

function shellText(command: readonly string[]): string {
  return command.map((word) => (/^[\w@./:+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(' ');
}
