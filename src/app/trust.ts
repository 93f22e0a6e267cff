import type { QuestionPort } from '../kernel/console/feature.js';
import type { Leaf } from '../kernel/config/layers.js';
import type { LoadedProject } from '../kernel/config/load.js';
import { keyText } from '../kernel/config/settings-schema.js';
import { spelledOut } from '../kernel/core/text.js';
import { pauseMs } from '../kernel/core/timers.js';
import { print } from '../kernel/console/print.js';
import type { ProjectFiles } from '../kernel/config/project.js';
import { type FoldedFolder, shownFiles } from './folded-files.js';

/** Asks for trust in a project's settings. Everything but `y` and `yes` is a no. `unanswered`: nothing could be asked,
 * or no answer came. */
export async function askForTrust(
  project: LoadedProject | null,
  port: QuestionPort,
): Promise<'yes' | 'no' | 'unanswered'> {
  const question = trustQuestion(project);
  return question
    ? await askTrustQuestion(question, 'Trust this directory with exactly this file? [y/N] ', port)
    : 'unanswered';
}

interface TrustQuestion {
  readonly text: string;
  readonly askable: boolean;
  /** Folders that can be opened before the answer. */
  readonly folders?: readonly FoldedFolder[];
}

/** Asks for trust in the files of a project that instruct a model or start programs. */
export async function askForFiles(files: ProjectFiles, port: QuestionPort): Promise<'yes' | 'no' | 'unanswered'> {
  const question = filesQuestion(files);
  const number = question.folders?.length ?? 0;
  const range = number === 1 ? '1' : `1-${number}`;
  const others = number === 0 ? '' : `(${range}: list a folder, l: list the folders) `;
  return await askTrustQuestion(question, `Trust this directory with exactly these files? [y/N] ${others}`, port);
}

function filesQuestion({ directory, sha256, files }: ProjectFiles): TrustQuestion {
  const { whole, folders } = shownFiles({ directory, files });
  const count = files.length === 1 ? '1 file' : `${files.length} files`;
  const head = `${spelledOut(directory)}\n(sha256 ${sha256})\ncontains ${count}`;
  const what =
    files.length === 1
      ? 'that needs your trust. It is ignored until you trust it.\nIf you do, it applies here until it changes:'
      : 'that need your trust. They are ignored until you trust them.\nIf you do, these apply here until one changes:';
  const listed = [`${head} ${what}`, '', ...whole, ...(whole.length > 0 ? [''] : [])];
  if (folders.length === 0) return { askable: true, text: listed.join('\n') };
  return { askable: true, text: [...listed, folderList(folders)].join('\n'), folders };
}

function folderList(folders: readonly FoldedFolder[]): string {
  const lines = folders.map(({ line }, index) => `  ${index + 1}  ${line}`);
  return ['The other files, by folder:', '', ...lines, ''].join('\n');
}

async function askTrustQuestion(
  question: TrustQuestion,
  prompt: string,
  port: QuestionPort,
): Promise<'yes' | 'no' | 'unanswered'> {
  port.write(`${question.text}\n`);
  if (!question.askable) return 'unanswered';
  for (;;) {
    await port.untilPause();
    port.write(prompt);
    const answer = await port.line();
    const opened = answer === null ? null : openedText(answer.trim(), question.folders ?? []);
    if (opened === null) {
      if (answer === null) port.write('\n');
      return answer === null ? 'unanswered' : /^\s*y(?:es)?\s*$/i.test(answer) ? 'yes' : 'no';
    }
    port.write(`\n${opened}\n`);
  }
}

/** Returns what a number or `l` prints; null for an answer to the question. */
function openedText(typed: string, folders: readonly FoldedFolder[]): string | null {
  if (folders.length === 0) return null;
  if (typed.toLowerCase() === 'l') return folderList(folders);
  if (!/^\d+$/.test(typed)) return null;
  const folder = folders[Number(typed) - 1];
  return folder
    ? [folder.line, '', ...folder.opened, ''].join('\n')
    : `There is no folder ${typed}; the last one is ${folders.length}.\n`;
}

/** Opens the terminal in line mode: the kernel edits the line, Ctrl-C ends the program. `onTyped` gets the keys that
 * were typed before the question. */
export function terminalQuestion(input: NodeJS.ReadStream, onTyped: (chunk: string) => void): QuestionPort {
  return {
    write: (text) => {
      print(text);
    },
    untilPause: () =>
      new Promise((resolve) => {
        const done = (): void => {
          input.off('data', take).off('end', done).pause().setRawMode(false);
          resolve();
        };
        let timer = setTimeout(done, pauseMs);
        const take = (chunk: Buffer | string): void => {
          clearTimeout(timer);
          timer = setTimeout(done, pauseMs);
          const text = String(chunk);
          if (!text.includes('\x03')) {
            onTyped(text);
            return;
          }
          input.setRawMode(false);
          process.kill(process.pid, 'SIGINT');
        };
        input.setRawMode(true); // the kernel keeps back a line that has not ended otherwise
        input.on('data', take).once('end', done).resume();
      }),
    line: () =>
      new Promise((resolve) => {
        let text = '';
        const done = (line: string | null): void => {
          input.off('data', onData).off('end', onEnd).pause();
          resolve(line);
        };
        const onEnd = (): void => {
          done(null);
        };
        const onData = (chunk: Buffer | string): void => {
          text += String(chunk);
          const end = text.search(/[\r\n]/);
          if (end >= 0) done(text.slice(0, end));
        };
        input.on('data', onData).once('end', onEnd).resume();
      }),
  };
}

/** Nobody reads a longer list, so no question is asked about it. */
const maxCharacters = 8000;
/** Returns the settings that trust would allow, one line each. */
function wantedLines(wanted: readonly Leaf[]): readonly string[] {
  return wanted.map((leaf) => spelledOut(`${keyText(leaf.path)} = ${JSON.stringify(leaf.value)}`));
}

/** Returns the question about a project's settings, without its `[y/N]`; null where there is nothing to ask. */
export function trustQuestion(project: LoadedProject | null): TrustQuestion | null {
  if (!project || project.trusted || project.wanted.length === 0) return null;
  const path = spelledOut(project.file.path);
  const lines = wantedLines(project.wanted);
  if (lines.join('').length > maxCharacters) {
    return {
      askable: false,
      text:
        `${path} has more settings than can be shown here (${lines.length}). ` +
        'It is not trusted; read it, and copy what you want with agent config set.',
    };
  }
  return {
    askable: true,
    text: [
      path,
      `(sha256 ${project.file.sha256})`,
      'sets values that need your trust. They are ignored until you trust them.\nIf you do, these apply here until the file changes:',
      '',
      ...lines.map((line) => `  ${line}`),
      '',
    ].join('\n'),
  };
}
