import { isInWorkspace, resolvePath, type Workspace } from './guarded-paths.js';

/** Options by which programs run something else than their words say, or work in another place. GNU-like programs take
 * a beginning of them, so a beginning counts. */
const reaching: readonly string[] = [
  '--script-shell',
  '--node-options',
  '--shell',
  '--exec',
  '--exec-path',
  '--config-env',
  '--userconfig',
  '--globalconfig',
  '--init-module',
  '--init-author-name',
  '--onload-script',
  '--viewer',
  '--editor',
  '--manifest-path',
  '--target-dir',
  '--git-dir',
  '--work-tree',
  '--toolexec',
  '--overlay',
  '--rustc-wrapper',
  '--upload-pack',
  '--receive-pack',
  '--rsh',
  '--use-compress-program',
  '--to-command',
];
const shortest = 6;

/** Returns the first word that an allow rule for the leading words of a command does not cover: an option that has the
 * program run something else, or a path outside of the workspace. Null: the rule covers all of them. `argv` are the
 * words behind those of the rule; `/dev/null` is nowhere. */
export function reachingWord(
  argv: readonly string[],
  place: Workspace & { readonly cwd: string; readonly home: string },
): string | null {
  const isOutside = (text: string): boolean =>
    /^(?:~|\/|\.\.?(?:\/|$))|\/\.\.(?:\/|$)/.test(text) &&
    text !== '/dev/null' &&
    !isInWorkspace(resolvePath(place.cwd, text, place.home), place);
  return argv.find((word) => isReaching(word) || valuesIn(word).some(isOutside)) ?? null;
}

function isReaching(word: string): boolean {
  if (/^-(?:toolexec|overlay|exec)(?:=|$)/.test(word)) return true;
  const name = word.replace(/=.*$/s, '').toLowerCase();
  return name.startsWith('--') && name.length >= shortest && reaching.some((option) => option.startsWith(name));
}

/** Returns a word, the part behind its `=`, and the part that is attached to an option letter: `-C../x`. */
function valuesIn(word: string): readonly string[] {
  const behind = word.includes('=') ? [word.slice(word.indexOf('=') + 1)] : [];
  return [word, ...behind, ...(/^-[A-Za-z]./.test(word) ? [word.slice(2)] : [])];
}
