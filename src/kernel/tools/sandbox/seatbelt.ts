import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { release, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { atExit } from '../process/at-exit.js';
import { type Confine, createProcessRunner } from '../process/runner.js';
import { limitLines, mountedDirectories, sandboxEnvironment, usualLimits } from './bubblewrap.js';
import { createGuardScan, type Guards, isWithin, toolFolders } from './guards.js';
import type { OpenedSandbox, SandboxFailure, SandboxRequest } from './sandbox-request.js';
import { macFolders, macWorkspaceProblem, seatbeltProfile } from './seatbelt-profile.js';

/** The program is never searched for on PATH, which a workspace may be a part of. */
const usualProgram = '/usr/bin/sandbox-exec';
const probeTimeoutMs = 20_000;

/** Opens the sandbox of macOS and tries it once. Source: sandbox-exec(1), sandbox(7). */
export async function openSeatbelt(
  request: SandboxRequest,
  program: string = usualProgram,
): Promise<OpenedSandbox | SandboxFailure> {
  const home = realpathSync(request.home);
  const places = [request.workspace, ...(request.directories?.() ?? []).map(({ path }) => path)];
  const misplaced = places.map((place) => macWorkspaceProblem(place, home)).find((problem) => problem !== null) ?? null;
  if (misplaced !== null)
    return { ok: false, problem: misplaced, fix: 'Start in the directory of a project, or name one with -C.' };
  const privateFolder = realpathSync(mkdtempSync(join(tmpdir(), 'agent-sandbox-')));
  atExit(() => {
    rmSync(privateFolder, { recursive: true, force: true });
  });
  const tools = toolFolders(request.env.PATH ?? '', home, request.workspace);
  const confine = createSeatbelt(request, { program, privateFolder, tools });
  const problem = await probe(confine, request, dirname(privateFolder));
  if (problem !== null)
    return {
      ok: false,
      problem: `the sandbox does not work here (${problem})`,
      fix: 'Run without a sandbox (--sandbox off); --approval mutating asks before every change.',
    };
  return { ok: true, version: release(), confine, detail: 'Seatbelt, no network, files by a list', tools };
}

interface Places {
  readonly program: string;
  readonly privateFolder: string;
  readonly tools: readonly string[];
}

/** Wraps commands so that the kernel confines them, as `createConfine` of bubblewrap does. The home directory inside and
 * the temporary folder are private to the sandbox and stay until our process ends. */
function createSeatbelt(request: SandboxRequest, { program, privateFolder, tools }: Places): Confine {
  const [home, temporary] = [join(privateFolder, 'home'), join(privateFolder, 'tmp')];
  const scans = new Map<string, () => Guards>();
  const guardsIn = (workspace: string): Guards => {
    const scan = scans.get(workspace) ?? createGuardScan({ workspace, isSecret: request.isSecret });
    scans.set(workspace, scan);
    return scan();
  };
  const limits = `${limitLines(request.limits ?? usualLimits)}exec "$@"`;
  return (command, sandbox) => {
    for (const folder of [home, temporary]) mkdirSync(folder, { recursive: true, mode: 0o700 });
    const directories = mountedDirectories(request).map((one) => ({ ...one, guards: guardsIn(one.path) }));
    const shown = [...macFolders, ...tools, privateFolder, ...directories.map(({ path }) => path)];
    if (!shown.some((folder) => isWithin(command.cwd, folder)))
      throw new Error(`${command.cwd} is hidden in the sandbox, which shows the workspace ${request.workspace}`);
    const shows = [...(command.file.startsWith('/') ? [command.file] : []), ...(command.shows ?? [])];
    const profile = seatbeltProfile({ sandbox, directories, tools, shows, privateFolder });
    return {
      file: program,
      args: ['-p', profile, '/bin/sh', '-c', limits, 'sh', command.file, ...command.args],
      cwd: command.cwd,
      env: sandboxEnvironment(command.env, home, request.passes, temporary),
    };
  };
}

/** Tries what a confined command may not do, and what it must be able to do. Returns the first problem, or null. */
async function probe(
  confine: Confine,
  { sandbox, workspace, env }: SandboxRequest,
  outside: string,
): Promise<string | null> {
  const trap = mkdtempSync(join(outside, 'agent-probe-'));
  writeFileSync(join(trap, 'secret'), 'secret\n');
  const script = `cat "$1/secret" 2>/dev/null && echo 'open: a file outside could be read'
(: >"$1/made") 2>/dev/null && echo 'open: a file outside could be written'
(: >"$TMPDIR/made") 2>&1 && rm -f "$TMPDIR/made" && echo works`;
  const processes = createProcessRunner({ marker: { name: 'AGENT_PROBE', value: String(process.pid) }, confine });
  let text = '';
  try {
    const result = await processes.run({
      file: '/bin/sh',
      args: ['-c', script, 'sh', trap],
      cwd: workspace,
      env: { PATH: env.PATH ?? '/usr/bin:/bin' },
      sandbox,
      signal: new AbortController().signal,
      timeoutMs: probeTimeoutMs,
      maxTotalBytes: 65_536,
      onOutput: (chunk) => {
        text += chunk.toString('utf8');
      },
    });
    if (result.ended === 'not_started') return `${usualProgram}: ${result.error}`;
    const open = /^open: (.*)$/m.exec(text)?.[1];
    if (open !== undefined) return open;
    return /^works$/m.test(text) ? null : (text.trim().split('\n').at(-1)?.slice(0, 200) ?? 'a command cannot start');
  } finally {
    rmSync(trap, { recursive: true, force: true });
  }
}
