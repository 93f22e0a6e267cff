/** No pager, no prompt, no editor: a command that would wait for a person ends by itself instead. */
const quiet: Readonly<Record<string, string>> = {
  TERM: 'dumb',
  PAGER: 'cat',
  MANPAGER: 'cat',
  GIT_PAGER: 'cat',
  SYSTEMD_PAGER: 'cat',
  GH_PAGER: 'cat',
  LESS: '-FRX',
  GIT_TERMINAL_PROMPT: '0',
  GIT_EDITOR: 'true',
  GIT_SEQUENCE_EDITOR: 'true',
  EDITOR: 'true',
  VISUAL: 'true',
  SSH_ASKPASS: '/bin/false',
  SUDO_ASKPASS: '/bin/false',
  GIT_ASKPASS: '/bin/false',
  GCM_INTERACTIVE: 'never',
  DEBIAN_FRONTEND: 'noninteractive',
  PIP_NO_INPUT: '1',
};

type Environment = Readonly<Record<string, string | undefined>>;

type Settings = readonly (readonly [string, string])[];

/** What git is told over the head of a repository: to run no monitor, which even `git status` would. */
const gitAlways: Settings = [['core.fsmonitor', 'false']];
/** What a line that only reads has no use for, and a hostile repository has: hooks, transports that are programs,
 * signatures checked unasked, a folder that is itself a repository. Policy calls no line a reader in a repository that
 * names a program; this is the second lock. For `diff.external`, filters and `textconv` git has no switch but
 * options. */
const gitReading: Settings = [
  ...gitAlways,
  ['core.hooksPath', '/dev/null'],
  ['protocol.ext.allow', 'never'],
  ['log.showSignature', 'false'],
  ['safe.bareRepository', 'explicit'],
];

/** The environment of a child process: ours without the protected names (provider keys), and with everything
 * interactive switched off. `readsOnly`: for a command that was judged to change nothing. */
export function shellEnvironment(
  own: Environment,
  protectedNames: readonly string[],
  readsOnly = false,
): Record<string, string> {
  const hidden = new Set(protectedNames);
  const isKept = (entry: readonly [string, string | undefined]): entry is [string, string] =>
    entry[1] !== undefined && !hidden.has(entry[0]);
  const kept = Object.entries(own).filter(isKept);
  return { ...Object.fromEntries(kept), ...quiet, ...gitOverrides(own, readsOnly ? gitReading : gitAlways) };
}

/** Settings behind whatever the environment carries already. Source: git-config(1), `GIT_CONFIG_COUNT`. */
function gitOverrides(own: Environment, settings: Settings): Readonly<Record<string, string>> {
  const count = /^\d{1,4}$/.test(own.GIT_CONFIG_COUNT ?? '') ? Number(own.GIT_CONFIG_COUNT) : 0;
  const entries = settings.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${count + index}`, key],
    [`GIT_CONFIG_VALUE_${count + index}`, value],
  ]);
  return { GIT_CONFIG_COUNT: String(count + settings.length), ...Object.fromEntries(entries) };
}
