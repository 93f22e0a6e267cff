import type { SecretForm } from './forms.js';

/** The place of a secret in a text. `kind` is null for one of the texts that were added. `isCut`: only its beginning is
 * there. */
export interface FoundSecret {
  readonly start: number;
  readonly end: number;
  readonly kind: string | null;
  readonly isCut: boolean;
}

/** The result of a scan. From `openAt` on the text may be the beginning of a secret that is not complete; it is the
 * length of the text where there is none. */
export interface Scan {
  readonly found: readonly FoundSecret[];
  readonly openAt: number;
}

/** Finds secrets in one pass. At each place it looks up three characters, and it does more only where a secret begins
 * with them. */
export interface SecretScanner {
  /** Scans `text` from `from` on; the text before tells where words begin. `isWhole`: no more text will follow. */
  scan(text: string, from?: number, isWhole?: boolean): Scan;
  /** Adds a text that is secret wherever it stands. Of several that begin alike the longest is found. */
  add(literal: string): void;
  /** The length of the longest text that was added. */
  readonly longest: number;
}

interface Candidate {
  readonly start: string;
  readonly form: SecretForm | null;
  /** The code of the fourth character in lower case; -1 where there is none. */
  readonly fourth: number;
}

/** A text longer than this is not the beginning of a secret. */
const maxOpenChars = 16_384;
/** So many characters before a start are looked at. */
const behindChars = 32;
/** A token that was cut off is recognised by so many characters. */
const minCutChars = 6;

export function createSecretScanner(forms: readonly SecretForm[], literals: readonly string[] = []): SecretScanner {
  /** For each three characters, the number (from 1) of the list of candidates that begin with them. */
  const threes = new Uint16Array(32_768);
  const lists: Candidate[][] = [[]];
  let longest = 0;

  const put = (start: string, form: SecretForm | null): void => {
    const three = [0, 1, 2].reduce((hash, at) => joined(hash, start.charCodeAt(at)), 0);
    if (threes[three] === 0) threes[three] = lists.push([]) - 1;
    const list = lists[threes[three] ?? 0] ?? [];
    list.push({ start, form, fourth: start.length > 3 ? start.charCodeAt(3) | 0x20 : -1 });
    list.sort((one, other) => other.start.length - one.start.length);
  };
  const add = (literal: string): void => {
    longest = Math.max(longest, literal.length);
    put(literal, null);
  };
  for (const form of forms) for (const start of form.starts) put(start, form);
  for (const literal of literals) add(literal);

  return {
    add,
    get longest() {
      return longest;
    },
    scan: (text, from = 0, isWhole = true) => {
      const pass = new Pass(text, isWhole);
      let three = 0;
      let at = from;
      for (let last = from; last < text.length; last++) {
        three = joined(three, text.charCodeAt(last));
        const list = threes[three] ?? 0;
        if (list === 0 || last - 2 < at) continue;
        const next = pass.look(lists[list] ?? [], last - 2);
        if (next < 0) return { found: pass.found, openAt: last - 2 };
        if (next === last - 2) continue;
        at = next;
        last = next - 1;
      }
      return { found: pass.found, openAt: isWhole ? text.length : pass.beginning(lists, at) };
    },
  };
}

/** The last three characters in fifteen bits; upper and lower case are the same. */
function joined(hash: number, code: number): number {
  return ((hash << 5) | (code & 31)) & 0x7fff;
}

/** The lines of a private key behind its first: breaks, the margin of a quotation or diff, and Base64 or a header. */
const keyLines =
  String.raw`(?:(?:\\[nr]|[\r\n])+[-+ >|\t]{0,4}` +
  String.raw`(?:[A-Za-z0-9+/=]{1,2000}|[A-Za-z-]{2,20}: [^\r\n\\]{0,200}|(?=[\r\n\\]))){0,400}`;

/** One pass over one text. */
class Pass {
  readonly found: FoundSecret[] = [];
  readonly #text: string;
  readonly #isWhole: boolean;
  /** By kind, the end of a text that looked like a secret and is none: its parts are not looked at again. */
  #refusedTo: Map<string, number> | null = null;
  #pemEnd = -1;

  constructor(text: string, isWhole: boolean) {
    this.#text = text;
    this.#isWhole = isWhole;
  }

  /** Returns where to go on: after the secret that was found, or `at` where there is none. Negative: a secret may begin
   * here that is not complete. */
  look(candidates: readonly Candidate[], at: number): number {
    const fourth = this.#text.length - at > 3 ? this.#text.charCodeAt(at + 3) | 0x20 : -1;
    for (const candidate of candidates) {
      if (candidate.fourth !== fourth && candidate.fourth !== -1 && fourth !== -1) continue;
      const next =
        candidate.form === null ? this.#literal(candidate, at) : this.#form(candidate.start, candidate.form, at);
      if (next !== at) return next;
    }
    return at;
  }

  /** Returns where the last two characters may begin a start; the length of the text where they do not. */
  beginning(lists: readonly (readonly Candidate[])[], from: number): number {
    const { length } = this.#text;
    for (let at = Math.max(from, length - 2); at < length; at++) {
      const text = this.#text.slice(at);
      const isOne = ({ start, form }: Candidate): boolean =>
        beginsWith(start, text, form) && (form === null || this.#beginsWord(form, at));
      if (lists.some((candidates) => candidates.some(isOne))) return at;
    }
    return length;
  }

  #literal({ start }: Candidate, at: number): number {
    const text = this.#text;
    if (text.startsWith(start, at)) {
      this.found.push({ start: at, end: at + start.length, kind: null, isCut: false });
      return at + start.length;
    }
    return !this.#isWhole && text.length - at < start.length && start.startsWith(text.slice(at)) ? -1 : at;
  }

