import { type Command, parse, type PipelineNode, type Redirection, type Word, type WordPart } from 'unbash';
import table from '../../../../config/listed-commands.json' with { type: 'json' };

/** One program of the list. */
interface Listed {
  /** Separated by blanks, exact; one that ends with `=` takes a value. */
  readonly options?: string;
  /** Words of an expression (`find`), as `options`. */
  readonly words?: string;
  /** The most operands that it may have; `files`: any number, wildcards among them; `any`: any number of literal
   * words. */
  readonly operands?: number | string;
  /** It has no options: every word is an operand. */
  readonly bare?: boolean;
  /** The number of first operands that are no files, but a pattern or a program. */
  readonly text?: number;
  /** `-5` is an option. */
  readonly numbers?: boolean;
  /** A further test of its words. */
  readonly check?: string;
  /** The only operand that it may have. */
  readonly subcommand?: string;
}

/** The facts to check on the machine before a command counts as listed. */
export interface ListedCommand {
  /** Programs that have to be found on PATH, outside of the workspace. */
  readonly programs: readonly string[];
  /** A word is a wildcard that may stand for names that begin with `-`. */
  readonly wildcards: boolean;
  /** It runs git, so the repository must not name programs. */
  readonly git: boolean;
}

const programs: ReadonlyMap<string, Listed> = new Map(
  (table.programs as readonly (Listed & { readonly names: readonly string[] })[]).flatMap((entry) =>
    entry.names.map((name) => [name, entry] as const),
  ),
);
const gitVerbs: ReadonlyMap<string, Listed> = new Map(Object.entries(table.git as Readonly<Record<string, Listed>>));
const builtins = new Set([
  'command',
  'pwd',
  'cd',
  ':',
  'true',
  'false',
  'echo',
  'printf',
  'test',
  '[',
  'type',
  'exit',
  'set',
]);

const hidden = new Set(table.hidden.split(' '));

