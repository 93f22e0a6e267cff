/** What a confined command gets to see of our environment: where things are, in which language, and what keeps programs from asking. Everything else,
 *  keys, tokens and sockets above all, stays outside because nobody named it. */
const kept = new Set([
  'PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LANGUAGE', 'TZ', 'TERM', 'COLUMNS', 'LINES', 'NO_COLOR', 'FORCE_COLOR', 'CLICOLOR', 'CI', 'SOURCE_DATE_EPOCH', 'MAKEFLAGS',
  'PAGER', 'MANPAGER', 'GIT_PAGER', 'SYSTEMD_PAGER', 'GH_PAGER', 'LESS', 'GIT_TERMINAL_PROMPT', 'GIT_EDITOR', 'GIT_SEQUENCE_EDITOR', 'EDITOR', 'VISUAL',
  'SSH_ASKPASS', 'SUDO_ASKPASS', 'GIT_ASKPASS', 'GCM_INTERACTIVE', 'DEBIAN_FRONTEND', 'PIP_NO_INPUT',
  'NODE_ENV', 'NVM_DIR', 'NVM_BIN', 'VOLTA_HOME', 'BUN_INSTALL', 'GOPATH', 'GOROOT', 'GOFLAGS', 'CARGO_HOME', 'RUSTUP_HOME', 'RUSTUP_TOOLCHAIN', 'JAVA_HOME',
  'PYENV_ROOT', 'PYENV_VERSION', 'VIRTUAL_ENV', 'CONDA_PREFIX', 'PYTHONUNBUFFERED', 'PYTHONDONTWRITEBYTECODE', 'PYTHONUTF8', 'RBENV_ROOT', 'GEM_HOME', 'ASDF_DIR', 'ASDF_DATA_DIR',
]);

/** The environment inside, by the list above. `home` is the home directory inside. */
export function sandboxEnvironment(env: Readonly<Record<string, string>>, home: string): Readonly<Record<string, string>> {
  const entries = Object.entries(env).filter(([name]) => kept.has(name) || name.startsWith('LC_'));
  return { ...Object.fromEntries(entries), HOME: home, TMPDIR: '/tmp' };
}
