import type { Feature } from '../../kernel/console/feature.js';
import { terminalPrograms as programs } from '../../kernel/console/terminal-programs-port.js';

const load = () => import('./terminal-programs-code.js');

/** Hands the terminal to commands of the user that need it. */
export const terminalPrograms: Feature = {
  name: 'terminal-programs',
  openRepl: ({ parts, settings }) => {
    parts.add(programs, {
      needs: async (command) => (await load()).terminalNeed(command, settings.config.ui.terminalPrograms),
      run: async (command, need, signal) => await (await load()).runCommand(command, need, settings, signal),
    });
    return Promise.resolve(null);
  },
};
