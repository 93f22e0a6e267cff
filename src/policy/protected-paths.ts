import { obeyedInProjects, obeyedInRepositories, type Obeyed } from '../core/obeyed-files.js';
import { compileGlobs } from './globs.js';
import type { PathFacts } from './facts.js';
import { isInside } from './paths.js';

const glob = ({ path }: Obeyed): string => (path.endsWith('/') ? `${path}**` : path);

/** Files that some program runs or obeys without being asked; a write to one asks in every mode. What programs obey in
 * a project is listed once, for all who have to know; here are what else no file tool has to write in a repository, and
 * what programs obey in a home directory, wherever that lies. Source: contracts 8. */
const anywhere: readonly string[] = [
  ...obeyedInProjects.map(glob),
  ...obeyedInRepositories.flatMap((item) => [`.git/${glob(item)}`, `.git/modules/**/${glob(item)}`]),
  '.git',
  '.git/{index.lock,HEAD}',
  '.git/info/**',
  '.git/worktrees/**',
  '.git/objects/info/**',
  '.config/{goose,opencode,claude,zed,Code,Cursor}/**',
  '.{gvimrc,ideavimrc}',
  '.{vim,emacs.d,doom.d}/**',
  '.emacs',
  '.config/{nvim,emacs,helix,kitty,alacritty,tmux}/**',
  '.{bashrc,bash_profile,bash_login,bash_logout,bash_aliases,profile,zshrc,zshenv,zprofile,zlogin,zlogout,kshrc,cshrc,tcshrc,login,inputrc}',
  '.config/fish/**',
  '.bashrc.d/**',
  '.oh-my-zsh/**',
  '.zsh/**',
  '.{xinitrc,xprofile,xsession,xsessionrc,xserverrc,pam_environment,tmux.conf,screenrc,Xresources}',
  '.config/{autostart,systemd,environment.d,git,pip,npm,uv,i3,sway,hypr,xdg-terminals.list}/**',
  '.local/share/{systemd,applications,dbus-1}/**',
  '.ssh/**',
  '.gnupg/**',
  '.gitconfig',
  '.{pip/pip.conf,pypirc,gemrc,curlrc,wgetrc,netrc,condarc}',
  '.cargo/**',
  '.m2/settings.xml',
  '.gradle/init.gradle',
  '.gradle/init.d/**',
  '.docker/**',
  '.kube/**',
  '.aws/**',
  '.rustup/**',
  '.nvm/**',
  '.pyenv/**',
  '.asdf/**',
  '.gem/**',
  '.{Rprofile,irbrc,pryrc,pythonrc,pythonrc.py,psqlrc,sqliterc,perltidyrc,pdbrc,nanorc,lesskey,lessfilter,guile,ghci,dbshell}',
];

const underHome: readonly string[] = [
  '~/.config/agent/**',
  '~/.local/share/agent/**',
  '~/.local/state/agent/**',
  '~/.cache/agent/**',
  '~/.local/{bin,lib}/**',
  '~/bin/**',
  '~/go/bin/**',
  '~/.config/{bash,zsh}/**',
  '~/Library/Launch{Agents,Daemons}/**',
];

const system: readonly string[] = [
  '/{etc,usr,bin,sbin,lib,lib32,lib64,boot,dev,proc,sys,run,System,Library,Applications,opt}/**',
  '/var/{spool,lib,log,cache,run,www,mail}/**',
  '!/dev/{null,stdout,stderr,tty,zero,full}',
  '!/dev/{fd,shm}/**',
  '!/proc/self/fd/*',
];

/** True for an absolute path, links resolved, that must not be written without a yes. Compared without case. */
export type ProtectedPaths = (path: string) => boolean;

/** Names count below the workspace, so that a workspace which itself lies in `/opt` or `.config` is not protected as a
 * whole. */
export function createProtectedPaths(facts: Pick<PathFacts, 'home' | 'ownPaths' | 'workspace'>): ProtectedPaths {
  const byName = compileGlobs(anywhere, facts.home);
  const own = compileGlobs(
    facts.ownPaths.flatMap((path) => [path, `${path}/**`]),
    facts.home,
  );
  const outer = [compileGlobs(underHome, facts.home), compileGlobs(system, facts.home)].filter(
    (test) => !test(facts.workspace),
  );
  return (path) => {
    const inside = isInside(path, facts.workspace);
    return (
      own(path) ||
      byName(inside ? path.slice(facts.workspace === '/' ? 0 : facts.workspace.length) : path) ||
      outer.some((test) => test(path))
    );
  };
}
