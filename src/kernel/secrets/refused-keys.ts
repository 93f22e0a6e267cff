/** A turn that waits for another key, because the provider has refused the one it was sent. */
export interface KeyRefusal {
  readonly provider: string;
  /** The provider's message. */
  readonly message: string;
  /** The turn was ended meanwhile, or another one has got the key. */
  readonly signal: AbortSignal;
  /** Sends the request again, with the key that there is now; false: the turn ends with what the provider said. */
  answer(again: boolean): void;
}

/** The open requests of turns for another key, which the screen answers. */
export interface RefusedKeys {
  /** Asks for another key. False where nobody can be asked, where no key is given, and once `signal` is aborted. */
  ask(provider: string, message: string, signal: AbortSignal): Promise<boolean>;
  /** Is called when a turn begins to wait. Without a listener nobody can be asked. */
  listen(listener: () => void): void;
  /** The turn that has waited longest; null: none does. */
  first(): KeyRefusal | null;
}

export function createRefusedKeys(): RefusedKeys {
  const open: KeyRefusal[] = [];
  let listener: (() => void) | null = null;
  return {
    listen: (next) => {
      listener = next;
    },
    first: () => open[0] ?? null,
    ask: async (provider, message, signal) => {
      if (listener === null || signal.aborted) return false;
      const over = new AbortController();
      const again = await new Promise<boolean>((resolve) => {
        const onAbort = (): void => {
          resolve(false);
        };
        signal.addEventListener('abort', onAbort, { once: true });
        open.push({ provider, message, signal: over.signal, answer: resolve });
        if (open.length === 1) listener?.();
      });
      open.splice(
        open.findIndex((refusal) => refusal.signal === over.signal),
        1,
      );
      over.abort();
      if (open.length > 0) listener();
      return again;
    },
  };
}
