import table from '../../../../config/secret-forms.json' with { type: 'json' };

/** One row of `config/secret-forms.json`: the form of one kind of secret. The scanner tries a form only where it finds
 * one of its `starts`, so that it reads a text once. */
interface FormRow {
  /** The name in the placeholder and in `secrets.unmasked`. */
  readonly kind: string;
  /** A description for the documents. */
  readonly what: string;
  readonly starts: readonly string[];
  /** Characters that may follow a start shorter than three characters. */
  readonly next?: string;
  readonly ignoreCase?: boolean;
  /** The secret may begin inside a word. */
  readonly anywhere?: boolean;
  /** An expression that the text before the secret must match. */
  readonly behind?: string;
  /** For a token: the characters after its start, and how many of them. */
  readonly chars?: string;
  readonly min?: number;
  readonly max?: number;
  /** For anything else, expressions of the text before the secret (from the start on), of the secret, and of an
   * unfinished beginning of both. */
  readonly lead?: string;
  readonly value?: string;
  readonly open?: string;
  readonly pem?: boolean;
  /** Further conditions: `notName`: no name made of words; `dense`: one part of it is none; `random`: characters spread as
   * in no word; `password`: no example of a password. */
  readonly notName?: boolean;
  readonly dense?: boolean;
  readonly random?: boolean;
  /** A value that has a form of its own is of that kind. */
  readonly yields?: boolean;
  readonly password?: 'any' | 'real';
}

/** A row with its expressions. They are sticky and begin at the start of the form; the first group is not secret, the
 * second is the secret. */
export interface SecretForm {
  readonly kind: string;
  /** At least three characters each; in lower case where case does not count. */
  readonly starts: readonly string[];
  readonly ignoreCase: boolean;
  readonly anywhere: boolean;
  readonly pem: boolean;
  /** The secret has nothing but its start and certain characters. */
  readonly isToken: boolean;
  readonly behind: RegExp | null;
  whole(): RegExp;
  open(): RegExp;
  /** False for a text that only looks like a secret. `next` is the character behind it. */
  accepts(value: string, lead: string, next: string): boolean;
}

const rows = table as readonly FormRow[];

/** The kind of the values of our own variables, which have no form. */
export const environmentKind = 'environment';
/** All kinds, in the order of the table. */
export const secretKinds: readonly string[] = rows.map(({ kind }) => kind);

/** The forms of all kinds that are not switched off. */
export function secretForms(unmasked: readonly string[] = []): readonly SecretForm[] {
  return rows.filter(({ kind, starts }) => starts.length > 0 && !unmasked.includes(kind)).map(formOf);
}

function formOf(row: FormRow): SecretForm {
  const { kind, next, ignoreCase = false, anywhere = false, pem = false, behind } = row;
  const flags = ignoreCase ? 'iy' : 'y';
  const starts = next === undefined ? row.starts : row.starts.flatMap((start) => [...next].map((char) => start + char));
  return {
    kind,
    starts,
    ignoreCase,
    anywhere,
    pem,
    isToken: row.open === undefined && !pem,
    behind: behind === undefined ? null : new RegExp(behind),
    whole: once(() => new RegExp(`(${row.lead ?? ''})(${row.value ?? tokenSource(row)})`, flags)),
    open: once(
      // The form with which a text ends, not the first that matches.
      () =>
        new RegExp(
          row.open !== undefined
            ? `(?:${row.open})$`
            : `(?:${alternatives(row.starts)})[${row.chars}]{0,${row.max ?? ''}}`,
          flags,
        ),
    ),
    accepts: (value, lead, next) => accepts(row, value, lead) && !(row.random && isCode(value, lead, next)),
  };
}

/** Builds the expression of a token. Without a fixed length the token takes all of its characters that follow, so a
 * failed match costs no more than `min`. */
function tokenSource({ starts, chars = '', min = 0, max }: FormRow): string {
  const count = max === undefined ? `{${min},}` : `{${min},${max}}(?![${chars}])`;
  return `(?:${alternatives(starts)})[${chars}]${count}`;
}

function alternatives(starts: readonly string[]): string {
  return starts.map((start) => start.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)).join('|');
}

/** Makes a value at its first use: the start of the program needs none. */
function once<T>(make: () => T): () => T {
  let made: T | null = null;
  return () => (made ??= make());
}

const example = /EXAMPLE|x{6}|X{6}|\*{3}|\.{3}|…/;

function accepts(row: FormRow, value: string, lead: string): boolean {
  const { notName, dense, random, password, starts } = row;
  if (password) return isPassword(value, lead, password);
  const start = starts.find((text) => value.startsWith(text)) ?? '';
  const body = value.slice(start.length);
  if (example.test(body) || (notName && isName(body)) || (dense && !isDense(body))) return false;
  return !random || (isRandom(value) && !(row.yields && hasOwnForm(value)));
}

