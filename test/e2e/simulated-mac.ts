import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { binary, place, type Finished, type Place } from './program.js';

// macOS as far as Linux can show it: Node reports `darwin`, /proc is empty, neither bubblewrap nor setsid is there, and
// ps, sysctl and ioreg print what those of macOS print. It shows neither APFS nor bash 3.2 nor real programs of macOS.

const doubles = fileURLToPath(new URL('mac', import.meta.url));

/** Why there is no simulation here; empty where there is one. */
export const missing =
  spawnSync('unshare', ['--mount', '--uts', 'mount', '-t', 'tmpfs', 'nothing', '/proc']).status === 0
    ? ''
    : 'macOS is not simulated: unshare(1) may not make a mount namespace here';

const absent = new Set(['bwrap', 'setsid', 'xclip', 'wl-paste', 'notify-send', 'xdg-open', 'secret-tool']);

export interface Mac extends Place {
  /** The arguments that start the program there, after `unshare`. */
  command(args: readonly string[]): readonly string[];
  /** Makes a double of a program of macOS. */
  double(name: string, script: string): void;
  /** A program that is no part of the system, so that its environment is shown. */
  readonly ownSleep: string;
  /** Gives the machine another boot. */
  reboot(uuid: string): void;
}

export function mac(files: Readonly<Record<string, string>> = {}): Mac {
  const at = place(files);
  const root = dirname(at.work);
  const [bin, hidden, boot] = [join(root, 'bin'), join(root, 'kernel'), join(root, 'boot')];
  for (const folder of [bin, hidden, join(root, 'opt')]) mkdirSync(folder);
  const seen = new Set<string>(absent);
  const double = (name: string, script: string): void => {
    seen.add(name);
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(bin, name), 0o755);
  };
  double('ps', `exec ${process.execPath} ${join(doubles, 'ps.mjs')} ${hidden} "$@"`);
  double('sysctl', `exec ${process.execPath} ${join(doubles, 'sysctl.mjs')} ${boot} "$@"`);
  double('ioreg', `[ "$*" = '-rd1 -c IOPlatformExpertDevice' ] && exec cat ${join(doubles, 'ioreg.txt')}`);
  for (const folder of ['/usr/local/bin', '/usr/bin', '/usr/local/sbin', '/usr/sbin'])
    for (const name of readdirSync(folder)) {
      if (seen.has(name)) continue;
      seen.add(name);
      symlinkSync(join(folder, name), join(bin, name));
    }
  const ownSleep = join(root, 'opt', 'own-sleep');
  copyFileSync('/usr/bin/sleep', ownSleep);
  const reboot = (uuid: string): void => {
    writeFileSync(boot, `${uuid}\n`);
  };
  reboot('0E2A9F3C-5B1D-4C77-8E1B-3A6D5C4B2A10');
  return {
    ...at,
    env: { ...at.env, PATH: bin },
    ownSleep,
    double,
    reboot,
    command: (args) => [
      ...['--mount', '--uts', 'sh', join(doubles, 'enter.sh'), hidden],
      ...[process.execPath, '--import', join(doubles, 'platform.mjs'), binary, ...args],
    ],
  };
}

/** Starts the program without input; its process id is that of the child. */
export function startOnMac(at: Mac, args: readonly string[], env: Readonly<Record<string, string>> = {}): ChildProcess {
  return spawn('/usr/bin/unshare', at.command(args), {
    cwd: at.work,
    env: { ...at.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/** Runs the program to its end, without input. */
export async function agentOnMac(
  at: Mac,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Finished> {
  const child = startOnMac(at, args, env);
  let [stdout, stderr] = ['', ''];
  child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  return await new Promise((resolve) => {
    child.on('close', (code, signal) => {
      resolve({ code, signal, stdout, stderr });
    });
  });
}
