import { compileGlobs } from './globs.js';

/** A rule of the user. Holds for a call that fits every field given: `argv` are the leading words of a command, compared exactly,
 *  `path` a glob over the paths that the call touches. Source: contracts, `rules` of the configuration. */
export interface Rule { readonly tool?: string; readonly argv?: readonly string[]; readonly path?: string }

export interface Rules { readonly allow: readonly Rule[]; readonly ask: readonly Rule[]; readonly deny: readonly Rule[] }

/** What a rule is held against. */
export interface Subject {
  readonly tool: string;
  /** The words of one simple command; absent for tools that run none. */
  readonly argv?: readonly string[];
  /** Absolute paths, links resolved. */
  readonly paths: readonly string[];
}

/** One list of rules as a test. */
export type RuleTest = (subject: Subject) => Rule | null;

/** `paths` says whether a glob must hold for some path of a call or for every one: to stop a call one is enough, to allow it is not. */
export function compileRules(rules: readonly Rule[], home: string, paths: 'some' | 'every' = 'some'): RuleTest {
  const compiled = rules.map((rule) => ({ rule, matchesPath: rule.path === undefined ? null : compileGlobs([rule.path], home) }));
  return (subject) => compiled.find(({ rule, matchesPath }) => {
    if (rule.tool !== undefined && rule.tool !== subject.tool) return false;
    if (rule.argv && !(subject.argv && rule.argv.every((word, index) => subject.argv?.[index] === word))) return false;
    return matchesPath === null || (paths === 'some' ? subject.paths.some(matchesPath) : subject.paths.length > 0 && subject.paths.every(matchesPath));
  })?.rule ?? null;
}

const openEnded = new Set(('sh bash dash zsh ksh fish csh tcsh pwsh busybox toybox env sudo su doas pkexec run0 xargs parallel find fd nice ionice nohup setsid timeout time stdbuf watch strace ltrace flock script command builtin exec eval source . coproc trap '
  + 'python python2 python3 node nodejs bun deno tsx ts-node perl ruby php lua osascript awk gawk mawk sed gsed vim vi nvim ex ed emacs less man gdb make npx pnpx bunx uvx pipx ssh docker podman kubectl tmux screen expect tclsh Rscript').split(' '));
const runnerVerbs = new Set(['npm exec', 'npm x', 'npm explore', 'pnpm exec', 'pnpm dlx', 'yarn exec', 'yarn dlx', 'bun x', 'poetry run', 'pipenv run', 'uv run', 'bundle exec', 'cargo run', 'go run', 'git -c', 'git config', 'git submodule', 'git bisect', 'git rebase']);

/** Why an allow rule is not taken, or null where it is: a rule may not open what runs anything that follows. */
export function refusedAllow(rule: Rule): string | null {
  const [program, verb] = rule.argv ?? [];
  if (program === undefined) return rule.tool === 'bash' ? 'an allow rule for bash needs the leading words of a command' : null;
  const name = program.replace(/^.*\//, '');
  if (openEnded.has(name)) return `${name} runs whatever follows it, so it cannot be allowed by its leading words`;
  if (verb === undefined && /^(?:git|npm|pnpm|yarn|bun|cargo|go|uv|poetry)$/.test(name)) return `${name} needs its subcommand in an allow rule`;
  return runnerVerbs.has(`${name} ${verb ?? ''}`) ? `${name} ${verb} runs whatever follows it` : null;
}
