import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { slashNames } from '../../commands/registration.js';
import { table } from '../../commands/table.js';
import type { Expand } from '../../core/session-port.js';
import type { CommandFile } from '../../extensions/skills/command-files.js';
import type { Place } from '../../extensions/skills/found-files.js';
import { countingPlaces, type Here, isFolder } from './project-files.js';

/** Commands in files: the user's own, and those that come with the program. */
export interface OwnCommands {
  /** Those that are no commands of the program, for the menu and `/help`. */
  list(): Promise<readonly CommandFile[]>;
  readonly expand: Expand;
}

/** Looks at the disk each time it is asked: a file that has changed counts at once. */
export function openCommands(settings: Here): OwnCommands {
  const taken = new Set(slashNames(table));
  const find = async (): Promise<readonly CommandFile[]> => {
    const { commandsIn } = await import('../../extensions/skills/command-files.js');
    const own = commandsIn(await countingPlaces(settings, 'commands')).filter(({ name }) => !taken.has(name));
    return [...commandsIn([ofProgram()]), ...own];
  };
  return {
    list: async () => {
      const places = await countingPlaces(settings, 'commands');
      return places.length === 0 ? [] : (await find()).filter(({ origin }) => origin !== 'program');
    },
    expand: async (message) => {
      const [, name, args = ''] = /^\/([A-Za-z][\w:-]*)(?:\s+([^]*))?$/.exec(message.trim()) ?? [];
      const command = name === undefined ? undefined : (await find()).find((other) => other.name === name);
      if (!command) return null;
      const { expandTemplate } = await import('../../extensions/skills/expand-template.js');
      const isFile = (path: string): boolean =>
        statSync(resolve(settings.cwd, path), { throwIfNoEntry: false })?.isFile() === true;
      const expanded = expandTemplate(command.body, { args: args.trim(), isFile });
      if (typeof expanded === 'string') return `/${command.name} was not sent: ${expanded}`;
      return { ...expanded, command: { name: command.name, args: args.trim(), sha256: command.sha256 } };
    },
  };
}

/** The folder of the commands that come with the program. The sources and the bundle lie at different depths. */
function ofProgram(): Place {
  const above = ['../../..', '../..', '..'].map((up) =>
    fileURLToPath(new URL(`${up}/config/prompts`, import.meta.url)),
  );
  return { folder: above.find(isFolder) ?? '', origin: 'program', root: null };
}
