import type { SessionPort } from '../../core/session.js';
import { assemble, type Assembly } from '../open/assembly.js';
import type { SessionWish } from '../open/session-files.js';
import type { Workbench } from '../open/workbench.js';

/** The session on the desk of a REPL, and how it is put away for another one. */
export interface SessionDesk {
  current(): Assembly;
  /** The title the present session was given, or null. */
  title(): string | null;
  rename(title: string): Promise<void>;
  /** Opens another session first, then closes the present one; where the other cannot be opened the present one stays
   * and the error is thrown. */
  open(wish: SessionWish): Promise<SessionPort>;
  close(): Promise<void>;
}

/** A session has its row from the first event on. */
function afterFirstEvent(session: SessionPort, callback: () => void): void {
  const stop = session.subscribe((event) => {
    if (event.type !== 'event') return;
    stop();
    callback();
  });
}

export async function openDesk(bench: Workbench, wish: SessionWish): Promise<SessionDesk> {
  let current = await assemble(bench, wish, true);
  let { title } = current.row;
  return {
    current: () => current,
    title: () => title,
    rename: async (given) => {
      const next = current.secrets.text(given);
      const { session } = current;
      const save = (): Promise<void> => bench.store.update(session.id, { title: next });
      if (session.events().length > 0) await save();
      else
        afterFirstEvent(session, () => {
          if (title === next) void save().catch(() => null);
        });
      title = next;
    },
    open: async (next) => {
      const opened = await assemble(bench, { ...next, after: current.session.ref() }, true);
      const old = current;
      current = opened;
      ({ title } = opened.row);
      old.session.interrupt();
      await old.close();
      return opened.session;
    },
    close: () => current.close(),
  };
}