  #form(start: string, form: SecretForm, at: number): number {
    const text = this.#text;
    if (text.length - at < start.length)
      return !this.#isWhole && beginsWith(start, text.slice(at), form) && this.#beginsWord(form, at) ? -1 : at;
    const isHere = hasAt(text, start, at, form) && !this.#isRefused(form, at) && this.#beginsWord(form, at);
    if (!isHere) return at;
    if (form.pem) return this.#privateKey(form, at);
    return this.#mayGrow(at) && reaches(form.open(), text, at) === text.length ? -1 : this.#whole(form, at);
  }

  #isRefused({ kind }: SecretForm, at: number): boolean {
    return (this.#refusedTo?.get(kind) ?? 0) > at;
  }

  #whole(form: SecretForm, at: number): number {
    const whole = form.whole();
    whole.lastIndex = at;
    const [all, lead = '', value = ''] = whole.exec(this.#text) ?? [];
    if (all === undefined) return this.#cut(form, at);
    if (form.accepts(value, lead))
      return this.#take(form.kind, at + lead.length, at + lead.length + value.length, false);
    this.#refusedTo ??= new Map();
    this.#refusedTo.set(form.kind, at + all.length);
    return at;
  }

  /** True where more text may follow that belongs to a secret which begins here. */
  #mayGrow(at: number): boolean {
    return !this.#isWhole && this.#text.length - at <= maxOpenChars;
  }

  /** Finds a token that was shortened with `…` or the marker of a cut output. */
  #cut(form: SecretForm, at: number): number {
    const end = form.isToken ? reaches(form.open(), this.#text, at) : -1;
    if (end < 0 || !/^(?:…|\n\[… )/.test(this.#text.slice(end, end + 4))) return at;
    const start =
      form.starts.filter((text) => this.#text.startsWith(text, at)).toSorted((a, b) => b.length - a.length)[0] ?? '';
    return start.length >= 3 &&
      end - at >= start.length + minCutChars &&
      /\d/.test(this.#text.slice(at + start.length, end))
      ? this.#take(form.kind, at, end, true)
      : at;
  }

  /** Finds a private key from its first line to its last, or as far as it looks like a key. */
  #privateKey({ kind }: SecretForm, at: number): number {
    const text = this.#text;
    const head = reaches(/-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----/y, text, at);
    if (head < 0)
      return this.#mayGrow(at) && text.length - at < 64 && /^-----BEGIN [A-Z0-9 ]*-{0,4}$/.test(text.slice(at))
        ? -1
        : at;
    const end = this.#nextPemEnd(head);
    const tail =
      end - at < maxOpenChars ? reaches(/-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----/y, text, end) : -1;
    if (tail > 0) return this.#take(kind, at, tail, false);
    if (this.#mayGrow(at)) return -1;
    const body = reaches(new RegExp(keyLines, 'y'), text, head);
    return body - head >= 24 ? this.#take(kind, at, body, true) : at;
  }

  /** The next last line of a key. It is searched once for all keys before it, so that a text of nothing but first lines
   * is read once too. */
  #nextPemEnd(from: number): number {
    if (this.#pemEnd >= from) return this.#pemEnd;
    const end = this.#text.indexOf('-----END ', from);
    this.#pemEnd = end < 0 ? this.#text.length : end;
    return this.#pemEnd;
  }

  #take(kind: string, start: number, end: number, isCut: boolean): number {
    this.found.push({ start, end, kind, isCut });
    return end;
  }

  /** True where a word begins, also after an escape of JSON, of a terminal or of an address. */
  #beginsWord({ anywhere, behind }: SecretForm, at: number): boolean {
    const text = this.#text;
    const before = text.slice(Math.max(0, at - behindChars), at);
    if (behind !== null && !behind.test(before)) return false;
    return (
      anywhere ||
      !/[A-Za-z0-9_]$/.test(before) ||
      /(?:\\[nrtbfv]|\\u[0-9a-f]{4}|\\x[0-9a-f]{2}|%[0-9a-f]{2}|(?:\x1b|\\u001b|\\x1b|\\033|\\e)\[[\d;]*[a-z])$/i.test(
        before,
      )
    );
  }
}

function hasAt(text: string, start: string, at: number, { ignoreCase }: SecretForm): boolean {
  if (!ignoreCase) return text.startsWith(start, at);
  for (let index = 4; index < start.length; index++)
    if ((text.charCodeAt(at + index) | 0x20) !== (start.charCodeAt(index) | 0x20)) return false;
  return text.slice(at, at + start.length).toLowerCase() === start;
}

function beginsWith(start: string, text: string, form: SecretForm | null): boolean {
  return start.startsWith(form?.ignoreCase ? text.toLowerCase() : text);
}

/** The end of a match that begins at `at`; -1 where the expression does not match. */
function reaches(expression: RegExp, text: string, at: number): number {
  expression.lastIndex = at;
  return expression.test(text) ? expression.lastIndex : -1;
}
