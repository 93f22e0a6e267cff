import { compileGlobs } from './globs.js';
import type { PathFacts } from './facts.js';
import { isInside } from './paths.js';

/** Files that some program runs or obeys without being asked; a write to one asks in every mode. Source: contracts 8, issue of trust, item 4. */
const anywhere: readonly string[] = [
  '.agent/**',
  '.git/hooks/**', '.git/{config,config.worktree,index.lock,HEAD}', '.git/info/**', '.git/modules/**/{config,hooks/**}', '.git/worktrees/**', '.git/objects/info/**', '.{husky,githooks}/**', '.pre-commit-config.yaml', 'lefthook.{yml,yaml}', '.git',
  '.vscode/**', '*.code-workspace', '.idea/**', '.zed/**', '.fleet/**', '.devcontainer/**', '.devcontainer.json',
  '.{claude,cursor,codex,gemini,windsurf,continue,roo,cline,opencode,kiro,junie,goose,amp,qwen,augment,trae}/**', '.{mcp,claude}.json', 'mcp.json', '.aider.conf.yml', '.clinerules/**', '.{cursorrules,windsurfrules}', '.config/{goose,opencode,claude,zed,Code,Cursor}/**',
  '.envrc', '.{exrc,nvimrc,vimrc,lvimrc,nvim.lua,dir-locals.el,gvimrc,ideavimrc}', '.{vim,emacs.d,doom.d}/**', '.emacs', '.config/{nvim,emacs,helix,kitty,alacritty,tmux}/**',
  '.github/{workflows,actions}/**', '.{gitea,forgejo}/workflows/**', '.gitlab-ci.yml', '.circleci/**', '.buildkite/**', '.{travis,drone,appveyor,cirrus}.yml', '.woodpecker/**', '.woodpecker.yml', '{azure-pipelines,bitbucket-pipelines}.{yml,yaml}', 'Jenkinsfile',
  '.{bashrc,bash_profile,bash_login,bash_logout,bash_aliases,profile,zshrc,zshenv,zprofile,zlogin,zlogout,kshrc,cshrc,tcshrc,login,inputrc}', '.config/fish/**', '.bashrc.d/**', '.oh-my-zsh/**', '.zsh/**',
  '.{xinitrc,xprofile,xsession,xsessionrc,xserverrc,pam_environment,tmux.conf,screenrc,Xresources}', '.config/{autostart,systemd,environment.d,git,pip,npm,uv,i3,sway,hypr,xdg-terminals.list}/**', '.local/share/{systemd,applications,dbus-1}/**',
  '.ssh/**', '.gnupg/**', '.gitconfig', '.{npmrc,yarnrc,yarnrc.yml,pip/pip.conf,pypirc,gemrc,curlrc,wgetrc,netrc,condarc,bunfig.toml}', '.pnpmrc', '.cargo/**', '.m2/settings.xml', '.gradle/init.gradle', '.gradle/init.d/**', '.docker/**', '.kube/**', '.aws/**', '.rustup/**', '.nvm/**', '.pyenv/**', '.asdf/**', '.gem/**',
  '.{Rprofile,irbrc,pryrc,gdbinit,lldbinit,pythonrc,pythonrc.py,psqlrc,sqliterc,perltidyrc,pdbrc,nanorc,lesskey,lessfilter,guile,ghci,dbshell}', '{sitecustomize,usercustomize}.py', 'site-packages/*.pth', 'conftest.pth',
];

const underHome: readonly string[] = [
  '~/.config/agent/**', '~/.local/share/agent/**', '~/.local/state/agent/**', '~/.cache/agent/**', '~/.local/{bin,lib}/**', '~/bin/**', '~/go/bin/**', '~/.config/{bash,zsh}/**', '~/Library/Launch{Agents,Daemons}/**',
];

const system: readonly string[] = [
  '/{etc,usr,bin,sbin,lib,lib32,lib64,boot,dev,proc,sys,run,System,Library,Applications,opt}/**', '/var/{spool,lib,log,cache,run,www,mail}/**',
  '!/dev/{null,stdout,stderr,tty,zero,full}', '!/dev/{fd,shm}/**', '!/proc/self/fd/*',
];

/** True for an absolute path, links resolved, that must not be written without a yes. Compared without case. */
export type ProtectedPaths = (path: string) => boolean;

/** Names count below the workspace, so that a workspace which itself lies in `/opt` or `.config` is not protected as a whole. */
export function createProtectedPaths(facts: Pick<PathFacts, 'home' | 'ownPaths' | 'workspace'>): ProtectedPaths {
  const byName = compileGlobs(anywhere, facts.home);
  const own = compileGlobs(facts.ownPaths.flatMap((path) => [path, `${path}/**`]), facts.home);
  const outer = [compileGlobs(underHome, facts.home), compileGlobs(system, facts.home)].filter((test) => !test(facts.workspace));
  return (path) => {
    const inside = isInside(path, facts.workspace);
    return own(path) || byName(inside ? path.slice(facts.workspace === '/' ? 0 : facts.workspace.length) : path) || outer.some((test) => test(path));
  };
}
