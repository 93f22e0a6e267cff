import { randomBytes } from 'node:crypto';
import { chmodSync, closeSync, fsyncSync, openSync, realpathSync, renameSync, rmSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Leaf } from '../config/layers.js';
import type { LoadedProject, ProjectFile } from '../config/load.js';
import { ensurePrivateDirectory, readConfigFile } from '../config/settings-file.js';
import { keyText } from '../config/settings-schema.js';
import { isRecord } from '../core/json.js';
import { replaceUnseen } from '../core/text.js';
import { pauseMs } from '../ui/timers.js';
import { print } from './print.js';

/** The answer for one directory and one content of its `.agent/config.json`. */
export interface TrustEntry {
  /** Absolute, links resolved. */
  readonly directory: string;
  /** Of the file's text, hex. */
  readonly sha256: string;
  readonly trusted: boolean;
  /** Unix ms. */
  readonly answeredAt: number;
}

/** The answers of the user, in `trust.json` beside the user's settings (0600):
 * `{"directories": [{"directory", "sha256", "trusted", "answered_at"}]}`. An answer holds for its directory alone, not
 * for those below it. */
export interface TrustFile {
  readonly path: string;
  /** Returns the answer for this directory and content; null where there is none or the file cannot be read. */
  answerFor(project: ProjectFile): TrustEntry | null;
  list(): readonly TrustEntry[];
  /** Replaces the earlier answer for that directory. Throws what the system reports. */
  record(project: ProjectFile, trusted: boolean, answeredAt: number): void;
  /** Removes the answer for a directory; returns false where there is none. Throws what the system reports. */
  revoke(directory: string): boolean;
}

export function openTrustFile(path: string): TrustFile {
  const write = (entries: readonly TrustEntry[]): void => {
    replaceFile(path, `${JSON.stringify({ directories: entries.map(stored) }, null, 2)}\n`);
  };
  return {
    path,
    list: () => read(path),
    answerFor: (project) => {
      if (project.content.kind !== 'text') return null;
      const directory = realDirectory(project.directory);
      return read(path).find((entry) => entry.directory === directory && entry.sha256 === project.sha256) ?? null;
    },
    record: ({ directory: given, sha256 }, trusted, answeredAt) => {
      const directory = realDirectory(given);
      write([
        ...read(path).filter((entry) => entry.directory !== directory),
        { directory, sha256, trusted, answeredAt },
      ]);
    },
    revoke: (given) => {
      const directory = realDirectory(given);
      const entries = read(path);
      const left = entries.filter((entry) => entry.directory !== directory);
      if (left.length < entries.length) write(left);
      return left.length < entries.length;
    },
  };
}

/** Drops everything that is not an entry. */
function read(path: string): readonly TrustEntry[] {
  const content = readConfigFile(path);
  if (content.kind !== 'text') return [];
  try {
    const value: unknown = JSON.parse(content.text);
    return isRecord(value) && Array.isArray(value.directories) ? value.directories.flatMap(entryOf) : [];
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
  if (!question) return 'unanswered';
  port.write(`${question.text}\n`);
  if (!question.askable) return 'unanswered';
  await port.untilPause();
  port.write('Trust this directory with exactly this file? [y/N] ');
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
export function trustQuestion(
  project: LoadedProject | null,
): { readonly text: string; readonly askable: boolean } | null {
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
