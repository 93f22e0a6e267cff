import { relative } from 'node:path';
import { readFrontMatter } from '../../kernel/config/front-matter.js';
import { parseGlobPattern } from '../../kernel/tools/search/glob-pattern.js';
import type { Candidate } from './instruction-places.js';

/** When the model gets a file of instructions. */
export type Timing =
  | { readonly kind: 'always' }
  /** The model gets it with the first file that fits. `fits` takes an absolute path. */
  | { readonly kind: 'files'; readonly globs: readonly string[]; readonly fits: (path: string) => boolean }
  /** The model reads the file if the description fits its task; '' for a rule that only the user names. */
  | { readonly kind: 'described'; readonly description: string }
  /** `reason`: why the file cannot be used. */
  | { readonly kind: 'never'; readonly reason: string };

const always: Timing = { kind: 'always' };

/** Splits a rule into its text and when it counts. Source: code.claude.com/docs/en/memory, "Path-specific rules";
 * cursor.com/docs/context/rules, "Rule anatomy" (2026-11-28). */
export function readRule(
  text: string,
  { form, base }: Pick<Candidate, 'form' | 'base'>,
): { readonly text: string; readonly timing: Timing } {
  if (form === 'text' || form === 'importing') return { text, timing: always };
  const { fields, body } = readFrontMatter(text);
  if (form === 'claude-rule') return { text: body, timing: timingOf(fields.get('paths') ?? '', base) ?? always };
  if (fields.get('alwaysApply')?.toLowerCase() === 'true') return { text: body, timing: always };
  const description = fields.get('description') ?? '';
  return {
    text: body,
    timing: timingOf(fields.get('globs') ?? '', base) ?? { kind: 'described', description },
  };
}

/** Returns null for a rule without globs. */
function timingOf(written: string, base: string): Timing | null {
  const globs = splitGlobs(written);
  if (globs.length === 0) return null;
  if (globs.every((glob) => /^(?:\*\*?|\*\*\/\*)$/.test(glob))) return always;
  const takes = globs.filter((glob) => !glob.startsWith('!')).map(matcherOf);
  const leaves = globs.filter((glob) => glob.startsWith('!')).map((glob) => matcherOf(glob.slice(1)));
  const readable = takes.filter((matches) => matches !== null);
  if (readable.length === 0) return { kind: 'never', reason: `its globs cannot be read: ${globs.join(', ')}` };
  return {
    kind: 'files',
    globs,
    fits: (path) => {
      const inner = relative(base, path);
      if (inner === '' || inner.startsWith('../')) return false;
      return readable.some((matches) => matches(inner)) && !leaves.some((matches) => matches?.(inner) === true);
    },
  };
}

/** Splits a list at the commas outside of braces, and takes off quotes. */
export function splitGlobs(written: string): readonly string[] {
  const globs: string[] = [];
  let depth = 0;
  let glob = '';
  for (const char of written) {
    if (char === '{') depth++;
    if (char === '}') depth = Math.max(0, depth - 1);
    if (char === ',' && depth === 0) {
      globs.push(glob);
      glob = '';
    } else if (depth === 0 || char !== ' ') glob += char;
  }
  return [...globs, glob].map((each) => each.trim().replaceAll(/^["'`]+|["'`]+$/g, '')).filter((each) => each !== '');
}

/** Matches as a line of an ignore file does: a name without a slash at any depth, and a folder with all that is in it.
 * Returns null for a glob that cannot be read. */
function matcherOf(glob: string): ((path: string) => boolean) | null {
  const plain = glob.replace(/^(?:\.?\/)+/, '');
  const isAnchored = plain !== glob || plain.replace(/\/$/, '').includes('/');
  const whole = isAnchored ? plain : `**/${plain}`;
  const inside = `${whole.replace(/\/$/, '')}/**`;
  const compiled = (whole.endsWith('/') ? [inside] : [whole, inside]).flatMap((pattern) => {
    const parsed = parseGlobPattern(pattern, '/');
    return 'matches' in parsed ? [parsed] : [];
  });
  return compiled.length === 0 ? null : (path) => compiled.some((each) => each.matches(path));
}
