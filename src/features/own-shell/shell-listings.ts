/** Reads the list of aliases that bash (`alias -p`), zsh (`alias -L`) and fish (`alias`) print. Aliases in another form
 * than a plain name and a quoted text are left out: those of suffixes and of any place in a line (`-s`, `-g`), and texts
 * with escapes. */
export function readAliases(listing: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (let at = 0; at < listing.length;) {
    const head = /alias (?:-- (?=-)|(?!-))('?)([\w.:@%+,~!?^-]+)\1[= ]/y;
    head.lastIndex = at;
    const name = head.exec(listing);
    const text = name ? quotedAt(listing, at + name[0].length) : null;
    if (name && text && (text.end === listing.length || listing[text.end] === '\n')) {
      found.set(name[2] ?? '', text.value);
      at = text.end + 1;
    } else at = nextLine(listing, at);
  }
  return found;
}

/** Returns the word that begins at `at`, as a shell reads its quotes; null for one that is not understood. */
function quotedAt(text: string, at: number): { readonly value: string; readonly end: number } | null {
  let value = '';
  let end = at;
  while (end < text.length && !/\s/.test(text[end] ?? '')) {
    const char = text[end] ?? '';
    if (char === "'") {
      const close = text.indexOf("'", end + 1);
      if (close < 0) return null;
      value += text.slice(end + 1, close);
      end = close + 1;
    } else if (char === '\\') {
      value += text[end + 1] ?? '';
      end += 2;
    } else if (/[\w./:@%+,=~^-]/.test(char)) {
      value += char;
      end++;
    } else return null;
  }
  return { value, end };
}

function nextLine(text: string, at: number): number {
  const newline = text.indexOf('\n', at);
  return newline < 0 ? text.length : newline + 1;
}

/** Splits the list of functions that bash (`declare -f`) and zsh (`functions`) print into definitions by name. Each
 * ends with a bracket at the beginning of a line. */
export function readFunctions(listing: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  let name: string | null = null;
  let lines: string[] = [];
  for (const line of listing.split('\n')) {
    const head: string | undefined = /^([\w.:@%+,-]+) \(\) ?(?:\{.*)?$/.exec(line)?.[1];
    if (name === null && head === undefined) continue;
    if (name === null && head !== undefined) [name, lines] = [head, []];
    lines.push(line);
    if (!/^\}(?:\s|$)/.test(line) || name === null) continue;
    found.set(name, lines.join('\n'));
    name = null;
  }
  return found;
}
