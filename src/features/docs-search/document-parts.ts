import { addAll } from '../../kernel/core/lists.js';
import type { DocPart } from '../../kernel/core/files/documents.js';

const splitChars = 2000;
const maxPartChars = 8000;
const maxHeadingChars = 200;

/** The kinds of documents, by the ending of their names. */
export const docEndings = ['md', 'mdx', 'rst', 'txt', 'adoc'] as const;

interface Section {
  readonly heading: string;
  /** The line after the heading, from 0. */
  readonly from: number;
  readonly to: number;
}

interface Heading {
  readonly level: number;
  readonly title: string;
  /** Its first line, and the line after it. */
  readonly at: number;
  readonly end: number;
}

/** Cuts a document at its headings, and long sections at blank lines. A fence stays whole up to 8,000 characters. The
 * time depends only on the length of the text. */
export function docParts(text: string, ending: string): readonly DocPart[] {
  const lines = text.split(/\r?\n/);
  const fenced = fencedLines(lines, ending);
  return sections(lines, headingsOf(lines, fenced, ending)).flatMap((section) => cutSection(lines, fenced, section));
}

/** Returns for each line whether it lies in a fence, its first line and its last included. */
function fencedLines(lines: readonly string[], ending: string): readonly boolean[] {
  const opening = ending === 'adoc' ? /^(-{4,}|\.{4,})\s*$/ : /^ {0,3}(`{3,}|~{3,})/;
  let mark: string | null = null;
  return lines.map((line) => {
    const found = opening.exec(line)?.[1];
    if (mark === null) {
      mark = found ?? null;
      return found !== undefined;
    }
    if (found?.startsWith(mark) === true && line.trim() === found) mark = null;
    return true;
  });
}

/** A longer line is no heading. */
const mostHeadingLine = 1_000;

function headingsOf(lines: readonly string[], fenced: readonly boolean[], ending: string): readonly Heading[] {
  if (ending === 'txt') return [];
  const find = ending === 'rst' ? underlined() : ending === 'adoc' ? marked(/^(={1,6})\s+(\S.*)$/) : markdownHeading;
  return lines.flatMap((line, at) => {
    if (fenced[at] === true || line.length > mostHeadingLine) return [];
    const found = find(line, lines[at + 1] ?? '');
    if (found === null) return [];
    return [{ ...found, title: found.title.slice(0, maxHeadingChars), at, end: at + found.lines }];
  });
}

interface FoundHeading {
  readonly level: number;
  readonly title: string;
  readonly lines: number;
}
type FindHeading = (line: string, next: string) => FoundHeading | null;

function marked(form: RegExp): FindHeading {
  return (line) => {
    const found = form.exec(line);
    return found ? { level: found[1]?.length ?? 1, title: (found[2] ?? '').trim(), lines: 1 } : null;
  };
}

const hashes = marked(/^ {0,3}(#{1,6})\s+(\S.*?)(?:\s+#+)?\s*$/);

const markdownHeading: FindHeading = (line, next) => {
  const found = hashes(line, next);
  if (found !== null) return found;
  const underline = /^ {0,3}(=+|-{2,})\s*$/.exec(next)?.[1];
  if (underline === undefined || !/^ {0,3}[^\s>#|*+-]/.test(line)) return null;
  return { level: underline.startsWith('=') ? 1 : 2, title: line.trim(), lines: 2 };
};

/** reStructuredText gives levels to underlines in the order in which they first come. */
function underlined(): FindHeading {
  const levels: string[] = [];
  return (line, next) => {
    const underline = /^([!-/:-@[-`{-~])\1*\s*$/.exec(next);
    const title = line.trim();
    if (!underline || title === '' || next.trim().length < title.length || /^\W+$/.test(title)) return null;
    const mark = underline[1] ?? '';
    if (!levels.includes(mark)) levels.push(mark);
    return { level: levels.indexOf(mark) + 1, title, lines: 2 };
  };
}

function sections(lines: readonly string[], headings: readonly Heading[]): readonly Section[] {
  const first = headings[0]?.at ?? lines.length;
  const trail: Heading[] = [];
  return [
    { heading: '', from: 0, to: first },
    ...headings.map((heading, index) => {
      while ((trail.at(-1)?.level ?? 0) >= heading.level) trail.pop();
      trail.push(heading);
      return {
        heading: trail.map(({ title }) => title).join(' > '),
        from: heading.at,
        to: headings[index + 1]?.at ?? lines.length,
      };
    }),
  ];
}

/** Cuts one section into pieces that end at a blank line once they have 2,000 characters, and at any line once they
 * have 8,000. Blank pieces are left out. */
function cutSection(lines: readonly string[], fenced: readonly boolean[], section: Section): readonly DocPart[] {
  const parts: DocPart[] = [];
  let from = section.from;
  let chars = 0;
  const end = (to: number): void => {
    addAll(parts, pieces(lines.slice(from, to).join('\n'), section.heading, from + 1, to));
    from = to;
    chars = 0;
  };
  for (let at = section.from; at < section.to; at++) {
    const line = lines[at] ?? '';
    if (at > from && chars + line.length > maxPartChars) end(at);
    chars += line.length + 1;
    if (chars > splitChars && line.trim() === '' && fenced[at] !== true) end(at + 1);
  }
  end(section.to);
  return parts;
}

/** A line that is longer than a part is cut at characters. */
function pieces(text: string, heading: string, fromLine: number, toLine: number): readonly DocPart[] {
  if (text.trim() === '') return [];
  const count = Math.ceil(text.length / maxPartChars);
  return Array.from({ length: count }, (_, index) => ({
    heading,
    fromLine,
    toLine,
    text: text.slice(index * maxPartChars, (index + 1) * maxPartChars),
  }));
}
