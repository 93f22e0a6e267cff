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
  const rules = rulesOf(host);
  let screen: ReplNotices | null = null;
  const wanted = new Set<string>();
  const sessions = new Set<Session>();
  /** The waits that continue in the background, by session. */
  const kept = new Map<string, number>();
  const waitForLimit = createWait(host, load, {
    rules,
    isRepl: () => screen !== null,
    takeWanted: (id) => wanted.delete(id),
    onKept: (id, until) => kept.set(id, until),
  });
  /** Ends the process that was started for the wait, unless a terminal shows the session or something runs. */
  const leave = (): void => {
    if (isKept(host.options)) setImmediate(() => screen?.leave());
  };
  /** Continues what the session was left with. A session whose turn stopped at a limit is asked about. */
  const resume = (session: Session): void => {
    const pending = pendingLimit(session.recent());
    if (screen === null || session.busy()) return;
    if (pending === null || (pending.state === 'reached' && rules.wait === 'never')) {
      leave();
      return;
    }
    session.continueTurn().catch((error: unknown) => {
      host.settings.log({ at: 'limit', message: 'a wait was not continued', error: String(error) });
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
        const stop = session.subscribe((event) => {
          if (event.type === 'turn_ended') leave();
        });
        // The session is still being opened: its first notices come before its first turn.
        setImmediate(() => {
          if (sessions.has(session)) resume(session);
        });
        return () => {
          stop();
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

interface WaitState {
  readonly rules: LimitRules;
  readonly isRepl: () => boolean;
  /** Returns true once if the user has asked for the wait of this session. */
  readonly takeWanted: (sessionId: string) => boolean;
  /** Called when a wait continues in the background. */
  readonly onKept: (sessionId: string, until: number) => void;
}

function createWait(host: RunHost, load: LoadWaits, { rules, isRepl, takeWanted, onKept }: WaitState): WaitForLimit {
  return async (limit, session, signal) => {
    const { keepWait, waitOutLimit } = await load();
    return await waitOutLimit(limit, session, {
      rules,
      isRepl: isRepl(),
      isWanted: takeWanted(session.id),
      keep: async (until) => {
        if (await keepWait(host, session.id, until)) onKept(session.id, until);
      },
      signal,
    });
  };
}

/** The process continues a wait that a terminal has left. */
function isKept({ waitForLimit }: RunHost['options']): boolean {
  return waitForLimit === keptWait;
}

function rulesOf({ settings, options }: RunHost): LimitRules {
  const given = longestLimitWait(options);
  const { wait } = settings.config.usageLimits;
  return {
    wait: given === null || isKept(options) ? wait : 'always',
    longestMs: given ?? usualLimitWaitMs,
  };
}
