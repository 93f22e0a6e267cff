import { knownEvent, typedText } from '../core/event.js';
import type { Session } from './session.js';

/** A title is not worth more of the model's time. */
const longestMs = 30_000;

/** Gives a session that has no title one by its model, once its first turn has ended well. `rename` is called with it;
 * `title` says what the session is called by then. Returns what ends the wait. */
export function titleByModel(
  session: Session,
  title: () => string | null,
  rename: (title: string) => Promise<void>,
): () => void {
  const ending = new AbortController();
  const ask = async (): Promise<void> => {
    const signal = AbortSignal.any([ending.signal, AbortSignal.timeout(longestMs)]);
    const suggested = await session.suggestTitle(signal);
    // The user may have given one meanwhile.
    if (suggested !== '' && title() === null && !ending.signal.aborted) await rename(suggested).catch(() => null);
  };
  const stop = session.subscribe((event) => {
    if (event.type !== 'turn_ended' || event.end.status !== 'completed' || !hasBegun(session)) return;
    stop();
    if (title() === null) void ask();
  });
  return () => {
    stop();
    ending.abort();
  };
}

/** A turn that only compacts has no message. */
function hasBegun(session: Session): boolean {
  return session.recent().some((raw) => {
    const event = raw.kind === 'user' ? knownEvent(raw) : null;
    return event?.kind === 'user' && typedText(event) !== null;
  });
}
