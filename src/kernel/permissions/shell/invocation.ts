import { addAll, entriesOf, type WordList } from '../../core/lists.js';
import { replaceUnseen } from '../../core/text.js';
import {
  directoryOf,
  isInside,
  isInWorkspace,
  normalise,
  type ProtectedPaths,
  resolvePath,
  type SecretPaths,
  type Workspace,
} from '../guarded-paths.js';

/** The part of `Arg.text` that only the running shell knows. */
export const unknownText = '\0';

/** The placeholder in `Arg.text` for the number of the running shell or of its last job: larger than any real one
 * (Linux ends at 4194304). */
export const ownProcess = '999999999';

/** One word of a command after the expansions that can be done without running anything. */
export interface Arg {
  /** Quotes removed, `~` and known variables filled in; NUL where something is not known. */
  readonly text: string;
  /** Every value the word can have, `text` first (loop variables, known assignments). */
  readonly values: readonly string[];
  readonly dynamic: boolean;
  /** Unquoted wildcards in it. */
  readonly glob: boolean;
  /** The programs that a `$(…)` in it runs: only ones that print names or numbers, or any others. */
  readonly substitution: 'none' | 'names' | 'any';
  /** A variable in it whose name says that it holds a secret. */
  readonly secretVariable: string | null;
}

/** The reason why a command is dangerous. */
export interface Finding {
  /** A short sentence about the part it names. */
  readonly reason: string;
  /** No rule of the user lifts it: secrets, protected paths, what cannot be analysed. */
  readonly fixed?: boolean;
  /** It is dangerous only because its effect is not known. */
  readonly unclear?: true;
  readonly targets?: readonly string[];
}

/** The surroundings of a command in its line. */
export interface CommandPlace {
  /** Its standard input is the output of another command or text of the script. */
  readonly piped: boolean;
  /** Its output becomes words or standard input of a program that acts on it. */
  readonly captured: boolean;
  /** The known part of its standard input: here-documents, here-strings and the text of the commands before it in the
   * pipe. */
  readonly input: string;
  /** The later commands of its pipeline, by name. */
  readonly next: readonly Arg[] | null;
  readonly depth: number;
  /** Another program starts it. */
  readonly started?: boolean;
  /** The text is for `sh`, which need not be bash. */
  readonly posix?: boolean;
}

/** A simple command, wrappers and paths of system folders removed. */
export interface Invocation {
  readonly name: string;
  readonly args: readonly Arg[];
  readonly place: CommandPlace;
  readonly scan: OptionScan;
  /** Judges a command inside this one. */
  argv(args: readonly Arg[], place?: Partial<CommandPlace>): readonly Finding[];
  /** Judges a text that a shell would run. */
  script(text: string, place?: Partial<CommandPlace>): readonly Finding[];
}

export type Code = (call: Invocation, program: Program, options: Options) => readonly Finding[];
export type Test = (call: Invocation, options: Options) => boolean;

/** A program of the tables: its entry, and the judgement of a call. */
export interface KnownProgram {
  readonly entry: Program;
  readonly judge: (call: Invocation) => readonly Finding[];
}
export type KnownPrograms = ReadonlyMap<string, KnownProgram>;

/** Code that entries and rules name. */
export interface NamedCode {
  readonly codes: Readonly<Record<string, Code>>;
  readonly tests: Readonly<Record<string, Test>>;
}

/** The facts that are known before a command is judged. */
export interface ShellContext extends Workspace {
  readonly home: string;
  /** The directory where the command starts; absolute. */
  readonly cwd: string;
  readonly secrets: SecretPaths;
  readonly isProtected: ProtectedPaths;
  /** Folders on the way that are reached through links, and where they lie: `..` means another folder to a program than
   * to the shell. */
  readonly landings?: ReadonlyMap<string, string>;
}

/** A program that would run, wrappers and what they wrap each on its own. */
export interface FoundCommand {
  readonly argv: readonly string[];
  /** Every known value of each word. */
  readonly words: readonly (readonly string[])[];
  readonly findings: readonly Finding[];
  /** Its words are what they seem, its program is no function of the line, and nothing else starts it. */
  readonly exact: boolean;
  /** Its program and options are on the short list. */
  readonly listed: boolean;
}

/** Returns whether a rule has to allow this command before a rule can allow its line. */
export function needsRule({ findings, listed }: FoundCommand): boolean {
  return findings.length > 0 || !listed;
}

/** Collects what a walk through a command line finds. Mutable, owned by one classification. */
export interface OptionScan {
  readonly context: ShellContext;
  readonly programs: KnownPrograms;
  readonly folders: Folders;
  readonly files: Files;
  readonly functions: Set<string>;
  readonly variables: Map<string, Variable>;
  readonly commands: FoundCommand[];
  readonly findings: Finding[];
  /** Something besides its commands counts: a redirect writes, or reads what is known only when it runs. */
  redirects: boolean;
  parts: number;
  /** Walks a text that a shell would run; its findings go to `findings`. */
  readonly script: (text: string, place: CommandPlace) => void;
}

