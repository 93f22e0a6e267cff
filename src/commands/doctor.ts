import { constants, statSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { connect } from 'node:net';
import { delimiter, join } from 'node:path';
import { loadConfig, type LoadOptions } from '../kernel/config/load.js';
import type { ConfigProblem, Environment } from '../kernel/config/settings-file.js';
import { builtInPresets, keyNames } from '../kernel/providers/catalog.js';
import type { StoreInspection } from '../kernel/store/inspect.js';
import {
  type CommandLine,
  type DoctorCheck,
  exit,
  type Screen,
  type CommandHandler,
} from '../kernel/console/command.js';
import { keptNames } from '../kernel/secrets/stored-keys.js';
import { jsonText } from '../kernel/console/line-output.js';
import {
  checkConfig,
  checkDisk,
  checkKeys,
  type KeptFacts,
  checkNetwork,
  checkRipgrep,
  checkStore,
  checkTerminal,
  type KeyFact,
  type RipgrepFact,
  type TerminalReport,
} from './doctor-checks.js';
import { fail, ok } from '../kernel/console/doctor-check.js';
import { checkRunning } from './check-running.js';
import { features } from '../app/features.js';
import type { CheckHost } from '../kernel/console/feature.js';
import { packagedRipgrep } from '../kernel/tools/search/text-search.js';

/** Checks this machine, on the command line and in the REPL. */
export const doctor: CommandHandler = {
  line: {
    example: 'agent doctor',
    options: (command) => command.option('--json', 'one JSON array'),
    run: async (line, _args, { json }: { readonly json?: boolean }) =>
      await runDoctor({ stdout: { write: line.out.print }, json: json === true }, await facts(line)),
  },
  slash: async (_argument, { line, screen }) => {
    let text = '';
    const write = (part: string): void => {
      text += part;
    };
    await runDoctor({ stdout: { write } }, await facts(line));
    await screen.page('Doctor', text.trimEnd());
  },
};

/** Reads the configuration itself: a broken one is a finding and no failure. */
async function facts({
  out,
  request,
  machine,
}: Pick<CommandLine, 'out' | 'request' | 'machine'>): Promise<DoctorFacts> {
  const { env } = request;
  const loaded = await loadConfig({ ...request, flags: trustFlags(request) });
  return {
    nodeVersion: process.version,
    terminal: terminalFacts(out.screen, env),
    keys: keyFacts(env),
    kept: keptFacts(loaded.config.files.keys),
    servers: localServers(),
    ripgrep: () => findRipgrep(env),
    config: () => Promise.resolve({ file: loaded.config.files.config, problems: loaded.problems }),
    store: machine.store(loaded.config),
    reaches: (server) => reachesServer(server),
    more: async () => [
      await machine.sandbox(loaded.config),
      await machine.rehearsals(loaded.config),
      ...checkNetwork(env),
      ...(await checkRunning(loaded.config.files, machine.store(loaded.config))),
      ...(await featureChecks({ ...request, config: loaded.config })),
    ],
  };
}

async function featureChecks(host: CheckHost): Promise<readonly DoctorCheck[]> {
  const checks = await Promise.all(features.map(async (feature) => (await feature.checks?.(host)) ?? []));
  return checks.flat();
}

/** Returns the options that say what tools may do; the others are for a conversation. */
function trustFlags({ flags = {} }: LoadOptions): NonNullable<LoadOptions['flags']> {
  return Object.fromEntries(Object.entries(flags).filter(([key]) => key === 'approval' || key === 'sandbox'));
}

function keyFacts(env: Environment): readonly KeyFact[] {
  return Object.entries(builtInPresets)
    .filter(([, preset]) => preset.key_required !== false)
    .flatMap(([provider, preset]) =>
      keyNames(preset).map((variable) => ({ provider, variable, set: (env[variable] ?? '').trim() !== '' })),
    );
}

/** The keys that are kept, and whether others may read them. */
function keptFacts(file: string): KeptFacts {
  return { file, names: keptNames(file), mode: modeOf(file) };
}

function modeOf(file: string): number | null {
  try {
    return statSync(file).mode & 0o777;
  } catch {
    return null;
  }
}

function localServers(): readonly FoundServer[] {
  return Object.values(builtInPresets)
    .filter((preset) => preset.local === true)
    .map((preset) => {
      const { hostname, port } = new URL(preset.base_url);
      return { name: preset.label ?? hostname, host: hostname, port: Number(port) };
    });
}

/** A server on this machine that may be running. */
export interface FoundServer {
  readonly name: string;
  readonly host: string;
  readonly port: number;
}

/** The facts that `agent doctor` checks. A probe that throws becomes a failed check with its message. */
export interface DoctorFacts {
  readonly nodeVersion: string;
  readonly terminal: TerminalReport;
  readonly keys: readonly KeyFact[];
  readonly kept: KeptFacts;
  readonly servers: readonly FoundServer[];
  ripgrep(): Promise<RipgrepFact | null>;
  config(): Promise<{ readonly file: string; readonly problems: readonly ConfigProblem[] }>;
  readonly store: StoreInspection;
  reaches(server: FoundServer): Promise<boolean>;
  /** Checks of other parts, for example of the sandbox. */
  more?(): Promise<readonly DoctorCheck[]>;
}

export interface DoctorIo {
  readonly stdout: { write(text: string): unknown };
  readonly json?: boolean;
}

/** Checks this machine and says what to do about what is missing: a line each, with `--json` one array of `{name,
 * status, detail, fix}`. Returns exit code 1 where a check failed, else 0; a warning is not a failure. */
export async function runDoctor(io: DoctorIo, facts: DoctorFacts): Promise<number> {
  const checks = (
    await Promise.all([
      one('node', () => ok('node', facts.nodeVersion)),
      one('sqlite', async () => ok('sqlite', await facts.store.version())),
      one('ripgrep', async () => checkRipgrep(await facts.ripgrep())),
      one('terminal', () => checkTerminal(facts.terminal)),
      one('keys', () => checkKeys(facts.keys, facts.kept)),
      ...facts.servers.map((server) => one(server.name, () => checkServer(server, facts))),
      one('config', async () => {
        const { file, problems } = await facts.config();
        return checkConfig(file, problems);
      }),
      one('store', async () => checkStore(await facts.store.facts())),
      one('disk', async () => checkDisk(await facts.store.freeBytes())),
      facts.more ? several(facts.more()) : [],
    ])
  ).flat();
  io.stdout.write(io.json ? `${jsonText(checks)}\n` : checks.map(line).join(''));
  return checks.some((check) => check.status === 'fail') ? exit.failed : exit.done;
}

async function checkServer(server: FoundServer, facts: DoctorFacts): Promise<DoctorCheck> {
  const running = await facts.reaches(server);
  return ok(server.name, `${running ? 'answers' : 'not running'} at ${server.host}:${server.port}`);
}

async function one(name: string, check: () => DoctorCheck | Promise<DoctorCheck>): Promise<readonly DoctorCheck[]> {
  try {
    return [await check()];
  } catch (error) {
    const hint: unknown = error instanceof Error ? Reflect.get(error, 'hint') : undefined;
    return [
      fail(
        name,
        error instanceof Error ? error.message : String(error),
        typeof hint === 'string' ? hint : 'Run agent doctor --debug for more.',
      ),
    ];
  }
}

async function several(checks: Promise<readonly DoctorCheck[]>): Promise<readonly DoctorCheck[]> {
  try {
    return await checks;
  } catch (error) {
    return [
      fail('checks', error instanceof Error ? error.message : String(error), 'Run agent doctor --debug for more.'),
    ];
  }
}

function line({ name, status, detail, fix }: DoctorCheck): string {
  const word = { ok: 'ok  ', warn: 'warn', fail: 'FAIL' }[status];
  return `${word}  ${name.padEnd(10)}  ${detail}\n${fix === null ? '' : `${' '.repeat(18)}${fix}\n`}`;
}

/** The facts about the terminal behind standard output. */
export function terminalFacts(screen: Screen, env: Environment): TerminalReport {
  return {
    isTerminal: screen.isTTY === true,
    term: env.TERM ?? '',
    colorBits: screen.getColorDepth?.({ ...env }) ?? 1,
    noColor: (env.NO_COLOR ?? '') !== '',
    columns: screen.columns ?? 80,
    rows: screen.rows ?? 24,
    unicode: /utf-?8/i.test(env.LC_ALL || env.LC_CTYPE || env.LANG || ''),
  };
}

/** Finds the ripgrep that comes with the program, else the first `rg` on the path. Runs neither. */
export async function findRipgrep(env: Environment): Promise<RipgrepFact | null> {
  const bundled = await packagedRipgrep();
  if (bundled !== null && (await isExecutable(bundled))) return { source: 'bundled', path: bundled };
  for (const directory of (env.PATH ?? '').split(delimiter).filter((item) => item !== '')) {
    const path = join(directory, 'rg');
    if (await isExecutable(path)) return { source: 'system', path };
  }
  return null;
}

/** Returns true if something accepts connections there within `timeoutMs`. */
export function reachesServer({ host, port }: FoundServer, timeoutMs = 200): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const answer = (reached: boolean): void => {
      socket.destroy();
      resolve(reached);
    };
    socket.setTimeout(timeoutMs, () => {
      answer(false);
    });
    socket.once('connect', () => {
      answer(true);
    });
    socket.once('error', () => {
      answer(false);
    });
  });
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
