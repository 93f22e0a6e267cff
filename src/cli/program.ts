import { Command, Help, Option } from 'commander';
import { CliError, exit } from '../commands/command.js';
import { addVerbs, helpFlags, verbNames } from '../commands/registration.js';
import { table } from '../commands/table.js';
import { editDistance } from '../core/text.js';
import type { EarlyFrame } from './early-frame.js';
import { globalOptions, type OptionTable, rootOptions, type RootOptions } from './options.js';
import { askLine, errorsAreTerminal, outputColumns, outputIsTerminal, print } from './print.js';
import { version, versionFlags } from './version.js';

export interface ProgramOptions {
  /** The words of the command line before `--`. */
  readonly words: readonly string[];
  /** Prompt words from behind `--`. */
  readonly rest: readonly string[];
  readonly early: EarlyFrame | null;
  readonly finish: (exitCode: number) => void;
}

const rootExamples = `
Examples:
  agent                                   open the REPL
  agent -p "explain src/main.ts"          one answer, printed
  git diff | agent -p "review this"       piped input is appended to the prompt
  agent -c                                go on with the newest session here
  agent -m openrouter/moonshotai/kimi-k2.6  use this model`;

/** The command line. Of the verbs, only those that the words may name are loaded. */
export async function buildProgram({ words: given, rest, early, finish }: ProgramOptions): Promise<Command> {
  const program = addOptions(new Command('agent'), rootOptions)
    .description(
      'An interactive terminal agent shell: everything a model does on your machine is on screen and on record.',
    )
    .argument('[prompt...]', 'what to do; in the REPL it is submitted first')
    .version(version, versionFlags, 'print the version')
    .helpOption(...helpFlags)
    .addHelpText('after', rootExamples)
    .showSuggestionAfterError(true)
    .exitOverride()
    .configureOutput({
      writeOut: print,
      getOutHelpWidth: () => Math.min(helpColumns, outputColumns() ?? helpColumns),
      writeErr: () => {
        /* errors are printed once, by run */
      },
    })
    .configureHelp({ minWidthToWrap: 24, optionDescription: describeOption })
    .action(async (words: string[], options: RootOptions) => {
      if (rest.length === 0) await askAboutCommand(words, options, verbNames(table));
      finish(await (await import('./conversation.js')).runConversation([...words, ...rest], options, early));
    });
  await addVerbs(program, table, {
    load: verbsToLoad(given),
    line: async (options: RootOptions) =>
      (await import('./command-line.js')).createCommandLine(options, program, globalOptions()),
    finish,
  });
  return program;
}

export function addOptions(program: Command, table: OptionTable): Command {
  for (const { group: heading, flags, about, default: preset, repeats } of Object.values(table)) {
    const option = new Option(flags, about);
    if (preset !== undefined) option.default(preset);
    if (repeats) option.argParser(appended).default([], '');
    program.optionsGroup(heading).addOption(option);
  }
  return program;
}

const appended = (value: string, earlier: readonly string[]): readonly string[] => [...earlier, value];

/** Help and completion tell of all verbs, a verb of itself; a conversation needs none. */
function verbsToLoad(words: readonly string[]): readonly string[] | 'all' {
  const named = verbNames(table).filter((name) => words.includes(name));
  const tellsOfAll = named.length === 0 && (words.includes('-h') || words.includes('--help'));
  return tellsOfAll || named.includes('help') || named.includes('completion') ? 'all' : named;
}

/** Where nobody knows how wide the reader's lines are. */
const helpColumns = 100;

/** A default that is an empty list says nothing. */
function describeOption(this: Help, option: Option): string {
  return Array.isArray(option.defaultValue) ? option.description : Help.prototype.optionDescription.call(this, option);
}

/** One word that is nearly a command was hardly meant for a model, which may cost money: a person is asked, elsewhere
 * it is a usage error. */
async function askAboutCommand(
  words: readonly string[],
  options: RootOptions,
  commands: readonly string[],
): Promise<void> {
  const [word = ''] = words;
  const isPrompt =
    words.length !== 1 || options.print === true || options.continue === true || options.resume !== undefined;
  const near = isPrompt
    ? undefined
    : commands.find((name) => editDistance(word.toLowerCase(), name) <= (word.length < 6 ? 1 : 2));
  if (near === undefined) return;
  const mistake = `\`${word}\` is not a command; did you mean \`agent ${near}\`?`;
  const isAsked = process.stdin.isTTY && outputIsTerminal() && errorsAreTerminal();
  if (isAsked && /^y(es)?$/i.test((await askLine(`${mistake} Send it as a prompt? [y/N] `)).trim())) return;
  throw new CliError(exit.usage, mistake, `A prompt of that one word goes behind --: agent -- ${word}`);
}
