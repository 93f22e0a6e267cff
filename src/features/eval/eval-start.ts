import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { RunHost, RunPart } from '../../kernel/console/feature.js';

/** Has sessions in a repository note its state before their first change, so that a task can begin there. */
export function openEval({ settings }: Pick<RunHost, 'settings'>): RunPart {
  return {
    beforeChanges: async (session) => {
      if (!isInRepository(session.cwd)) return;
      try {
        const { readBase } = await import('./read-base.js');
        const draft = await readBase({ cwd: session.cwd, env: settings.env }, (text) => settings.guard.text(text));
        if (draft !== null) await session.append(draft);
      } catch (error) {
        settings.log({ at: 'eval', message: 'the state of the repository was not noted', error: String(error) });
      }
    },
  };
}

function isInRepository(cwd: string): boolean {
  for (let at = cwd; ; at = dirname(at)) {
    if (existsSync(join(at, '.git'))) return true;
    if (dirname(at) === at) return false;
  }
}
