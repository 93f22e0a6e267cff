import { dirname, isAbsolute, join } from 'node:path';

interface Text {
  readonly path: string;
  readonly text: string;
  /** The folder that paths in a rule start from; those in other files start from the folder of the file. */
  readonly base: string;
}

/** Leaves out texts that say nothing that another one does not: the same text again, a part of another one, and a text
 * that only names other files that are read. White space and a title such as `# CLAUDE.md` make no difference.
 * `read`: texts that are given whatever comes of these, first. `isRead`: the file at an absolute path is given. */
export function distinctTexts<File extends Text>(
  files: readonly File[],
  read: readonly Text[],
  { home, isRead }: { readonly home: string; readonly isRead: (path: string) => boolean },
): readonly File[] {
  const known = read.map(({ text }) => plainText(text));
  return files.filter((file) => {
    const plain = plainText(file.text);
    if (plain === '' || known.some((text) => text.includes(plain)) || isPointer(file, { home, isRead })) return false;
    known.push(plain);
    return true;
  });
}

function plainText(text: string): string {
  return text
    .replace(/^\s*#+[ \t]*(?:AGENTS|CLAUDE|GEMINI|Claude|Gemini|Agents)(?:\.md)?[ \t]*(?:\r?\n|$)/, '')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

const maxPointerChars = 400;
const fileName = /(?<![\w/.~-])@?((?:~\/|\.{0,2}\/)?(?:[\w.-]+\/)*[\w.-]*\w\.(?:md|mdc|txt))\b/g;
/** Words that say no more than that another file is to be read. */
const filler = new Set(
  (
    'a about actual additional agent agents ai all also and any are as assistant assistants at be before code coding ' +
    'complete contains context conventions defined details directions docs document documentation everything file ' +
    'files find first follow follows for found from full further guidance guide guideline guidelines here in ' +
    'information instruction instructions is it its kept link live lives located main more of on only open please ' +
    'project read refer reference repo repository root rules same see shared single source start that the them then ' +
    'these this to tools truth under use used uses version when with work working you your claude gemini cursor codex mdc'
  ).split(' '),
);

/** Returns true for a text that only sends the reader to other files, all of which are given. */
function isPointer(
  { path, text, base }: Text,
  { home, isRead }: { readonly home: string; readonly isRead: (path: string) => boolean },
): boolean {
  const body = text
    .replaceAll(/<!--[^]*?-->/g, ' ')
    .replaceAll(/^\s*#.*$/gm, ' ')
    .trim();
  if (body.length > maxPointerChars) return false;
  const names = [...body.matchAll(fileName)].map(([, name = '']) => name);
  const isGiven = (name: string): boolean => {
    const plain = name.startsWith('~/') ? join(home, name.slice(2)) : name;
    return isAbsolute(plain) ? isRead(plain) : isRead(join(dirname(path), plain)) || isRead(join(base, plain));
  };
  if (names.length === 0 || !names.every(isGiven)) return false;
  const words = body.replaceAll(fileName, ' ').match(/[\p{L}\p{N}]+/gu) ?? [];
  return words.every((word) => filler.has(word.toLowerCase()));
}
