import type { ChainBreak, ChainReport } from '../../core/store.js';
import { counted } from '../../tools/outcome.js';
import { exit, type Verb } from '../command.js';
import { localTime, printJson } from '../line-output.js';
import { findSession } from '../sessions/stored-session.js';

const meanings: Readonly<Record<ChainBreak['kind'], string>> = {
  content: 'was changed after it was written',
  chain: 'is not what followed the event before it: an event was put in, taken out or written anew',
  missing: 'does not follow the event before it: events between them are gone',
  unhashed: 'has no hash: it was not written by this program',
};

const limits =
  'This shows damage and tampering, it does not prevent them: one who can write the database can write all of it ' +
  'anew, or take events away at the end of a session. Keep the heads (--json) elsewhere to notice that too.';

/** Names the first break of each session. Exit 0 where every chain is whole, else 1. */
export const verifyRecord: Verb = {
  line: {
    example: 'agent audit verify',
    options: (command) => command.option('--json', 'one JSON object'),
    run: async ({ out, withStore }, [session], options: { readonly json?: boolean }) =>
      await withStore(async ({ records, store }) => {
        const report = await records.verify(session === undefined ? null : (await findSession(store, session)).id);
        if (options.json) printJson(out, json(report), 2);
        else out.print(text(report));
        return report.breaks.length === 0 ? exit.done : exit.failed;
      }),
  },
};

function json({ sessions, events, redacted, breaks, heads }: ChainReport): object {
  return {
    ok: breaks.length === 0,
    sessions,
    events,
    redacted,
    breaks: breaks.map(({ sessionId, seq, kind, createdAt }) => ({
      session_id: sessionId,
      seq,
      kind,
      created_at: createdAt,
      message: `event ${seq} ${meanings[kind]}`,
    })),
    heads: heads.map(({ sessionId, seq, hash }) => ({ session_id: sessionId, seq, hash })),
  };
}

function text({ sessions, events, redacted, breaks, heads }: ChainReport): string {
  const [only] = heads;
  const lines = breaks.map(
    (found) =>
      `Session ${found.sessionId}: event ${found.seq} (${localTime(found.createdAt)}) ${meanings[found.kind]}.`,
  );
  if (sessions === 1 && only) lines.push(`Head: event ${only.seq}, ${only.hash}`);
  const broken = `${counted(breaks.length, 'session')} ${breaks.length === 1 ? 'is' : 'are'} broken`;
  const left = redacted > 0 ? `, ${redacted} of them redacted` : '';
  const looked = `${events} events of ${counted(sessions, 'session')} looked at${left}`;
  lines.push(`${looked}: ${breaks.length === 0 ? 'every chain is whole' : broken}.`, limits);
  return lines.map((line) => `${line}\n`).join('');
}
