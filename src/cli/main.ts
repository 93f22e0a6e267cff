// The start path: `--version` answers before anything else is loaded, everything else is loaded when it is known to be needed.
import { version } from './version.js';

const [first] = process.argv.slice(2);
if (first === '--version' || first === '-V') process.stdout.write(`${version}\n`);
else await (await import('./run.js')).run(process.argv.slice(2));
