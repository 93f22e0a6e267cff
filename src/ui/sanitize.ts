/** Untrusted text on its way to the terminal. At most colours pass; whatever could move, ask, rename, copy or hide is taken out or shown
 *  as an ASCII escape. Stateful, so that a sequence split over several chunks does not pass either. Source: ECMA-48; xterm ctlseqs. */
export interface Sanitizer { write(chunk: string): string }

type Mode = 'text' | 'escape' | 'csi' | 'osc' | 'string' | 'charset';

const suspicious = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]/;
const longestSequence = 256;

export function createSanitizer(options: { readonly colors: boolean }): Sanitizer {
  return new Filter(options.colors);
}

/** A whole text at once. */
export function sanitize(text: string, options: { readonly colors: boolean } = { colors: false }): string {
  return suspicious.test(text) ? new Filter(options.colors).write(text) : text;
}

class Filter implements Sanitizer {
  readonly #colors: boolean;
  #mode: Mode = 'text';
  #sequence = '';
  #afterReturn = false;
  #escapeInString = false;

  constructor(colors: boolean) {
    this.#colors = colors;
  }

  write(chunk: string): string {
    if (this.#mode === 'text' && !this.#afterReturn && !suspicious.test(chunk)) return chunk;
    let out = '';
    for (const char of chunk) out += this.#take(char, char.codePointAt(0) ?? 0);
    return out;
  }

  #take(char: string, code: number): string {
    if (code === 0x18 || code === 0x1a) { this.#mode = 'text'; return ''; }
    switch (this.#mode) {
      case 'text': return this.#text(char, code);
      case 'escape': return this.#escape(char, code);
      case 'csi': return this.#csi(char, code);
      case 'osc':
      case 'string': return this.#string(char, code);
      case 'charset': this.#mode = 'text'; return code < 0x20 ? this.#text(char, code) : '';
      default: return this.#mode satisfies never;
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
    return visible(char, code);
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
    if (code >= 0x20 && code < 0x40 && this.#sequence.length < longestSequence) { this.#sequence += char; return ''; }
    this.#mode = 'text';
    return this.#text(char, code);
  }

  /** The body of OSC, DCS, APC, PM, SOS is dropped. A line end ends it too, so that an unterminated one cannot swallow what follows. */
  #string(char: string, code: number): string {
    if (code === 0x0a || code === 0x0d) { this.#mode = 'text'; return this.#text(char, code); }
    if (code === 0x9c || (code === 0x07 && this.#mode === 'osc')) { this.#mode = 'text'; return ''; }
    if (this.#escapeInString) {
      this.#escapeInString = false;
      if (char === '\\') { this.#mode = 'text'; return ''; }
      if (this.#mode === 'osc') { this.#mode = 'escape'; return this.#escape(char, code); }
    }
    this.#escapeInString = code === 0x1b;
    return '';
  }
}

/** The colour parameters of one SGR sequence (0-7, 22-29, 30-49, 90-107, 38/48;2/5); conceal and fonts are dropped. */
function allowedSgr(parameters: string): string {
  if (!/^[0-9;]*$/.test(parameters)) return '';
  const codes = parameters.split(';').map(Number);
  const kept: number[] = [];
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i] ?? 0;
    if (code !== 38 && code !== 48) { if (isColor(code)) kept.push(code); continue; }
    const length = codes[i + 1] === 5 ? 3 : codes[i + 1] === 2 ? 5 : 1;
    if (length > 1 && codes.length >= i + length) kept.push(...codes.slice(i, i + length).map((part) => part & 255));
    i += length - 1;
  }
  return kept.length > 0 ? `\x1b[${kept.join(';')}m` : '';
}

const colorRanges: readonly (readonly [number, number])[] = [[0, 7], [22, 27], [29, 49], [90, 107]];

function isColor(code: number): boolean {
  return colorRanges.some(([from, to]) => code >= from && code <= to);
}

/** Invisible without a meaning on a screen: soft hyphen, zero-width space, word joiner, byte order mark. */
const dropped: ReadonlySet<number> = new Set([0xad, 0x180e, 0x200b, 0x2060, 0xfeff]);
/** Next line; bidi marks and controls, Unicode line ends, invisible operators, interlinear and tag characters: shown as escapes. */
const deceptive: readonly (readonly [number, number])[] = [
  [0x85, 0x85], [0x61c, 0x61c], [0x200e, 0x200f], [0x2028, 0x202e], [0x2061, 0x206f], [0xfff9, 0xfffb], [0xe0000, 0xe007f],
];

function visible(char: string, code: number): string {
  if (code >= 0x20 && code < 0x7f) return char;
  if (code === 0) return '\\0';
  if (code === 0x09) return char;
  if (deceptive.some(([from, to]) => code >= from && code <= to)) return escapeCode(code);
  if (code < 0xa0 || dropped.has(code)) return '';
  return code >= 0xd800 && code <= 0xdfff ? '\ufffd' : char;
}

export function escapeCode(code: number): string {
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, '0')}`;
  return code < 0x10000 ? `\\u${code.toString(16).padStart(4, '0')}` : `\\u{${code.toString(16)}}`;
}
