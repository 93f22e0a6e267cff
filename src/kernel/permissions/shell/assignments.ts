import wordLists from '../../../../config/commands/words.json' with { type: 'json' };
import { type Arg, either, type Finding, quoted, type OptionScan, unanalysable } from './invocation.js';

/** Variables by which a program is made to load or run something else, or to talk to someone else. */
const steering = new RegExp(
  `^(?:${[
    'LD_\\w+',
    'DYLD_\\w+',
    'PATH',
    'CDPATH',
    'BASH_ENV',
    'BASH_CMDS',
    'BASH_ALIASES',
    'TEXTDOMAIN\\w*',
    'ENV',
    'IFS',
    'PS[0-4]',
    'PROMPT_COMMAND',
    'SHELLOPTS',
    'BASHOPTS',
    'BASH_FUNC_\\w+',
    'BASH_LOADABLES_PATH',
    'BASH_XTRACEFD',
    'EXECIGNORE',
    'GLOBIGNORE',
    'INPUTRC',
    'SHELL',
    'HOME',
    'ZDOTDIR',
    'XDG_\\w+',
    'FCEDIT',
    'COMSPEC',
    'GIT_(?!AUTHOR_|COMMITTER_|TERMINAL_PROMPT|TRACE$|OPTIONAL_LOCKS|LFS_SKIP|MERGE_AUTOEDIT)\\w+',
    'SSH_\\w+',
    'SUDO_\\w+',
    'PAGER',
    '\\w+PAGER',
    'MANOPT',
    'MANPATH',
    'EDITOR',
    'VISUAL',
    '\\w+_EDITOR',
    'BROWSER',
    'LESS\\w*',
    'MORE',
    'NODE_(?!ENV$|DEBUG$|NO_WARNINGS$|DISABLE_COLORS$)\\w+',
    'ELECTRON_RUN_AS_NODE',
    'TSX_\\w+',
    'TS_NODE_\\w+',
    'DENO_\\w+',
    'BUN_\\w+',
    'PYTHON(?!UNBUFFERED$|DONTWRITEBYTECODE$|HASHSEED$|IOENCODING$|UTF8$|FAULTHANDLER$)\\w+',
    'PERL5?\\w*',
    'RUBY\\w*',
    'GEM_\\w+',
    'BUNDLE_\\w+',
    'PHP\\w*',
    'LUA_\\w+',
    'GUILE_\\w+',
    'R_\\w+',
    'JULIA_\\w+',
    'ERL_\\w+',
    'ELIXIR_\\w+',
    'JAVA_TOOL_OPTIONS',
    '_JAVA_OPTIONS',
    'JDK_JAVA_OPTIONS',
    'JAVA_OPTS',
    'CLASSPATH',
    'MAVEN_\\w+',
    'GRADLE_\\w+',
    'SBT_\\w+',
    'GOFLAGS',
    'GOPROXY',
    'GOPRIVATE',
    'GONOSUM\\w*',
    'GOSUMDB',
    'GOINSECURE',
    'GOTOOLCHAIN',
    'RUSTC\\w*',
    'RUSTFLAGS',
    'RUSTUP_\\w+',
    'CARGO_(?!TERM_\\w+$|TARGET_DIR$|INCREMENTAL$)\\w+',
    'MAKEFLAGS',
    'MAKEFILES',
    'GNUMAKEFLAGS',
    'MFLAGS',
    'npm_\\w+',
    'NPM_CONFIG_\\w+',
    'YARN_\\w+',
    'PNPM_\\w+',
    'PIP_\\w+',
    'UV_\\w+',
    'POETRY_\\w+',
    'CONDA_\\w+',
    'COREPACK_\\w+',
    'AGENT_\\w*',
    'CLAUDE_\\w+',
    'CODEX_\\w+',
    'GEMINI_\\w+',
    '\\w+_BASE_URL',
    '\\w+_API_BASE',
    'OLLAMA_HOST',
    'TEST_ALLOW',
    '(?:\\w+_)?(?:https?|HTTPS?|all|ALL|ftp|FTP)_(?:proxy|PROXY)',
    'no_proxy',
    'NO_PROXY',
    'RES_OPTIONS',
    'LOCALDOMAIN',
    'HOSTALIASES',
    'SSL_\\w+',
    'OPENSSL_\\w+',
    'CURL_\\w+',
    'REQUESTS_CA_BUNDLE',
    'WGETRC',
    'NETRC',
    'SSLKEYLOGFILE',
    'GREP_OPTIONS',
    'RIPGREP_\\w+',
    'FZF_\\w+',
    'BAT_\\w+',
    'TAR_\\w+',
    'TAPE',
    'RSH',
    'GZIP',
    'BZIP2?',
    'XZ_\\w+',
    'ZIP\\w*',
    'UNZIP\\w*',
    'RSYNC_\\w+',
    'CVS_RSH',
    'SVN_SSH',
    'HGRCPATH',
    'DIFF_OPTIONS',
    'POSIXLY_CORRECT',
    'JQ_\\w+',
    'AWK\\w*',
    'VIM\\w*',
    'EXINIT',
    'MYVIMRC',
    'NVIM_\\w+',
    'EMACS\\w+',
    'TMUX\\w*',
    'SCREENRC',
    'GCONV_PATH',
    'LOCPATH',
    'NLSPATH',
    'LOCALDOMAIN',
    'MALLOC_\\w+',
    'GLIBC_TUNABLES',
    'TERMINFO\\w*',
    'TERMCAP',
    'TERMPATH',
    'COLORTERM_\\w+',
    'GTK_MODULES',
    'QT_PLUGIN_PATH',
    'GIO_\\w+',
    'DBUS_\\w+',
    'DISPLAY',
    'WAYLAND_\\w+',
    'KUBECONFIG',
    'DOCKER_\\w+',
    'AWS_\\w+',
    'GOOGLE_\\w+',
    'AZURE_\\w+',
    'TF_\\w+',
    'ANSIBLE_\\w+',
    'VAULT_\\w+',
    'PGSERVICEFILE',
    'PSQLRC',
    'PSQL_EDITOR',
    'GNUPGHOME',
    'PASSWORD_STORE_\\w+',
    'PKCS11_\\w+',
    'OPENSSL_CONF',
    'KRB5_\\w+',
  ].join('|')})$`,
);
const benign = new RegExp(`^(?:${either(wordLists.lists.harmlessVariables)})$`);
/** Values that switch a program off instead of choosing one. */
const disarmed = new Map([
  ['PAGER', /^(?:cat)?$/],
  ['GIT_PAGER', /^(?:cat)?$/],
  ['MANPAGER', /^cat$/],
  ['GIT_EDITOR', /^(?:true|:)$/],
  ['EDITOR', /^(?:true|:)$/],
  ['GIT_CONFIG_NOSYSTEM', /^1$/],
  ['DISPLAY', /^$/],
  ['LESS', /^-?[A-Za-z]*$/],
  ['IFS', /^(?:\$'\\[nt]'|[,:;|\s]?)$/],
  ['NO_PROXY', /./],
  ['HISTCONTROL', /^ignoredups$|^erasedups$/],
]);

