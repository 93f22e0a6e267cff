import type { Command } from 'commander';
import { type CommandContext, type SlashCommand, type SlashGroup, slashGroups } from './slash-command.js';
import { type CommandLine, type CommandDefinition, exit, type CliCommand, type Repl, type Section } from './command.js';

/** The help option, which each command declares again: the program's own help would list an inherited option. */
export const helpFlags = ['-h, --help', 'print this'] as const;

export interface Registration {
  /** The words of the command line that may name a verb, or all verbs: only these are loaded. */
  readonly load: readonly string[] | 'all';
  /** Makes the parts that a verb uses when it runs. */
  line(options: object): Promise<CommandLine>;
  /** Receives the exit code of the verb that ran. */
  readonly finish: (exitCode: number) => void;
}

/** Adds every verb of the command line to the program, in the sections of its help. A verb that is not loaded has a
 * name and a description, and no options. */
export async function addVerbs(
  program: Command,
  sections: readonly Section[],
  registration: Registration,
): Promise<void> {
  for (const { heading, entries } of sections) {
    if (heading !== null) program.commandsGroup(heading);
    for (const entry of entries) {
      if (entry.line) await addVerb(program, entry.line, entry, registration);
    }
  }
}

async function addVerb(
  program: Command,
  [usage, about]: readonly [string, string],
  entry: CommandDefinition,
  registration: Registration,
): Promise<void> {
  const words = pathOf(usage);
  const parent = words
    .slice(0, -1)
    .reduce((above, word) => above.commands.find((command) => command.name() === word) ?? above, program);
  const command = parent
    .command(
      usage
        .split(' ')
        .slice(words.length - 1)
        .join(' '),
    )
    .description(about)
    .copyInheritedSettings(parent)
    .helpOption(...helpFlags);
  const { load, finish } = registration;
  if (load !== 'all' && !load.includes(words[0] ?? '')) return;
  const form: CliCommand | undefined = (await entry.load?.())?.line;
  if (!form) throw new Error(`${words.join(' ')} is not available on the command line`);
  command.addHelpText('after', `\nExample:\n  ${form.example}`);
  form.options?.(command);
  if (!form.run) return;
  command.action(async () => {
    const options = command.optsWithGlobals();
    finish((await form.run?.(await registration.line(options), command.args, options)) ?? exit.done);
  });
}

/** Returns the words before the arguments: `sessions show` of `sessions show <session>`. */
function pathOf(usage: string): readonly string[] {
  const words = usage.split(' ');
  const first = words.findIndex((word) => /^[<[]/.test(word));
  return first < 0 ? words : words.slice(0, first);
}

/** Returns the names of the verbs that stand directly behind `agent`. */
export function verbNames(sections: readonly Section[]): readonly string[] {
  const names = sections.flatMap(({ entries }) =>
    entries.flatMap(({ line }) => (line ? [pathOf(line[0])[0] ?? ''] : [])),
  );
  return [...new Set(names)];
}

/** Returns all names and aliases of slash commands. */
export function slashNames(sections: readonly Section[]): readonly string[] {
  return sections.flatMap(({ entries }) => entries.flatMap(({ slash }) => slash?.[0].split(' ')[0]?.split('|') ?? []));
}

/** Returns the slash commands of the table, group by group. A verb is loaded when it is first called. */
export function slashCommands(sections: readonly Section[], repl: Omit<Repl, 'screen'>): readonly SlashCommand[] {
  const commands = sections.flatMap(({ entries }) =>
    entries.flatMap((entry) => (entry.slash ? [slashCommand(entry.slash, entry, repl)] : [])),
  );
  return Object.keys(slashGroups).flatMap((group) => commands.filter((command) => command.group === group));
}

function slashCommand(
  [usage, description, group]: readonly [string, string, SlashGroup],
  entry: CommandDefinition,
  repl: Omit<Repl, 'screen'>,
): SlashCommand {
  const [, names = '', argument] = /^(\S+)(?: (.*))?$/.exec(usage) ?? [];
  const [name = '', ...aliases] = names.split('|');
  return {
    name,
    description,
    group,
    ...(entry.also === undefined ? {} : { also: entry.also.split(' ') }),
    ...(aliases.length > 0 ? { aliases } : {}),
    ...(argument === undefined ? {} : { argument }),
    ...(entry.leaves ? { leaves: true } : {}),
    ...(entry.waits ? { waits: true } : {}),
    ...(entry.needsScreen === undefined ? {} : { needsScreen: entry.needsScreen }),
    ...(entry.isHarmless ? { isHarmless: true } : {}),
    ...(entry.beside ? { beside: true } : {}),
    run: async (given: string, screen: CommandContext) => {
      if (entry.leaves) {
        screen.exit();
        return;
      }
      const verb = await entry.load?.();
      if (!verb?.slash) throw new Error(`/${name} is not available in the REPL`);
      await verb.slash(given, { ...repl, screen });
    },
  };
}
