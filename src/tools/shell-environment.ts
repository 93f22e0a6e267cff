/** No pager, no prompt, no editor: a command that would wait for a person ends by itself instead. */
const quiet: Readonly<Record<string, string>> = {
  TERM: 'dumb', PAGER: 'cat', MANPAGER: 'cat', GIT_PAGER: 'cat', SYSTEMD_PAGER: 'cat', GH_PAGER: 'cat', LESS: '-FRX',
  GIT_TERMINAL_PROMPT: '0', GIT_EDITOR: 'true', GIT_SEQUENCE_EDITOR: 'true', EDITOR: 'true', VISUAL: 'true',
  SSH_ASKPASS: '/bin/false', SUDO_ASKPASS: '/bin/false', GIT_ASKPASS: '/bin/false', GCM_INTERACTIVE: 'never',
  DEBIAN_FRONTEND: 'noninteractive', PIP_NO_INPUT: '1',
};

/** The environment of a child process: ours without the protected names (provider keys), and with everything interactive switched off. */
export function shellEnvironment(own: Readonly<Record<string, string | undefined>>, protectedNames: readonly string[]): Record<string, string> {
  const hidden = new Set(protectedNames);
  const kept = Object.entries(own).filter((entry): entry is [string, string] => entry[1] !== undefined && !hidden.has(entry[0]));
  return { ...Object.fromEntries(kept), ...quiet, ...gitOverrides(own) };
}

/** A repository's `core.fsmonitor` is a program that even `git status` runs: off, behind whatever settings the environment carries already.
 *  Source: git-config(1), `GIT_CONFIG_COUNT`. */
function gitOverrides(own: Readonly<Record<string, string | undefined>>): Readonly<Record<string, string>> {
  const count = /^\d{1,4}$/.test(own.GIT_CONFIG_COUNT ?? '') ? Number(own.GIT_CONFIG_COUNT) : 0;
  return { GIT_CONFIG_COUNT: String(count + 1), [`GIT_CONFIG_KEY_${count}`]: 'core.fsmonitor', [`GIT_CONFIG_VALUE_${count}`]: 'false' };
}
