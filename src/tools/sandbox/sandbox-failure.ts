import { readFileSync } from 'node:fs';

/** Why there is no sandbox, and the one step that brings it. */
export interface SandboxFailure {
  readonly ok: false;
  readonly problem: string;
  readonly fix: string;
}

const elsewhere = 'Run outside of this container, or without a sandbox (--sandbox off).';

/** What a machine without bubblewrap needs. */
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
    fix: 'Run without it (--sandbox off); --approval mutating asks before everything that changes something.',
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

/** What stands behind a profile that did not hold. `complaint`: what bubblewrap printed; `isRoot`: whether we run as
 * root. */
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
    return 'AppArmor keeps bwrap from making namespaces: install its profile (apt-get install apparmor-profiles), or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0';
  }
  if (isRoot && /uid map/.test(complaint))
    return 'Run as an ordinary user: this container keeps root from mapping users.';
  if (isRoot && /could write \/(?:proc|sys)\//.test(complaint)) {
    return 'Run as an ordinary user: as root the settings of the kernel stay open here.';
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
