import type { TurnDeps } from '../../kernel/agent/dependencies.js';
import type { LimitedSession, ReachedLimit, WaitForLimit } from '../../kernel/agent/limit-wait.js';

interface SharedWait {
  readonly over: Promise<boolean>;
  readonly stop: AbortController;
  waiting: number;
}

/** Lets the sub-agents of a session wait for a usage limit together: the session asks once, has one countdown, and its log
 * has one wait, however many of them have met the limit. */
export class WaitTogether {
  readonly #waits = new Map<string, SharedWait>();

  /** Returns the wait of a sub-agent whose call `parent` waits for; undefined if limits are not waited for. `name`: the
   * sub-agent. */
  of(parent: TurnDeps, name: string): WaitForLimit | undefined {
    const { waitForLimit } = parent;
    if (waitForLimit === undefined) return undefined;
    return async (limit, child, signal) => {
      const shared = this.#waits.get(limit.provider) ?? this.#begin(waitForLimit, parent, limit, { child, name });
      shared.waiting += 1;
      const stopped = new Promise<boolean>((resolve) => {
        signal.addEventListener('abort', () => resolve(false), { once: true });
        if (signal.aborted) resolve(false);
      });
      const isOver = await Promise.race([shared.over, stopped]);
      shared.waiting -= 1;
      if (shared.waiting === 0) shared.stop.abort();
      return isOver;
    };
  }

  #begin(
    waitForLimit: WaitForLimit,
    parent: TurnDeps,
    limit: ReachedLimit,
    { child, name }: { readonly child: LimitedSession; readonly name: string },
  ): SharedWait {
    const { putForm, canAsk } = parent.approval;
    const session: LimitedSession = {
      id: parent.record.id,
      append: (draft) => parent.record.append(draft),
      emit: parent.emit,
      ref: child.ref,
      ...(canAsk && putForm ? { putForm } : {}),
      host: parent.host,
    };
    const stop = new AbortController();
    const message = `The agent ${name} waits: ${limit.message}`;
    const over = waitForLimit({ ...limit, message }, session, stop.signal).finally(() => {
      this.#waits.delete(limit.provider);
    });
    const shared: SharedWait = { over, stop, waiting: 0 };
    this.#waits.set(limit.provider, shared);
    return shared;
  }
}