const history = /^HIST(?:FILE|SIZE|FILESIZE|CONTROL|IGNORE)$/;

/** Variables whose value bash evaluates as arithmetic when it is assigned. */
const evaluated = /^(?:S?RANDOM|SECONDS|HISTCMD|OPTIND|LINENO)$/;

/** Judges a builtin command that fills the variable named by `arg`. The value is known only when it runs. */
export function filledFindings(arg: Arg, scan: OptionScan): readonly Finding[] {
  return arg.values.flatMap((name) => {
    if (arg.dynamic || name.includes('\0')) return unanalysable('sets a variable whose name is not known');
    const index = name.includes('[') && !/^\w+\[\d+\]$/.test(name);
    if (index) return unanalysable(`the index in ${quoted(name)} is evaluated`);
    return setFindings(name, null, scan);
  });
}

/** Setting the variable `target`, with or without an index behind it; also used for `env NAME=value` and `export`.
 * `given` is null where the value is known only when it runs. */
export function setFindings(target: string, given: string | null, scan: OptionScan): readonly Finding[] {
  const name = target.replace(/(?:\[.*)?\+?$/s, '');
  const value = given ?? '';
  if (evaluated.test(name)) return evaluatedFindings(name, given);
  if (history.test(name) && disarmed.get(name)?.test(value) !== true)
    return [{ reason: `sets ${name}: this keeps commands out of the shell history`, fixed: true }];
  if (!steering.test(name) || disarmed.get(name)?.test(value) === true) return [];
  if (name === 'HOME' && value.startsWith(scan.context.workspace)) {
    scan.redirects = true;
    return [];
  }
  return [{ reason: `sets ${name}, which decides what other programs load or run`, fixed: true }];
}

function evaluatedFindings(name: string, given: string | null): readonly Finding[] {
  return given !== null && /^\d*$/.test(given) ? [] : unanalysable(`${name} evaluates what is assigned to it`);
}

/** True for a variable that only changes how output looks, or for a value that switches a program off. */
export function isBenignVariable(name: string, value?: string): boolean {
  return (
    benign.test(name) ||
    (value !== undefined &&
      /PAGER$|EDITOR$|^GIT_CONFIG_NOSYSTEM$/.test(name) &&
      disarmed.get(name)?.test(value) === true)
  );
}
