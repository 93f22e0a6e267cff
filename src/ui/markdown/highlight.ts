import type { HLJSApi, LanguageFn } from 'highlight.js';
import type { Role, Theme } from '../../kernel/console/theme.js';

/** Colours code by line; null while the language is unknown or not loaded. */
export type Highlight = (code: string, language: string) => readonly string[] | null;

const languages: Readonly<Record<string, () => Promise<{ default: LanguageFn }>>> = {
  bash: () => import('highlight.js/lib/languages/bash'),
  c: () => import('highlight.js/lib/languages/c'),
  cpp: () => import('highlight.js/lib/languages/cpp'),
  csharp: () => import('highlight.js/lib/languages/csharp'),
  css: () => import('highlight.js/lib/languages/css'),
  dockerfile: () => import('highlight.js/lib/languages/dockerfile'),
  go: () => import('highlight.js/lib/languages/go'),
  ini: () => import('highlight.js/lib/languages/ini'),
  java: () => import('highlight.js/lib/languages/java'),
  javascript: () => import('highlight.js/lib/languages/javascript'),
  json: () => import('highlight.js/lib/languages/json'),
  kotlin: () => import('highlight.js/lib/languages/kotlin'),
  makefile: () => import('highlight.js/lib/languages/makefile'),
  markdown: () => import('highlight.js/lib/languages/markdown'),
  php: () => import('highlight.js/lib/languages/php'),
  python: () => import('highlight.js/lib/languages/python'),
  ruby: () => import('highlight.js/lib/languages/ruby'),
  rust: () => import('highlight.js/lib/languages/rust'),
  sql: () => import('highlight.js/lib/languages/sql'),
  swift: () => import('highlight.js/lib/languages/swift'),
  typescript: () => import('highlight.js/lib/languages/typescript'),
  xml: () => import('highlight.js/lib/languages/xml'),
  yaml: () => import('highlight.js/lib/languages/yaml'),
};

const aliases: Readonly<Record<string, string>> = {
  sh: 'bash',
  shell: 'bash',
  zsh: 'bash',
  console: 'bash',
  h: 'c',
  'c++': 'cpp',
  cc: 'cpp',
  hpp: 'cpp',
  cs: 'csharp',
  scss: 'css',
  docker: 'dockerfile',
  golang: 'go',
  toml: 'ini',
  js: 'javascript',
  jsx: 'javascript',
  mjs: 'javascript',
  cjs: 'javascript',
  jsonc: 'json',
  json5: 'json',
  kt: 'kotlin',
  make: 'makefile',
  md: 'markdown',
  py: 'python',
  rb: 'ruby',
  rs: 'rust',
  ts: 'typescript',
  tsx: 'typescript',
  mts: 'typescript',
  html: 'xml',
  svg: 'xml',
  yml: 'yaml',
};

const roles: Readonly<Record<string, Role>> = {
  keyword: 'keyword',
  built_in: 'type',
  type: 'type',
  literal: 'number',
  number: 'number',
  string: 'string',
  regexp: 'string',
  comment: 'comment',
  doctag: 'comment',
  meta: 'comment',
  title: 'name',
  function: 'name',
  class: 'type',
  attr: 'name',
  attribute: 'name',
  variable: 'name',
  symbol: 'string',
  name: 'name',
  tag: 'keyword',
  'selector-tag': 'keyword',
  addition: 'added',
  deletion: 'removed',
  section: 'bold',
  bullet: 'keyword',
};

/** Colours code, and loads the highlighter and each language at its first use. */
export interface Highlighter {
  readonly paint: Highlight;
  /** Returns whether the colours of a language are being loaded, and loads them. */
  readonly loading: (language: string) => boolean;
  /** Loads the languages of the fences in a Markdown text. Resolves once they are loaded or cannot be; null if nothing
   * is to load. */
  readonly load: (markdown: string) => Promise<void> | null;
}

