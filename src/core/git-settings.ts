/** A setting of a configuration file: `section.name` or `section.subsection.name`, section and name in lower case. */
export interface Setting {
  readonly key: string;
  readonly value: string | null;
}

const settingToken = new RegExp(
  [
    String.raw`[\s;#]`,
    String.raw`\[(?<section>[A-Za-z0-9.-]*)(?:[^\S\n]+"(?<inner>(?:[^"\\\n]|\\[^\n])*)")?\]`,
    String.raw`(?<name>[A-Za-z][A-Za-z0-9-]*)[ \t]*` +
      String.raw`(?:=(?<value>(?:"(?:[^"\\\n]|\\[tbn"\\]|\\\r?\n)*"|\\[tbn"\\]|\\\r?\n|[^"\\\n;#])*)|(?=\r?\n|$))`,
  ].join('|'),
  'y',
);
const escapes: Readonly<Record<string, string>> = { t: '\t', b: '\b', n: '\n', '\\': '\\', '"': '"' };

/** Reads a configuration that git accepts as git does; null for what git refuses, as far as that is noticed here.
 * Source: git-config(1), "Syntax", and config.c of git 2.39. */
export function parseSettings(source: string): readonly Setting[] | null {
  const settings: Setting[] = [];
  const tokens = new RegExp(settingToken);
  let section = '';
  for (let at = 0; at < source.length; at = tokens.lastIndex) {
    tokens.lastIndex = at;
    const token = tokens.exec(source);
    if (token === null) return null;
    const { section: outer, inner, name, value } = token.groups ?? {};
    if (token[0] === ';' || token[0] === '#') tokens.lastIndex = lineEnd(source, tokens.lastIndex);
    if (outer !== undefined) section = outer.toLowerCase() + (inner === undefined ? '' : `.${unescaped(inner)}`);
    if (name === undefined) continue;
    if (section === '') return null;
    settings.push({ key: `${section}.${name.toLowerCase()}`, value: value === undefined ? null : plainValue(value) });
  }
  return settings;
}

/** What follows a value must be a comment or the end of the line: the next token sees to that. */
function plainValue(written: string): string {
  return written.replace(/"|\\\r?\n|\\(.)/g, (_all, escaped?: string) => escapes[escaped ?? ''] ?? '').trim();
}

function unescaped(subsection: string): string {
  return subsection.replace(/\\(.)/g, '$1');
}

function lineEnd(source: string, from: number): number {
  const end = source.indexOf('\n', from);
  return end < 0 ? source.length : end;
}
