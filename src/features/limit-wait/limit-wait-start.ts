import { pendingLimit, type WaitForLimit } from '../../kernel/agent/limit-wait.js';
import type { Session } from '../../kernel/agent/session.js';
import type { ReplNotices, RunHost } from '../../kernel/console/feature.js';
import { keptWait, longestLimitWait, usualLimitWaitMs } from '../../kernel/console/limit-option.js';
import { limitTime } from '../../kernel/console/limit-times.js';
import { printError } from '../../kernel/console/print.js';
import type * as code from './limit-wait-code.js';
import type { LimitRules, LimitWaits } from './limit-parts.js';

/** Loads the code of waits, which a run without a usage limit does not need. */
type LoadWaits = () => Promise<typeof code>;

export function openLimitWaits(host: RunHost, load: LoadWaits): LimitWaits {
  const { settings } = host;
  const rules = rulesOf(host);
  let screen: ReplNotices | null = null;
  const wanted = new Set<string>();
  const sessions = new Set<Session>();
  /** The waits that continue in the background, by session. */
  const kept = new Map<string, number>();
  const waitForLimit: WaitForLimit = async (limit, session, signal) => {
    const { waitOutLimit } = await load();
    return await waitOutLimit(limit, session, {
      rules,
      isRepl: screen !== null,
      isWanted: wanted.delete(session.id),
      keep: async (until) => {
        const isKept = await (await load()).keepWait(host, session.id, until);
        if (isKept) kept.set(session.id, until);
      },
      signal,
    });
  };
  /** Continues what the session was left with. A session whose turn stopped at a limit is asked about. */
  const resume = (session: Session): void => {
    const pending = pendingLimit(session.events());
    if (screen === null || pending === null || session.busy()) return;
    if (pending.state === 'reached' && rules.wait === 'never') return;
    session.continueTurn().catch((error: unknown) => {
      settings.log({ at: 'limit', message: 'a wait was not continued', error: String(error) });
    });
  };
  return {
    begin: (shown) => {
      screen = shown;
      for (const session of sessions) resume(session);
    },
    want: (sessionId) => {
      wanted.add(sessionId);
    },
    part: {
      waitForLimit,
      follow: ({ session, within }) => {
        if (within) return () => undefined;
        sessions.add(session);
        // The session is still being opened: its first notices come before its first turn.
        setImmediate(() => {
          if (sessions.has(session)) resume(session);
        });
        return () => {
          sessions.delete(session);
        };
      },
      close: () => {
        if (screen === null) return;
        for (const until of kept.values())
          printError(
            `The wait for the usage limit continues in the background until ${limitTime(until, Date.now())}.\n`,
          );
      },
    },
  };
}

function rulesOf({ settings, options }: RunHost): LimitRules {
  const given = longestLimitWait(options);
  const { wait } = settings.config.usageLimits;
  const isKept = options.waitForLimit === keptWait;
  return { wait: given === null || isKept ? wait : 'always', longestMs: given ?? usualLimitWaitMs, isKept };
}
