import { basename, dirname, join, relative, resolve } from 'node:path';
import { CliError, exit, type ToolFileFacts, type ToolFiles } from '../kernel/console/command.js';
import type { Leaf } from '../kernel/config/layers.js';
import { type LoadedConfig, type LoadedProject, upToRoot } from '../kernel/config/load.js';
import { keyText } from '../kernel/config/settings-schema.js';
import { replaceUnseen } from '../kernel/core/text.js';
import type { ToolFile } from '../features/custom-tools/tool-files.js';
import { pauseMs } from '../kernel/core/timers.js';
import { print } from '../kernel/console/print.js';
import type { ProjectFiles } from '../kernel/config/project.js';
import { openTrustFile } from '../kernel/config/trust-file.js';

/** The terminal, as far as a question needs it. */
export interface QuestionPort {
  write(text: string): void;
  /** Waits for a pause in typing. Nothing that was typed before is an answer. */
  untilPause(): Promise<void>;
  /** Returns the next line; null where the input ended. */
  line(): Promise<string | null>;
}

/** Asks for trust in a project's settings. Everything but `y` and `yes` is a no. `unanswered`: nothing could be asked,
 * or no answer came. */
export async function askForTrust(
  project: LoadedProject | null,
  port: QuestionPort,
): Promise<'yes' | 'no' | 'unanswered'> {
  const question = trustQuestion(project);
  return question ? await asked(question, 'Trust this directory with exactly this file? [y/N] ', port) : 'unanswered';
}

interface TrustQuestion {
  readonly text: string;
  readonly askable: boolean;
}

/** Asks for trust in the files of a project that tell a model what to do, or start programs. */
export async function askForFiles(files: ProjectFiles, port: QuestionPort): Promise<'yes' | 'no' | 'unanswered'> {
  return await asked(filesQuestion(files), 'Trust this directory with exactly these files? [y/N] ', port);
}

const maxFilesCharacters = 20_000;

function filesQuestion({ directory, sha256, files }: ProjectFiles): TrustQuestion {
  const about = files.flatMap((file) => [
    `  ${spelledOut(relative(directory, file.path))} (sha256 ${file.sha256.slice(0, 16)})`,
    ...file.lines.map((line) => `      ${spelledOut(line)}`),
  ]);
  const count = files.length === 1 ? '1 file' : `${files.length} files`;
  const head = `${spelledOut(directory)}\n(sha256 ${sha256})\nholds ${count}`;
  if (about.join('').length > maxFilesCharacters)
    return {
      askable: false,
      text: `${head} of instructions, more than can be shown here. They are not trusted and not used; remove some.`,
    };
  const what =
    'that need your trust. Without it they are ignored. With it these would count, here and until one changes:';
  return { askable: true, text: [`${head} ${what}`, '', ...about, ''].join('\n') };
}

async function asked(
  question: TrustQuestion,
  prompt: string,
  port: QuestionPort,
): Promise<'yes' | 'no' | 'unanswered'> {
  port.write(`${question.text}\n`);
  if (!question.askable) return 'unanswered';
  await port.untilPause();
  port.write(prompt);
  const answer = await port.line();
  if (answer === null) port.write('\n');
  return answer === null ? 'unanswered' : /^\s*y(?:es)?\s*$/i.test(answer) ? 'yes' : 'no';
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
/** Neither letters, digits, punctuation and symbols nor a plain blank. Marks are spelt out: they change or hide what
 * stands before them. */
const unusual = /[^\p{L}\p{N}\p{P}\p{S} ]/gu;

/** Returns `text` on one line, with invisible characters spelt out: `\u{202e}`. */
export function spelledOut(text: string): string {
  const spelled = (character: string): string => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  return replaceUnseen(text.replaceAll(unusual, spelled), spelled);
}

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
        `${path} asks for more settings than can be shown here (${lines.length}). ` +
        'It is not trusted; read it, and take over what you want with agent config set.',
    };
  }
  return {
    askable: true,
    text: [
      path,
      `(sha256 ${project.file.sha256})`,
      'asks for settings that need your trust. Without it they are ignored. ' +
        'With it these would count, here and until the file changes:',
      '',
      ...lines.map((line) => `  ${line}`),
      '',
    ].join('\n'),
  };
}

