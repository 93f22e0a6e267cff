import type { Sandbox } from '../core/tool.js';
import type { PathFacts } from './facts.js';
import { isInside, normalise } from './paths.js';
import type { ProtectedPaths } from './protected-paths.js';
import type { SecretPaths } from './secret-paths.js';

/** One path of a file tool, and what stands against touching it. */
export interface FileJudgement {
  /** Absolute, links resolved; the plain spelling where the kernel could not be asked. */
  readonly path: string;
  readonly guard: string | null;
  readonly inside: boolean;
}

export interface FileRules {
  readonly facts: PathFacts;
  readonly secrets: SecretPaths;
  readonly isProtected: ProtectedPaths;
  readonly sandbox: Sandbox;
}

/** Judges the path that a tool was given by where the kernel would land, and also by its own spelling, so that neither
 * a link nor a name hides the other. */
export async function judgeFile(text: string, cwd: string, writes: boolean, rules: FileRules): Promise<FileJudgement> {
  const { facts } = rules;
  const asked = text.startsWith('/') ? text : `${cwd}/${text}`;
  const spelled = normalise(asked);
  const landed = await facts.landing(asked);
  const path = landed === null ? spelled : normalise(landed);
  return {
    path,
    guard: guardOf(path === spelled ? [path] : [path, spelled], writes, rules),
    inside: landed !== null && isInside(path, facts.workspace),
  };
}

function guardOf(paths: readonly string[], writes: boolean, rules: FileRules): string | null {
  const secret = paths.find((path) => rules.secrets.matches(path));
  if (secret !== undefined) return `${secret} holds secrets`;
  const guarded = writes ? paths.find((path) => rules.isProtected(path)) : undefined;
  return guarded === undefined ? null : `${guarded} decides what other programs run`;
}
