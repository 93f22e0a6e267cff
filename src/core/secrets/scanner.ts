import type { SecretForm } from './forms.js';

/** A secret in a text, by its place there. `kind` null: one of the texts that were added. `isCut`: only its beginning
 * is there. */
export interface FoundSecret {
  readonly start: number;
  readonly end: number;
  readonly kind: string | null;
  readonly isCut: boolean;
}

/** `openAt`: from here on the text may be the beginning of a secret of which there is not enough yet; its length where
 * there is none. */
export interface Scan {
  readonly found: readonly FoundSecret[];
  readonly openAt: number;
}

/** Finds secrets in one pass: at each place three characters are looked up, and only where something begins with these
 * is more done. */
export interface SecretScanner {
  /** Looks at `text` from `from` on; what stands before tells where words begin. `isWhole`: no more will come. */
  scan(text: string, from?: number, isWhole?: boolean): Scan;
  /** From now on this is a secret too, wherever it stands. The longest of those that begin alike wins. */
  add(literal: string): void;
  /** The characters of the longest of those. */
  readonly longest: number;
}

interface Candidate {
  readonly start: string;
  readonly form: SecretForm | null;
  /** What stands fourth, in small letters; -1: nothing. */ readonly fourth: number;
}

/** A beginning that is longer is none: whatever it is will not be a secret any more. */
const maxOpenChars = 16_384;
/** What is looked at before a start. */
const behindChars = 32;
/** So much of a token tells that it is one, where the rest was cut off. */
const minCutChars = 6;

export function createSecretScanner(forms: readonly SecretForm[], literals: readonly string[] = []): SecretScanner {
  /** By three characters: the number of the list of what begins with them, from 1. */
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

/** The last three characters in fifteen bits, letters of both cases alike. */
function joined(hash: number, code: number): number {
  return ((hash << 5) | (code & 31)) & 0x7fff;
}

/** One way through one text. */
class Pass {
  readonly found: FoundSecret[] = [];
  readonly #text: string;
  readonly #isWhole: boolean;
  /** What looked like a secret and is none is not looked at again, part by part. */
  #refusedTo: Map<string, number> | null = null;
  #pemEnd = -1;

  constructor(text: string, isWhole: boolean) {
    this.#text = text;
    this.#isWhole = isWhole;
  }

  /** Where to go on: behind what was found, or here where nothing was. Negative: what begins here may still become a
   * secret. */
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

  /** Where the last two characters may be the first of a start; the length of the text where they are not. */
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

  /** Whether more may come that belongs to what begins here. */
  #mayGrow(at: number): boolean {
    return !this.#isWhole && this.#text.length - at <= maxOpenChars;
  }

  /** A token that was shortened with `…` or the marker of a cut output. */
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

  /** From its first line to its last; where that is missing, as far as it looks like one. */
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
    const body = reaches(
      /(?:(?:\\[nr]|[\r\n])+[-+ >|\t]{0,4}(?:[A-Za-z0-9+/=]{1,2000}|[A-Za-z-]{2,20}: [^\r\n\\]{0,200}|(?=[\r\n\\]))){0,400}/y,
      text,
      head,
    );
    return body - head >= 24 ? this.#take(kind, at, body, true) : at;
  }

  /** Found once for all keys before it: a text of nothing but first lines is read once as well. */
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

  /** Whether a word of its own begins here: behind an escape of JSON, of a terminal or of an address too. */
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

/** How far the expression goes from `at` on; -1 where it does not fit. */
function reaches(expression: RegExp, text: string, at: number): number {
  expression.lastIndex = at;
  return expression.test(text) ? expression.lastIndex : -1;
}
