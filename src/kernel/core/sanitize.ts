import { addAll } from './lists.js';
import { escapeCode, hasUnseen, isDeceptive, maybeDeceptive } from './text.js';

/** Cleans untrusted text for the terminal. At most colours pass; whatever could move, ask, rename, copy or hide is
 * removed or shown as an ASCII escape. It keeps state, so a sequence split over several chunks does not pass either.
 * Source: ECMA-48; xterm ctlseqs. */
export interface Sanitizer {
  write(chunk: string): string;
}

type Mode = 'text' | 'escape' | 'csi' | 'osc' | 'string' | 'charset';

const mark = /\p{M}/u;
const longestSequence = 256;
/** More combining marks than this, which no script uses on one character, would be drawn over other rows. */
const maxMarks = 32;
const tooManyMarks = new RegExp(`\\p{M}{${maxMarks + 1}}`, 'u');

export function createSanitizer(options: { readonly colors: boolean }): Sanitizer {
  return new Filter(options.colors);
}

/** Cleans a whole text. */
export function sanitize(text: string, options: { readonly colors: boolean } = { colors: false }): string {
  return isPlain(text) ? text : new Filter(options.colors).write(text);
}

function isPlain(text: string): boolean {
  return !maybeDeceptive(text) && !tooManyMarks.test(text);
}

/** Counts the combining marks at the end of `text`, which contains nothing outside the first plane. */
function marksAtEnd(text: string): number {
  let at = text.length;
  while (at > 0 && text.charCodeAt(at - 1) >= 0x300 && mark.test(text[at - 1] ?? '')) at--;
  return text.length - at;
}

class Filter implements Sanitizer {
  readonly #colors: boolean;
  #mode: Mode = 'text';
  #sequence = '';
  #afterReturn = false;
  #escapeInString = false;
  /** Combining marks since the last character of another kind. */
  #marks = 0;

  constructor(colors: boolean) {
    this.#colors = colors;
  }

  write(chunk: string): string {
    if (this.#mode === 'text' && !this.#afterReturn && this.#marks === 0 && isPlain(chunk)) {
      this.#marks = marksAtEnd(chunk);
      return chunk;
    }
    let out = '';
    for (const char of chunk) out += this.#take(char, char.codePointAt(0) ?? 0);
    return out;
  }

  #take(char: string, code: number): string {
    if (code === 0x18 || code === 0x1a) {
      this.#mode = 'text';
      return '';
    }
    switch (this.#mode) {
      case 'text':
        return this.#text(char, code);
      case 'escape':
        return this.#escape(char, code);
      case 'csi':
        return this.#csi(char, code);
      case 'osc':
      case 'string':
        return this.#string(char, code);
      case 'charset':
        this.#mode = 'text';
        return code < 0x20 ? this.#text(char, code) : '';
      default:
        return this.#mode satisfies never;
    }
  }

  #text(char: string, code: number): string {
    const afterReturn = this.#afterReturn;
    this.#afterReturn = code === 0x0d;
    if (code === 0x0a) return afterReturn ? '' : '\n';
    if (code === 0x0d) return '\n';
    if (code === 0x1b) return this.#enter('escape');
    if (code === 0x9b) return this.#enter('csi');
    if (code === 0x9d) return this.#enter('osc');
    if (code === 0x90 || code === 0x98 || code === 0x9e || code === 0x9f) return this.#enter('string');
    return this.#visible(char, code);
  }

  #visible(char: string, code: number): string {
    const before = this.#marks;
    const isMark = code >= 0x300 && mark.test(char);
    if (isMark && before >= maxMarks) return '';
    // The first selector chooses a form of the character before it. Terminals do not know it, and more of them carry
    // something else.
    const shown = isSupplementarySelector(code) && before === 0 ? '' : visible(char, code);
    if (isMark) this.#marks = before + 1;
    else if (shown !== '') this.#marks = 0;
    return shown;
  }

  #enter(mode: Mode): string {
    this.#mode = mode;
    this.#sequence = '';
    this.#escapeInString = false;
    this.#afterReturn = false;
    return '';
  }

  #escape(char: string, code: number): string {
    if (code === 0x1b) return '';
    if (char === '[') return this.#enter('csi');
    if (char === ']') return this.#enter('osc');
    if ('PX^_'.includes(char)) return this.#enter('string');
    this.#mode = code >= 0x20 && code <= 0x2f ? 'charset' : 'text';
    return code < 0x20 || code > 0x7e ? this.#text(char, code) : '';
  }

  #csi(char: string, code: number): string {
    if (code >= 0x40 && code <= 0x7e) {
      this.#mode = 'text';
      return char === 'm' && this.#colors ? allowedSgr(this.#sequence) : '';
    }
    if (code >= 0x20 && code < 0x40 && this.#sequence.length < longestSequence) {
      this.#sequence += char;
      return '';
    }
    this.#mode = 'text';
    return this.#text(char, code);
  }

  /** Drops the body of OSC, DCS, APC, PM and SOS. A line end ends it too, so an unterminated one cannot swallow what
   * follows. */
  #string(char: string, code: number): string {
    if (code === 0x0a || code === 0x0d) {
      this.#mode = 'text';
      return this.#text(char, code);
    }
    if (code === 0x9c || (code === 0x07 && this.#mode === 'osc')) {
      this.#mode = 'text';
      return '';
    }
    if (this.#escapeInString) {
      this.#escapeInString = false;
      if (char === '\\') {
        this.#mode = 'text';
        return '';
      }
      if (this.#mode === 'osc') {
        this.#mode = 'escape';
        return this.#escape(char, code);
      }
    }
    this.#escapeInString = code === 0x1b;
    return '';
  }
}

