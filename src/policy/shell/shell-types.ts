import type { ProtectedPaths } from '../protected-paths.js';
import type { SecretPaths } from '../secret-paths.js';

/** Stands in `Arg.text` for what only the running shell knows. */
export const unknownText = '\0';

/** Stands in `Arg.text` for the number of the running shell or of its last job: larger than any real one (Linux ends at
 * 4194304). */
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
  /** What a `$(…)` in it runs: programs that only print names or numbers, or anything else. */
  readonly substitution: 'none' | 'names' | 'any';
  /** A variable in it whose name says that it holds a secret. */
  readonly secretVariable: string | null;
}

export interface Finding {
  readonly risk: 'mutating' | 'dangerous';
  /** A short sentence about the part it names. */
  readonly reason: string;
  /** No rule of the user lifts it: secrets, protected paths, what cannot be analysed. */
  readonly fixed?: boolean;
  readonly targets?: readonly string[];
}

/** Where a command stands. */
export interface Place {
  /** Its standard input is the output of another command or text of the script. */
  readonly piped: boolean;
  /** What it prints becomes words or standard input of something that acts on it. */
  readonly captured: boolean;
  /** What is known of its standard input: here-documents, here-strings and the text of the commands before it in the
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
  readonly place: Place;
  readonly scan: Scan;
  /** Judges a command inside this one. */
  argv(args: readonly Arg[], place?: Partial<Place>): readonly Finding[];
  /** Judges a text that a shell would run. */
  script(text: string, place?: Partial<Place>): readonly Finding[];
}

export type Handler = (call: Invocation) => readonly Finding[];

/** What is known before a command is looked at. */
export interface ShellContext {
  readonly home: string;
  /** Where the command starts; absolute. */
  readonly cwd: string;
  readonly workspace: string;
  readonly secrets: SecretPaths;
  readonly isProtected: ProtectedPaths;
  /** The repository's own configuration names no program that a reading git command would run. */
  readonly plainGit: boolean;
  /** Families of tools that files of the folder, or of one above it, steer: `familyOf` names them. */
  readonly steered: ReadonlySet<string>;
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
}

/** What is learnt while a command line is walked. Mutable, owned by one classification. */
export interface Scan {
  readonly context: ShellContext;
  /** Every directory a relative path may start from. */
  readonly cwds: string[];
  /** A `cd` went somewhere unknown. */
  lostCwd: boolean;
  /** A part of it may run in a folder that is not among `cwds`. */
  wanders: boolean;
  /** What of the repository's settings the judgement rests on. */
  readonly relies: Set<string>;
  readonly functions: Set<string>;
  readonly variables: Map<string, Variable>;
  readonly commands: FoundCommand[];
  readonly findings: Finding[];
  /** Absolute paths written to and read by redirects and by known arguments. */
  readonly writes: Set<string>;
  readonly reads: Set<string>;
  /** Absolute paths of files that the script fetches from the network. */
  readonly fetched: Set<string>;
  /** What the script itself writes into files, by absolute path: the text where it is known, else null. */
  readonly written: Map<string, string | null>;
  parts: number;
  /** Walks a text that a shell would run; its findings go to `findings`. */
  readonly script: (text: string, place: Place) => void;
}

/** What a script assigns to a variable, all places together. */
export interface Variable {
  readonly values: Set<string>;
  known: boolean;
  numeric: boolean;
  glob: boolean;
}
