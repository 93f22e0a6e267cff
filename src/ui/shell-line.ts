/** A `!command` of the user. */
export interface ShellLine {
  readonly command: string;
  readonly sendToModel: boolean;
  /** It gets the terminal, whatever program it is. */
  readonly onTerminal?: boolean;
}

/** Parses `!command` (its output is sent to the model) or `!!command` (it is not sent); null for anything else. With
 * `!i command` it gets the terminal. */
export function shellLine(text: string): ShellLine | null {
  const [, marks, forced, command] = /^(!{1,2})(i\s+)?\s*([^!\s][\s\S]*)$/.exec(text.trim()) ?? [];
  if (command === undefined) return null;
  return { command, sendToModel: marks === '!', ...(forced === undefined ? {} : { onTerminal: true }) };
}
