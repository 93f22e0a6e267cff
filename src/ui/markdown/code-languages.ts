import core from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import c from 'highlight.js/lib/languages/c';
import cpp from 'highlight.js/lib/languages/cpp';
import csharp from 'highlight.js/lib/languages/csharp';
import css from 'highlight.js/lib/languages/css';
import dockerfile from 'highlight.js/lib/languages/dockerfile';
import go from 'highlight.js/lib/languages/go';
import ini from 'highlight.js/lib/languages/ini';
import java from 'highlight.js/lib/languages/java';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import kotlin from 'highlight.js/lib/languages/kotlin';
import makefile from 'highlight.js/lib/languages/makefile';
import markdown from 'highlight.js/lib/languages/markdown';
import php from 'highlight.js/lib/languages/php';
import python from 'highlight.js/lib/languages/python';
import ruby from 'highlight.js/lib/languages/ruby';
import rust from 'highlight.js/lib/languages/rust';
import sql from 'highlight.js/lib/languages/sql';
import swift from 'highlight.js/lib/languages/swift';
import typescript from 'highlight.js/lib/languages/typescript';
import xml from 'highlight.js/lib/languages/xml';
import yaml from 'highlight.js/lib/languages/yaml';

const languages = {
  bash,
  c,
  cpp,
  csharp,
  css,
  dockerfile,
  go,
  ini,
  java,
  javascript,
  json,
  kotlin,
  makefile,
  markdown,
  php,
  python,
  ruby,
  rust,
  sql,
  swift,
  typescript,
  xml,
  yaml,
};
export type Language = keyof typeof languages;

/** Marks up code as HTML with the classes of highlight.js. A language is defined with its first code: 23 definitions
 * take longer than most code. */
export function markUp(code: string, language: Language): string {
  define(language);
  return core.highlight(code, { language, ignoreIllegals: true }).value;
}

/** Defines a language and those that its code may contain. */
function define(name: string): void {
  const language = Object.entries(languages).find(([known]) => known === name)?.[1];
  if (!language || core.getLanguage(name)) return;
  core.registerLanguage(name, language);
  for (const inner of innerLanguages(core.getLanguage(name), new Set())) define(inner);
}

/** Returns the names of the languages in a definition. Modes may contain each other. */
function innerLanguages(mode: unknown, seen: Set<unknown>): readonly string[] {
  if (typeof mode !== 'object' || mode === null || seen.has(mode)) return [];
  seen.add(mode);
  return Object.entries(mode).flatMap(([name, value]) =>
    name === 'subLanguage' ? [String(value)] : innerLanguages(value, seen),
  );
}
