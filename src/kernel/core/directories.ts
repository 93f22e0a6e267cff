import type { Event } from './event.js';

/** A directory beside the working directory that the user opened to the session. */
export interface ExtraDirectory {
  /** Absolute, links resolved. */
  readonly path: string;
  readonly readOnly: boolean;
}

/** The extra directories of a run. */
export interface ExtraDirectories {
  readonly list: () => readonly ExtraDirectory[];
  /** Adds a directory; one that is there already gets the new right. */
  readonly add: (directory: ExtraDirectory) => void;
}

export function createExtraDirectories(first: readonly ExtraDirectory[]): ExtraDirectories {
  let all: readonly ExtraDirectory[] = [];
  const add = (directory: ExtraDirectory): void => {
    all = [...all.filter(({ path }) => path !== directory.path), directory];
  };
  for (const directory of first) add(directory);
  return { list: () => all, add };
}

/** Reads `DIR` or `DIR:ro`. */
export function directoryIn(text: string): ExtraDirectory {
  const readOnly = text.endsWith(':ro');
  return { path: readOnly ? text.slice(0, -3) : text, readOnly };
}

/** Writes a directory as it is read. */
export function directoryText({ path, readOnly }: ExtraDirectory): string {
  return readOnly ? `${path}:ro` : path;
}

const noteStart = '[Note: you may also work in ';

/** Returns the directories as a note before the next message; empty if the model already knows them. */
export function directoryNews(directories: readonly ExtraDirectory[], events: readonly Event[]): readonly string[] {
  const told = events.findLast(({ kind, content }) => kind === 'user' && content?.startsWith(noteStart) === true);
  if (directories.length === 0) return [];
  const named = directories.map(({ path, readOnly }) => (readOnly ? `${path} (only to read)` : path));
  const note = `${noteStart}${named.join(', ')}.]`;
  return told?.content === note ? [] : [note];
}
