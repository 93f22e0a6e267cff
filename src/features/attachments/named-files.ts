import { homedir } from 'node:os';
import { basename, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readBounded } from '../../kernel/disk/bounded-file.js';
import { pastedWindowsPaths, wslPlaces } from '../../kernel/disk/windows-paths.js';
import { isWsl } from '../../kernel/disk/wsl.js';
import type { MatchedFile } from '../../kernel/core/tool.js';
import { mostFileBytes } from '../../kernel/core/files/attached-formats.js';
import { isPdf, pictureFacts } from './image-header.js';

/** `@shot.png`, `@"my shot.png"`, as the menu of files writes them. */
const mention = /(?<=^|[\s(])@(?:"([^"\n]+)"|([^\s@"]+))/gu;

export type ReadFile =
  | { readonly ok: true; readonly file: MatchedFile }
  /** `problem`: a sentence; null if there is no image or document at the path, and the text does not claim one. */
  | { readonly ok: false; readonly problem: string | null };

/** Reads the images and PDFs that a text names by `@path`. Files of other kinds are left to the model's tools. */
export function mentioned(text: string, cwd: string): readonly ReadFile[] {
  const paths = [...text.matchAll(mention)].map(([, quoted, plain = '']) => quoted ?? plain.replace(/[),.;:!?]+$/, ''));
  return [...new Set(paths)].filter(looksLikePicture).map((path) => readPicture(path, cwd));
}

/** Reads an image or a PDF. The caller makes sure that the user named it. */
export function readPicture(path: string, cwd: string): ReadFile {
  const absolute = resolve(cwd, localPath(path).replace(/^~(?=\/)/, homedir()));
  const found = readBounded(absolute, { maxBytes: mostFileBytes, longer: 'refuse', links: 'follow' });
  const name = basename(absolute);
  if (found.kind === 'missing') return { ok: false, problem: null };
  if (found.kind === 'refused') return { ok: false, problem: `${name} is not attached: ${found.reason}.` };
  const { bytes } = found;
  return pictureFacts(bytes) === null && !isPdf(bytes)
    ? { ok: false, problem: `${name} is not attached: it is not a PNG, JPEG, GIF, WebP or PDF.` }
    : { ok: true, file: { name, bytes } };
}

/** Returns the path of a `file:` address, and anything else as it is. */
function localPath(path: string): string {
  try {
    return /^file:/i.test(path) ? fileURLToPath(path) : path;
  } catch {
    return path;
  }
}

function looksLikePicture(path: string): boolean {
  return /\.(?:png|jpe?g|gif|webp|pdf)$/i.test(path);
}
/** In WSL, returns a text that contains only paths of Windows with the paths here instead; null for any other text. */
export function pathsOfWindows(text: string, env: Readonly<Record<string, string | undefined>>): string | null {
  return isWsl(env) ? pastedWindowsPaths(text, wslPlaces(env)) : null;
}

/** Returns the paths of a text that contains only paths of images, as terminals paste files that are dragged onto them:
 * in quotes, with escaped blanks, as `file://`, one or several. Null for any other text. */
export function pastedPaths(text: string): readonly string[] | null {
  const words = [...text.trim().matchAll(/'((?:[^'\n]|'\\'')+)'|"([^"\n]+)"|((?:[^\s\\'"]|\\[^\n])+)|(\S)/gu)];
  const paths = words.map(([, single, double, bare]) => single?.replaceAll("'\\''", "'") ?? double ?? unescaped(bare));
  const whole = text.trim();
  if (paths.length > 1 && isPlainPath(whole)) return [whole];
  return paths.length > 0 && paths.every((path) => path !== null && looksLikePicture(path))
    ? paths.filter((path) => path !== null)
    : null;
}

/** Some terminals paste a path with blanks as it is. */
function isPlainPath(text: string): boolean {
  return /^(?:~?\/|[A-Za-z]:\\)[^\n'"\\]*$/.test(text) && looksLikePicture(text) && !/\.\w+\s+[~/]/.test(text);
}

function unescaped(word: string | undefined): string | null {
  if (word === undefined) return null;
  if (!word.startsWith('file://')) return word.replace(/\\(.)/gu, '$1');
  try {
    return fileURLToPath(word);
  } catch {
    return null;
  }
}
