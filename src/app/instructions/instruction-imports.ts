/** Returns the paths that a text imports, as Claude Code reads them: `@path` at the start of a line or behind white
 * space, outside of code spans, code blocks and comments. A blank in a path is written `\ `. Source:
 * code.claude.com/docs/en/memory, "Import additional files" (2026-11-28). */
export function importedPaths(text: string): readonly string[] {
  const found = [...withoutCode(text).matchAll(/(?<=^|\s)@((?:\\ |[^\s\\])+)/g)].map(([, path = '']) =>
    path.replaceAll('\\ ', ' '),
  );
  return [...new Set(found.filter((path) => /^(?:\.{1,2}\/|~\/|\/|[A-Za-z0-9._-])/.test(path)))];
}

/** Returns the spellings of an imported path in the order in which they are tried: as it is written, and without what a
 * sentence or a link puts behind it. */
export function spellingsOf(path: string): readonly string[] {
  const plain = path.replace(/#.*$/, '');
  return [...new Set([path, plain, plain.replace(/[.,;:!?)\]}'"*_]+$/, '')])].filter((spelling) => spelling !== '');
}

/** Takes code and comments out of a text. */
function withoutCode(text: string): string {
  const lines: string[] = [];
  let fence: string | null = null;
  let afterBlank = true;
  for (const line of text.replaceAll(/<!--[^]*?-->/g, (comment) => comment.replaceAll(/[^\n]/g, '')).split('\n')) {
    const mark: string | undefined = /^ {0,3}(?:[-*+] +)?(`{3,}|~{3,})/.exec(line)?.[1];
    const isIndented = /^(?: {4}|\t)/.test(line);
    if (fence !== null) {
      const closes = new RegExp(`^\\s{0,6}${fence[0] ?? ''}{${fence.length},}\\s*$`).test(line);
      if (closes) fence = null;
      lines.push('');
    } else if (mark !== undefined) {
      fence = mark;
      lines.push('');
    } else lines.push(isIndented && afterBlank && !/^\s+(?:[-*+]|\d+[.)]) /.test(line) ? '' : line);
    afterBlank = line.trim() === '' || (isIndented && afterBlank);
  }
  return lines.join('\n').replaceAll(/(?<!`)(`+)(?!`)[^]*?(?<!`)\1(?!`)/g, ' ');
}
