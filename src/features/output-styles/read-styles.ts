import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import {
  type FileOrigin,
  filesIn,
  type FoundFile,
  type LeftOutFile,
  nameIn,
  type SearchedFolder,
  withVariables,
} from '../../kernel/config/found-files.js';
import { type FrontMatter, markdownText, oneLine, readFrontMatter } from '../../kernel/config/front-matter.js';
import { countingPlaces, type ProjectPart, type TrustedHere } from '../../kernel/config/project.js';
import { didYouMean } from '../../kernel/core/text.js';
import { readBounded } from '../../kernel/disk/bounded-file.js';
import { builtInStyles, noStyle } from './built-in-styles.js';

/** Instructions on how to answer, for a whole session. Source: code.claude.com/docs/en/output-styles, read 2026-11. */
export interface OutputStyle {
  readonly name: string;
  /** One line. */
  readonly description: string;
  /** False: the instructions of the program about coding are left out. */
  readonly keepsCoding: boolean;
  /** Empty: no style. */
  readonly body: string;
  readonly origin: FileOrigin;
  /** Null: it comes with the program. */
  readonly path: string | null;
}

/** The styles of some folders. */
export interface FoundStyles {
  /** The first of each name. */
  readonly styles: readonly OutputStyle[];
  /** The styles that another one of the same name hides. */
  readonly shadowed: readonly OutputStyle[];
  /** The files that are no styles. */
  readonly leftOut: readonly LeftOutFile[];
  /** Sentences. */
  readonly problems: readonly string[];
}

interface ReadStyle extends OutputStyle {
  readonly sha256: string;
  readonly bytes: number;
  readonly problems: readonly string[];
}

const maxBytes = 64 * 1024;
const maxName = 64;
const maxDescription = 250;

const ofProgram: readonly OutputStyle[] = [
  { name: noStyle, description: 'Answers as the program does without a style.', body: '' },
  ...builtInStyles,
].map((style) => ({ ...style, keepsCoding: true, origin: 'program', path: null }));

/** Finds the styles of these folders, and those that come with the program. */
export function stylesIn(places: readonly SearchedFolder[]): FoundStyles {
  const styles = new Map<string, OutputStyle>();
  const shadowed: OutputStyle[] = [];
  const leftOut: LeftOutFile[] = [];
  const problems: string[] = [];
  for (const file of styleFiles(places)) {
    const style = readStyle(file);
    if (typeof style === 'string') {
      leftOut.push({ name: fileName(file), path: file.path, origin: file.place.origin, reason: style });
      problems.push(`${file.path} ${style}; the output style is not loaded.`);
      continue;
    }
    const { sha256: _hash, bytes: _size, problems: own, ...rest } = style;
    for (const problem of own) problems.push(problem);
    if (styles.has(rest.name)) shadowed.push(rest);
    else styles.set(rest.name, rest);
  }
  for (const style of ofProgram) if (!styles.has(style.name)) styles.set(style.name, style);
  return { styles: [...styles.values()], shadowed, leftOut, problems };
}

/** Finds the styles of the user, of a trusted project, of plugins and of the program, as they are now. */
export async function findStyles(here: TrustedHere): Promise<FoundStyles> {
  return stylesIn(await countingPlaces(here, 'output-styles'));
}

/** Folders of styles often have a page about them. */
function styleFiles(places: readonly SearchedFolder[]): readonly FoundFile[] {
  const isStyle = (path: string): boolean => path.endsWith('.md') && !/\/(?:readme|claude|agents)\.md$/i.test(path);
  return places.flatMap((place) => filesIn(place, ({ path, isFolder }) => (!isFolder && isStyle(path) ? path : null)));
}

function fileName({ path, place }: FoundFile): string {
  return nameIn(place, oneLine(basename(path, '.md').normalize('NFC'), maxName));
}

/** A text says why a file is no style. */
function readStyle(file: FoundFile): ReadStyle | string {
  const { path, place } = file;
  const found = readBounded(path, { maxBytes, longer: 'refuse', links: 'follow' });
  if (found.kind !== 'read') return `cannot be read: ${found.kind === 'refused' ? found.reason : 'it is gone'}`;
  const { fields, body } = readFrontMatter(markdownText(found.bytes));
  const text = withVariables(place, body.trim());
  if (text === '') return 'has no text';
  const given = oneLine(fields.get('name') ?? '', maxName).normalize('NFC');
  const name = given === '' ? fileName(file) : nameIn(place, given);
  if (name === noStyle) return `has the name ${noStyle}, which means no style`;
  return {
    name,
    description: oneLine(fields.get('description') ?? text.split('\n')[0]?.replace(/^#+\s*/, '') ?? '', maxDescription),
    keepsCoding: fields.get('keep-coding-instructions')?.toLowerCase() === 'true',
    body: text,
    origin: place.origin,
    path,
    sha256: createHash('sha256').update(found.bytes).digest('hex'),
    bytes: found.bytes.length,
    problems: ignoredFields(path, name, fields),
  };
}

const knownFields: readonly string[] = ['name', 'description', 'keep-coding-instructions', 'force-for-plugin'];

function ignoredFields(path: string, name: string, fields: FrontMatter['fields']): readonly string[] {
  const isForced = fields.get('force-for-plugin')?.toLowerCase() === 'true';
  const others = [...fields.keys()].filter((key) => !knownFields.includes(key)).map((key) => oneLine(key, 40));
  return [
    ...(isForced ? [`${path}: force-for-plugin is ignored; choose the style with /output-style ${name}.`] : []),
    ...(others.length > 0 ? [`${path}: ${others.join(', ')} ${others.length === 1 ? 'is' : 'are'} ignored.`] : []),
  ];
}

/** Lists the styles of a project. */
export function partsOfStyles(places: readonly SearchedFolder[]): readonly ProjectPart[] {
  return styleFiles(places).flatMap((file) => {
    const style = readStyle(file);
    if (typeof style === 'string') return [];
    const { path: _path, sha256, bytes, name, description } = style;
    return [{ kind: 'output-styles', path: file.path, sha256, bytes, lines: [`output style ${name}: ${description}`] }];
  });
}

/** Returns the style of a name, in capitals or not; a text says why there is none. */
export function styleNamed(
  name: string,
  { styles, leftOut }: Pick<FoundStyles, 'styles' | 'leftOut'>,
): OutputStyle | string {
  const folded = name.normalize('NFC').toLowerCase();
  const found =
    styles.find((style) => style.name === name) ?? styles.find((style) => style.name.toLowerCase() === folded);
  if (found) return found;
  const faulty = leftOut.find((file) => file.name.toLowerCase() === folded);
  if (faulty) return `The output style ${faulty.name} cannot be used: ${faulty.path} ${faulty.reason}.`;
  const names = styles.map((style) => style.name);
  return `There is no output style ${oneLine(name, maxName)}. ${didYouMean(name, names)} Known: ${names.join(', ')}.`;
}
