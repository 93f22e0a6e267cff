import type { HLJSApi, LanguageFn } from 'highlight.js';
import type { Role, Theme } from '../theme.js';

/** Colours of code by line; null while the language is not known or not loaded yet. */
export type Highlight = (code: string, language: string) => readonly string[] | null;

const languages: Readonly<Record<string, () => Promise<{ default: LanguageFn }>>> = {
  bash: () => import('highlight.js/lib/languages/bash'), c: () => import('highlight.js/lib/languages/c'), cpp: () => import('highlight.js/lib/languages/cpp'),
  csharp: () => import('highlight.js/lib/languages/csharp'), css: () => import('highlight.js/lib/languages/css'), dockerfile: () => import('highlight.js/lib/languages/dockerfile'),
  go: () => import('highlight.js/lib/languages/go'), ini: () => import('highlight.js/lib/languages/ini'), java: () => import('highlight.js/lib/languages/java'),
  javascript: () => import('highlight.js/lib/languages/javascript'), json: () => import('highlight.js/lib/languages/json'), kotlin: () => import('highlight.js/lib/languages/kotlin'),
  makefile: () => import('highlight.js/lib/languages/makefile'), markdown: () => import('highlight.js/lib/languages/markdown'), php: () => import('highlight.js/lib/languages/php'),
  python: () => import('highlight.js/lib/languages/python'), ruby: () => import('highlight.js/lib/languages/ruby'), rust: () => import('highlight.js/lib/languages/rust'),
  sql: () => import('highlight.js/lib/languages/sql'), swift: () => import('highlight.js/lib/languages/swift'), typescript: () => import('highlight.js/lib/languages/typescript'),
  xml: () => import('highlight.js/lib/languages/xml'), yaml: () => import('highlight.js/lib/languages/yaml'),
};

const aliases: Readonly<Record<string, string>> = {
  sh: 'bash', shell: 'bash', zsh: 'bash', console: 'bash', h: 'c', 'c++': 'cpp', cc: 'cpp', hpp: 'cpp', cs: 'csharp', scss: 'css', docker: 'dockerfile', golang: 'go',
  toml: 'ini', js: 'javascript', jsx: 'javascript', mjs: 'javascript', cjs: 'javascript', jsonc: 'json', json5: 'json', kt: 'kotlin', make: 'makefile', md: 'markdown',
  py: 'python', rb: 'ruby', rs: 'rust', ts: 'typescript', tsx: 'typescript', mts: 'typescript', html: 'xml', svg: 'xml', yml: 'yaml',
};

const roles: Readonly<Record<string, Role>> = {
  keyword: 'keyword', built_in: 'type', type: 'type', literal: 'number', number: 'number', string: 'string', regexp: 'string', comment: 'comment', doctag: 'comment', meta: 'comment',
  title: 'name', function: 'name', class: 'type', attr: 'name', attribute: 'name', variable: 'name', symbol: 'string', name: 'name', tag: 'keyword', 'selector-tag': 'keyword', addition: 'added', deletion: 'removed', section: 'bold', bullet: 'keyword',
};

/** Loads the highlighter and each language at its first use; `onLoaded` says that a text may look better now. */
export function createHighlight(theme: Theme, onLoaded: () => void): Highlight {
  let core: HLJSApi | null = null;
  const asked = new Set<string>();
  const load = async (name: string): Promise<void> => {
    const source = languages[name];
    if (!source) return;
    const [hljs, language] = await Promise.all([import('highlight.js/lib/core'), source()]);
    core = hljs.default;
    core.registerLanguage(name, language.default);
    onLoaded();
  };
  return (code, language) => {
    const name = aliases[language.toLowerCase()] ?? language.toLowerCase();
    if (!theme.colors || !Object.hasOwn(languages, name)) return null;
    if (!asked.has(name)) {
      asked.add(name);
      void load(name);
    }
    if (!core?.getLanguage(name)) return null;
    return paintHtml(core.highlight(code, { language: name, ignoreIllegals: true }).value, theme);
  };
}

/** The spans of highlight.js as attributes, line by line. */
function paintHtml(html: string, theme: Theme): string[] {
  const open: (Role | null)[] = [];
  let out = '';
  for (const part of html.split(/(<[^>]*>)/)) {
    if (part.startsWith('</')) open.pop();
    else if (part.startsWith('<span')) open.push(roleOf(/class="([^"]*)"/.exec(part)?.[1] ?? ''));
    else {
      const role = open.findLast((item) => item !== null);
      const text = part.replace(/&(lt|gt|quot|#x27|amp);/g, (whole, name: string) => unescaped[name] ?? whole);
      out += role ? text.split('\n').map((line) => theme.paint(role, line)).join('\n') : text;
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
