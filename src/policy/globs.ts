const tokens = /\*\*\/|\/\*\*|\*\*|[*?{},]|[.+^$()|\\]/g;

/** A glob as the source of a regular expression: `**` crosses slashes, `*` and `?` do not, `[…]` and `{a,b}` as in a
 * shell. */
function source(glob: string): string {
  let depth = 0;
  return glob.replace(tokens, (token) => {
    switch (token) {
      case '**/':
        return '(?:.*/)?';
      case '/**':
        return '(?:/.*)?';
      case '**':
        return '.*';
      case '*':
        return '[^/]*';
      case '?':
        return '[^/]';
      case '{':
        depth++;
        return '(?:';
      case '}':
        depth--;
        return ')';
      case ',':
        return depth > 0 ? '|' : ',';
      default:
        return `\\${token}`;
    }
  });
}

/** The globs of a list as one test over absolute paths, compared without case. A glob that does not start with `/`, `~`
 * or `**` holds at any depth; one that starts with `!` takes back what the others match. */
export function compileGlobs(globs: readonly string[], home: string): (path: string) => boolean {
  const positive = toPattern(
    globs.filter((glob) => !glob.startsWith('!')),
    home,
  );
  const negative = toPattern(
    globs.filter((glob) => glob.startsWith('!')).map((glob) => glob.slice(1)),
    home,
  );
  return (path) => positive !== null && positive.test(path) && !(negative !== null && negative.test(path));
}

/** How a pattern for any depth begins. */
const anyDepth = '(?:/.*)?/';

/** What holds at any depth is looked for at each depth together: one by one, each would go over the whole path. */
function toPattern(globs: readonly string[], home: string): RegExp | null {
  if (globs.length === 0) return null;
  const sources = globs.map((glob) => source(anchored(glob.replace(/(?<=.)\/$/, ''), home)));
  const [deep, fixed] = [
    sources.filter((item) => item.startsWith(anyDepth)),
    sources.filter((item) => !item.startsWith(anyDepth)),
  ];
  const either =
    deep.length === 0
      ? fixed
      : [...fixed, `${anyDepth}(?:${deep.map((item) => item.slice(anyDepth.length)).join('|')})`];
  return new RegExp(`^(?:${either.join('|')})$`, 'i');
}

function anchored(glob: string, home: string): string {
  if (glob.startsWith('~/')) return home + glob.slice(1);
  return glob.startsWith('/') || glob.startsWith('**/') ? glob.replace(/^\*\*\//, '/**/') : `/**/${glob}`;
}

/** A word of a shell command that holds unquoted wildcards, as a test over one path: a leading dot needs a dot, as in
 * the shell. NUL stands for text known only when the command runs. A pattern that cannot be compiled matches
 * everything. */
export function shellGlob(glob: string): (path: string) => boolean {
  const pattern = glob.replace(/\[!|\0|\*+|[?.+^${}()|\\]/g, (token, offset: number) => {
    if (token === '[!') return '[^';
    if (token === '\0') return '.*';
    const leading = offset === 0 || glob[offset - 1] === '/' ? '(?!\\.)' : '';
    if (token.startsWith('*')) return `${leading}[^/]*`;
    return token === '?' ? `${leading}[^/]` : `\\${token}`;
  });
  try {
    const compiled = new RegExp(`^${pattern}$`, 'i');
    return (path) => compiled.test(path);
  } catch {
    return () => true;
  }
}
