import { isRecord, parseJson } from './json.js';

/** Removes a text wherever it is quoted: verbatim, with other white space or punctuation, escaped as JSON, cut, or in
 * pieces of at least `minWords` words. */
export interface TextTrace {
  /** Returns the text without what it quotes; the text itself where it quotes nothing. */
  text(text: string): string;
  /** The same for all strings of a value; JSON inside a string stays JSON. */
  deep<T>(value: T): T;
}

export const redactedText = '[redacted by the user]';

/** A quotation of so many words in a row is one of the text. */
const minWords = 6;
/** A text of fewer words is looked for only if no other text is like it by chance: it is long, or has a number or a long
 * word. */
const minChars = 24;
const minWordChars = 12;
const minNumberedChars = 6;
/** A word that is so long is also recognised by a part of it. */
const longWordChars = 16;
/** Words, and escapes of JSON, which end a word. */
const wordPattern = /\\+(?:[nrtbf]|u[0-9a-f]{4})|[\p{L}\p{N}_]+/giu;

interface Word {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

function wordsOf(text: string): readonly Word[] {
  return [...text.matchAll(wordPattern)]
    .filter(([word]) => !word.startsWith('\\'))
    .map(({ 0: word, index }) => ({ text: word, start: index, end: index + word.length }));
}

/** Makes the trace of some texts. Leaves out texts that are too short to be recognised; null if none is left. */
export function traceTexts(texts: readonly string[]): TextTrace | null {
  /** By some words in a row, the words that may follow. */
  const runs = new Map<string, Set<string>>();
  const longWords = new Set<string>();
  const lengths = new Set<number>();
  const codes = new Set(texts.flatMap(codesIn));
  for (const text of [...texts, ...codes]) {
    const words = wordsOf(text).map((word) => word.text);
    if (!codes.has(text) && !isDistinct(words)) continue;
    const length = Math.min(minWords, words.length);
    lengths.add(length);
    for (let at = 0; at + length <= words.length; at++) {
      const run = words.slice(at, at + length).join(' ');
      const next = runs.get(run) ?? new Set();
      runs.set(run, next.add(words[at + length] ?? ''));
    }
    for (const word of words) if (word.length >= longWordChars) longWords.add(word);
  }
  return runs.size === 0 ? null : new Trace(runs, [...lengths], [...longWords]);
}

/** A number or name such as `AB-1234-x`, which says something also where it is quoted alone; no path. */
function codesIn(text: string): readonly string[] {
  return text
    .split(/[\s"'`,;()[\]{}<>]+/)
    .filter((part) => part.length >= 8 && /\d/.test(part) && /\p{L}/u.test(part) && !part.includes('/'));
}

function isDistinct(words: readonly string[]): boolean {
  return (
    words.length >= minWords ||
    words.join('').length >= minChars ||
    words.some(
      (word) =>
        word.length >= minWordChars || (word.length >= minNumberedChars && /\d/.test(word) && /\p{L}/u.test(word)),
    )
  );
}

class Trace implements TextTrace {
  readonly #runs: ReadonlyMap<string, ReadonlySet<string>>;
  readonly #lengths: readonly number[];
  readonly #longWords: readonly string[];
  /** The first words of the runs. */
  readonly #firsts: ReadonlySet<string>;

  constructor(
    runs: ReadonlyMap<string, ReadonlySet<string>>,
    lengths: readonly number[],
    longWords: readonly string[],
  ) {
    this.#runs = runs;
    this.#lengths = lengths;
    this.#longWords = longWords;
    this.#firsts = new Set([...runs.keys()].map((run) => run.split(' ', 1)[0] ?? ''));
  }

  text(text: string): string {
    const words = wordsOf(text);
    const isQuoted = words.map(() => false);
    for (const length of this.#lengths)
      for (let at = 0; at + length <= words.length; at++) this.#mark(words, isQuoted, at, length);
    for (const [at, word] of words.entries()) if (this.#isLongWord(word.text)) isQuoted[at] = true;
    return withoutQuotes(text, words, isQuoted);
  }

  #mark(words: readonly Word[], isQuoted: boolean[], at: number, length: number): void {
    if (!this.#firsts.has(words[at]?.text ?? '')) return;
    const next = this.#runs.get(
      words
        .slice(at, at + length)
        .map((word) => word.text)
        .join(' '),
    );
    if (next === undefined) return;
    isQuoted.fill(true, at, at + length);
    // The last word of a text that was cut is the beginning of the next one.
    const cut = words[at + length]?.text;
    if (cut !== undefined && [...next].some((word) => word.startsWith(cut))) isQuoted[at + length] = true;
  }

  #isLongWord(word: string): boolean {
    return word.length >= longWordChars && this.#longWords.some((long) => long.includes(word) || word.includes(long));
  }

  deep<T>(value: T): T {
    return this.#deep(value) as T;
  }

  #deep(value: unknown): unknown {
    if (typeof value === 'string') return this.#string(value);
    if (Array.isArray(value)) {
      const items = value.map((item: unknown) => this.#deep(item));
      return items.every((item, index) => item === value[index]) ? value : items;
    }
    if (!isRecord(value)) return value;
    const entries = Object.entries(value).map(([name, item]) => [this.text(name), this.#deep(item)] as const);
    return entries.every(([name, item]) => item === value[name]) ? value : Object.fromEntries(entries);
  }

  #string(text: string): string {
    const shown = this.text(text);
    if (shown === text || !/^\s*[[{]/.test(text)) return shown;
    try {
      return JSON.stringify(this.#deep(parseJson(text)));
    } catch {
      return shown;
    }
  }
}

function withoutQuotes(text: string, words: readonly Word[], isQuoted: readonly boolean[]): string {
  let shown = '';
  let from = 0;
  for (let at = 0; at < words.length; at++) {
    if (isQuoted[at] !== true) continue;
    const start = words[at]?.start ?? 0;
    while (isQuoted[at + 1] === true) at++;
    shown += text.slice(from, start) + redactedText;
    from = words[at]?.end ?? text.length;
  }
  return shown + text.slice(from);
}
