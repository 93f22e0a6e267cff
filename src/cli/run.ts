import { setFlagsFromString } from 'node:v8';
import { Command, CommanderError, Help, Option } from 'commander';
import { CliError, exit } from '../kernel/console/command.js';
import { addVerbs, helpFlags, slashNames, verbNames } from '../kernel/console/registration.js';
import { table } from '../commands/table.js';
import { editDistance } from '../kernel/core/text.js';
import { StoreError } from '../kernel/store/errors.js';
import type { EarlyFrame } from '../ui/early-frame.js';
import { missingPart } from '../kernel/core/missing-part.js';
import {
  globalOptions,
  type OptionTable,
  rootOptions,
  type RootOptions,
  withValues,
} from '../kernel/console/options.js';
import { askLine } from '../kernel/console/ask.js';
import { versionFlags, versionLine } from '../kernel/console/version.js';
import {
  errorsAreTerminal,
  outputColumns,
  outputIsTerminal,
  print,
  printError,
  watchStandardOutput,
} from '../kernel/console/print.js';
import { keptSecrets, knownSecrets, plainGuard } from '../kernel/secrets/known-secrets.js';
import { mayBeForeign } from './foreign-words.js';
import { runConversation } from '../frontends/repl/start-front-end.js';

// A regular expression of a setting, a server or a model that backtracks without end continues in V8's linear engine. The
// engine takes none with lookaround, back references, or the flags `i` and `u`. Source: v8.dev/blog/non-backtracking-regexp.
setFlagsFromString('--enable-experimental-regexp-engine-on-excessive-backtracks');

/** Runs one command line and returns its exit code, once the reader of standard output has taken everything. */
export async function run(argv: readonly string[], early: EarlyFrame | null): Promise<number> {
  const output = watchStandardOutput();
  let exitCode: number;
  let isDebug = argv.includes('--debug');
  try {
    const line = splitPrompt(argv);
    const words = withValues(await inOurWords(line.words));
    isDebug = words.includes('--debug');
    exitCode = await parse({ words, rest: line.rest }, early);
  } catch (error) {
    early?.withdraw();
    const failure = describeFailure(error, isDebug);
    const secrets = [...knownSecrets(process.env), ...keptSecrets(process.env)];
    printError(plainGuard(process.env, secrets).text(failure.text));
    exitCode = failure.exitCode;
  }
  const lost = await output.taken();
  if (lost !== null)
    printError(
      `agent: cannot write to standard output: ${lost.message}\n` +
        'Free some space or redirect it elsewhere; the output is incomplete.\n',
    );
  return lost !== null && exitCode === exit.done ? exit.failed : exitCode;
}

/** Returns the words with ours in the place of those of other agents. */
async function inOurWords(words: readonly string[]): Promise<readonly string[]> {
  if (!mayBeForeign(words)) return words;
  return (await import('./foreign-line.js')).translateLine(words, verbNames(table));
}

