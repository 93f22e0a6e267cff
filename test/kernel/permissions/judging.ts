import { readFileSync } from 'node:fs';
import settings from '../../../config/config.schema.json' with { type: 'json' };
import { createProtectedPaths, createSecretPaths } from '../../../src/kernel/permissions/guarded-paths.js';
import type { Risk } from '../../../src/kernel/core/tool.js';
import { listedCommand } from '../../../src/kernel/permissions/shell/listed-commands.js';
import { classifyShell } from '../../../src/kernel/permissions/shell/verdict.js';
import type { ShellContext } from '../../../src/kernel/permissions/shell/invocation.js';

const home = '/home/user';
const workspace = '/home/user/project';

/** The globs that the program starts with. */
export const defaultDeny: readonly string[] = settings.properties.fs.properties.deny.default;

/** A context without a machine behind it: nothing in these tests runs or reads a file. */
export const context: ShellContext = {
  home,
  cwd: workspace,
  workspace,
  secrets: createSecretPaths(defaultDeny, home),
  isProtected: createProtectedPaths({
    home,
    workspace,
    ownPaths: ['/home/user/.config/agent', '/home/user/.local/share/agent', '/home/user/.local/state/agent'],
  }),
};

/** Judges a command by its text alone: the machine may have more against a command of the short list. */
export function riskOf(command: string): Risk {
  if (classifyShell(command, context).findings.length > 0) return 'dangerous';
  return listedCommand(command) === null ? 'mutating' : 'read-only';
}

/** Whether one of the verdicts of a corpus allows this. A reader that is not on the short list is rehearsed, so it may
 * be called mutating. */
export function isAcceptable(risk: Risk, accept: readonly string[]): boolean {
  const isHarmless = accept.includes('safe-read-only');
  if (risk === 'read-only') return isHarmless;
  return accept.includes(risk) || (risk === 'mutating' && isHarmless);
}

/** How many of `commands` are called what, and those not called `wanted`, for the message of a failed test. */
export function tally(
  commands: readonly string[],
  wanted: Risk,
): { readonly counts: Readonly<Record<Risk, number>>; readonly others: readonly string[] } {
  const counts: Record<Risk, number> = { 'read-only': 0, mutating: 0, dangerous: 0 };
  const others: string[] = [];
  for (const command of commands) {
    const risk = riskOf(command);
    counts[risk]++;
    if (risk !== wanted) others.push(`${risk}: ${command}`);
  }
  return { counts, others };
}

/** Reads a file of `fixtures/security`. */
export function readFixture(name: string): unknown {
  return JSON.parse(readFileSync(new URL(`../../../fixtures/security/${name}`, import.meta.url), 'utf8'));
}
