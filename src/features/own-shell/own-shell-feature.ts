import type { Feature } from '../../kernel/console/feature.js';
import { openOwnShell, openOwnShellReports } from './own-shell-start.js';

/** Aliases, functions and PATH of the user's login shell for commands (`tools.bash.shell: own`). */
export const ownShellFeature: Feature = {
  name: 'own-shell',
  openTools: (host) => Promise.resolve(openOwnShell(host)),
  openRun: (host) => Promise.resolve(openOwnShellReports(host)),
};
