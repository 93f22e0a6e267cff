import { type Command, CommanderError } from 'commander';
import { StoreError } from '../store/errors.js';
import { CliError, exit } from '../commands/command.js';
import type { EarlyFrame } from './early-frame.js';
import { missingPart } from './ending.js';
import { buildProgram } from './program.js';
import { printError, watchStandardOutput } from './print.js';

/** Runs one command line and returns its exit code. What was printed has been taken by its reader then. */
export async function run(argv: readonly string[], early: EarlyFrame | null): Promise<number> {
  const output = watchStandardOutput();
  let exitCode: number;
  try {
    exitCode = await parse(argv, early);
  } catch (error) {
    early?.withdraw();
    const failure = describeFailure(error, argv.includes('--debug'));
    const { knownSecrets, plainGuard } = await import('./secrets.js');
    printError(plainGuard(process.env, knownSecrets(process.env)).text(failure.text));
    exitCode = failure.exitCode;
  }
  const lost = await output.taken();
  if (lost !== null)
    printError(
      `agent: standard output cannot be written: ${lost.message}\n` +
        'Make room or send it elsewhere; what was printed is not whole.\n',
    );
  return lost !== null && exitCode === exit.done ? exit.failed : exitCode;
}

async function parse(argv: readonly string[], early: EarlyFrame | null): Promise<number> {
  const { words, rest } = splitPrompt(argv);
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

/** What stands behind `--` is prompt, whatever it looks like; commander is not shown it. */
function splitPrompt(argv: readonly string[]): { readonly words: readonly string[]; readonly rest: readonly string[] } {
  const at = argv.indexOf('--');
  return at < 0 ? { words: argv, rest: [] } : { words: argv.slice(0, at), rest: argv.slice(at + 1) };
}

/** `agent tools` alone: commander would only give its help. */
function commandMissing(program: Command, words: readonly string[]): CliError {
  const group = program.commands.find((command) => command.commands.length > 0 && words.includes(command.name()));
  const names = (group?.commands ?? []).map((command) => command.name()).filter((name) => name !== 'help');
  const path = `agent ${group?.name() ?? ''}`.trim();
  return new CliError(
    exit.usage,
    `\`${group?.name() ?? ''}\` needs a command: ${names.join(', ')}`,
    `Run ${path} --help for what they do.`,
  );
}

function usageError(error: CommanderError): CliError {
  const [message = '', ...more] = error.message.replace(/^error: /, '').split('\n');
  const hint =
    error.code === 'commander.excessArguments'
      ? 'A prompt that begins with the name of a command goes behind --, for example: agent -- undo the last change'
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

/** The two lines on stderr. No stack trace unless `debug`. */
function describeFailure(error: unknown, debug: boolean): { readonly text: string; readonly exitCode: number } {
  const failure = error instanceof CliError ? error : null;
  const { message, hint } = failure ??
    storeProblem(error) ??
    missingPart(error) ?? {
      message: error instanceof Error ? error.message : String(error),
      hint: 'This is a bug in agent. Run again with --debug for a stack trace.',
    };
  const stack = debug && error instanceof Error && error.stack ? `\n${error.stack}` : '';
  return { text: `agent: ${message}\n${hint}${stack}\n`, exitCode: failure?.exitCode ?? exit.failed };
}

function storeProblem(error: unknown): { readonly message: string; readonly hint: string } | null {
  return error instanceof StoreError && error.hint !== '' ? error : null;
}
