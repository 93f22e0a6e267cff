import { parseJson } from '../core/json.js';
import { randomBytes } from 'node:crypto';
import { chmodSync, closeSync, fsyncSync, openSync, realpathSync, renameSync, rmSync, writeSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { CliError, exit, type ToolFileFacts, type ToolFiles } from '../commands/command.js';
import type { Leaf } from '../config/layers.js';
import { type LoadedConfig, type LoadedProject, type ProjectFile, upToRoot } from '../config/load.js';
import { ensurePrivateDirectory, readConfigFile } from '../config/settings-file.js';
import { keyText } from '../config/settings-schema.js';
import { isRecord } from '../core/json.js';
import { replaceUnseen } from '../core/text.js';
import type { ToolFile } from '../toolsets/custom/tool-files.js';
import { pauseMs } from '../ui/timers.js';
import { print } from './print.js';

/** The answer for one directory and one content of its `.agent/config.json`, or of its files of instructions. */
export interface TrustEntry {
  /** Absolute, links resolved. */
  readonly directory: string;
  /** Of the file's text, or over the set of files, hex. */
  readonly sha256: string;
  readonly trusted: boolean;
  /** Unix ms. */
  readonly answeredAt: number;
}

/** A file of tools that the user has allowed, as it was then. */
export interface AllowedTools {
  /** Absolute, links resolved. */
  readonly path: string;
  /** Hex; over the file and the programs that it names. */
  readonly sha256: string;
  /** Unix ms. */
  readonly allowedAt: number;
}

/** The answers of the user, in `trust.json` beside the user's settings (0600):
 * `{"directories": [{"directory", "sha256", "trusted", "answered_at"}], "tools": [{"path", "sha256", "allowed_at"}],
 * "files": [as directories]}`. An answer holds for its directory alone, not for those below it. */
export interface TrustFile {
  readonly path: string;
  readonly tools: {
    list(): readonly AllowedTools[];
    isAllowed(file: Pick<AllowedTools, 'path' | 'sha256'>): boolean;
    /** Replaces what was allowed at that path. Throws what the system reports. */
    allow(file: AllowedTools): void;
    /** Returns false where nothing was allowed at that path. Throws what the system reports. */
    remove(path: string): boolean;
  };
  /** Answers for the files of instructions of a project, all together. */
  readonly files: Answers;
  /** Returns the answer for this directory and content; null where there is none or the file cannot be read. */
  answerFor(project: ProjectFile): TrustEntry | null;
  list(): readonly TrustEntry[];
  /** Replaces the earlier answer for that directory. Throws what the system reports. */
  record(project: ProjectFile, trusted: boolean, answeredAt: number): void;
  /** Removes the answer for a directory; returns false where there is none. Throws what the system reports. */
  revoke(directory: string): boolean;
}

/** A directory with exactly this content. */
type Asked = Pick<TrustEntry, 'directory' | 'sha256'>;

interface Answers {
  answerFor(asked: Asked): TrustEntry | null;
  list(): readonly TrustEntry[];
  /** Replaces the earlier answer for that directory. Throws what the system reports. */
  record(asked: Asked, trusted: boolean, answeredAt: number): void;
  /** Removes the answer for a directory; returns false where there is none. Throws what the system reports. */
  revoke(directory: string): boolean;
}

/** Everything that the file holds. */
interface Held {
  readonly directories: readonly TrustEntry[];
  readonly tools: readonly AllowedTools[];
  readonly files: readonly TrustEntry[];
}

export function openTrustFile(path: string): TrustFile {
  const save = (changed: Partial<Held>): void => {
    const { directories, tools, files } = {
      directories: read(path, 'directories'),
      tools: readTools(path),
      files: read(path, 'files'),
      ...changed,
    };
    const held = {
      directories: directories.map(stored),
      ...(tools.length === 0
        ? {}
        : { tools: tools.map(({ path: file, sha256, allowedAt }) => ({ path: file, sha256, allowed_at: allowedAt })) }),
      ...(files.length === 0 ? {} : { files: files.map(stored) }),
    };
    replaceFile(path, `${JSON.stringify(held, null, 2)}\n`);
  };
  const settings = answersIn(path, 'directories', (directories) => {
    save({ directories });
  });
  return {
    path,
    tools: {
      list: () => readTools(path),
      isAllowed: (file) => readTools(path).some((known) => known.path === file.path && known.sha256 === file.sha256),
      allow: (file) => {
        save({ tools: [...readTools(path).filter((known) => known.path !== file.path), file] });
      },
      remove: (file) => {
        const known = readTools(path);
        const left = known.filter((other) => other.path !== file);
        if (left.length < known.length) save({ tools: left });
        return left.length < known.length;
      },
    },
    files: answersIn(path, 'files', (files) => {
      save({ files });
    }),
    ...settings,
    answerFor: (project) => (project.content.kind === 'text' ? settings.answerFor(project) : null),
  };
}

function answersIn(path: string, key: 'directories' | 'files', save: (left: readonly TrustEntry[]) => void): Answers {
  return {
    list: () => read(path, key),
    answerFor: ({ directory: given, sha256 }) => {
      const directory = realDirectory(given);
      return read(path, key).find((entry) => entry.directory === directory && entry.sha256 === sha256) ?? null;
    },
    record: ({ directory: given, sha256 }, trusted, answeredAt) => {
      const directory = realDirectory(given);
      const others = read(path, key).filter((entry) => entry.directory !== directory);
      save([...others, { directory, sha256, trusted, answeredAt }]);
    },
    revoke: (given) => {
      const directory = realDirectory(given);
      const entries = read(path, key);
      const left = entries.filter((entry) => entry.directory !== directory);
      if (left.length < entries.length) save(left);
      return left.length < entries.length;
    },
  };
}

function read(path: string, key: 'directories' | 'files'): readonly TrustEntry[] {
  return listIn(path, key).flatMap(entryOf);
}

function readTools(path: string): readonly AllowedTools[] {
  return listIn(path, 'tools').flatMap((value) => {
    if (!isRecord(value)) return [];
    const { path: file, sha256, allowed_at: allowedAt } = value;
    const isSound = typeof file === 'string' && typeof sha256 === 'string' && typeof allowedAt === 'number';
    return isSound ? [{ path: file, sha256, allowedAt }] : [];
  });
}

/** Returns one of the lists in the file; what is not as it should be is dropped, item by item. */
function listIn(path: string, key: string): readonly unknown[] {
  const content = readConfigFile(path);
  if (content.kind !== 'text') return [];
  try {
    const value: unknown = parseJson(content.text);
    return isRecord(value) && Array.isArray(value[key]) ? value[key] : [];
  } catch {
    return [];
  }
}

function entryOf(value: unknown): readonly TrustEntry[] {
  if (!isRecord(value)) return [];
  const { directory, sha256, trusted, answered_at: answeredAt } = value;
  const sound =
    typeof directory === 'string' &&
    typeof sha256 === 'string' &&
    typeof trusted === 'boolean' &&
    typeof answeredAt === 'number';
  return sound ? [{ directory, sha256, trusted, answeredAt }] : [];
}

function stored({ directory, sha256, trusted, answeredAt }: TrustEntry): unknown {
  return { directory, sha256, trusted, answered_at: answeredAt };
}

function realDirectory(directory: string): string {
  try {
    return realpathSync(directory);
  } catch {
    return directory;
  }
}

/** Replaces the file as a whole, with mode 0600 whatever the umask. */
function replaceFile(path: string, text: string): void {
  ensurePrivateDirectory(dirname(path));
  const temporary = join(dirname(path), `.trust-${randomBytes(6).toString('hex')}.tmp`);
  const descriptor = openSync(temporary, 'wx', 0o600);
  try {
    chmodSync(temporary, 0o600);
    writeSync(descriptor, text);
    fsyncSync(descriptor);
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  } finally {
    closeSync(descriptor);
  }
}

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

/** Files of a project that count once the user trusts all of them as they are. */
export interface ProjectFiles {
  /** The root of the project, absolute. */
  readonly directory: string;
  /** Over all of them, hex. */
  readonly sha256: string;
  readonly files: readonly ProjectPart[];
}

/** One of them, with what a person has to know of it. */
export interface ProjectPart {
  readonly path: string;
  readonly sha256: string;
  readonly lines: readonly string[];
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
export function wantedLines(wanted: readonly Leaf[]): readonly string[] {
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
  const { readToolFile } = await import('../toolsets/custom/tool-files.js');
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