/** Asks again about tools whose files are not as they were when they were allowed. A no, which is the default, forgets
 * them, so that it is not asked a third time. */
export async function askForTools(files: OwnToolFiles, port: QuestionPort): Promise<void> {
  for (const file of files.changed()) {
    const about = file.lines.map((line) => `  ${line}\n`).join('');
    port.write(`${spelledOut(file.path)}\n(sha256 ${file.sha256})\nhas changed since you allowed it:\n\n${about}\n`);
    await port.untilPause();
    port.write('Allow it as it is now, until one of its files changes? [y/N] ');
    const answer = await port.line();
    if (answer === null) {
      port.write('\n');
      return;
    }
    if (/^\s*y(?:es)?\s*$/i.test(answer)) files.allow(file);
    else files.forget(file.path);
  }
}

interface OwnToolFiles extends ToolFiles {
  /** Files that count here and are not as they were when they were allowed. */
  changed(): readonly ToolFileFacts[];
}

/** Opens the files of the user's own tools, for the commands that add and remove them. */
export async function openToolFiles({
  config,
  cwd,
}: Pick<LoadedConfig, 'config'> & { readonly cwd: string }): Promise<OwnToolFiles> {
  const { readToolFile } = await import('../features/custom-tools/tool-files.js');
  const { tools: trust } = openTrustFile(config.files.trust);
  /** `what`: a path, the folder of a tool, or its name. */
  const isMeant = (path: string, what: string): boolean => {
    const given = resolve(cwd, what);
    if (path === given || dirname(path) === given || basename(dirname(path)) === what) return true;
    const file = readToolFile(path);
    return file.kind === 'program' && file.descriptor.name === what;
  };
  const factsOf = (file: Exclude<ToolFile, { readonly kind: 'broken' }>): ToolFileFacts => ({
    path: file.path,
    sha256: file.sha256,
    isAllowed: trust.isAllowed(file),
    lines: linesOf(file),
  });
  return {
    changed: () => {
      const here = upToRoot(cwd).map((directory) => join(directory, '.agent', 'tools', '/'));
      return trust.list().flatMap(({ path, sha256 }) => {
        if (path.includes('/.agent/tools/') && !here.some((folder) => path.startsWith(folder))) return [];
        const file = readToolFile(path);
        return file.kind === 'broken' || file.sha256 === sha256 ? [] : [factsOf(file)];
      });
    },
    read: (path) => {
      const file = readToolFile(resolve(cwd, path));
      if (file.kind === 'broken')
        throw new CliError(
          exit.usage,
          `${spelledOut(file.path)} holds no tool: ${file.problem.replace(/\.$/, '')}`,
          'Name the folder of a tool.json, or an .mjs file; docs/custom-tools.md says what is in them.',
        );
      return factsOf(file);
    },
    allow: ({ path, sha256 }) => {
      trust.allow({ path, sha256, allowedAt: Date.now() });
    },
    forget: (what) => {
      const path = trust.list().find((file) => isMeant(file.path, what))?.path ?? null;
      if (path !== null) trust.remove(path);
      return path;
    },
  };
}

/** What a person has to know before they allow a file. */
function linesOf(file: Exclude<ToolFile, { readonly kind: 'broken' }>): readonly string[] {
  if (file.kind === 'module') return ['a module: its code runs inside this program, with all that this program may do'];
  const { name, description, command, effect } = file.descriptor;
  const words = command.map((word) => (/^[\w./:=@+-]+$/.test(word) ? word : JSON.stringify(word)));
  return [`${name} (${effect}): ${spelledOut(description)}`, `runs ${spelledOut(words.join(' '))}`];
}
