import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { RunHost, RunPart } from '../../kernel/console/feature.js';
import type { BaseEvent } from './read-base.js';

/** Has sessions in a repository note its state before their first change, so that a task can begin there. It is read
 * while the model answers the message of a turn, so that the first call seldom waits for it. */
export function openEval({ settings }: Pick<RunHost, 'settings'>): RunPart {
  let reading: Reading | null = null;
  let isNoted = false;
  const read = async (cwd: string, signal?: AbortSignal): ReturnType<Reading> => {
    if (!isInRepository(cwd)) return null;
    const { readBase } = await import('./read-base.js');
    return await readBase({ cwd, env: settings.env, signal }, (text) => settings.guard.text(text));
  };
  return {
    follow: ({ session, within }) => {
      if (within) return () => undefined;
      const stop = new AbortController();
      const unfollow = session.subscribe(({ type }) => {
        if (type === 'turn_started') reading = null;
        if (type !== 'request_started' || isNoted || reading !== null) return;
        reading = ahead(() => read(session.cwd, stop.signal));
      });
      return () => {
        unfollow();
        stop.abort();
      };
    },
    beforeChanges: async (session) => {
      isNoted = true;
      try {
        const draft = await (reading ?? (() => read(session.cwd)))();
        if (draft !== null) await session.append(draft);
      } catch (error) {
        settings.log({ at: 'eval', message: 'the state of the repository was not noted', error: String(error) });
      }
    },
  };
}

type Reading = () => Promise<BaseEvent | null>;

/** Begins once the request is on its way. Returns the result, or the failure, to those who ask for it. */
function ahead(read: Reading): Reading {
  const begun = new Promise<void>((resolve) => setImmediate(resolve)).then(read);
  begun.catch(() => undefined);
  return () => begun;
}

function isInRepository(cwd: string): boolean {
  for (let at = cwd; ; at = dirname(at)) {
    if (existsSync(join(at, '.git'))) return true;
    if (dirname(at) === at) return false;
  }
}
