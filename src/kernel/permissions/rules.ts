import { entriesOf } from '../core/lists.js';
import wordLists from '../../../config/commands/words.json' with { type: 'json' };
import { isRecord } from '../core/json.js';
import type { Rule } from '../core/policy.js';
import type { Risk } from '../core/tool.js';
import { matchesStars } from '../core/star-pattern.js';
import { isServerPattern, matchesTool } from '../core/tool-patterns.js';
import { compileGlobs, lastName, shellGlob } from './guarded-paths.js';

/** The facts of a call that rules are matched against. */
export interface Subject {
  readonly tool: string;
  /** The MCP server that the tool belongs to, where that is known. */
  readonly server?: string;
  /** The words of one simple command; absent for tools that run none. */
  readonly argv?: readonly string[];
  /** Every known value of each of those words; NUL marks text that only the running shell knows. */
  readonly words?: readonly (readonly string[])[];
  /** Absolute paths, links resolved. */
  readonly paths: readonly string[];
  /** The paths among them that the call writes. */
  readonly writes?: readonly string[];
  /** The host, or the name of the skill or agent, that the call is about. */
  readonly target?: string;
  /** The risk of the command or call; absent if nobody needs it. */
  readonly risk?: Risk;
}

/** One list of rules as a test. */
export type RuleTest = (subject: Subject) => Rule | null;

/** Compiles one list of rules. A rule that stops a call errs on the safe side: one path is enough, and its words may
 * stand behind other options or behind a program that starts the command. A rule that allows a call errs the other way:
 * every path must fit, and each leading word exactly. */
export function compileRules(rules: readonly Rule[], home: string, purpose: 'stop' | 'allow'): RuleTest {
  const compiled = rules.map((rule) => ({
    rule,
    matchesPath: rule.path === undefined ? null : pathTest(rule.path, home, purpose),
  }));
  return (subject) => compiled.find((one) => fitsRule(one, subject, purpose))?.rule ?? null;
}

interface CompiledRule {
  readonly rule: Rule;
  readonly matchesPath: ((path: string) => boolean) | null;
}

function fitsRule({ rule, matchesPath }: CompiledRule, subject: Subject, purpose: 'stop' | 'allow'): boolean {
  if (rule.tool !== undefined && !namesTool(rule.tool, subject, purpose)) return false;
  if (purpose === 'allow' && goesTooFar(rule, subject)) return false;
  if (!fitsWords(rule, subject, purpose)) return false;
  if (matchesPath === null) return true;
  const paths = rule.writes === true ? (subject.writes ?? []) : subject.paths;
  return purpose === 'stop' ? paths.some(matchesPath) : paths.length > 0 && paths.every(matchesPath);
}

function fitsWords({ argv, pattern }: Rule, subject: Subject, purpose: 'stop' | 'allow'): boolean {
  if (argv && !(purpose === 'stop' ? reaches(argv, subject) : startsWith(argv, subject))) return false;
  return pattern === undefined || fitsPattern(pattern, subject, purpose);
}

/** The text of a command, or what else the call is about, fits a pattern. A rule that stops a call also holds for the
 * command that a program starts, and where words are known only when they run. */
function fitsPattern(pattern: string, { argv, words, target }: Subject, purpose: 'stop' | 'allow'): boolean {
  const open = /\s\*$/.test(pattern) ? pattern.slice(0, -2) : null;
  const fitsText = (text: string): boolean => matchesStars(open ?? pattern, text, open !== null);
  if (target !== undefined) return fitsText(target);
  if (purpose === 'allow') return argv !== undefined && fitsText(argv.join(' '));
  if (words === undefined) return false;
  const starts = words[0]?.some((program) => starters.has(lastName(program))) === true ? words.map((_, at) => at) : [0];
  return (
    starts.some((at) => mayFit(open === null ? [pattern] : [open, pattern], words.slice(at))) ||
    (starts.length > 1 && words.flat().some((text) => /\s/.test(text) && commandsIn(text).some(fitsText)))
  );
}

const maxSpellings = 64;

/** One of the texts that the words may stand for fits one of the patterns. */
function mayFit(patterns: readonly string[], words: Words): boolean {
  let texts: readonly string[] = [''];
  for (const [index, values] of words.entries()) {
    const named = index === 0 ? values.flatMap((value) => [value, lastName(value)]) : values;
    texts = texts.flatMap((text) => [...new Set(named)].map((value) => (text === '' ? value : `${text} ${value}`)));
    if (texts.length > maxSpellings) return true; // too many to say
  }
  return texts.some((text) => patterns.some((pattern) => mayMatch(pattern, text)));
}

