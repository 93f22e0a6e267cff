import { findDirectory } from '../app/extra-directories.js';
import type { CommandHandler, Repl } from '../kernel/console/command.js';
import { directoryText } from '../kernel/core/directories.js';
import { workspaceProblem } from '../kernel/tools/sandbox/bubblewrap-profile.js';

/** `/add-dir`: a further directory where the session may work; without an argument, the list. */
export const addDirectory: CommandHandler = { slash: addOrList };

async function addOrList(argument: string, { approval, screen, settings }: Repl): Promise<void> {
  const found = argument === '' ? null : findDirectory(argument, settings);
  if (typeof found === 'string') {
    screen.notice('warn', `Nothing was added: ${found}.`);
    return;
  }
  if (found !== null) {
    const problem = approval.sandbox() === 'off' ? null : workspaceProblem(found.path, settings.home);
    if (problem !== null) {
      screen.notice('warn', `Nothing was added: ${problem}.`);
      return;
    }
    approval.addDirectory(found);
    screen.refresh();
  }
  const lines = approval.directories().map((one) => `  ${directoryText(one)}`);
  const title = `The session works in ${settings.cwd}`;
  screen.notice(
    'info',
    lines.length === 0 ? `${title} only. /add-dir <dir> adds a directory.` : [`${title} and`, ...lines].join('\n'),
  );
  return await Promise.resolve();
}
