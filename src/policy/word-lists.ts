/** A list as the tables of `config/commands` write it: entries with `, ` between them, on one line or on several. */
export type WordList = string | readonly string[];

/** Returns the entries of a list. */
export function entriesOf(list: WordList): readonly string[] {
  return (typeof list === 'string' ? [list] : list).flatMap((line) => line.split(', '));
}
