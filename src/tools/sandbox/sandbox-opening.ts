import { accessSync, constants, readlinkSync, realpathSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import type { Sandbox } from '../../core/tool.js';
import { createProcessRunner, type Confine } from '../process.js';
import { createConfine } from './sandbox-driver.js';
import { explainFailure, missingProgram, missingSystem, type SandboxFailure } from './sandbox-failure.js';
import { isWithin, toolFolders } from './sandbox-folders.js';
import { workspaceProblem } from './sandbox-profile.js';
import { seccompFilter } from './sandbox-seccomp.js';

export interface SandboxRequest {
  readonly sandbox: Exclude<Sandbox, 'off'>;
  /** Absolute, links resolved. */
  readonly workspace: string;
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether a file of the workspace is to be hidden; `.env*` always is. */
  readonly isSecret: (path: string) => boolean;
  /** Where bubblewrap is, null for nowhere; looked for where this is left out. */
  readonly program?: string | null;
}

export interface OpenedSandbox {
  readonly ok: true;
  readonly confine: Confine;
  /** What is in force, for a person: `bubblewrap 0.8.0, …`. */
  readonly detail: string;
  /** Folders with tools that are shown read-only besides the system's. */
  readonly tools: readonly string[];
}

const probeTimeoutMs = 20_000;
const namespaces = ['user', 'pid', 'net', 'ipc', 'uts', 'mnt'] as const;
/** Settings of the whole machine. To open one for writing changes nothing; what was written would hold outside of every
 * namespace. */
const kernelFiles =
  '/proc/sys/kernel/* /proc/sys/fs/* /proc/sys/vm/* /proc/sysrq-trigger /proc/irq/* /proc/mtrr /sys/kernel/*';
const probeScript = `cat /proc/self/status; ls -l /proc/self/ns; [ -w /etc/passwd ] && echo escaped
for file in ${kernelFiles}; do true >>"$file" && echo "open: $file"; done 2>/dev/null; exit 0`;

/** Finds bubblewrap and runs the real profile once: what comes back holds, or says what keeps it from holding and the
 * fix. Never throws. */
export async function openSandbox(request: SandboxRequest): Promise<OpenedSandbox | SandboxFailure> {
  if (process.platform !== 'linux') return missingSystem(process.platform);
  const misplaced = workspaceProblem(request.workspace, resolved(request.home));
  if (misplaced !== null)
    return { ok: false, problem: misplaced, fix: 'Start in the directory of a project, or name one with -C.' };
  const program =
    request.program === undefined ? findProgram(request.env.PATH ?? '', request.workspace) : request.program;
  if (program === null) return missingProgram();
  try {
    return await openWith(program, request);
  } catch (error) {
    return explainFailure(error instanceof Error ? error.message : String(error), isRoot());
  }
}

async function openWith(program: string, request: SandboxRequest): Promise<OpenedSandbox | SandboxFailure> {
  const { home, workspace, isSecret } = request;
  const path = request.env.PATH ?? '';
  const version = await versionOf(program);
  const filter = seccompFilter(process.arch);
  const confine = createConfine({ program, version, workspace, home, path, isSecret, filter });
  const problem = await probe(confine, request, filter !== null);
  if (problem !== null) return explainFailure(problem, isRoot());
  const filtered = filter === null ? `no system call filter for ${process.arch}` : 'system calls filtered';
  return {
    ok: true,
    confine,
    detail: `bubblewrap ${version}, no network, no capabilities, ${filtered}`,
    tools: toolFolders(path, home, workspace),
  };
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/** /usr/bin first: AppArmor's profiles cover that path alone. Never one that the workspace brings along. */
export function findProgram(
  path: string,
  workspace: string,
  first: readonly string[] = ['/usr/bin', '/bin', '/usr/local/bin'],
): string | null {
  const folders = [...first, ...path.split(delimiter).filter((folder) => isAbsolute(folder))];
  return (
    folders
      .map((folder) => join(folder, 'bwrap'))
      .find((file) => isProgram(file) && !isWithin(resolved(file), workspace)) ?? null
  );
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function resolved(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

async function versionOf(program: string): Promise<string> {
  const { text } = await output({ file: program, args: ['--version'], cwd: '/', env: {} }, 'off');
  return /\d+(?:\.\d+)+/.exec(text)?.[0] ?? '0';
}

interface Started {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

async function output(
  command: Started,
  sandbox: Sandbox,
  confine?: Confine,
): Promise<{ readonly text: string; readonly exitCode: number }> {
  const processes = createProcessRunner({
    marker: { name: 'AGENT_PROBE', value: String(process.pid) },
    ...(confine ? { confine } : {}),
  });
  let text = '';
  const result = await processes.run({
    ...command,
    sandbox,
    signal: new AbortController().signal,
    timeoutMs: probeTimeoutMs,
    maxTotalBytes: 1_048_576,
    onOutput: (chunk) => {
      text += chunk.toString('utf8');
    },
  });
  if (result.ended === 'not_started') throw new Error(result.error);
  return { text, exitCode: result.exitCode };
}

/** Looks from inside at what the kernel says of a confined process; null where all of it is as it must be. */
async function probe(
  confine: Confine,
  { sandbox, workspace, env }: SandboxRequest,
  filtered: boolean,
): Promise<string | null> {
  const { text, exitCode } = await output(
    { file: 'sh', args: ['-c', probeScript], cwd: workspace, env: { PATH: env.PATH ?? '/usr/bin:/bin' } },
    sandbox,
    confine,
  );
  if (exitCode !== 0) return text === '' ? `bwrap exited with ${exitCode}` : text;
  const wanted = [
    'CapEff:\t0000000000000000',
    'CapBnd:\t0000000000000000',
    'NoNewPrivs:\t1',
    ...(filtered ? ['Seccomp:\t2'] : []),
  ];
  const missing = wanted.find((line) => !text.includes(`${line}\n`));
  if (missing !== undefined) return `a confined process should have ${missing.replace(':\t', ' ')}`;
  const shared = namespaces.find(
    (name) => !text.includes(`${name} -> ${name}:[`) || text.includes(readlinkSync(`/proc/self/ns/${name}`)),
  );
  if (shared !== undefined) return `a confined process shares our ${shared} namespace`;
  const open = /^open: (.*)$/m.exec(text)?.[1];
  if (open !== undefined) return `a confined process could write ${open}`;
  return text.includes('escaped') ? 'a confined process could write to /etc' : null;
}