/** The folders in which the parts of a command line may run. */
interface Folders {
  /** Every directory from which a relative path may start. */
  readonly cwds: string[];
  /** A `cd` went somewhere unknown. */
  lost: boolean;
  /** A part may run in a folder that is not among `cwds`. */
  wanders: boolean;
}

/** Files by absolute path. */
interface Files {
  /** Written to and read by redirects and by known arguments. */
  readonly writes: Set<string>;
  readonly reads: Set<string>;
  /** Fetched from the network by the script. */
  readonly fetched: Set<string>;
  /** Written by the script itself, with the text where it is known, else null. */
  readonly written: Map<string, string | null>;
}

/** The values that a script assigns to a variable, in all places together. */
export interface Variable {
  readonly values: Set<string>;
  known: boolean;
  numeric: boolean;
  glob: boolean;
}

const maxShown = 80;

/** The command as a reason names it: in backquotes, on one line, cut. */
export function quoteCommand(call: Pick<Invocation, 'name' | 'args'>): string {
  const words = [call.name, ...call.args.map(({ text }) => (text === '' ? "''" : text))].join(' ');
  return quoted(words);
}

export function quoted(text: string): string {
  const clean = replaceUnseen(text.replaceAll(unknownText, '…'), () => ' ');
  return `\`${clean.length > maxShown ? `${clean.slice(0, maxShown)}…` : clean}\``;
}

export function danger(
  call: Pick<Invocation, 'name' | 'args'>,
  what: string,
  targets?: readonly string[],
): readonly Finding[] {
  return [{ reason: `${quoteCommand(call)} ${what}`, ...(targets ? { targets } : {}) }];
}

/** Returns a finding for a command that is dangerous only because its effect is not known. */
export function unclear(call: Pick<Invocation, 'name' | 'args'>, what: string): readonly Finding[] {
  return [{ reason: `${quoteCommand(call)} ${what}`, unclear: true }];
}

export function unanalysable(what: string): readonly Finding[] {
  return [{ reason: `cannot be analysed: ${what}`, fixed: true, unclear: true }];
}

/** A program of awk or sed in a file of the workspace is a script like any other; one that is made as it runs is
 * not. */
export function fromFile(files: readonly Arg[], call: Pick<Invocation, 'name' | 'args'>): readonly Finding[] {
  const made = files.some(
    (arg) => arg.dynamic || arg.substitution !== 'none' || /^-$|^\/dev\/|^\/proc\//.test(arg.text),
  );
  return made ? unclear(call, 'runs a program that is known only when it runs') : [];
}

/** Every absolute path that `text` may mean, one for each directory the command may start in. */
export function pathsOf(text: string, scan: OptionScan): readonly string[] {
  const { home } = scan.context;
  if (text.startsWith('/') || text === '~' || text.startsWith('~/')) return [resolvePath('/', text, home)];
  return fromEach(scan).map((cwd) => resolvePath(cwd, text, home));
}

/** Every folder a path may start from, as the shell spells it and as the kernel sees it. */
function fromEach({ folders: { cwds }, context: { landings } }: OptionScan): readonly string[] {
  if (landings === undefined || landings.size === 0) return cwds;
  return [...new Set(cwds.flatMap((cwd) => [cwd, landings.get(cwd) ?? cwd]))];
}

/** True in the workspace and in folders for temporary files. A directory that is only read stays so wherever it is. */
export function mayWrite(path: string, workspace: Workspace): boolean {
  const directory = directoryOf(path, workspace);
  return directory === null ? isScratch(path) : !directory.readOnly;
}

/** True for a path in a folder for temporary files. */
export function isScratch(path: string): boolean {
  return (
    isInside(path, '/tmp') || isInside(path, '/var/tmp') || isInside(path, '/private/tmp') || isInside(path, '/dev/shm')
  );
}

const harmless = /^\/dev\/(?:null|stdout|stderr|tty|zero|full|fd\/\d+)$|^\/proc\/self\/fd\/[012]$/;

/** Returns true if the text that is written there is not kept: `/dev/null`, the screen. */
export function isDiscarded(arg: Arg, scan: OptionScan): boolean {
  return !arg.dynamic && arg.values.flatMap((value) => pathsOf(value, scan)).every((path) => harmless.test(path));
}

/** Notes a write to the path `arg`, and judges it: outside the workspace and folders for temporary files it is
 * dangerous, and so is a path that is protected or not known. */