async function parse({ words, rest }: Line, early: EarlyFrame | null): Promise<number> {
  let exitCode: number = exit.done;
  const program = await buildProgram({
    words,
    rest,
    early,
    finish: (code) => {
      exitCode = code;
    },
  });
  try {
    await program.parseAsync(words, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return exit.done;
    if (error.code === 'commander.help') throw commandMissing(program, words);
    throw usageError(error);
  }
  return exitCode;
}

/** A command line, and the words of the prompt from behind `--`. */
type Line = Pick<ProgramOptions, 'words' | 'rest'>;

/** Splits at `--`: all words behind it are the prompt, and commander does not see them. Behind `mcp add` they are the
 * command line of a server, which stays with the verb. */
function splitPrompt(argv: readonly string[]): Line {
  const at = argv.indexOf('--');
  const verb = argv.indexOf('mcp');
  const isServer = verb >= 0 && verb < at && argv[verb + 1] === 'add';
  return at < 0 || isServer ? { words: argv, rest: [] } : { words: argv.slice(0, at), rest: argv.slice(at + 1) };
}

/** The error for a group without a command, such as `agent tools`. */
function commandMissing(program: Command, words: readonly string[]): CliError {
  const group = program.commands.find((command) => command.commands.length > 0 && words.includes(command.name()));
  const names = (group?.commands ?? []).map((command) => command.name()).filter((name) => name !== 'help');
  const path = `agent ${group?.name() ?? ''}`.trim();
  return new CliError(
    exit.usage,
    `\`${group?.name() ?? ''}\` needs a command: ${names.join(', ')}`,
    `Run ${path} --help to list them.`,
  );
}

function usageError(error: CommanderError): CliError {
  const [message = '', ...more] = error.message.replace(/^error: /, '').split('\n');
  const hint =
    error.code === 'commander.excessArguments'
      ? 'Put -- before a prompt that begins with the name of a command: agent -- undo the last change'
      : more
          .join(' ')
          .replace(/^\(|\)$/g, '')
          .trim();
  return new CliError(
    exit.usage,
    message.replace(/\.$/, ''),
    hint === '' ? 'Run agent --help for the options and commands.' : hint,
  );
}

/** Returns the two lines for stderr, with a stack trace where `debug` is set. */
function describeFailure(error: unknown, debug: boolean): { readonly text: string; readonly exitCode: number } {
  const failure = error instanceof CliError ? error : null;
  const { message, hint } = failure ??
    storeProblem(error) ??
    missingPart(error) ??
    diskProblem(error) ?? {
      message: error instanceof Error ? error.message : String(error),
      hint: 'This is a bug in agent. Run again with --debug for a stack trace.',
    };
  const stack = debug && error instanceof Error && error.stack ? `\n${error.stack}` : '';
  return { text: `agent: ${message}\n${hint}${stack}\n`, exitCode: failure?.exitCode ?? exit.failed };
}

function storeProblem(error: unknown): { readonly message: string; readonly hint: string } | null {
  return error instanceof StoreError && error.hint !== '' ? error : null;
}

/** The advice for each error of the system that keeps a file from being written. */
const diskHints: Readonly<Record<string, string>> = {
  ENOSPC: 'The disk is full: free some space and run the command again.',
  EDQUOT: 'Your quota on this disk is used up: free some space and run the command again.',
  EFBIG: 'The system allows no larger file (ulimit -f shows the limit).',
  EROFS: 'The file system is read-only: set AGENT_HOME to a directory that can be written.',
  EACCES: 'Make the file and its directory writable, or set AGENT_HOME to a directory that is.',
};

function diskProblem(error: unknown): { readonly message: string; readonly hint: string } | null {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const hint = Object.hasOwn(diskHints, code) ? diskHints[code] : undefined;
  return hint === undefined || !(error instanceof Error) ? null : { message: error.message, hint };
}

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
  agent -c                                continue the newest session here
  agent -m openrouter/moonshotai/kimi-k2.6  use this model`;

/** Builds the command line. Only the verbs that the words may name are loaded. */
export async function buildProgram({ words: given, rest, early, finish }: ProgramOptions): Promise<Command> {
  const program = addOptions(new Command('agent'), rootOptions)
    .description('An interactive terminal agent shell: everything a model does on your machine is shown and logged.')
    .argument('[prompt...]', 'what to do; the REPL submits it first')
    .version(versionLine, versionFlags, 'print the version')
    .helpOption(helpFlags[0], helpFlags[1])
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
    .configureHelp({ minWidthToWrap: 24, optionDescription: describeOption, subcommandTerm: describeVerb })
    .action(async (words: string[], parsed: RootOptions) => {
      const options = { ...parsed, commandNames: slashNames(table) };
      if (rest.length === 0) await askAboutCommand(words, options, verbNames(table));
      finish(await runConversation([...words, ...rest], options, early));
    });
  await addVerbs(program, table, {
    load: verbsToLoad(given),
    line: async (options: RootOptions) => {
      const { createCommandLine } = await import('./command-line.js');
      return createCommandLine({ ...options, commandNames: slashNames(table) }, program, globalOptions());
    },
    finish,
  });
  return program;
}

export function addOptions(program: Command, table: OptionTable): Command {
  for (const { group: heading, flags, about, default: preset, repeats, hidden } of Object.values(table)) {
    const option = new Option(flags, about);
    if (preset !== undefined) option.default(preset);
    option.hideHelp(hidden === true);
    if (repeats) option.argParser(appended).default([], '');
    program.optionsGroup(heading).addOption(option);
  }
  return program;
}

const appended = (value: string, earlier: readonly string[]): readonly string[] => [...earlier, value];

/** Help on a verb and completion need all verbs, and a verb needs itself. A conversation and `--help` need none. */
function verbsToLoad(words: readonly string[]): readonly string[] | 'all' {
  const named = verbNames(table).filter((name) => words.includes(name));
  return named.includes('help') || named.includes('completion') ? 'all' : named;
}

/** The width of help where the output is no terminal. */
const helpColumns = 100;

/** Returns the name and the arguments of a verb. Whether it has options is known only once it is loaded. */
function describeVerb(this: Help, verb: Command): string {
  return Help.prototype.subcommandTerm.call(this, verb).replace(' [options]', '');
}

/** Leaves out a default that is an empty list. */
function describeOption(this: Help, option: Option): string {
  return Array.isArray(option.defaultValue) ? option.description : Help.prototype.optionDescription.call(this, option);
}

/** Asks about a first word that is nearly a command: the line was hardly meant for a model, which may cost money.
 * Throws a usage error if no user is there to ask. Source: contracts 10. */
async function askAboutCommand(
  words: readonly string[],
  options: RootOptions,
  commands: readonly string[],
): Promise<void> {
  const [word = ''] = words;
  const isPrompt = options.print === true || options.continue === true || options.resume !== undefined;
  const near = isPrompt ? undefined : nearCommand(word, commands, words.length === 1);
  if (near === undefined) return;
  const mistake = `\`${word}\` is not a command; did you mean \`agent ${near}\`?`;
  const isAsked = process.stdin.isTTY && outputIsTerminal() && errorsAreTerminal();
  if (isAsked && /^y(es)?$/i.test((await askLine(`${mistake} Send it as a prompt? [y/N] `)).trim())) return;
  throw new CliError(
    exit.usage,
    mistake,
    `A prompt ${words.length === 1 ? 'of that one word' : 'that begins with it'} needs -- before it: agent -- ${words.join(' ')}`,
  );
}

/** Returns the command that is one edit away; two edits for a longer word that is alone. A word of two letters may
 * begin any sentence, so it only counts alone. */
function nearCommand(word: string, commands: readonly string[], isAlone: boolean): string | undefined {
  if (!isAlone && word.length < 3) return undefined;
  const most = isAlone && word.length >= 6 ? 2 : 1;
  return commands.find((name) => editDistance(word.toLowerCase(), name) <= most);
}