/** Returns whether a program answers from what a rehearsal hides: other processes, services and devices. */
export function needsMachine(program: string): boolean {
  return hidden.has(program.replace(/^.*\//, ''));
}

const maxCharacters = 10_000;

/** Returns the names of all programs of the list. */
export function listedPrograms(): readonly string[] {
  return [...programs.keys(), ...[...gitVerbs.keys()].map((verb) => `git ${verb}`)];
}

/** Reads a command line against the short list of programs and options that only read. Null: something in it is not on
 * the list, is not a literal word, or writes somewhere. */
export function listedCommand(line: string): ListedCommand | null {
  if (line.length > maxCharacters) return null;
  const found = { programs: new Set<string>(), wildcards: false, git: false };
  try {
    const script = parse(line);
    if (script.errors !== undefined && script.errors.length > 0) return null;
    const isListed = script.commands.every(({ command, background }) => {
      if (background === true) return false;
      return command.type === 'AndOr'
        ? command.commands.every((part) => isListedPipeline(part, found))
        : isListedPipeline(command, found);
    });
    return isListed && script.commands.length > 0 ? { ...found, programs: [...found.programs] } : null;
  } catch {
    return null;
  }
}

interface Found {
  readonly programs: Set<string>;
  wildcards: boolean;
  git: boolean;
}

function isListedPipeline(node: PipelineNode, found: Found): boolean {
  if (node.type === 'Command') return isListedCommand(node, found);
  if (node.type !== 'Pipeline') return false;
  const isPlain =
    node.prefixes.every(({ type }) => type === 'Negation') && node.operators.every((operator) => operator === '|');
  return isPlain && node.commands.every((command) => command.type === 'Command' && isListedCommand(command, found));
}

/** A word of a command: its text, and whether the shell makes names of files from it. */
export interface PlainWord {
  readonly text: string;
  readonly wildcard: boolean;
}

function isListedCommand({ name, prefix, args, redirects }: Command, found: Found): boolean {
  if (name === undefined || prefix.length > 0 || !redirects.every(isHarmlessRedirect)) return false;
  const head = plainWord(name);
  const words = args.map((word) => (word.type === 'Word' ? plainWord(word) : null));
  if (head === null || words.some((word) => word === null)) return false;
  return areListed(
    head,
    words.filter((word) => word !== null),
    found,
  );
}

/** Returns whether the words of one command are on the list. The first is its program. */
export function isListed([head, ...words]: readonly PlainWord[]): boolean {
  return head !== undefined && areListed(head, words, { programs: new Set(), wildcards: false, git: false });
}

function areListed(head: PlainWord, words: readonly PlainWord[], found: Found): boolean {
  if (head.wildcard) return false;
  if (!builtins.has(head.text)) found.programs.add(head.text);
  if (head.text === 'git') return isListedGit(words, found);
  const entry = programs.get(head.text);
  return entry !== undefined && fits(entry, words, found);
}

/** `link/..` is beside the target of the link, wherever that lies. */
export const climbs = /[^./][^/]*\/\.\.(?:\/|$)/;

function isListedGit(words: readonly PlainWord[], found: Found): boolean {
  found.git = true;
  const rest = words.findIndex(
    ({ text }, at) => text !== '--no-pager' && text !== '-C' && words[at - 1]?.text !== '-C',
  );
  const own = words.slice(0, rest);
  const [verb, ...args] = words.slice(rest);
  const entry = gitVerbs.get(verb?.text ?? '');
  const isPlain =
    rest >= 0 && [...own, ...(verb ? [verb] : [])].every(({ text, wildcard }) => !wildcard && !climbs.test(text));
  return isPlain && entry !== undefined && fits(entry, args, found);
}

/** Nothing is written: `2>/dev/null`, `2>&1`, a text in the command itself. */
function isHarmlessRedirect(redirect: Redirection): boolean {
  if (redirect.type === 'HereDoc') return redirect.delimiter?.quoted === true;
  if (redirect.type !== 'Redirect' || redirect.descriptor?.type === 'FileDescriptorVariable') return false;
  const target = redirect.target === undefined ? null : plainWord(redirect.target);
  if (target === null || target.wildcard) return false;
  if (redirect.operator === '>&') return /^[12]$/.test(target.text);
  return ['>', '>>', '&>', '<'].includes(redirect.operator) && target.text === '/dev/null';
}

function plainWord({ value, parts }: Word): PlainWord | null {
  if (parts === undefined) return { text: value, wildcard: false };
  return parts.every(isLiteral) ? { text: value, wildcard: parts.some(({ type }) => type === 'Glob') } : null;
}

/** Variables whose values are paths and names. */
const plainVariable = /^\$(?:HOME|PWD|USER)$/;

function isLiteral(part: WordPart): boolean {
  if (part.type === 'DoubleQuoted')
    return part.parts.every(
      ({ type, text }) => type === 'Literal' || (type === 'SimpleExpansion' && plainVariable.test(text)),
    );
  if (part.type === 'Glob') return part.kind !== 'bracket' || part.parts.every(({ type }) => type === 'Literal');
  return part.type === 'Literal' || part.type === 'SingleQuoted';
}

function fits(entry: Listed, words: readonly PlainWord[], found: Found): boolean {
  const sorted = sortWords(entry, words);
  if (sorted === null) return false;
  const { operands, dashed } = sorted;
  const texts = operands.map(({ text }) => text);
  if (entry.subcommand !== undefined) return texts.length === 1 && texts[0] === entry.subcommand;
  if (operands.length > mostOperands(entry)) return false;
  const wild = operands.filter(({ wildcard }) => wildcard);
  const isFile = (word: PlainWord): boolean =>
    entry.operands === 'files' && operands.indexOf(word) >= (entry.text ?? 0);
  if (!wild.every(isFile)) return false;
  if (!dashed && wild.some(({ text }) => /^[*?[]/.test(text))) found.wildcards = true;
  return (
    entry.check === undefined ||
    checks[entry.check]?.(
      texts,
      words.map(({ text }) => text),
    ) === true
  );
}

function mostOperands({ operands }: Listed): number {
  if (typeof operands === 'number') return operands;
  return operands === undefined ? 0 : Infinity;
}

interface SortedWords {
  readonly operands: readonly PlainWord[];
  /** They stand behind `--`. */
  readonly dashed: boolean;
}

/** Takes the options away. Null: one of them is not listed. */
function sortWords(entry: Listed, words: readonly PlainWord[]): SortedWords | null {
  if (entry.bare === true) return { operands: words, dashed: true };
  const listed = new Set((entry.options ?? entry.words ?? '').split(' '));
  const operands: PlainWord[] = [];
  let behind = 0;
  for (const [at, word] of words.entries()) {
    if (at < behind) continue;
    if (word.text === '--')
      return { operands: [...operands, ...words.slice(at + 1)], dashed: entry.words === undefined };
    if (!isOption(word.text, listed, entry)) {
      operands.push(word);
      continue;
    }
    const taken = optionLength(word.text, listed, entry);
    const own = words.slice(at, at + (taken ?? 0));
    if (taken === null || own.length < taken || own.some(({ wildcard }) => wildcard)) return null;
    behind = at + taken;
  }
  return { operands, dashed: false };
}

function isOption(text: string, listed: ReadonlySet<string>, { words }: Listed): boolean {
  return (text.startsWith('-') && text !== '-') || (words !== undefined && listed.has(text));
}

/** Returns how many words an option takes; null where it is not listed. */
function optionLength(text: string, listed: ReadonlySet<string>, { words, numbers }: Listed): 1 | 2 | null {
  if (listed.has(text)) return 1;
  if (listed.has(`${text}=`)) return 2;
  if (words !== undefined) return null;
  if (numbers === true && /^-\d+$/.test(text)) return 1;
  if (text.startsWith('--')) return listed.has(text.replace(/=.*$/s, '=')) && text.includes('=') ? 1 : null;
  return clusterLength([...text.slice(1)], listed);
}

/** The letters of a cluster; the rest behind one that takes a value is its value. */
function clusterLength(letters: readonly string[], listed: ReadonlySet<string>): 1 | 2 | null {
  for (const [index, letter] of letters.entries()) {
    if (listed.has(`-${letter}=`)) return index === letters.length - 1 ? 2 : 1;
    if (!listed.has(`-${letter}`)) return null;
  }
  return 1;
}

type Check = (operands: readonly string[], words: readonly string[]) => boolean;

/** Operators of `test` that look at files and texts. Those on numbers and variables evaluate what they are given. */
const testWords = /^(?:!|\(|\)|\]|-a|-o|-[bcdefghknprstuwxzGLNOS]|-nt|-ot|-ef|=|==|!=)$/;

const checks: Readonly<Record<string, Check>> = {
  /** `%n` stores into a variable, whose index is evaluated; `-v` too. */
  printf: ([format = '', ...rest]) =>
    !format.startsWith('-') &&
    /^(?:[^%]|%%|%[-+ #0]*\d*(?:\.\d+)?[sdiuxXobcqfgeG])*$/s.test(format) &&
    rest.length < 200,
  test: (operands) => operands.every((word) => !word.startsWith('-') || testWords.test(word)) && operands.length < 20,
  shellOptions: (operands, words) =>
    operands.length === 0 &&
    words.every(
      (word, at) => !/^-\w*o$/.test(words[at - 1] ?? '') || /^(?:pipefail|errexit|nounset|xtrace)$/.test(word),
    ),
  /** `e` without a dash prints the environment. */
  processes: (operands) =>
    operands.every((word, at) =>
      /^-\w*[opCUu]$/.test(operands[at - 1] ?? '')
        ? /^[\w,:%=.]+$/.test(word) && !/env/i.test(word)
        : /^(?:-[efFAalLwjTHydopCUu]+|[auxwfr]+|--no-headers|--forest|--(?:sort|pid|ppid)=[\w,+-]+)$/.test(word),
    ),
  /** Without `-n` it asks for the names of addresses. */
  numeric: (_operands, words) => words.some((word) => /^-\w*n/.test(word)),
  openFiles: (operands) =>
    operands.some((word) => /^-[Ptl]*n/.test(word)) &&
    operands.every((word) =>
      /^(?:-[nPtla]+|-i(?:[46]?(?:TCP|UDP)?(?::[\w,-]+)?)?|(?:TCP|UDP)?:[\d,-]+|-sTCP:\w+|-[pcu]|[\w,.][\w,./-]*)$/i.test(
        word,
      ),
    ),
  interfaces: (operands) =>
    /^(?:-(?:br|4|6|o|s|j|c) )*(?:a|addr|address|l|link|r|route|n|neigh)(?: (?:show|list|ls)(?: dev \w+)?)?$/.test(
      operands.join(' '),
    ),
  commandName: (_operands, [first = '']) => /^-[vV]$/.test(first),
  date: (operands) => operands.every((word) => word.startsWith('+')),
  sed: ([script = ''], words) =>
    words.some((word) => /^-n$|^--quiet$|^--silent$/.test(word)) &&
    /^\s*(?:\d+|\$)(?:,\s*(?:\d+|\$|\+\d+))?\s*p\s*(?:;\s*(?:\d+|\$)(?:,\s*(?:\d+|\$|\+\d+))?\s*p\s*)*;?\s*$/.test(
      script,
    ),
  jq: ([filter = '']) =>
    !/\b(?:import|include|modulemeta|input_filename|env|get_search_list|input_line_number)\b|\$ENV|\$__/.test(filter),
  /** `%G` runs the program that checks signatures. */
  gitFormat: (_operands, words) => words.every((word) => !/%G|%\(signature|%\(trailers/.test(word)),
};
