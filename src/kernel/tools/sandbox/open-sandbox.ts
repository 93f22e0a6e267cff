import { accessSync, constants, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import type { Sandbox } from '../../core/tool.js';
import { type Confine, createProcessRunner } from '../process/runner.js';
import { seccompFilter, workspaceProblem } from './bubblewrap-profile.js';
import { createConfine } from './bubblewrap.js';
import { isWithin, toolFolders } from './guards.js';
import type { OpenedSandbox, SandboxFailure, SandboxRequest } from './sandbox-request.js';

const probeTimeoutMs = 20_000;
const namespaces = ['user', 'pid', 'net', 'ipc', 'uts', 'mnt'] as const;
/** Settings of the whole machine. The probe only opens them for writing, which changes nothing; a write would take
 * effect outside of every namespace. */
const kernelFiles =
  '/proc/sys/kernel/* /proc/sys/fs/* /proc/sys/vm/* /proc/sysrq-trigger /proc/irq/* /proc/mtrr /sys/kernel/*';
const probeScript = `cat /proc/self/status; ls -l /proc/self/ns; [ -w /etc/passwd ] && echo escaped
for file in ${kernelFiles}; do true >>"$file" && echo "open: $file"; done 2>/dev/null; exit 0`;

/** Finds the sandbox of this system and tries the real profile once. Returns a sandbox that works, or what keeps it from
 * working and the fix. Never rejects. */
export async function openSandbox(request: SandboxRequest): Promise<OpenedSandbox | SandboxFailure> {
  try {
    if (process.platform === 'linux') return await openBubblewrap(request);
    if (process.platform !== 'darwin' || request.program !== undefined) return missingSystem(process.platform);
    return await (await import('./seatbelt.js')).openSeatbelt(request);
  } catch (error) {
    return explainFailure(error instanceof Error ? error.message : String(error), isRoot());
  }
}

async function openBubblewrap(request: SandboxRequest): Promise<OpenedSandbox | SandboxFailure> {
  const home = resolved(request.home);
  const places = [request.workspace, ...(request.directories?.() ?? []).map(({ path }) => path)];
  const misplaced = places.map((place) => workspaceProblem(place, home)).find((problem) => problem !== null) ?? null;
  if (misplaced !== null)
    return { ok: false, problem: misplaced, fix: 'Start in the directory of a project, or name one with -C.' };
  const program =
    request.program === undefined ? findProgram(request.env.PATH ?? '', request.workspace) : request.program;
  return program === null ? missingProgram() : await openWith(program, request);
}

async function openWith(program: string, request: SandboxRequest): Promise<OpenedSandbox | SandboxFailure> {
  const { home, workspace, directories, isSecret, limits, passes, triedVersion } = request;
  const path = request.env.PATH ?? '';
  const version = triedVersion ?? (await versionOf(program));
  const filter = seccompFilter(process.arch);
  const confine = createConfine({
    program,
    version,
    workspace,
    ...(directories ? { directories } : {}),
    home,
    path,
    isSecret,
    filter,
    ...(limits ? { limits } : {}),
    ...(passes ? { passes } : {}),
  });
  const problem = triedVersion === undefined ? await probe(confine, request, filter !== null) : null;
  if (problem !== null) return explainFailure(problem, isRoot());
  const filtered = filter === null ? `no system call filter for ${process.arch}` : 'system calls filtered';
  return {
    ok: true,
    version,
    confine,
    detail: `bubblewrap ${version}, no network, no capabilities, ${filtered}`,
    tools: toolFolders(path, home, workspace),
  };
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/** Searches /usr/bin first, because the profiles of AppArmor cover that path only. It never returns a program in the
 * workspace; null: there is none. */
export function findProgram(
  path: string,
  workspace: string | null,
  first: readonly string[] = ['/usr/bin', '/bin', '/usr/local/bin'],
): string | null {
  const folders = [...first, ...path.split(delimiter).filter((folder) => isAbsolute(folder))];
  return (
    folders
      .map((folder) => join(folder, 'bwrap'))
      .find((file) => isProgram(file) && (workspace === null || !isWithin(resolved(file), workspace))) ?? null
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

/** Checks from inside what the kernel says of a confined process. Returns the first problem, or null. */
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

const elsewhere = 'Run outside of this container, or without a sandbox (--sandbox off).';

/** Returns what a machine without bubblewrap needs. */
export function missingProgram(): SandboxFailure {
  return {
    ok: false,
    problem: 'the sandbox needs bubblewrap, and bwrap is not installed',
    fix: `Install it: ${installCommand(readText('/etc/os-release'))}`,
  };
}

export function missingSystem(platform: string): SandboxFailure {
  const name = { darwin: 'macOS', win32: 'Windows' }[platform] ?? platform;
  return {
    ok: false,
    problem: `the sandbox is not available on ${name}`,
    fix: 'Run without it (--sandbox off); --approval mutating asks before every change.',
  };
}

/** Source: os-release(5). */
function installCommand(release: string): string {
  const ids = [...release.matchAll(/^ID(?:_LIKE)?="?([^"\n]*)"?$/gm)].flatMap((match) => (match[1] ?? '').split(' '));
  const commands: Readonly<Record<string, string>> = {
    alpine: 'apk add bubblewrap',
    arch: 'pacman -S bubblewrap',
    fedora: 'dnf install bubblewrap',
    rhel: 'dnf install bubblewrap',
    suse: 'zypper install bubblewrap',
    opensuse: 'zypper install bubblewrap',
  };
  const known = ids.find((id) => id in commands);
  return (known === undefined ? undefined : commands[known]) ?? 'apt-get install bubblewrap';
}

/** Explains why the profile failed. `complaint` is the output of bubblewrap; `isRoot`: we run as root. */
export function explainFailure(
  complaint: string,
  isRoot: boolean,
  setting: (name: string) => string = kernelSetting,
): SandboxFailure {
  const said = complaint.trim().split('\n').at(-1)?.slice(0, 200) ?? '';
  return {
    ok: false,
    problem: `the sandbox does not work here${said === '' ? '' : ` (${said})`}`,
    fix: fixFor(complaint, isRoot, setting),
  };
}

function fixFor(complaint: string, isRoot: boolean, setting: (name: string) => string): string {
  if (setting('user/max_user_namespaces') === '0')
    return 'Allow user namespaces: sysctl -w user.max_user_namespaces=15000';
  if (!isRoot && setting('kernel/unprivileged_userns_clone') === '0')
    return 'Allow user namespaces: sysctl -w kernel.unprivileged_userns_clone=1';
  if (!isRoot && setting('kernel/apparmor_restrict_unprivileged_userns') === '1') {
    return (
      'AppArmor blocks bwrap from creating namespaces: install its profile (apt-get install apparmor-profiles), ' +
      'or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0'
    );
  }
  if (isRoot && /uid map/.test(complaint))
    return 'Run as an ordinary user: this container does not let root map users.';
  if (isRoot && /could write \/(?:proc|sys)\//.test(complaint)) {
    return 'Run as an ordinary user: root can change kernel settings here.';
  }
  if (/unknown option/i.test(complaint)) return 'Update bubblewrap to 0.5 or newer.';
  return elsewhere;
}

function kernelSetting(name: string): string {
  return readText(`/proc/sys/${name}`).trim();
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