export function writeTo(arg: Arg, call: Pick<Invocation, 'name' | 'args' | 'scan'>): readonly Finding[] {
  const { scan } = call;
  if (isDiscarded(arg, scan)) return [];
  const paths = arg.values.flatMap((value) => pathsOf(value, scan));
  for (const path of paths) scan.files.writes.add(path);
  const guarded = guardedWrite(paths, arg, scan);
  if (guarded) return guarded;
  const known = paths.filter((path) => !path.includes(unknownText));
  const outside = known.find((path) => !mayWrite(path, scan.context));
  if (outside !== undefined) return danger(call, `writes outside the workspace: ${outside}`, [outside]);
  if (arg.dynamic) return isAnchored(arg, scan) ? [] : danger(call, 'writes to a file that is known only when it runs');
  return scan.folders.lost ? danger(call, 'writes in a directory that is known only when it runs') : [];
}

/** The part of the word that is known leads into the workspace or a temporary folder. */
function isAnchored(arg: Arg, scan: OptionScan): boolean {
  const root = arg.text.split(unknownText)[0] ?? '';
  return (
    /^\/(?:tmp|var\/tmp)\/./.test(root) ||
    (root.startsWith('/') && isInWorkspace(normalise(root.replace(/[^/]*$/, '')), scan.context)) ||
    (arg.substitution === 'names' && isBelow(root, scan))
  );
}

/** A folder of the workspace in front of a name that a lister printed. */
function isBelow(root: string, scan: OptionScan): boolean {
  return (
    /^\w[\w./-]*\/$/.test(root) &&
    !root.includes('..') &&
    !scan.folders.lost &&
    pathsOf(root, scan).every((path) => isInWorkspace(path, scan.context))
  );
}

function guardedWrite(paths: readonly string[], arg: Arg, scan: OptionScan): readonly Finding[] | null {
  const { secrets, isProtected } = scan.context;
  const found = paths.find(
    (path) =>
      !harmless.test(path) && (isProtected(path) || secrets.matches(path) || (arg.glob && secrets.mayMatch(path))),
  );
  if (found === undefined) return null;
  return [
    {
      reason: `writes the protected file ${found.replaceAll(unknownText, '…')}`,
      fixed: true,
      targets: [found],
    },
  ];
}

