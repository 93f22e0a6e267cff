import { resolve } from 'node:path';
import { findProjectFile, upToRoot } from '../kernel/config/load.js';
import { agentPaths } from '../kernel/config/settings-file.js';
import {
  CliError,
  type CommandLine,
  exit,
  type Printer,
  type TrustAnswers,
  type CommandHandler,
} from '../kernel/console/command.js';
import { columns, printListing } from '../kernel/console/line-output.js';

interface Options {
  readonly list?: boolean;
  readonly revoke?: boolean;
  readonly json?: boolean;
}

/** Asks about the settings of this project (again), lists the answers, or forgets the one for this directory. */
export const trustProject: CommandHandler = {
  line: {
    example: 'agent config trust --list',
    options: (command) =>
      command
        .option('--list', 'the directories answered for')
        .option('--revoke', 'forget the answer for this directory')
        .option('--json', 'with --list: one JSON array'),
    run: (line, _args, options: Options) =>
      options.list || options.revoke ? earlierAnswers(line, options) : askAgain(line),
  },
};

async function askAgain({ out, settings, trust }: CommandLine): Promise<number> {
  const read = await settings();
  const { project } = read.loaded;
  const files = await trust.files(read);
  if (project?.trusted) printLine(out, `${trust.spelled(project.file.path)} is trusted as it is. ${takenBack}`);
  const answered = files.filter(({ answer }) => answer === true);
  for (const { directory } of answered)
    printLine(
      out,
      `The commands, skills, hooks and servers of ${trust.spelled(directory)} are trusted as they are. ${takenBack}`,
    );
  const questions: (() => Promise<Answer>)[] = [];
  if (project && project.wanted.length > 0)
    questions.push(async () => {
      const answer = await trust.ask(project);
      if (answer !== 'unanswered')
        trust.answers(read.config.files.trust).record(project.file, answer === 'yes', Date.now());
      return reportAnswer(out, answer, 'the file changes');
    });
  for (const one of files.filter(({ answer }) => answer !== true))
    questions.push(async () => reportAnswer(out, await one.ask(), 'one of the files changes'));
  return await answersTo(questions, out, project?.trusted === true || answered.length > 0);
}

type Answer = 'yes' | 'no' | 'unanswered';

async function answersTo(
  questions: readonly (() => Promise<Answer>)[],
  out: Printer,
  isTrusted: boolean,
): Promise<number> {
  if (questions.length === 0) return isTrusted ? exit.done : printLine(out, 'Nothing here asks for trust.');
  if (!process.stdin.isTTY || !out.isTerminal)
    throw new CliError(exit.usage, 'trust is only asked about in a terminal', 'Run agent config trust in one.');
  const answers: Answer[] = [];
  for (const ask of questions) answers.push(await ask());
  return answers.includes('unanswered') ? exit.failed : exit.done;
}

const takenBack = 'agent config trust --revoke undoes that.';

function reportAnswer(out: Printer, answer: Answer, until: string): Answer {
  if (answer === 'yes') printLine(out, `Trusted until ${until}.`);
  if (answer === 'no') printLine(out, `Not trusted; it is not asked about again until ${until}.`);
  return answer;
}

/** Works even where the settings are broken. */
async function earlierAnswers({ out, request, trust }: CommandLine, options: Options): Promise<number> {
  const files = agentPaths(request.env, request.home);
  const answers = trust.answers(files.trust);
  if (options.list) return listAnswers(answers, options.json, { out, trust });
  const cwd = resolve(request.cwd);
  const directory = findProjectFile(cwd, files.config)?.directory ?? cwd;
  const forgotten = [answers.revoke(directory), answers.files.revoke(upToRoot(cwd).at(-1) ?? cwd)];
  const outcome = forgotten.includes(true) ? 'Nothing is remembered any more' : 'Nothing was remembered';
  return printLine(out, `${outcome} of ${trust.spelled(directory)}.`);
}

function printLine(out: Printer, line: string): number {
  out.print(`${line}\n`);
  return exit.done;
}

function listAnswers(
  answers: TrustAnswers,
  json: boolean | undefined,
  { out, trust }: Pick<CommandLine, 'out' | 'trust'>,
): number {
  const rows = [...answers.list(), ...answers.files.list()].map(({ directory, sha256, trusted, answeredAt }) => ({
    directory,
    sha256,
    trusted,
    answered_at: answeredAt,
  }));
  printListing(out, json, rows, () =>
    columns(
      rows.map((row) => [
        row.trusted ? 'trusted' : 'not trusted',
        row.sha256.slice(0, 12),
        trust.spelled(row.directory),
      ]),
    ),
  );
  return exit.done;
}
