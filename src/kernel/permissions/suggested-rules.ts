import type { Rule } from '../core/policy.js';
import type { BoundCall, Judged } from '../core/tool.js';
import { directoryOf, type Workspace } from './guarded-paths.js';
import { mayBeOffered, needsSubcommand, refusedAllow } from './rules.js';
import type { Finding, FoundCommand } from './shell/invocation.js';

/** Judges a command line. */
type Analyse = (line: string) => { readonly findings: readonly Finding[] };

const mostRules = 4;
const mostWords = 8;
const mostCharacters = 160;
/** Words that mean to everybody what they look like, and paths that are no globs. */
const plainWord = /^[\w@%+=:,./-]+$/;
const plainPath = /^[\w@%+=:,./ -]+$/;
/** Matches words that may be the subcommand of a program. */
const verb = /^[a-z][a-z0-9:-]*$/;
const scriptName = /^\w[\w:./-]*$/;

/** Operands that nobody would allow. A finding that no rule lifts does not count, for the user is asked about it
 * anyway. */
const probes = ['/', '~', '~/.ssh/id_ed25519'];

/** Returns whether a rule with these leading words would let its command destroy or disclose any file that is named
 * behind them. */
export function actsOnAnything(argv: readonly string[], analyse: Analyse): boolean {
  const line = argv.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
  return probes.some((probe) =>
    analyse(`${line} ${probe}`).findings.some(
      (finding) => finding.fixed !== true && (finding.targets?.length ?? 0) > 0,
    ),
  );
}

/** Returns one rule for each command that would otherwise be asked about; none where one of them cannot have a rule, and
 * none where one is dangerous: each such call is a question of its own. */
export function commandRules(commands: readonly FoundCommand[], tool: string, analyse: Analyse): readonly Rule[] {
  const rules = new Map<string, Rule>();
  for (const command of commands) {
    const argv = command.exact && command.findings.length === 0 ? leadingWords(command.argv) : null;
    if (argv === null || !mayBeOffered(argv)) return [];
    if (refusedAllow({ tool, argv }) !== null || actsOnAnything(argv, analyse)) return [];
    rules.set(argv.join(' '), { tool, argv, risk: 'mutating' });
  }
  return shortEnough([...rules.values()]);
}

/** A command that only changes something is known by its program and subcommand. */
function leadingWords(argv: readonly string[]): readonly string[] | null {
  const words = argv.slice(0, subcommandEnd(argv));
  return words.length > 0 && words.length <= mostWords && words.every((word) => plainWord.test(word)) ? words : null;
}

/** Returns how many words say what is run: `tsc`, `git commit`, `npm run build`. 0 where a script has no plain name. */
function subcommandEnd([program = '', second = '', third = '']: readonly string[]): number {
  if (second === 'run' && needsSubcommand(program)) return scriptName.test(third) ? 3 : 0;
  return verb.test(second) ? 2 : 1;
}

/** Returns the rule for a file tool in a directory of the workspace. */
export function fileRules(tool: string, paths: readonly string[], workspace: Workspace): readonly Rule[] {
  const [directory, ...others] = new Set(paths.map((path) => directoryOf(path, workspace)?.path));
  if (directory === undefined || others.length > 0 || !plainPath.test(directory) || directory === '/') return [];
  return shortEnough([{ tool, path: `${directory}/**` }]);
}

/** Returns the rule for all calls of a tool, unless its arguments say what is run. */
export function toolRules({ tool, args }: BoundCall, { singular, risk }: Judged): readonly Rule[] {
  const runsText = singular === true || (tool.effect === 'execute' && typeof args['command'] === 'string');
  return runsText ? [] : [{ tool: tool.name, ...(risk === 'mutating' ? { risk } : {}) }];
}

/** A person reads them before they say yes. */
function shortEnough(rules: readonly Rule[]): readonly Rule[] {
  return rules.length <= mostRules && JSON.stringify(rules).length <= mostRules * mostCharacters ? rules : [];
}
