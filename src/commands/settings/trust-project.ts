import { homedir } from 'node:os';
import { resolve } from 'node:path';
import type { RootOptions } from '../../cli/options.js';
import { columns, outputIsTerminal, print, printListing } from '../../cli/print.js';
import { setUp } from '../../cli/settings.js';
import { askForTrust, openTrustFile, spelledOut, terminalQuestion, type TrustFile } from '../../cli/trust.js';
import { findProjectFile } from '../../config/load.js';
import { agentPaths } from '../../config/locations.js';
import { CliError, exit } from '../cli-error.js';

type Options = RootOptions & { readonly list?: boolean; readonly revoke?: boolean; readonly json?: boolean };

/** `agent config trust`: asks about the settings of this project (again), lists the answers, or forgets the one for
 * this directory. */
export async function trustAction(options: Options): Promise<number> {
  if (options.list || options.revoke) return earlierAnswers(options);
  const setup = await setUp(options);
  const { project } = setup.loaded;
  if (project?.trusted)
    return said(`${spelledOut(project.file.path)} is trusted as it is. agent config trust --revoke takes that back.`);
  if (!project || project.wanted.length === 0) return said('Nothing here asks for trust.');
  if (!process.stdin.isTTY || !outputIsTerminal())
    throw new CliError(exit.usage, 'trust is only asked about in a terminal', 'Run agent config trust in one.');
  const nowhere = (): void => {
    /* There is no draft that it could go to. */
  };
  const answer = await askForTrust(project, terminalQuestion(process.stdin, nowhere));
  if (answer === 'unanswered') return exit.failed;
  openTrustFile(setup.config.files.trust).record(project.file, answer === 'yes', Date.now());
  return said(
    answer === 'yes'
      ? 'Trusted until the file changes.'
      : 'Not trusted; it is not asked about again until the file changes.',
  );
}

/** Works whatever is wrong with the settings. */
function earlierAnswers(options: Options): number {
  const files = agentPaths(process.env, process.env.HOME ?? homedir());
  const answers = openTrustFile(files.trust);
  if (options.list) return listAnswers(answers, options.json);
  const cwd = resolve(options.cwd ?? '.');
  const directory = findProjectFile(cwd, files.config)?.directory ?? cwd;
  return said(
    `${answers.revoke(directory) ? 'Nothing is remembered any more' : 'Nothing was remembered'} of ${spelledOut(directory)}.`,
  );
}

function said(line: string): number {
  print(`${line}\n`);
  return exit.done;
}

function listAnswers(answers: TrustFile, json: boolean | undefined): number {
  const rows = answers
    .list()
    .map(({ directory, sha256, trusted, answeredAt }) => ({ directory, sha256, trusted, answered_at: answeredAt }));
  printListing(json, rows, () =>
    columns(
      rows.map((row) => [row.trusted ? 'trusted' : 'not trusted', row.sha256.slice(0, 12), spelledOut(row.directory)]),
    ),
  );
  return exit.done;
}
