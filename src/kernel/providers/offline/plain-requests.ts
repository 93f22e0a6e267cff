import type { JsonObject } from '../../core/json.js';

/** A tool call that a plain request asks for. */
export interface OfflineCall {
  readonly name: string;
  readonly args: JsonObject;
}

type Groups = Readonly<Record<string, string | undefined>>;
/** `calls` returns null where the words fit the form but are prose. */
interface Rule {
  readonly form: RegExp;
  readonly calls: (groups: Groups, isInstalled: IsInstalled) => readonly OfflineCall[] | null;
}
/** True where a program can be run by its name here. */
export type IsInstalled = (program: string) => boolean;

/** Matches any of the words, which are separated by blanks. */
const anyOf = (words: string): string => `(?:${words.trim().split(/\s+/).join('|')})`;

const polite = new RegExp(
  [
    String.raw`^(?:(?:please|pls|now|ok|okay|then|and|can you|could you|would you|will you`,
    String.raw`|i want you to|i'd like you to|let's|go ahead and)[,\s]+)+`,
  ].join(''),
  'i',
);

/** In quotes or backticks, or one word: a longer text without quotes only describes a content. */
const piece = String.raw`"[^"]+"|'[^']+'|\x60[^\x60]+\x60|\S+`;
const the = String.raw`(?:the\s+)?`;
const named = String.raw`(?:called\s+|named\s+)?`;
const folder = String.raw`(?:\s+(?:folder|directory))?`;
const place = String.raw`(?:\s+(?:folder|directory|file))?`;
const inPath = String.raw`(?:\s+(?:in|under|inside|within)\s+${the}(?<path>\S+?)${place})?`;
const form = (...parts: readonly string[]): RegExp => new RegExp(`^${parts.join('')}$`, 'i');

