import type { Command, Option } from 'commander';
import { exit } from '../kernel/console/command.js';
import { version } from '../kernel/console/version.js';

const exitStatus: Readonly<Record<keyof typeof exit, string>> = {
  done: 'Done.',
  failed: 'Failed: the provider after all retries, or the program itself.',
  usage: 'Wrong usage or configuration.',
  limit: 'Stopped at the limit of tool turns, or at calls that repeat.',
  credentials: 'The key of the provider is missing or was rejected.',
  cost: 'Stopped at the spend limit.',
  denied: 'Answered, but a call was denied because nobody could be asked.',
  session: 'The session was not found, or another process uses it.',
  interrupted: 'Interrupted (SIGINT).',
  terminated: 'Ended by a signal (SIGTERM).',
};

const files: readonly (readonly [string, string])[] = [
  ['$XDG_CONFIG_HOME/agent/config.json', 'Your settings; with AGENT_HOME set, all files are in that folder.'],
  ['$XDG_DATA_HOME/agent/agent.db', 'The record: sessions and their events.'],
  ['$XDG_STATE_HOME/agent/agent.log', 'The log of the program.'],
  ['.agent/config.json, AGENTS.md', 'Settings and instructions of a project.'],
];

/** Returns the manual page (man(7), ASCII) of a command line, made from its options and commands. `program` has all
 * verbs loaded. */
export function manPage(program: Command): string {
  const name = program.name();
  return [
    `.TH ${name.toUpperCase()} 1 "" "${name} ${version}" "User commands"`,
    '.SH NAME',
    `${name} \\- an interactive terminal agent shell`,
    '.SH SYNOPSIS',
    ...[`${name} [options] [prompt...]`, `${name} -p [options] [prompt...]`, `${name} <command> [options]`].flatMap(
      (line) => ['.B', roff(line), '.br'],
    ),
    '.SH DESCRIPTION',
    roff(program.description()),
    '.SH OPTIONS',
    ...grouped(program.options, (option) => option.helpGroupHeading ?? '').flatMap(([heading, options]) => [
      ...(heading === '' ? [] : [`.SS ${roff(heading.replace(/:$/, ''))}`]),
      ...options.flatMap(optionRows),
    ]),
    '.SH COMMANDS',
    ...grouped(program.commands, (command) => command.helpGroup()).flatMap(([heading, commands]) => [
      ...(heading === '' ? [] : [`.SS ${roff(heading.replace(/:$/, ''))}`]),
      ...commands.flatMap((command) => commandRows(command, name)),
    ]),
    '.SH EXIT STATUS',
    ...Object.entries(exit).flatMap(([key, code]) => item(String(code), exitStatus[key as keyof typeof exit])),
    '.SH FILES',
    ...files.flatMap(([path, what]) => item(path, what)),
    '.SH EXAMPLES',
    '.nf',
    ...examplesOf(program).map(roff),
    '.fi',
    '',
  ].join('\n');
}

function commandRows(command: Command, above: string): readonly string[] {
  const path = `${above} ${command.name()}`;
  if (command.name() === 'help' && above.includes(' ')) return [];
  const own = command.options.length === 0 ? [] : ['.RS', ...command.options.flatMap(optionRows), '.RE'];
  return [
    ...item(
      `${path} ${command.usage().replace('[options] ', '').replace('[command]', '')}`.trim(),
      command.description(),
    ),
    ...own,
    ...command.commands.flatMap((below) => commandRows(below, path)),
  ];
}

function optionRows({ flags, description }: Option): readonly string[] {
  return item(flags, description);
}

function item(term: string, text: string): readonly string[] {
  return ['.TP', `.B ${roff(term)}`, roff(text === '' ? '-' : text)];
}

/** The lines that stand below the help. */
function examplesOf(program: Command): readonly string[] {
  let text = '';
  program
    .configureOutput({
      writeOut: (part) => {
        text += part;
      },
    })
    .outputHelp();
  const [, examples = ''] = text.split('\nExamples:\n');
  return examples.split('\n').filter((line) => line.startsWith('  '));
}

function grouped<T>(all: readonly T[], headingOf: (one: T) => string): readonly (readonly [string, readonly T[]])[] {
  const headings = [...new Set(all.map(headingOf))];
  return headings.map((heading) => [heading, all.filter((one) => headingOf(one) === heading)]);
}

/** Writes text so that roff takes none of it for a request, and each hyphen for one that can be copied. */
function roff(text: string): string {
  const plain = text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll('"', '\\(dq');
  const ascii = plain.replace(
    /[^\n\x20-\x7e]/gu,
    (char) => `\\[u${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`,
  );
  return ascii.replace(/^(?=[.'])/gm, '\\&');
}