/** The letters of a word in the name of a function, on average: `sqlite3DbSpanDup`. */
const minCodeWordChars = 3.5;

/** True for what a program assigns without quotes: a call, an element, or a member such as
 * `SyntaxKind.LessThanLessThanEqualsToken`. */
function isCode(value: string, lead: string, next: string): boolean {
  if (/["'\\]/.test(lead) || !/^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*$/.test(value)) return false;
  const isMember = value.includes('.') && !/\d/.test(value);
  return (isMember || /[([]/.test(next)) && wordLength(value.replaceAll(/[^A-Za-z]/g, '')) >= minCodeWordChars;
}

/** True where a value begins as a token of another kind does. */
function hasOwnForm(value: string): boolean {
  return ownForms().some(
    (form) => form.starts.some((start) => value.startsWith(start)) && reaches(form.whole(), value, 0) > 0,
  );
}

const ownForms = once(() => rows.filter(({ starts, behind }) => starts.length > 0 && !behind).map(formOf));

function isMixed(text: string): boolean {
  return /\d/.test(text) && /[A-Za-z]/.test(text);
}

/** True where one part has letters and digits or is too long for a word. */
function isDense(text: string): boolean {
  const parts = text.split(/[-_.~/+=]/);
  return (
    parts.some((part) => (part.length >= 8 && isMixed(part)) || (part.length >= minRunChars && !isName(part))) ||
    (text.length >= minRandomChars && !isName(text))
  );
}

/** No word has so many letters of one case. */
const minRunChars = 24;
/** Base64 with this number of characters may have no conspicuous part. */
const minRandomChars = 40;
/** The letters of a word in a name such as `accessTokenProvider`, on average. In random letters it is two. */
const minWordChars = 5;

/** True for letters that may be a name: words, camel case, or words with marks between them. */
function isName(text: string): boolean {
  return /^[^\d]*$/.test(text) && text.split(/[^A-Za-z]+/).every(isWord);
}

function isWord(letters: string): boolean {
  if (/^[A-Z]?[a-z]*$|^[A-Z]+$/.test(letters)) return letters.length < minRunChars;
  return wordLength(letters) >= minWordChars;
}

/** The mean length of the words in camel case. */
function wordLength(letters: string): number {
  return letters.length / (letters.match(/[A-Z]?[a-z]+|[A-Z]+/g)?.length ?? 1);
}

/** True for letters alone that are too long for a word, or whose case changes as in no name. */
function isRandomRun(letters: string): boolean {
  if (letters.length >= minRunChars) return !isWord(letters);
  return letters.length >= 16 && wordLength(letters) < 3;
}

/** True for camel case with a number inside, such as `AuthenticationMD5Password`. */
function isNameWithDigits(part: string): boolean {
  const [first = '', second = '', ...more] = part.split(/\d+/);
  return more.length === 0 && /[a-z]/.test(part) && /[A-Z]/.test(part) && wordLength(first + second) >= 7;
}

/** True for characters that are as evenly spread as in a random text: no word, no path, no name made of words. */
function isRandom(text: string): boolean {
  if (isMixed(text) ? isMadeOfWords(text) : !text.split(/[^A-Za-z]/).some(isRandomRun)) return false;
  const counts = new Map<string, number>();
  for (const char of text) counts.set(char, (counts.get(char) ?? 0) + 1);
  const bits = [...counts.values()].reduce(
    (sum, count) => sum - (count / text.length) * Math.log2(count / text.length),
    0,
  );
  return bits >= (/^[0-9a-f]+$/i.test(text) ? 3 : 3.4);
}

/** True for texts such as `feature-x-1`, `api.example.com`, `UserName2`. */
function isMadeOfWords(text: string): boolean {
  return text.split(/[-_./:@ ]/).every((part) => {
    const letters = /^\d*([A-Za-z]*)\d*$/.exec(part)?.[1];
    return letters !== undefined ? isWord(letters) : isNameWithDigits(part);
  });
}

const usualPasswords = new RegExp(
  String.raw`^(?:pass(?:word|wd|phrase)?|pwd|secret|changeme|change-me|example|test(?:ing)?|user(?:name)?|foo|bar|` +
    String.raw`baz|abc|key|token|none|null|redacted|hidden|my-?password|your-?password|your_password|password1?2?3?)$`,
  'i',
);

/** False for a variable, a mask and the usual words of manuals. `real` also wants letters, digits and a length, because
 * manuals have many passwords in HTTP addresses. */
function isPassword(value: string, lead: string, wanted: 'any' | 'real'): boolean {
  if (/^[$[(%]|\$[{(]|[{}|]|^%[sd]$|^[*.x]+$|\*{3}|\.{3}/i.test(value) || usualPasswords.test(value)) return false;
  const user = lead.slice(lead.indexOf('://') + 3, -1);
  return value !== user && (wanted === 'any' || (value.length >= 6 && isMixed(value)));
}

/** True where the name of a variable says that it is secret and its value may be: long, and no word, number, path or
 * list. */
export function isSecretVariable(name: string, value: string): boolean {
  if (!/(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|_PWD|_PAT|_DSN)$/i.test(name)) return false;
  if (value.length < 8 || /\s|^(?:[~/.]|[A-Za-z]:\\|[a-z]+:\/\/)|^[\d.,:]+$/.test(value)) return false;
  if (/PASS|SECRET/i.test(name) && (isMixed(value) || value.length >= 16)) return true;
  return isMixed(value) ? !isMadeOfWords(value) : value.length >= minRunChars && !isName(value);
}

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
interface Scan {
  readonly found: readonly FoundSecret[];
  readonly openAt: number;
}

/** Finds secrets in one pass. At each place it looks up three characters, and it does more only where a secret begins
 * with them. */
export interface SecretScanner {
  /** Scans `text` from `from` on; the text before shows where words begin. `isWhole`: no more text will follow. */
  scan(text: string, from?: number, isWhole?: boolean): Scan;
  /** Adds a text that is secret in any context. If several begin alike, the longest is found. */
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
/** The number of characters before a start that are examined. */
const behindChars = 32;
/** A token that was cut off is recognised by so many characters. */
const minCutChars = 6;

export function createSecretScanner(forms: readonly SecretForm[], literals: readonly string[] = []): SecretScanner {
  /** For each three characters, the number (from 1) of the list of candidates that begin with them. */
  const threes = new Uint16Array(32_768);
  const lists: Candidate[][] = [[]];
  let longest = 0;

  const put = (start: string, form: SecretForm | null): void => {
    const three = threeAt(start, 0);
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
      let at = from;
      for (let place = nextPlace(text, from, threes); place >= 0;) {
        const next = pass.look(lists[threes[threeAt(text, place)] ?? 0] ?? [], place);
        if (next < 0) return { found: pass.found, openAt: place };
        if (next > place) at = next;
        place = nextPlace(text, Math.max(next, place + 1), threes);
      }
      return { found: pass.found, openAt: isWhole ? text.length : pass.beginning(lists, at) };
    },
  };
}

/** Three characters in fifteen bits; upper and lower case are the same. */
function threeAt(text: string, at: number): number {
  return addToHash(addToHash(addToHash(0, text.charCodeAt(at)), text.charCodeAt(at + 1)), text.charCodeAt(at + 2));
}

function addToHash(hash: number, code: number): number {
  return ((hash << 5) | (code & 31)) & 0x7fff;
}

/** Returns the next place, from `from` on, with three characters that a secret may begin with; -1 for none. The code
 * for each character is a separate function, so that V8 optimises it, with all that it calls, during the start. */
function nextPlace(text: string, from: number, threes: Uint16Array): number {
  const { length } = text;
  let three = 0;
  for (let last = from; last < length; last++) {
    three = addToHash(three, text.charCodeAt(last));
    if (threes[three] !== 0 && last - 2 >= from) return last - 2;
  }
  return -1;
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

  /** Returns where to continue: after the secret that was found, or at `at` if there is none. Negative: a secret may
   * begin here that is not complete. */
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
    if (form.accepts(value, lead, this.#text.charAt(at + all.length)))
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
      isCutToken(this.#text.slice(at + start.length, end))
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

  /** True where a word begins: a token also behind an underscore, which programs put between it and a name. Also after an escape of JSON, of a terminal or of an address. */
  #beginsWord({ anywhere, behind, isToken }: SecretForm, at: number): boolean {
    const text = this.#text;
    const before = text.slice(Math.max(0, at - behindChars), at);
    if (behind !== null && !behind.test(before)) return false;
    return (
      anywhere ||
      !(isToken ? /[A-Za-z0-9]$/ : /[A-Za-z0-9_]$/).test(before) ||
      /(?:\\[nrtbfv]|\\u[0-9a-f]{4}|\\x[0-9a-f]{2}|%[0-9a-f]{2}|(?:\x1b|\\u001b|\\x1b|\\033|\\e)\[[\d;]*[a-z])$/i.test(
        before,
      )
    );
  }
}

/** True where letters and digits, or letters of both cases, are mixed as in no word. */
function isCutToken(text: string): boolean {
  return /\d/.test(text) || !isName(text);
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