/** Tried in order; the first that fits the whole request decides. */
const rules: readonly Rule[] = [
  {
    form: form(
      String.raw`remind\s+me\s+in\s+(?<count>\d{1,4})\s*(?<unit>minutes?|mins?|m|hours?|h|days?|d)`,
      String.raw`\s+(?:to|that|about)\s+(?<message>\S.*)`,
    ),
    calls: ({ count = '', unit = '', message = '' }) => [
      { name: 'add_reminder', args: { delay: count + unit.slice(0, 1).toLowerCase(), message: plain(message) } },
    ],
  },
  {
    form: form(String.raw`remember\s+that\s+(?<content>\S.*)`),
    calls: ({ content }) => [{ name: 'save_note', args: { content: plain(content) } }],
  },
  {
    form: form(
      String.raw`replace\s+(?<from>${piece})\s+(?:with|by)\s+(?<to>${piece})\s+in\s+${the}(?:file\s+)?(?<path>\S+)`,
    ),
    calls: (g) =>
      isPath(g.path)
        ? [{ name: 'file_edit', args: { path: word(g.path), old_string: plain(g.from), new_string: plain(g.to) } }]
        : null,
  },
  {
    form: form(
      String.raw`(?:write|put|save)\s+(?<content>${piece})\s+(?:in)?to\s+${the}(?:a\s+)?(?:new\s+)?(?:file\s+)?`,
      String.raw`${named}(?<path>\S+)`,
    ),
    calls: write,
  },
  {
    form: form(
      String.raw`(?:create|make|write)\s+(?:a\s+|the\s+)?(?:new\s+)?(?:file\s+)?${named}(?<path>\S+)`,
      String.raw`\s+(?:with|containing|saying)\s+${the}(?:text\s+|content\s+|contents\s+)?(?<content>${piece})`,
    ),
    calls: write,
  },
  {
    form: form(String.raw`(?:run|execute|exec|bash|sh|shell)(?:\s+the\s+command)?:?\s+\x60(?<command>[^\x60]+)\x60`),
    calls: (g) => [bash(g.command)],
  },
  {
    form: form(String.raw`(?:run|execute|exec)(?:\s+the\s+command)?:?\s+(?<command>\S.*)`),
    calls: (g, isInstalled) => (isCommand(g.command ?? '', isInstalled) ? [bash(g.command)] : null),
  },
  { form: /^[$!]\s*(?<command>.+)$/s, calls: (g) => [bash(g.command)] },
  {
    form: form(String.raw`(?:grep|rg)(?<flags>(?:\s+-[a-zA-Z]+)*)\s+(?<pattern>${piece})${inPath}`),
    calls: (g) => [grep(g, /i/.test(g.flags ?? ''))],
  },
  {
    form: form(
      String.raw`(?:search|look|scan)\s+for\s+(?:the\s+(?:word|text|string)\s+)?(?<pattern>${piece})${inPath}`,
    ),
    calls: (g) => [grep(g, false)],
  },
  {
    form: form(
      String.raw`where\s+(?:is|are)\s+(?<pattern>${piece})\s+(?:used|defined|mentioned)(?:\s+in\s+(?<path>\S+?))?\??`,
    ),
    calls: (g) => [grep(g, false)],
  },
  {
    form: form(
      String.raw`find\s+(?<pattern>${piece})\s+in\s+(?:the\s+)?(?<path>\S+?)(?:\s+(?:folder|directory|file))?`,
    ),
    calls: (g) => (isGlob(plain(g.pattern)) ? [glob(g)] : isName(g.pattern) ? [grep(g, false)] : null),
  },
  {
    form: form(
      String.raw`(?:list|find|ls|glob|show|what are)\s+(?:me\s+)?(?:all\s+)?(?:of\s+)?${the}(?:files?\s+)?`,
      String.raw`(?:matching\s+|named\s+|called\s+)?(?<pattern>\S*[*?{[]\S*)(?:\s+files?)?`,
      String.raw`(?:\s+(?:in|under)\s+${the}(?<path>\S+))?`,
    ),
    calls: (g) => (/[*{[]|\?./.test(g.pattern ?? '') ? [glob(g)] : null),
  },
  {
    form: form(
      String.raw`(?:list|find|show|count)\s+(?:me\s+)?(?:all\s+)?${the}(?<extension>\.?[a-z0-9]{1,10})\s+files`,
      String.raw`(?:\s+(?:in|under)\s+${the}(?<path>\S+?))?`,
    ),
    calls: (g) => {
      const extension = extensionOf(g.extension);
      return extension === null ? null : [glob({ pattern: `**/*.${extension}`, path: g.path })];
    },
  },
  {
    form: form(
      String.raw`(?:list|ls)(?:\s+me)?(?:\s+${anyOf('all the my files folder directory everything here in of')})*`,
      String.raw`(?:\s+(?<path>\S*[/.]\S*))?${folder}\??`,
    ),
    calls: listing,
  },
  {
    form: form(
      String.raw`(?:show|what|which)(?=.*\b(?:files|folder|directory|here)\b)(?:\s+me)?`,
      String.raw`(?:\s+${anyOf('all the my files folder directory everything is are here there in')})+`,
      String.raw`(?:\s+(?<path>\S+\/))?\??`,
    ),
    calls: listing,
  },
  {
    form: form(
      String.raw`${anyOf('read show open cat print view display head')}\s+(?:me\s+)?${the}(?:contents?\s+of\s+)?${the}`,
      String.raw`(?<named>files?\s+)?(?<paths>\S+(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+)\S+)*)(?:\s+file)?`,
    ),
    calls: read,
  },
  { form: /^what(?:'s| is)\s+in\s+(?:the\s+)?(?<named>file\s+)?(?<paths>\S+?)\??$/i, calls: read },
];

function write({ content = '', path }: Groups): readonly OfflineCall[] | null {
  if (!isPath(path) || (!isQuoted(content) && standsForMore.test(content))) return null;
  return [{ name: 'file_write', args: { path: word(path), content: withLineEnd(plain(content)) } }];
}

/** These words stand for a content and are none themselves. */
const standsForMore = form(
  anyOf(`it this that them these those everything something an? the some my your
    tests? code docs? documentation comments? changes output results?`),
);

function read({ named, paths = '' }: Groups): readonly OfflineCall[] | null {
  const all = paths.split(/\s*,\s*(?:and\s+)?|\s+and\s+/i);
  if (named === undefined && !all.every((path) => isPath(path) || bareNames.test(word(path)))) return null;
  return all.map((path) => ({ name: 'file_read', args: { path: word(path) } }));
}

/** Files without an extension that people call by their name alone. */
const bareNames = form(
  anyOf(`readme license licence copying authors notice changelog contributing todo
    makefile dockerfile gemfile rakefile procfile jenkinsfile vagrantfile codeowners`),
);

/** Returns true for what looks like a path: it has an extension or a folder, or is quoted. */
function isPath(text: string | undefined): boolean {
  return (
    text !== undefined &&
    (isQuoted(text) || ((/[^.]\.[a-z0-9_-]|\//i.test(word(text)) || /^\.[\w-]/.test(text)) && !text.includes('://')))
  );
}

function isQuoted(text: string): boolean {
  return /^(["'`])[^]+\1$/.test(text);
}

/** Returns true for a word that means itself: quoted, or spelt like a name in code. */
function isName(text: string | undefined): boolean {
  return text !== undefined && (isQuoted(text) || /[A-Z0-9_(){}.:<>/\\-]/.test(text));
}

/** Programs that people name in order to run them; `run the tests` names none. */
const programs = new Set([
  'awk',
  'basename',
  'bash',
  'biome',
  'bun',
  'bunx',
  'cargo',
  'cat',
  'cd',
  'chmod',
  'clang',
  'cmake',
  'cp',
  'ctest',
  'curl',
  'cut',
  'date',
  'deno',
  'df',
  'diff',
  'dirname',
  'docker',
  'dotnet',
  'du',
  'echo',
  'eslint',
  'false',
  'find',
  'gcc',
  'git',
  'go',
  'gofmt',
  'gradle',
  'grep',
  'head',
  'hostname',
  'id',
  'java',
  'javac',
  'jest',
  'jq',
  'ls',
  'make',
  'mkdir',
  'mv',
  'mvn',
  'mypy',
  'ninja',
  'node',
  'npm',
  'npx',
  'perl',
  'php',
  'pip',
  'pip3',
  'pnpm',
  'prettier',
  'printf',
  'ps',
  'pwd',
  'pytest',
  'python',
  'python3',
  'rg',
  'rm',
  'rmdir',
  'ruby',
  'ruff',
  'rustc',
  'sed',
  'seq',
  'sh',
  'sleep',
  'sort',
  'stat',
  'swift',
  'tail',
  'tar',
  'tee',
  'touch',
  'tox',
  'tr',
  'tree',
  'true',
  'tsc',
  'uname',
  'uniq',
  'uv',
  'vitest',
  'wc',
  'which',
  'whoami',
  'xargs',
  'yarn',
  'zig',
]);
/** Outside quotes, these words turn a line into a sentence. */
const sentenceWords = form(
  anyOf(`and then the an? it its them they my our your this that these those until unless if when while because so on
    with please again sure to in of about into everything whether`),
  '[,.:;!?]?',
);

function isCommand(command: string, isInstalled: IsInstalled): boolean {
  const [program = ''] = command.split(/\s/, 1);
  if (!(programs.has(program) && isInstalled(program)) && !/^(?:\.{1,2}|~)?\/\S/.test(program)) return false;
  const unquoted = command.replace(/"(?:[^"\\]|\\.)*"|'[^']*'/g, '""');
  return !command.includes('\n') && !unquoted.split(/\s+/).some((item) => sentenceWords.test(item));
}

function listing(groups: Groups): readonly OfflineCall[] {
  return [{ name: 'glob', args: { pattern: '*', ...pathArg(groups.path) } }];
}

/** Reads what a user's text asks for: one step for each request joined by `then`, each with the calls of one response.
 * Null where it is not understood. The same text gives the same calls where the same programs are installed. */
export function readRequest(text: string, isInstalled: IsInstalled): readonly (readonly OfflineCall[])[] | null {
  const whole = readStep(text, isInstalled);
  const parts = text.split(/\s*(?:,|;|\.)?\s+(?:and\s+)?then\s+|\s*\n+\s*/i).filter((part) => part.trim() !== '');
  if (
    parts.length < 2 ||
    (/^\s*(?:write|create|put|save|make|replace|run|execute|\$|!)/i.test(text) && /\n/.test(text))
  )
    return whole === null ? null : [whole];
  const steps = parts.map((part) => readStep(part, isInstalled));
  const known = steps.filter((step) => step !== null);
  return known.length === steps.length ? known : whole === null ? null : [whole];
}

function readStep(text: string, isInstalled: IsInstalled): readonly OfflineCall[] | null {
  const request = text
    .trim()
    .replace(polite, '')
    .replace(/(?<=\S)\s*(?:[!]|,?\s+please[.!]?|\.(?=$))$/i, '')
    .trim();
  for (const rule of rules) {
    const match = rule.form.exec(request);
    const calls = match ? rule.calls(match.groups ?? {}, isInstalled) : null;
    if (calls !== null) return calls;
  }
  return null;
}

function bash(command: string | undefined): OfflineCall {
  return { name: 'bash', args: { command: (command ?? '').trim() } };
}

function grep(groups: Groups, ignoreCase: boolean): OfflineCall {
  return {
    name: 'grep',
    args: { pattern: plain(groups.pattern), ...pathArg(groups.path), ...(ignoreCase ? { ignore_case: true } : {}) },
  };
}

function glob(groups: Groups): OfflineCall {
  return { name: 'glob', args: { pattern: plain(groups.pattern), ...pathArg(groups.path) } };
}

function isGlob(text: string): boolean {
  return /[*?{[]/.test(text) && !/\s/.test(text);
}

const languages: Readonly<Record<string, string>> = {
  typescript: '{ts,tsx}',
  javascript: '{js,jsx,mjs,cjs}',
  python: 'py',
  markdown: 'md',
  rust: 'rs',
  text: 'txt',
  ruby: 'rb',
};
const extensions = new RegExp(
  `^${anyOf(`[cm]?[jt]sx? jsonc? json5 mdx? py rs go java kt swift cs? h cc cpp hpp rb php lua pl sh zsh fish sql s?css
    less html? xml svg png jpe?g gif pdf csv tsv txt log ya?ml toml ini cfg conf env lock vue svelte proto tf zig ex exs
    hs dart scala r`)}$`,
);

/** Returns the file extension for a kind of files; null where the word is not a kind, as in `list big files`. */
function extensionOf(text: string | undefined): string | null {
  const kind = (text ?? '').toLowerCase();
  if (kind.startsWith('.')) return kind.slice(1);
  return languages[kind] ?? (extensions.test(kind) ? kind : null);
}

function pathArg(path: string | undefined): { readonly path?: string } {
  const text = word(path);
  return text === '' || text === '.' || /^(?:here|this|it|all|everything|project|repo|repository)$/i.test(text)
    ? {}
    : { path: text };
}

/** Returns a path without quotes and closing punctuation. */
function word(text: string | undefined): string {
  return plain(text).replace(/(?<=[\w)])[?,;:!]+$/, '');
}

/** Returns a text without the quotes around it. */
function plain(text: string | undefined): string {
  const trimmed = (text ?? '').trim();
  return /^(["'`])[\s\S]*\1$/.test(trimmed) && trimmed.length > 1 ? trimmed.slice(1, -1) : trimmed;
}

function withLineEnd(text: string): string {
  return text.endsWith('\n') ? text : `${text}\n`;
}
