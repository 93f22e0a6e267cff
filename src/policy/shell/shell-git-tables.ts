/** Subcommands of git that read, and the operands and options with which they still only read. */
export const gitReaders: ReadonlySet<string> = new Set([
  'status', 'log', 'diff', 'show', 'blame', 'annotate', 'shortlog', 'rev-parse', 'rev-list', 'describe', 'ls-files', 'ls-tree', 'name-rev', 'merge-base', 'show-ref', 'for-each-ref', 'count-objects', 'diff-tree', 'diff-index', 'diff-files',
  'whatchanged', 'cherry', 'range-diff', 'var', 'version', 'check-ignore', 'check-attr', 'check-ref-format', 'check-mailmap', 'cat-file', 'grep', 'show-branch', 'verify-pack', 'patch-id', 'fsck', 'stripspace', 'column',
]);

/** Options that make a reading subcommand run a program. */
export const gitRunning: readonly string[] = ['--ext-diff', '--open-files-in-pager', '--upload-pack', '--receive-pack', '--exec', '--textconv', '--filters', '--show-signature', '--receive-pack', '--contents'];

/** Configuration keys that `git -c` and `git config` may set without choosing a program, a server or a file. */
export const harmlessKeys = /^(?:color\.|column\.|user\.(?:name|email)$|init\.defaultbranch$|core\.(?:quotepath|autocrlf|eol|safecrlf|ignorecase|filemode|abbrev|compression|precomposeunicode|whitespace|longpaths|commentchar|untrackedcache)$|advice\.|log\.(?:date|decorate|abbrevcommit|follow)|diff\.(?:renames|renamelimit|context|algorithm|mnemonicprefix|noprefix|colormoved\w*|wserrorhighlight|submodule|indentheuristic)$|status\.|commit\.(?:gpgsign|verbose|cleanup)$|tag\.(?:gpgsign|sort)$|pull\.(?:rebase|ff)$|push\.(?:default|autosetupremote|followtags)$|fetch\.prune\w*$|rebase\.(?:autostash|autosquash|updaterefs)$|merge\.(?:ff|conflictstyle|renamelimit)$|branch\.[^.]+\.(?:merge|rebase|description)$|branch\.(?:sort|autosetuprebase|autosetupmerge)$|gc\.auto$|rerere\.enabled$|blame\.|grep\.(?:linenumber|patterntype|extendedregexp|column|threads)$|safe\.dummy$|versionsort\.|help\.autocorrect$)/i;

/** `git -c` settings that switch a program off. */
export const disarming = /^(?:core\.pager=(?:cat)?|pager\.\w+=(?:false|cat|0)|core\.fsmonitor=(?:false|0)|core\.hookspath=\/dev\/null|core\.editor=(?:true|:)|sequence\.editor=(?:true|:)|protocol\.ext\.allow=never|protocol\.allow=never|diff\.external=|core\.sshcommand=|credential\.helper=|commit\.gpgsign=(?:false|0)|core\.attributesfile=\/dev\/null)$/i;

/** Subcommands that send, rewrite or throw away what cannot be got back, whatever follows. */
export const gitDangerous: Readonly<Record<string, string>> = {
  'filter-branch': 'rewrites history', 'filter-repo': 'rewrites history', 'send-email': 'sends mail', 'daemon': 'serves the repository', 'instaweb': 'serves the repository', 'http-backend': 'serves the repository', 'shell': 'is a login shell',
  'upload-pack': 'serves the repository', 'receive-pack': 'serves the repository', 'upload-archive': 'serves the repository', 'update-server-info': 'serves the repository',
  'prune': 'drops objects', 'update-ref': 'moves references', 'symbolic-ref': 'moves references', 'replace': 'replaces objects', 'http-push': 'pushes', 'imap-send': 'sends mail', 'request-pull': 'runs a pager', 'p4': 'talks to a server', 'svn': 'talks to a server', 'cvsserver': 'serves the repository',
  'gui': 'opens a program', 'citool': 'opens a program', 'difftool': 'runs another program', 'mergetool': 'runs another program', 'web--browse': 'opens a program', 'remote-ext': 'runs a program', 'remote-fd': 'runs a program', 'sh-i18n': 'is part of a shell', 'maintenance': 'schedules work', 'cvsexportcommit': 'talks to a server', 'cvsimport': 'talks to a server', 'fast-import': 'rewrites history', 'scalar': 'schedules work',
};
