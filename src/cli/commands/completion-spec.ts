/** What may follow an option or stand as an argument: one of some words, a file, a directory, or a text nobody can
 * guess. */
export type CompletionValue = readonly string[] | 'file' | 'directory' | 'text';

export interface CompletionOption {
  /** `['-m', '--model']`. */
  readonly flags: readonly string[];
  readonly description: string;
  /** Null: the option takes no value. */
  readonly value: CompletionValue | null;
  /** True: it also stands behind every command below. */
  readonly global?: boolean;
}

/** A command with what may follow it; the program itself is the root. */
export interface CompletionCommand {
  readonly name: string;
  readonly description: string;
  readonly options: readonly CompletionOption[];
  readonly commands: readonly CompletionCommand[];
  /** Its arguments, in order; the last one repeats. */
  readonly args?: readonly CompletionValue[];
}

/** A command by the words that lead to it; the root's path is empty. */
export interface CompletionState {
  readonly path: string;
  readonly command: CompletionCommand;
  readonly options: readonly CompletionOption[];
}

/** Every command of the tree, parents first, with the options that count there. */
export function completionStates(
  command: CompletionCommand,
  path = '',
  inherited: readonly CompletionOption[] = [],
): readonly CompletionState[] {
  const options = [...command.options, ...inherited];
  const passedOn = options.filter((option) => option.global === true);
  const below = command.commands.flatMap((child) =>
    completionStates(child, path === '' ? child.name : `${path} ${child.name}`, passedOn),
  );
  return [{ path, command, options }, ...below];
}

/** A word for any of the three shells: within single quotes. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
