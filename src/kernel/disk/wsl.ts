import { release } from 'node:os';

/** Returns true in the Windows Subsystem for Linux. Its kernel is called `5.15.90.1-microsoft-standard-WSL2`. */
export function isWsl(env: Readonly<Record<string, string | undefined>>, kernel: string = release()): boolean {
  return env['WSL_DISTRO_NAME'] !== undefined || /microsoft/i.test(kernel);
}
