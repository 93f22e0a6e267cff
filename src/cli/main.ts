// The start path: `--version` answers before anything else is loaded, a prompt stands before the rest is, and
// everything else is loaded when it is known to be needed.
import { letGoOfLostTerminals, openOutput, outputIsTerminal, printError } from './print.js';
import type { EarlyFrame } from './early-frame.js';
import { version, versionFlags } from './version.js';

const argv = process.argv.slice(2);
if (versionFlags.split(', ').includes(argv[0] ?? '')) {
  openOutput(() => {
    process.exitCode = 1;
  }).write(`${version}\n`);
} else void start();

async function start(): Promise<void> {
  let early: EarlyFrame | null = null;
  try {
    early =
      process.stdin.isTTY && outputIsTerminal()
        ? (await import('./early-frame.js')).paintEarly(argv, process.env)
        : null;
    process.once('exit', letGoOfLostTerminals);
    process.exit(await (await import('./run.js')).run(argv, early));
  } catch (error) {
    // Whatever else goes wrong is told by `run`: here a part of the program cannot be loaded.
    early?.withdraw();
    const [reason] = String(error).split('\n', 1);
    printError(`agent: a part of the program cannot be loaded: ${reason}\nStart agent again, or install it anew.\n`);
    process.exit(1);
  }
}
