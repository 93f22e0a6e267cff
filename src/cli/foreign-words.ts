import { namesOf, rootOptions } from '../kernel/console/options.js';
import { helpFlags } from '../kernel/console/registration.js';
import { versionFlags } from '../kernel/console/version.js';

/** The options of the command line by their names, with what they take. */
export const ownOptions = new Map(
  Object.values(rootOptions).flatMap(({ flags }) => {
    const { names, value } = namesOf(flags);
    return names.map((name) => [name, value] as const);
  }),
);

/** Our options whose name other agents use, too. A test holds both lists against the table of foreign-command-line.ts,
 * which is 20 kB and loaded only where a line may need it. */
export const sharedOptions: ReadonlySet<string> = new Set(
  (
    '--append-system-prompt --sandbox --allowedTools --allowed-tools --disallowedTools --disallowed-tools --tools ' +
    '--mcp-config --strict-mcp-config --add-dir --agents --session-id -n --name -r --resume --image --settings -c --bare'
  ).split(' '),
);

/** The first words of commands of other agents. */
export const commandWords: ReadonlySet<string> = new Set(
  (
    'exec e run resume fork session delete archive export apply auth login setup-token config features auto-mode plugin ' +
    'plugins extensions skill mcp mcp-server agent update install migrate-installer uninstall remote-control web ' +
    'app-server cloud sandbox github pr unarchive a providers project ultrareview gateway hooks list debug app ' +
    'exec-server responses-api-proxy execpolicy console db'
  ).split(' '),
);

const plainOptions: ReadonlySet<string> = new Set(
  [...ownOptions.keys(), ...[helpFlags[0], versionFlags].flatMap((flags) => namesOf(flags).names)].filter(
    (name) => !sharedOptions.has(name),
  ),
);

/** Returns false where no word can be an option or a command of another agent. */
export function mayBeForeign(words: readonly string[]): boolean {
  return words.some((word) => {
    const [name = word] = /^--[^=]+/.exec(word) ?? [];
    return /^-./.test(word) ? !plainOptions.has(name) : commandWords.has(word);
  });
}
