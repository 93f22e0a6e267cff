import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

/** Whether bubblewrap and strace are here and may do their work. */
export function canTrace(): boolean {
  if (!existsSync('/usr/bin/bwrap') || !existsSync('/usr/bin/strace')) return false;
  try {
    return tracePrograms(['ls'])[0]?.has('ls') === true;
  } catch {
    return false;
  }
}

/** Runs each file of /commands with bash, each in an empty folder of its own, and writes what was executed to
 * /traces. */
const runner = `
for file in /commands/*; do
  name=\${file##*/}
  mkdir "/tmp/$name" && cd "/tmp/$name" || exit 1
  printf 'alpha beta\\ngamma\\n' > a.txt
  timeout -k 1 10 strace -ff -qq -s 4096 -e trace=execve,execveat -e signal=none -o "/traces/$name" bash -c "$(cat "$file"; printf x)" </dev/null >/dev/null 2>&1
done
`;

/** The programs that each command line executes: base names, bash itself left out. In a sandbox without network,
 * without capabilities and with nothing writable but folders in memory: the lines are never run anywhere else. */
export function tracePrograms(commands: readonly string[]): readonly ReadonlySet<string>[] {
  const root = mkdtempSync(join(tmpdir(), 'agent-traced-'));
  try {
    for (const folder of ['commands', 'traces']) mkdirSync(join(root, folder));
    const nameOf = (index: number): string => String(index).padStart(6, '0');
    commands.forEach((command, index) => {
      writeFileSync(join(root, 'commands', nameOf(index)), `${command}\n: `);
    });
    writeFileSync(join(root, 'run'), runner);
    const { status, stderr } = spawnSync(
      '/usr/bin/bwrap',
      [
        '--unshare-all',
        '--unshare-user',
        '--cap-drop',
        'ALL',
        '--new-session',
        '--die-with-parent',
        '--clearenv',
        '--setenv',
        'PATH',
        '/usr/bin:/bin',
        '--setenv',
        'HOME',
        '/tmp',
        '--setenv',
        'LANG',
        'C.UTF-8',
        '--ro-bind',
        '/usr',
        '/usr',
        '--symlink',
        'usr/bin',
        '/bin',
        '--symlink',
        'usr/lib',
        '/lib',
        '--symlink',
        'usr/lib64',
        '/lib64',
        '--symlink',
        'usr/sbin',
        '/sbin',
        '--ro-bind-try',
        '/etc/alternatives',
        '/etc/alternatives',
        '--ro-bind-try',
        '/etc/ld.so.cache',
        '/etc/ld.so.cache',
        '--ro-bind-try',
        '/etc/passwd',
        '/etc/passwd',
        '--proc',
        '/proc',
        '--dev',
        '/dev',
        '--tmpfs',
        '/tmp',
        '--ro-bind',
        join(root, 'commands'),
        '/commands',
        '--ro-bind',
        join(root, 'run'),
        '/run-all',
        '--bind',
        join(root, 'traces'),
        '/traces',
        '--chdir',
        '/tmp',
        '--',
        '/usr/bin/bash',
        '/run-all',
      ],
      { encoding: 'utf8', maxBuffer: 1024 * 1024 },
    );
    if (status !== 0) throw new Error(`the sandbox ended with ${String(status)}: ${stderr}`);
    const executed = commands.map(() => new Set<string>());
    for (const file of readdirSync(join(root, 'traces'))) {
      const index = Number(file.slice(0, 6));
      for (const program of programsOf(readFileSync(join(root, 'traces', file), 'utf8'))) executed[index]?.add(program);
    }
    return executed;
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** Successful calls alone; what was looked for along PATH in vain ran nothing. */
function programsOf(trace: string): readonly string[] {
  return [...trace.matchAll(/^execve(?:at)?\((?:[^"]*, )?"((?:[^"\\]|\\.)*)".* = 0$/gm)]
    .map((match) => basename(match[1] ?? ''))
    .filter((name) => name !== 'bash');
}
