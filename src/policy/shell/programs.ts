/** What a call is held to be. A read-only one answers from a place: the machine itself, a service elsewhere, a tool
 * that obeys files of the folder, or a repository that may name programs; without a place it reads the files among its
 * words. */
export interface Outcome {
  readonly risk?: 'read-only' | 'mutating' | 'dangerous';
  readonly reason?: string;
  readonly asks?: 'machine' | 'service' | 'tool' | 'repository';
  /** Code that says what data cannot, by name; where it finds nothing in a read-only call, that call stays one. */
  readonly code?: string;
  /** The words behind the first operand are judged as those of this program. */
  readonly like?: string;
}

/** Lists of phrases, compared word by word: `*` stands for any characters of a word, `?` for one. All that are given
 * must hold. */
export interface Condition {
  readonly program?: readonly string[];
  /** The operands begin with one of these. */
  readonly verb?: readonly string[];
  /** The operands are one of these and nothing else. */
  readonly alone?: readonly string[];
  /** One of these stands somewhere among the operands. */
  readonly operands?: readonly string[];
  /** The words, options too, begin with one of these. */
  readonly start?: readonly string[];
  /** The words are one of these and nothing else. */
  readonly whole?: readonly string[];
  /** One of these stands somewhere among the words. */
  readonly says?: readonly string[];
  /** The same among the words behind the first, which names an area (`gcloud run …`). */
  readonly behind?: readonly string[];
  /** There are words, and each is one of these. */
  readonly every?: readonly string[];
  /** One of these options is given, in a cluster or by a beginning of its name too. */
  readonly options?: readonly string[];
  /** The output of another command is piped into it, or stands among its words. */
  readonly filled?: true;
  /** Code that says whether the rule holds, by name. */
  readonly test?: string;
  readonly anyCase?: true;
}

export interface Rule extends Condition, Outcome {
  readonly also?: Condition;
  /** The rule does not hold where one of these does. */
  readonly unless?: readonly Condition[];
}

/** An entry of `config/commands/*.json`: one program, or several that are judged alike. The first rule that holds
 * decides, else the entry itself. */
export interface Program extends Outcome {
  readonly names: readonly string[];
  /** Options that take a value. */
  readonly takes?: readonly string[];
  /** Options that make it run or load something: dangerous. */
  readonly runs?: readonly string[];
  /** Options that make a reader do more: mutating. */
  readonly changes?: readonly string[];
  /** Options whose value is a file that is written. */
  readonly writes?: readonly string[];
  /** So many operands are read; those behind them are files that are written. */
  readonly inputs?: number;
  /** Options that carry a pattern; without one the first operand is the pattern. */
  readonly pattern?: readonly string[];
  /** Options that choose by name which files are searched, and how they say it. */
  readonly chooses?: { readonly options: readonly string[]; readonly kind: 'glob' | 'regex' };
  /** Prints what is in files. */
  readonly content?: true;
  readonly recursive?: true;
  /** Words known only at run time cannot make it do anything else. */
  readonly open?: true;
  /** Prints no more of a file than its name or its size. */
  readonly namesOnly?: true;
  /** Options that only choose what is shown of a file. */
  readonly shows?: readonly string[];
  readonly starts?: Starts;
  readonly interprets?: Interprets;
  readonly rules?: readonly Rule[];
}

/** How a program takes the command that it starts. */
export interface Starts {
  /** Words of its own before the command. */
  readonly skip?: number;
  /** What it does even around a reader. */
  readonly adds?: string;
  /** The words are joined and run by a shell. */
  readonly joins?: true;
  /** Options whose value is a text that a shell runs. */
  readonly text?: readonly string[];
}

/** How an interpreter takes a program as a word. */
export interface Interprets {
  /** Letters of options that carry code, also in a cluster of letters. */
  readonly letters?: string;
  /** How other words begin that carry code. */
  readonly inline?: readonly string[];
  /** How words begin that load code before the program. */
  readonly preload?: readonly string[];
  readonly language?: 'python' | 'javascript';
  readonly shell?: true;
}

export interface CommandFile {
  readonly about: string;
  /** Lists that rules name as `@name`. */
  readonly lists?: Readonly<Record<string, readonly string[]>>;
  readonly programs: readonly Program[];
}

/** Phrases as alternatives of a regular expression. */
export function either(phrases: readonly string[], lists: NonNullable<CommandFile['lists']> = {}): string {
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
export function expanded(texts: readonly string[], lists: NonNullable<CommandFile['lists']>): readonly string[] {
  return texts.flatMap((text) => (text.startsWith('@') && lists[text.slice(1)]) || [text]);
}
