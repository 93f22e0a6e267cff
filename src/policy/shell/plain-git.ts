import type { PathFacts } from '../facts.js';
import { normalise } from '../paths.js';

const maxBytes = 65_536;
/** Settings by which even `git status` and `git log` start a program or take over more settings. */
const naming = /^\s*(?:fsmonitor|pager|editor|sshcommand|hookspath|askpass|external|textconv|command|driver|clean|smudge|process|program|path|helper|difftool|mergetool|cmd|worktreeconfig|gitproxy|uploadpack|attributesfile|excludesfile|abbrevguard|orderfile|diffcommand|showsignature)\s*=?|^\s*(?:push)?url\s*=\s*"?\s*(?:ext|fd)::|^\s*\[\s*(?:include|includeif|alias|pager|filter|diff\s|gpg|url)/im;

/** True where the configuration of the repository around `cwd` names no program that a reading git command would run: none at all, or
 *  a small plain one. A configuration that cannot be read counts as naming one. */
export async function hasPlainGit(cwd: string, facts: PathFacts): Promise<boolean> {
  for (let folder = cwd, depth = 0; depth < 64; depth++) {
    const config = await facts.readText(`${folder === '/' ? '' : folder}/.git/config`, maxBytes);
    if (config !== null) return config.length < maxBytes && !naming.test(config);
    const pointer = await facts.readText(`${folder === '/' ? '' : folder}/.git`, 4096);
    if (pointer !== null) return plainWorktree(folder, pointer, facts);
    if (folder === '/') return true;
    folder = folder.slice(0, Math.max(1, folder.lastIndexOf('/')));
  }
  return false;
}

async function plainWorktree(folder: string, pointer: string, facts: PathFacts): Promise<boolean> {
  const directory = /^gitdir:\s*(.+?)\s*$/m.exec(pointer)?.[1];
  if (directory === undefined) return false;
  const place = normalise(directory.startsWith('/') ? directory : `${folder}/${directory}`);
  const common = (await facts.readText(`${place}/commondir`, 4096))?.trim() ?? '.';
  const config = await facts.readText(normalise(common.startsWith('/') ? `${common}/config` : `${place}/${common}/config`), maxBytes);
  return config !== null && config.length < maxBytes && !naming.test(config);
}
