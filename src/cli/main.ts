// The start path: `--version` is answered and the prompt is painted before the rest of the program is loaded.
import { letGoOfLostTerminals, openOutput, outputIsTerminal, printError } from '../kernel/console/print.js';
import type { EarlyFrame } from '../ui/early-frame.js';
import { versionFlags, versionLine } from '../kernel/console/version.js';

const argv = process.argv.slice(2);
if (versionFlags.split(', ').includes(argv[0] ?? '')) {
  openOutput(() => {
    process.exitCode = 1;
  }).write(`${versionLine}\n`);
} else void start();

async function start(): Promise<void> {
  let early: EarlyFrame | null = null;
  try {
    early =
      process.stdin.isTTY && outputIsTerminal()
        ? (await import('../ui/early-frame.js')).paintEarly(argv, process.env)
        : null;
    process.once('exit', letGoOfLostTerminals);
    process.exit(await (await import('./run.js')).run(argv, early));
  } catch (error) {
    // `run` reports every other error: here a part of the program cannot be loaded.
    early?.withdraw();
    const [reason] = String(error).split('\n', 1);
    printError(`agent: a part of the program cannot be loaded: ${reason}\nStart agent again, or install it again.\n`);
    process.exit(1);
  }
}