/** `onLoaded` is called when a text may look better. */
export function createHighlighter(theme: Theme, onLoaded: () => void): Highlighter {
  let core: HLJSApi | null = null;
  const loads = new Map<string, Promise<void>>();
  const pending = new Set<string>();
  const known = (language: string): string | null => {
    const name = aliases[language.toLowerCase()] ?? language.toLowerCase();
    return theme.colors && Object.hasOwn(languages, name) ? name : null;
  };
  const fetch = async (name: string, source: () => Promise<{ default: LanguageFn }>): Promise<void> => {
    const [hljs, language] = await Promise.all([import('highlight.js/lib/core'), source()]);
    core = hljs.default;
    core.registerLanguage(name, language.default);
  };
  const load = (name: string): Promise<void> => {
    const source = languages[name];
    const before = loads.get(name);
    if (before || !source) return before ?? Promise.resolve();
    pending.add(name);
    // A language that cannot be loaded leaves its code without colours.
    const done = fetch(name, source)
      .catch(() => undefined)
      .then(() => {
        pending.delete(name);
        onLoaded();
      });
    loads.set(name, done);
    return done;
  };
  return {
    paint: (code, language) => {
      const name = known(language);
      if (name === null) return null;
      void load(name);
      if (!core?.getLanguage(name)) return null;
      return paintHtml(core.highlight(code, { language: name, ignoreIllegals: true }).value, theme);
    },
    loading: (language) => {
      const name = known(language);
      if (name === null) return false;
      void load(name);
      return pending.has(name);
    },
    load: (markdown) => {
      const names = new Set([...markdown.matchAll(fence)].flatMap((found) => known(found[1] ?? '') ?? []));
      const wanted = [...names].filter((name) => !loads.has(name) || pending.has(name));
      return wanted.length === 0 ? null : Promise.all(wanted.map(load)).then(() => undefined);
    },
  };
}

/** Marks up code as HTML with the classes of highlight.js; null if the language is unknown. Loads the languages of the
 * fences in `markdown` and those `named` first. */
export async function loadHtmlHighlight(
  markdown: string,
  named: readonly string[],
): Promise<(code: string, language: string) => string | null> {
  const nameOf = (language: string): string => aliases[language.toLowerCase()] ?? language.toLowerCase();
  const names = new Set([...[...markdown.matchAll(fence)].map((found) => found[1] ?? ''), ...named].map(nameOf));
  const known = [...names].filter((name) => Object.hasOwn(languages, name));
  const { default: core } = await import('highlight.js/lib/core');
  await Promise.all(
    known.map(async (name) => {
      const language = await languages[name]?.();
      if (language) core.registerLanguage(name, language.default);
    }),
  );
  return (code, language) =>
    core.getLanguage(nameOf(language))
      ? core.highlight(code, { language: nameOf(language), ignoreIllegals: true }).value
      : null;
}

/** Matches the opening of a fence, also in a list or a quote, and its language. */
const fence = /^[ \t>]*(?:[-*+]\s+|\d+[.)]\s+)?(?:`{3,}|~{3,})[ \t]*([\w+#-]+)/gm;

/** Turns the spans of highlight.js into attributes, line by line. */
function paintHtml(html: string, theme: Theme): string[] {
  const open: (Role | null)[] = [];
  let out = '';
  for (const part of html.split(/(<[^>]*>)/)) {
    if (part.startsWith('</')) open.pop();
    else if (part.startsWith('<span')) open.push(roleOf(/class="([^"]*)"/.exec(part)?.[1] ?? ''));
    else {
      const role = open.findLast((item) => item !== null);
      const text = part.replace(/&(lt|gt|quot|#x27|amp);/g, (whole, name: string) => unescaped[name] ?? whole);
      out += role
        ? text
            .split('\n')
            .map((line) => theme.paint(role, line))
            .join('\n')
        : text;
    }
  }
  return out.split('\n');
}

const unescaped: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', '#x27': "'", amp: '&' };

function roleOf(classes: string): Role | null {
  for (const name of classes.split(/\s+/)) {
    const role = roles[name.replace(/^hljs-/, '')];
    if (role) return role;
  }
  return null;
}
