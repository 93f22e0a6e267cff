import { didYouMean } from '../core/text.js';
import { assemble } from './open/assembly.js';
import { CliError, exit } from '../commands/cli-error.js';
import type { EarlyFrame } from './repl/early-frame.js';
import { runHeadless, type OutputFormat } from './headless/headless.js';
import type { RootOptions } from './options.js';
import { eventNumber } from './open/rewind-event.js';
import type { SessionWish } from './open/session-files.js';
import { setUp, type Setup } from './setup.js';
import { joinPrompt, readStdin } from './headless/stdin.js';
import { openWorkbench } from './open/workbench.js';
import { outputIsTerminal, printError } from './print.js';

const formats: readonly string[] = ['text', 'json', 'stream-json'] satisfies readonly OutputFormat[];

/** `agent` itself: the REPL on a terminal, one turn without one. Gives the exit code. */
export async function runChat(
  words: readonly string[],
  options: RootOptions,
  early: EarlyFrame | null,
): Promise<number> {
  const headless = options.print === true || !process.stdin.isTTY || !outputIsTerminal();
  const format = options.outputFormat;
  if (!formats.includes(format))
    throw new CliError(
      exit.usage,
      `--output-format: \`${format}\` is not a format`,
      `${didYouMean(format, formats)} Known: ${formats.join(', ')}`.trim(),
    );
  if (!headless) return await (await import('./repl/repl.js')).runRepl(words, options, early);
  const setup: Setup = { ...(await setUp(options)), headless: true };
  const wish = sessionWish(options);
  const piped = process.stdin.isTTY ? '' : await readStdin(process.stdin, printError);
  const prompt = joinPrompt(words, piped);
  if (prompt === '')
    throw new CliError(
      exit.usage,
      'there is no prompt',
      'Give one as words or on standard input: agent -p "explain this".',
    );
  const bench = await openWorkbench(setup, options);
  try {
    const chat = await assemble(bench, wish, false);
    try {
      return await runHeadless({
        session: chat.session,
        prompt,
        format: format as OutputFormat,
        verbose: options.verbose === true,
        notices: [...bench.notices, ...chat.notices],
        toolNames: bench.registry.list().map((tool) => tool.name),
        now: () => performance.now(),
      });
    } finally {
      await chat.close();
    }
  } finally {
    await bench.close();
  }
}

function sessionWish(options: RootOptions): SessionWish {
  if (options.resume === true)
    throw new CliError(
      exit.usage,
      '-r needs a session here, where none can be picked',
      'Give an id, a unique prefix of one, or a title: agent sessions list shows them.',
    );
  return {
    continueNewest: options.continue === true,
    resume: options.resume ?? null,
    fork: options.fork === true,
    ...eventNumber(options.at),
  };
}