/** A quoted pattern, as find takes it; a text with blanks, quotes or signs of code is none. */
const quotedWildcard = /^[^\s()'"=>;]*[*?[][^\s()'"=>;]*$/;

/** The secret file that a word may name, or null. Looks at the word itself and at the paths that options and addresses
 * hold in them (`--file=…`, `@…`, `file://…`, `HEAD:…`, `host:…`, `if=…`, `-f…`). */
export function secretIn(arg: Arg, scan: OptionScan): string | null {
  const { secrets } = scan.context;
  for (const value of arg.values) {
    const wildcards = quotedWildcard.test(value);
    for (const text of candidates(value)) {
      for (const path of pathsOf(text, scan)) {
        if (path.length > 4096) continue;
        if (secrets.matches(path)) return path;
        if ((arg.glob || arg.dynamic || (wildcards && /[*?]|\[.+\]/.test(text))) && secrets.mayMatch(path)) return path;
      }
    }
  }
  return null;
}

/** The texts inside a word that may be paths. */
export function candidates(value: string): readonly string[] {
  if (value === '' || value === unknownText || value.includes('\n')) return [];
  const found = [value];
  if (/^-[A-Za-z]./.test(value)) found.push(value.slice(2));
  for (const match of value.matchAll(/[=@:,<]+/g)) {
    const rest = value.slice(match.index + match[0].length);
    if (rest !== '' && found.length < 24)
      found.push(rest.startsWith('//') ? rest.slice(2).replace(/^[^/]*(?=\/)/, '') : rest);
  }
  if (/[,;:]/.test(value)) addAll(found, value.split(/[,;:]/, 12).filter(Boolean));
  return found;
}

const fetching = /(?:^|\s)(?:curl|wget|http|https|xh|aria2c)\s/;
const everything = '/*';

/** Returns true if the text that a command is given comes from the network. */
export function comesFromNetwork(input: string): boolean {
  return fetching.test(input);
}

/** Remembers that everything below the folder `text` was fetched: by a clone, or from an archive. */
export function keepFetchedFolder(text: string, scan: OptionScan): void {
  for (const path of pathsOf(text, scan)) scan.files.fetched.add(path + everything);
}

/** True for a file that the script itself has fetched. */
export function isFetched(text: string, scan: OptionScan): boolean {
  const folders = [...scan.files.fetched]
    .filter((path) => path.endsWith(everything))
    .map((path) => path.slice(0, -everything.length));
  return pathsOf(text, scan).some(
    (path) => scan.files.fetched.has(path) || folders.some((folder) => isInside(path, folder)),
  );
}

/** The words of a command, split as getopt does it: clusters of letters, long options with `=` or with the next
 * word. */
export interface Options {
  readonly flags: readonly Flag[];
  readonly operands: readonly Arg[];
}

export interface Flag {
  readonly name: string;
  readonly value: Arg | null;
}

/** The judgement of a call. It is harmless if no field is set. */
export interface RuleOutcome {
  /** The reason why it is dangerous: the end of a sentence that begins with the command. */
  readonly danger?: string;
  /** The name of a function that judges the rest. */
  readonly code?: string;
  /** The words behind the first operand are judged as those of this program. */
  readonly like?: string;
  /** It sends its words away, or obeys them: the output of a command among them is dangerous. */
  readonly sends?: true;
}

/** Lists of phrases. They are compared word by word: `*` matches any characters of a word, `?` one. */
interface Phrases {
  /** The operands begin with one of these. */
  readonly verb?: readonly string[];
  /** The operands are one of these and nothing else. */
  readonly alone?: readonly string[];
  /** One of these is among the operands. */
  readonly operands?: readonly string[];
  /** The words, options too, begin with one of these. */
  readonly start?: readonly string[];
  /** The words are one of these and nothing else. */
  readonly whole?: readonly string[];
  /** One of these is among the words. */
  readonly says?: readonly string[];
  /** The same among the words behind the first, which names an area (`gcloud run …`). */
  readonly behind?: readonly string[];
  /** There are words, and each is one of these. */
  readonly every?: readonly string[];
}

/** Everything that is given must hold. */
export interface RuleCondition extends Phrases {
  readonly program?: readonly string[];
  /** One of these options is given, in a cluster or by a beginning of its name too. */
  readonly options?: readonly string[];
  /** The output of another command is piped into it, or is among its words. */
  readonly filled?: true;
  /** Code that says whether the rule holds, by name. */
  readonly test?: string;
  readonly anyCase?: true;
}

export interface CommandRule extends RuleCondition, RuleOutcome {
  readonly also?: RuleCondition;
  /** The rule does not hold where one of these does. */
  readonly unless?: readonly RuleCondition[];
}

/** An entry of `config/commands/*.json`: one program, or several that are judged alike. The first rule that holds
 * decides, else the entry itself. */
export interface Program extends RuleOutcome, Reading {
  readonly names: readonly string[];
  /** Options that take a value. */
  readonly takes?: readonly string[];
  /** Options that make it run or load something: dangerous. */
  readonly runs?: readonly string[];
  /** Options whose value is a file that is written. */
  readonly writes?: readonly string[];
  /** It only reads, also files that other programs obey. */
  readonly reads?: true;
  readonly starts?: Starts;
  readonly interprets?: Interprets;
  readonly rules?: readonly CommandRule[];
}

/** The input and output of a program. */
interface Reading {
  /** The number of operands that are read; those after them are files that are written. */
  readonly inputs?: number;
  /** Options that carry a pattern; without one the first operand is the pattern. */
  readonly pattern?: readonly string[];
  /** Options that choose by name which files are searched. */
  readonly chooses?: { readonly options: readonly string[]; readonly kind: 'glob' | 'regex' };
  /** Prints what is in files. */
  readonly content?: true;
  readonly recursive?: true;
  /** Prints no more of a file than its name or its size. */
  readonly namesOnly?: true;
}

/** The form in which a program takes the command that it starts. */
interface Starts {
  /** Words of its own before the command. */
  readonly skip?: number;
  /** The words are joined and run by a shell. */
  readonly joins?: true;
  /** Options whose value is a text that a shell runs. */
  readonly text?: readonly string[];
}

/** The form in which an interpreter takes a program as a word. */
export interface Interprets {
  /** Letters of options that carry code, also in a cluster of letters. */
  readonly letters?: string;
  /** The beginnings of other words that carry code. */
  readonly inline?: readonly string[];
  /** The beginnings of words that load code before the program. */
  readonly preload?: readonly string[];
  readonly language?: 'python' | 'javascript';
  readonly shell?: true;
}

/** Phrases as alternatives of a regular expression. */
export function either(phrases: WordList, lists: Readonly<Record<string, WordList>> = {}): string {
  return expanded(phrases, lists)
    .map((phrase) =>
      phrase
        .replace(/[.+^${}()|[\]\\]/g, '\\$&')
        .replaceAll('*', '\\S*')
        .replaceAll('?', '\\S'),
    )
    .join('|');
}

/** The texts, with `@name` replaced by the list of that name. */
export function expanded(texts: WordList, lists: Readonly<Record<string, WordList>>): readonly string[] {
  return entriesOf(texts).flatMap((text) => {
    const list = text.startsWith('@') ? lists[text.slice(1)] : undefined;
    return list === undefined ? [text] : entriesOf(list);
  });
}
