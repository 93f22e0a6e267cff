import { existsSync } from 'node:fs';
import type { ReplPart } from '../kernel/console/feature.js';
import { importPrograms, type ImportProgram } from '../kernel/console/importer.js';
import { foldersOfProgram } from '../kernel/console/program-folders.js';
import type { Settings } from '../kernel/console/run-settings.js';

/** Counts what can be imported, and passes on what the user is offered. Never rejects. */
type CountFiles = (settings: Settings, onOffer: (offer: string) => void) => Promise<void>;

/** Says on the screen what other programs keep on this machine, once it is counted; null where there is no sign of one. */
export function offerImport(settings: Settings, count: CountFiles): ReplPart | null {
  const isThere = (program: ImportProgram): boolean =>
    foldersOfProgram(program, settings).some(({ folder }) => existsSync(folder));
  if (!importPrograms.some(isThere) && !existsSync(`${settings.home}/.local/share/opencode`)) return null;
  let counting = Promise.resolve();
  return {
    start: (screen) => {
      counting = count(settings, (offer) => {
        screen.notice('info', offer);
      });
    },
    close: async () => {
      await counting;
    },
  };
}
