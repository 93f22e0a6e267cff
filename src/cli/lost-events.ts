import type { Session } from '../agent/session.js';
import type { Store } from '../core/store.js';
import { dropMark, readMarks, setMark, type Mark } from '../store/session-ends.js';
import { CliError } from '../commands/cli-error.js';
import type { Notice } from './setup.js';
import type { OpenedSession, SessionWish } from './open/session-files.js';

const cause = 'the database or its log was cut, deleted or replaced from outside';

/** Says what was known to be on disk and is not there any more: events at the end of the opened session, or a later
 * session of this directory. */
export async function lostEvents(
  store: Store,
  database: string,
  wish: SessionWish,
  opened: OpenedSession,
  cwd: string,
): Promise<readonly Notice[]> {
  const marks = readMarks(database);
  const index = marks.findIndex(({ sessionId }) => sessionId === opened.row.id);
  const mark = marks[index];
  const last =
    opened.restored.findLast(
      (event, index) => index < opened.restored.length - 1 || wish.at === undefined || event.kind !== 'rewind',
    )?.seq ?? 0;
  const lost = mark === undefined ? 0 : mark.seq - last;
  const notices =
    lost > 0
      ? [
          notice(
            `The last ${events(lost)} of session ${opened.row.id} ${lost === 1 ? 'is' : 'are'} gone: ${cause}. It goes on after event ${last}.`,
          ),
        ]
      : [];
  if (!wish.continueNewest) return notices;
  const gone = await goneSession(store, index < 0 ? marks : marks.slice(0, index), (other) => other.cwd === cwd);
  if (gone === null) return notices;
  await dropMark(database, gone.sessionId);
  return [
    ...notices,
    notice(
      `Session ${gone.sessionId} of this directory, with ${events(gone.seq)}, is gone: ${cause}. The one before it goes on.`,
    ),
  ];
}

/** The error of a session that was not found, with what is known of it. */
export async function explainMissing(
  error: unknown,
  store: Store,
  database: string,
  wish: SessionWish,
  cwd: string,
): Promise<unknown> {
  if (!(error instanceof CliError)) return error;
  const wanted = wish.resume?.trim().toLowerCase();
  const gone = await goneSession(store, readMarks(database), (mark) =>
    wanted === undefined ? mark.cwd === cwd : wanted.length > 3 && mark.sessionId.toLowerCase().startsWith(wanted),
  );
  return gone === null
    ? error
    : new CliError(
        error.exitCode,
        error.message,
        `Session ${gone.sessionId} was recorded with ${events(gone.seq)} and is gone: ${cause}. ${error.hint}`.trim(),
      );
}

/** Notes how far the session is on disk, with each turn's end; the function it gives does so once more, and waits for
 * it. Never rejects. */
export function keepMark(session: Session, database: string): () => Promise<void> {
  let noted = 0;
  let writing: Promise<void> = Promise.resolve();
  const note = (): Promise<void> => {
    const seq = session.events().at(-1 - session.unsaved())?.seq ?? 0;
    if (seq !== noted)
      writing = writing.then(() => setMark(database, { sessionId: session.id, seq, cwd: session.cwd }));
    noted = seq;
    return writing;
  };
  session.subscribe((event) => {
    if (event.type === 'turn_ended') void note();
  });
  return note;
}

async function goneSession(store: Store, marks: readonly Mark[], fits: (mark: Mark) => boolean): Promise<Mark | null> {
  const mark = marks.find(fits);
  return mark && (await store.session(mark.sessionId).catch(() => true)) === null ? mark : null;
}

function notice(message: string): Notice {
  return { level: 'warn', code: 'events_lost', message };
}

function events(count: number): string {
  return `${count} event${count === 1 ? '' : 's'}`;
}
