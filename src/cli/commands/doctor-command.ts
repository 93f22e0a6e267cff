import type { ConfigProblem } from '../../config/settings-file.js';
import { exit } from '../cli-error.js';
import { jsonText } from '../print.js';
import {
  checkConfig,
  checkDisk,
  checkKeys,
  checkNode,
  checkRipgrep,
  checkStore,
  checkTerminal,
  type DoctorCheck,
  fail,
  type KeyFact,
  ok,
  type RipgrepFact,
  type StoreFacts,
  type TerminalFacts,
} from './doctor-checks.js';

/** A server on this machine that may be running. */
export interface LocalServer {
  readonly name: string;
  readonly host: string;
  readonly port: number;
}

/** What `agent doctor` looks at. A probe that throws becomes a failed check with its message; none may take long. */
export interface DoctorFacts {
  readonly nodeVersion: string;
  readonly terminal: TerminalFacts;
  readonly keys: readonly KeyFact[];
  readonly servers: readonly LocalServer[];
  sqliteVersion(): Promise<string>;
  ripgrep(): Promise<RipgrepFact | null>;
  config(): Promise<{ readonly file: string; readonly problems: readonly ConfigProblem[] }>;
  store(): Promise<StoreFacts>;
  freeBytes(): Promise<number>;
  reaches(server: LocalServer): Promise<boolean>;
  /** Checks of other parts, for example of the sandbox. */
  more?(): Promise<readonly DoctorCheck[]>;
}

export interface DoctorIo {
  readonly stdout: { write(text: string): unknown };
  readonly json?: boolean;
}

/** Checks this machine and says what to do about what is missing: a line each, with `--json` one array of `{name,
 * status, detail, fix}`. Returns exit code 1 where a check failed, else 0; a warning is no failure. */
export async function runDoctor(io: DoctorIo, facts: DoctorFacts): Promise<number> {
  const checks = (
    await Promise.all([
      one('node', () => checkNode(facts.nodeVersion)),
      one('sqlite', async () => ok('sqlite', await facts.sqliteVersion())),
      one('ripgrep', async () => checkRipgrep(await facts.ripgrep())),
      one('terminal', () => checkTerminal(facts.terminal)),
      one('keys', () => checkKeys(facts.keys)),
      ...facts.servers.map((server) => one(server.name, () => checkServer(server, facts))),
      one('config', async () => {
        const { file, problems } = await facts.config();
        return checkConfig(file, problems);
      }),
      one('store', async () => checkStore(await facts.store())),
      one('disk', async () => checkDisk(await facts.freeBytes())),
      facts.more ? several(facts.more()) : [],
    ])
  ).flat();
  io.stdout.write(io.json ? `${jsonText(checks)}\n` : checks.map(line).join(''));
  return checks.some((check) => check.status === 'fail') ? exit.failed : exit.done;
}

async function checkServer(server: LocalServer, facts: DoctorFacts): Promise<DoctorCheck> {
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
  return `${{ ok: 'ok  ', warn: 'warn', fail: 'FAIL' }[status]}  ${name.padEnd(10)}  ${detail}\n${fix === null ? '' : `${' '.repeat(18)}${fix}\n`}`;
}