/** Returns the colour parameters of one SGR sequence (0-7, 22-29, 30-49, 90-107, 38/48;2/5) without conceal and
 * fonts. */
function allowedSgr(parameters: string): string {
  if (!/^[0-9;]*$/.test(parameters)) return '';
  const codes = parameters.split(';').map(Number);
  const kept: number[] = [];
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i] ?? 0;
    if (code !== 38 && code !== 48) {
      if (isColor(code)) kept.push(code);
      continue;
    }
    const length = codes[i + 1] === 5 ? 3 : codes[i + 1] === 2 ? 5 : 1;
    if (length > 1 && codes.length >= i + length)
      addAll(
        kept,
        codes.slice(i, i + length).map((part) => part & 255),
      );
    i += length - 1;
  }
  return kept.length > 0 ? `\x1b[${kept.join(';')}m` : '';
}

const colorRanges: readonly (readonly [number, number])[] = [
  [0, 7],
  [22, 27],
  [29, 49],
  [90, 107],
];

function isColor(code: number): boolean {
  return colorRanges.some(([from, to]) => code >= from && code <= to);
}

/** Invisible characters without a meaning on a screen: soft hyphen, zero-width space, word joiner, byte order mark.
 * Other deceptive characters are shown as an escape. */
const dropped: ReadonlySet<number> = new Set([0xad, 0x180e, 0x200b, 0x2060, 0xfeff]);

function visible(char: string, code: number): string {
  if (!isDeceptive(code)) return char;
  if (code === 0) return '\\0';
  if (code === 0x85) return escapeCode(code);
  if (code < 0xa0 || dropped.has(code)) return '';
  return code >= 0xd800 && code <= 0xdfff ? '\ufffd' : escapeCode(code);
}

function isSupplementarySelector(code: number): boolean {
  return code >= 0xe0100 && code <= 0xe01ef;
}

const shortEscapes: Readonly<Record<number, string>> = {
  0x00: '\\0',
  0x07: '\\a',
  0x08: '\\b',
  0x09: '\\t',
  0x0a: '\\n',
  0x0d: '\\r',
  0x1b: '\\x1b',
};
const otherSpace = /[\p{Zs}]/u;

/** Returns a text that a person decides by. No control, no attribute, nothing invisible or reordering passes: each is
 * shown as an ASCII escape, and so is each mark beyond `maxMarks` on one character. Long runs of blanks are counted, and host names in other scripts are followed by their
 * punycode. With `lines`, line breaks stay; otherwise they are shown as `\n`. */
export function decisionText(text: string, options: { readonly lines: boolean }): string {
  const shown = escapeChars(text, (char, code) => decisionChar(char, code, options.lines))
    .replace(/ {9,}/g, (run) => `⟨${run.length} spaces⟩`)
    .replace(/\n{4,}/g, (run) => `\n⟨${run.length - 1} empty lines⟩\n`);
  return nameHosts(shown);
}

/** Returns a text that was decided on, as it is: line breaks, tabs and blanks stay. Controls and what is invisible or
 * reorders text are shown as ASCII escapes. */
export function revealHidden(text: string): string {
  if (isPlain(text)) return text;
  return escapeChars(text.replaceAll('\r\n', '\n'), (char, code) =>
    isDeceptive(code) ? (shortEscapes[code] ?? escapeCode(code)) : char,
  );
}

/** Returns `text` with every character outside of printable ASCII replaced by `shown`, and marks beyond `maxMarks` on
 * one character by escapes. */
function escapeChars(text: string, shown: (char: string, code: number) => string): string {
  let marks = 0;
  // A run of printable ASCII is taken whole: one step for each character of a long text costs seconds.
  return text.replace(/[ -~]+|[^ -~]/gu, (char) => {
    const code = char.codePointAt(0) ?? 0;
    if (code >= 0x20 && code < 0x7f) {
      marks = 0;
      return char;
    }
    marks = code >= 0x300 && mark.test(char) ? marks + 1 : 0;
    return marks > maxMarks ? escapeCode(code) : shown(char, code);
  });
}

/** Returns a character outside of printable ASCII as a person may decide by it. */
function decisionChar(char: string, code: number, lines: boolean): string {
  if (char === '\n' && lines) return '\n';
  if (hasUnseen(char)) return shortEscapes[code] ?? escapeCode(code);
  return otherSpace.test(char) ? escapeCode(code) : char;
}

function nameHosts(text: string): string {
  return text.replace(
    /\b[a-z][a-z0-9+.-]{0,30}:\/\/([^\s/"'`<>|;&()]+)[^\s"'`<>|;&()]*/gi,
    (whole: string, authority: string) => {
      if (/^[\x21-\x7e]*$/.test(authority)) return whole;
      const address = `http://${authority}`;
      return `${whole} ⟨${URL.canParse(address) ? new URL(address).hostname : 'not a host name'}⟩`;
    },
  );
}
