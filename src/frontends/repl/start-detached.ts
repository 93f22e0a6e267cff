import { detachedMark } from './detached-start.js';
import { CliError, exit } from '../../kernel/console/command.js';
import { givenOptions, optionWords, type RootOptions } from '../../kernel/console/options.js';
import { isRecord } from '../../kernel/core/json.js';
import { print, printError } from '../../kernel/console/print.js';
import { loadStartChild } from '../../kernel/tools/process/load-start-child.js';

/** Options that say which session it is, or how it begins: a process that continues it has others. */
const ofBeginning = new Set(['bg', 'continue', 'resume', 'fork', 'at', 'sessionId', 'name', 'image', 'print']);

type Detached = { readonly id: string } | { readonly problem: string; readonly exitCode: number };

/** Continues a session in a new process without a terminal, with the options of this one. */
export async function startDetached(choice: readonly string[], options: RootOptions): Promise<Detached> {
  const kept = wordsOf(options, (key) => !ofBeginning.has(key));
  return await start([...kept, ...choice]);
}

function wordsOf(options: RootOptions, isKept: (key: string) => boolean): readonly string[] {
  return givenOptions(options)
    .filter(({ key }) => isKept(key))
    .flatMap((option) => option.values.flatMap((value) => optionWords(option, value)));
}

async function start(words: readonly string[]): Promise<Detached> {
  const { startAgain } = await loadStartChild();
  const script = process.argv[1];
  const args = [...process.execArgv, ...(script === undefined ? [] : [script]), ...words];
  const started = await startAgain(process.execPath, args, { [detachedMark]: '1' });
  if ('message' in started && isRecord(started.message) && typeof started.message.session === 'string')
    return { id: started.message.session };
  if ('exitCode' in started)
    return {
      problem: started.errors.replace(/^agent: /, '').trimEnd() || 'the new process ended before the session began',
      exitCode: started.exitCode || exit.failed,
    };
  return { problem: 'the new process did not say which session it runs', exitCode: exit.failed };
}

/** `agent --bg`: starts a session in the background, prints its id and returns the exit code. */
export async function runInBackground(words: readonly string[], options: RootOptions): Promise<number> {
  const hasSession = options.continue === true || options.resume !== undefined;
  if (words.join(' ').trim() === '' && !hasSession)
    throw new CliError(
      exit.usage,
      '--bg needs a prompt',
      'For example: agent --bg "run the tests and repair what fails".',
    );
  if (options.resume === true)
    throw new CliError(exit.usage, '-r needs a session with --bg', 'agent sessions list shows them.');
  const other = options.print === true ? '-p' : options.ephemeral === true ? '--ephemeral' : null;
  if (other !== null)
    throw new CliError(
      exit.usage,
      `--bg cannot be used with ${other}`,
      'A session in the background is one that you can attach to.',
    );
  const started = await start([
    ...wordsOf(options, (key) => key !== 'bg'),
    ...(words.length > 0 ? ['--', ...words] : []),
  ]);
  if ('problem' in started) {
    printError(`agent: ${started.problem}\n`);
    return started.exitCode;
  }
  print(`${started.id}\n`);
  return exit.done;
}
