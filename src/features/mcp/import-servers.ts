import { dirname, join } from 'node:path';
import { upToRoot } from '../../kernel/config/load.js';
import { didYouMean, spelledLine } from '../../kernel/core/text.js';
import { readServerFile } from './configured-servers.js';
import { saveEntries } from './listed-servers.js';
import { filesOfClient, type FoundEntry, otherClients, serversOfClient } from './other-clients.js';
import { CliError, type CommandLine, exit, type CommandHandler } from '../../kernel/console/command.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { columns } from '../../kernel/console/line-output.js';

interface Options {
  readonly yes?: boolean;
}

/** Copies the servers of another program into the user's own file, once they have been shown. */
export const importServers: CommandHandler = {
  line: {
    example: 'agent mcp import codex',
    options: (command) => command.option('--yes', 'copy them without asking'),
    run: async (line, [client = ''], options: Options) => {
      const settings = await line.settings();
      const file = join(dirname(settings.config.files.config), 'mcp.json');
      const found = foundIn(client, settings);
      const taken = readServerFile(file);
      if (taken.kind === 'broken')
        throw new CliError(exit.usage, `${file}: ${taken.problem}`, 'Correct it there first; nothing was changed.');
      const entries = taken.kind === 'read' ? taken.entries : {};
      const added = show(line, found, Object.keys(entries), settings);
      if (Object.keys(added).length === 0) {
        line.out.print('Nothing to copy.\n');
        return exit.done;
      }
      if (options.yes !== true && !(await confirmed(line, Object.keys(added).length, file))) return exit.failed;
      saveEntries(file, { ...entries, ...added });
      line.out.print(`Copied to ${spelledLine(file)}. Test one with agent mcp test <name>.\n`);
      return exit.done;
    },
  },
};

function foundIn(client: string, { env, home, cwd }: Settings): readonly FoundEntry[] {
  const known = Object.keys(otherClients);
  const reader = Object.hasOwn(otherClients, client) ? otherClients[client] : undefined;
  if (!reader)
    throw new CliError(
      exit.usage,
      `\`${client}\` is not a supported program`,
      `${didYouMean(client, known)} Known: ${known.join(', ')}`.trim(),
    );
  const place = { env, home, cwd, root: upToRoot(cwd).at(-1) ?? cwd };
  try {
    const found = serversOfClient(reader, place);
    if (found.length > 0) return found;
  } catch (error) {
    throw new CliError(exit.failed, error instanceof Error ? error.message : String(error), 'Nothing was copied.');
  }
  throw new CliError(exit.failed, `${client} has no servers`, `Looked at: ${filesOfClient(reader, place).join(', ')}`);
}

/** Shows what is there, and returns what would be copied. Nothing that is there already is replaced. */
function show(
  { out }: CommandLine,
  found: readonly FoundEntry[],
  taken: readonly string[],
  { guard }: Settings,
): Readonly<Record<string, unknown>> {
  const added = new Map<string, unknown>();
  const rows = found.flatMap((one) => {
    const from = spelledLine(one.file);
    if ('problem' in one) return [[one.name, 'left out', one.problem, from]];
    if (taken.includes(one.name) || added.has(one.name))
      return [[one.name, 'left out', `there is a server ${one.name} already`, from]];
    added.set(one.name, one.entry);
    return [
      [one.name, '', guard.json(JSON.stringify(one.entry)), from],
      ...one.notes.map((note) => ['', '', note, '']),
    ];
  });
  out.print(`${columns(rows.map((row) => row.map(spelledLine))).join('\n')}\n`);
  return Object.fromEntries(added);
}

async function confirmed({ out }: CommandLine, count: number, file: string): Promise<boolean> {
  if (!out.canAsk) throw new CliError(exit.usage, 'no terminal to ask in', 'Add --yes to copy them without asking.');
  const what = count === 1 ? 'this server' : `these ${count} servers`;
  return /^\s*y(?:es)?\s*$/i.test(await out.ask(`Copy ${what} to ${spelledLine(file)}? [y/N] `));
}