/** `*` in the pattern, and what only the shell knows in the text (NUL), stand for any characters. */
function mayMatch(pattern: string, text: string): boolean {
  let row = [true, ...[...pattern].map((_, at) => /^\**$/.test(pattern.slice(0, at + 1)))];
  for (const char of text) {
    const next = [row[0] === true && char === '\0'];
    for (const [at, wanted] of [...pattern].entries()) {
      const both = row[at] === true;
      if (wanted === '*') next.push(next[at] === true || row[at + 1] === true);
      else if (char === '\0') next.push(both || next[at] === true || row[at + 1] === true);
      else next.push(both && wanted === char);
    }
    row = next;
  }
  return row.at(-1) === true;
}

/** Splits a text for a shell into commands, without parsing it. */
function commandsIn(text: string): readonly string[] {
  return text.split(/[;&|\n()`{}]+/).map((part) => part.trim());
}

/** Folders may be called `[id]`, as in Next.js. A rule that stops a call holds for such a folder and for what the glob
 * means; one that allows a call holds for the folder alone. */
function pathTest(path: string, home: string, purpose: 'stop' | 'allow'): (path: string) => boolean {
  const asNames = compileGlobs([path], home, 'names');
  const asSyntax = compileGlobs([path], home);
  const hasClass = path.includes('[');
  return (subject) => asNames(subject) || ((purpose === 'stop' || !hasClass) && asSyntax(subject));
}

/** A rule may name all tools of a server: `mcp__github`, `mcp__github__*`, `mcp__github__get_*`. Where the name alone
 * does not say which server it belongs to, a rule that stops a call holds and one that allows it does not. */
function namesTool(pattern: string, { tool, server }: Subject, purpose: 'stop' | 'allow'): boolean {
  if (pattern === tool) return true;
  if (!isServerPattern(pattern) || !isServerPattern(tool)) return false;
  const parts = tool.split('__').slice(1);
  const possible = parts.slice(1).map((_part, index) => parts.slice(0, index + 1).join('__'));
  const servers = server === undefined ? (purpose === 'stop' || possible.length === 1 ? possible : []) : [server];
  return matchesTool(pattern, [tool], servers);
}

/** The call is dangerous, or longer, and the rule allows neither. */
function goesTooFar({ risk, exact, argv = [] }: Rule, subject: Subject): boolean {
  return (
    (risk !== undefined && subject.risk === 'dangerous') || (exact === true && subject.argv?.length !== argv.length)
  );
}

type Words = NonNullable<Subject['words']>;

function startsWith(rule: readonly string[], { argv }: Subject): boolean {
  return argv !== undefined && rule.every((word, index) => argv[index] === word);
}

/** Programs that run the command among their words, whatever else they do. */
const starters = new Set(entriesOf(wordLists.lists.startingPrograms));

/** The rule fits the command, or one that begins at any of its words where its program starts others. */
function reaches(rule: readonly string[], { words = [] }: Subject): boolean {
  if (fits(rule, words)) return true;
  if (words[0]?.some((program) => starters.has(lastName(program))) !== true) return false;
  const begins = words.some((_values, index) => index > 0 && fits(rule, words.slice(index)));
  return (
    begins ||
    words
      .slice(1)
      .flat()
      .some((text) => textHolds(rule, text))
  );
}

/** Splits a word that is a text for a shell into commands, without parsing it. */
function textHolds(rule: readonly string[], text: string): boolean {
  if (!/\s/.test(text)) return false;
  return commandsIn(text).some((part) => {
    const words = part.split(/\s+/).map((word) => [word.replace(/^["']|["']$/g, '')]);
    return words.some((_word, index) => fits(rule, words.slice(index)));
  });
}

/** The words of the rule stand in their order behind the program, parted by nothing but options and what may be their
 * values; its options stand anywhere. At least one word must be known to be the same. */
function fits([program = '', ...rest]: readonly string[], [head = [], ...words]: Words): boolean {
  const names = head.map((name) => lastName(name));
  if (!isWord(lastName(program), names)) return false;
  const plain = rest.filter((word) => !word.startsWith('-'));
  const end = words.findIndex((values) => values.includes('--'));
  const options = end < 0 ? words : words.slice(0, end);
  if (!rest.every((word) => plain.includes(word) || hasOption(word, options.flat()))) return false;
  const said = words.flat();
  const known = names.includes(lastName(program)) || plain.some((word) => said.includes(word));
  return known && follows(plain, words);
}

function follows(plain: readonly string[], words: Words): boolean {
  let at = 0;
  for (const word of plain) {
    while (!isWord(word, words[at] ?? [])) {
      const option = words[at]?.[0] ?? '';
      if (!option.startsWith('-') || option === '--') return false;
      at++;
      if (takesValue(option) && isValue(words[at] ?? [], word)) at++;
    }
    at++;
  }
  return true;
}

/** False for options that are known to stand alone. */
function takesValue(option: string): boolean {
  return !/=|^--no-|^-[pPh]$|^--(?:paginate|bare|silent|quiet|verbose|help|version)$/.test(option);
}

function isValue(values: readonly string[], word: string): boolean {
  return !isWord(word, values) && values[0]?.startsWith('-') === false;
}

/** One of the values is the word, or may expand to it. */
function isWord(word: string, values: readonly string[]): boolean {
  return values.some((value) => value === word || (/[*?[\0]/.test(value) && shellGlob(value)(word)));
}

/** `-rf` is there as `-fr` and as `-r -f`, `--force` as `--force=x` and by a beginning of its name. */
function hasOption(option: string, texts: readonly string[]): boolean {
  const long = texts.map((text) => text.replace(/=.*$/s, ''));
  if (long.includes(option)) return true;
  const begins = (text: string): boolean => text.length > 3 && text.startsWith('--') && option.startsWith(text);
  if (option.startsWith('--')) return long.some(begins);
  const letters = new Set(texts.filter((text) => /^-\w/.test(text)).flatMap((text) => [...text.slice(1)]));
  return [...option.slice(1)].every((letter) => letters.has(letter));
}

/** Returns the rule that `value` is; null where it is none, or would fit every call. */
export function readRule(value: unknown): Rule | null {
  if (!isRecord(value)) return null;
  const isRule = Object.entries(value).every(([key, part]) => isPart[key]?.(part) === true);
  const { tool, argv, path, pattern } = value;
  if (!isRule || [tool, argv, path, pattern].every((part) => part === undefined)) return null;
  return value;
}

const isPart: Readonly<Record<string, (part: unknown) => boolean>> = {
  tool: isText,
  argv: (part) => Array.isArray(part) && part.length > 0 && part.every(isText),
  path: isText,
  risk: (part) => part === 'mutating',
  exact: (part) => typeof part === 'boolean',
  pattern: isText,
  writes: (part) => typeof part === 'boolean',
};

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

const openEnded = new Set(entriesOf(wordLists.lists.openEndedPrograms));
const openEndedVerbs = new Set(entriesOf(wordLists.lists.openEndedVerbs));
const neverOffered = new Set(
  [wordLists.lists.neverOfferedPrograms, wordLists.lists.neverOfferedVerbs].flatMap(entriesOf),
);

/** The name of a program without its version: `python3.12`, `node-20`. */
function plainName(name: string): string {
  return name.replace(/[-.\d]+$/, '');
}

/** Returns true if a rule that begins with these words may be offered to the user. The user may write more rules than
 * that: a rule for `psql` works, but is never offered. */
export function mayBeOffered([program = '', verb = '']: readonly string[]): boolean {
  const name = program.replace(/^.*\//, '');
  return ![name, plainName(name), `${name} ${verb}`].some((words) => neverOffered.has(words));
}

/** Programs whose first word says what they do. */
export function needsSubcommand(program: string): boolean {
  return /^(?:git|npm|pnpm|yarn|bun|cargo|go|uv|poetry)$/.test(program);
}

/** Returns why an allow rule is refused, or null: a rule may not allow a program that runs its arguments as
 * commands. */
export function refusedAllow(rule: Rule): string | null {
  const [program, verb] = rule.argv ?? [];
  if (program === undefined) return refusedTool(rule.tool ?? '');
  const name = program.replace(/^.*\//, '');
  if (openEnded.has(name) || openEnded.has(plainName(name)))
    return `${name} runs whatever follows it, so it cannot be allowed by its leading words`;
  if (verb === undefined && needsSubcommand(name)) return `${name} needs its subcommand in an allow rule`;
  return openEndedVerbs.has(`${name} ${verb ?? ''}`) ? `${name} ${verb} runs whatever follows it` : null;
}

/** Returns a sentence for each allow rule that is left out. */
export function unheededAllow(rules: readonly Rule[]): readonly string[] {
  return rules.flatMap((rule) => {
    const refused = refusedAllow(rule);
    return refused === null ? [] : [`rules.allow ${JSON.stringify(rule)} allows nothing: ${refused}.`];
  });
}

function refusedTool(tool: string): string | null {
  if (isServerPattern(tool) && tool.includes('*') && !/^mcp__[^*]+__/.test(tool))
    return 'an allow rule for MCP tools names the server: mcp__server or mcp__server__*';
  return tool === 'bash' ? 'an allow rule for bash needs the leading words of a command' : null;
}
