/** Reads one line that the terminal does not show; it prints a star for each character. */
export interface HiddenLine {
  /** Resolves with the answer without white space around it; null for an empty one, Escape, Ctrl-C, and once
   * `signal` is aborted. */
  ask(question: string, signal?: AbortSignal): Promise<string | null>;
  /** Takes what was typed. False: nothing is asked. */
  take(text: string): boolean;
  /** Something is asked. */
  isOpen(): boolean;
}

interface Parts {
  /** Switches the echo of the terminal off and on. */
  readonly raw: (on: boolean) => void;
  readonly write: (text: string) => void;
  readonly onDone: () => void;
}

/** Makes one for a terminal whose input goes through `take`. */
export function createHiddenLine({ raw, write, onDone }: Parts): HiddenLine {
  let done: ((answer: string | null) => void) | null = null;
  let typed = '';
  const end = (answer: string | null): void => {
    const give = done;
    done = null;
    typed = '';
    raw(false);
    write('\n');
    give?.(answer);
    onDone();
  };
  const press = (char: string): void => {
    if (char === '\r' || char === '\n') end(typed.trim() === '' ? null : typed.trim());
    else if (char === '\x03' || char === '\x04' || char === '\x1b') end(null);
    else if (char === '\x7f' || char === '\b') typed = typed.slice(0, -1);
    else if (char >= ' ') {
      typed += char;
      write('*');
    }
  };
  return {
    ask: (question, signal) =>
      new Promise((resolve) => {
        done?.(null);
        done = resolve;
        const takeBack = (): void => {
          if (done === resolve) end(null);
        };
        signal?.addEventListener('abort', takeBack, { once: true });
        raw(true);
        write(question);
      }),
    isOpen: () => done !== null,
    take: (text) => {
      if (done === null) return false;
      for (const char of text) if (done !== null) press(char);
      return true;
    },
  };
}
