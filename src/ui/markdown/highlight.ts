import type { Language, markUp } from './code-languages.js';
import { loadOnce } from '../../kernel/core/runtime.js';
import type { Role, Theme } from '../../kernel/console/theme.js';

/** Colours code by line; null while the language is unknown or not loaded. */
export type Highlight = (code: string, language: string) => readonly string[] | null;

/** Other names of each language. */
const languages: Readonly<Record<Language, readonly string[]>> = {
  bash: ['sh', 'shell', 'zsh', 'console'],
  c: ['h'],
  cpp: ['c++', 'cc', 'hpp'],
  csharp: ['cs'],
  css: ['scss'],
  dockerfile: ['docker'],
  go: ['golang'],
  ini: ['toml'],
  java: [],
  javascript: ['js', 'jsx', 'mjs', 'cjs'],
  json: ['jsonc', 'json5'],
  kotlin: ['kt'],
  makefile: ['make'],
  markdown: ['md'],
  php: [],
  python: ['py'],
  ruby: ['rb'],
  rust: ['rs'],
  sql: [],
  swift: [],
  typescript: ['ts', 'tsx', 'mts'],
  xml: ['html', 'svg'],
  yaml: ['yml'],
};

const byName: ReadonlyMap<string, Language> = new Map(
  (Object.keys(languages) as Language[]).flatMap((language) =>
    [language, ...languages[language]].map((name) => [name, language] as const),
  ),
);

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

/** The highlighter with its languages is large, and many conversations have no code that it colours. */
const loadHighlighter = async (): Promise<typeof markUp> => (await import('./code-languages.js')).markUp;

/** Colours code, and loads the highlighter with the first of it. */
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
  let toHtml: typeof markUp | null = null;
  let isLoaded = false;
  const loaded = loadOnce(async () => {
    // Without the highlighter, code has no colours.
    toHtml = await loadHighlighter().catch(() => null);
    isLoaded = true;
    onLoaded();
  });
  const known = (called: string): Language | undefined => (theme.colors ? byName.get(called.toLowerCase()) : undefined);
  return {
    paint: (code, called) => {
      const language = known(called);
      if (language === undefined) return null;
      void loaded.get();
      return toHtml && paintHtml(toHtml(code, language), theme);
    },
    loading: (called) => {
      if (known(called) === undefined) return false;
      void loaded.get();
      return !isLoaded;
    },
    load: (markdown) => {
      const isWanted = [...markdown.matchAll(fence)].some(([, called = '']) => known(called) !== undefined);
      return isWanted && !isLoaded ? loaded.get() : null;
    },
  };
}

/** Marks up code as HTML with the classes of highlight.js; null if the language is unknown. */
export async function loadHtmlHighlight(): Promise<(code: string, language: string) => string | null> {
  const toHtml = await loadHighlighter();
  return (code, called) => {
    const language = byName.get(called.toLowerCase());
    return language === undefined ? null : toHtml(code, language);
  };
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
