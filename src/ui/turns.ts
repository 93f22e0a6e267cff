import type { SessionPort } from '../core/session.js';

/** Drives the turns of one session: what is sent while one runs waits in the session's queue, and what is left of the
 * queue when a turn ends begins the next one. */
export interface Turns {
  send(text: string, when: 'steer' | 'after'): void;
  interrupt(): void;
  /** Interrupts, and lets what is queued wait: nobody is here to read the answer. */
  leave(): void;
  /** The queue as one text, emptied; empty where there was nothing. */
  takeBack(): string;
  busy(): boolean;
}

export function createTurns(
  session: SessionPort,
  d: { readonly onFailure: (message: string) => void; readonly onIdle: () => void },
): Turns {
  let gone = false;
  const run = async (text: string): Promise<void> => {
    try {
      await session.submit(text);
    } catch (error) {
      d.onFailure(error instanceof Error ? error.message : String(error));
    }
    const left = gone ? '' : takeBack();
    if (left !== '' && !session.busy()) await run(left);
    else d.onIdle();
  };
  const takeBack = (): string =>
    session
      .takeQueue()
      .map((message) => message.text)
      .join('\n\n');
  return {
    send: (text, when) => {
      if (session.busy()) session.enqueue({ text, when });
      else void run(text);
    },
    interrupt: () => {
      session.interrupt();
    },
    leave: () => {
      gone = true;
      if (session.busy()) session.interrupt();
    },
    takeBack,
    busy: () => session.busy(),
  };
}
