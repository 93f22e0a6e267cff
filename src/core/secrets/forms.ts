import table from '../../../config/secret-forms.json' with { type: 'json' };

/** One row of `config/secret-forms.json`: how a kind of secret looks. A form is looked for only where one of its
 * `starts` stands, so that a text is read once. */
interface FormRow {
  /** Its switch in `secrets.unmasked`, and the name in its placeholder. */
  readonly kind: string;
  /** For the documents. */
  readonly what: string;
  readonly starts: readonly string[];
  /** What may follow a start that is shorter than three characters. */
  readonly next?: string;
  readonly ignoreCase?: boolean;
  /** Also inside a word. */
  readonly anywhere?: boolean;
  /** What the characters before it must end with. */
  readonly behind?: string;
  /** A token: so many of these characters behind its start. */
  readonly chars?: string;
  readonly min?: number;
  readonly max?: number;
  /** Anything else: what is said before the secret (from the start on), the secret, and what a beginning of both may
   * look like. */
  readonly lead?: string;
  readonly value?: string;
  readonly open?: string;
  readonly pem?: boolean;
  /** What the secret must hold beside: letters and digits; both in one part of it; as much chance as no word has; what
   * is no example of a password. */
  readonly mixed?: boolean;
  readonly dense?: boolean;
  readonly random?: boolean;
  readonly password?: 'any' | 'real';
}

/** A row made ready. The expressions are sticky and begin where the start begins; the first group is what is not
 * secret, the second the secret. */
export interface SecretForm {
  readonly kind: string;
  /** At least three characters each; in small letters where case does not count. */
  readonly starts: readonly string[];
  readonly ignoreCase: boolean;
  readonly anywhere: boolean;
  readonly pem: boolean;
  /** It is nothing but its start and certain characters. */
  readonly isToken: boolean;
  readonly behind: RegExp | null;
  whole(): RegExp;
  open(): RegExp;
  /** False for what only looks alike. */
  accepts(value: string, lead: string): boolean;
}

const rows = table as readonly FormRow[];

/** The kind of what has no form: the values of our own variables. */
export const environmentKind = 'environment';
/** All kinds, in the order of the table. */
export const secretKinds: readonly string[] = rows.map(({ kind }) => kind);

/** The forms of all kinds but those that are switched off. */
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
      () => new RegExp(row.open ?? `(?:${alternatives(row.starts)})[${row.chars}]{0,${row.max ?? ''}}`, flags),
    ),
    accepts: (value, lead) => accepts(row, value, lead),
  };
}

/** Where the length is not fixed all that follows belongs to it: a failed try then costs no more than `min`, and a good
 * one is not looked at again. */
function tokenSource({ starts, chars = '', min = 0, max }: FormRow): string {
  const count = max === undefined ? `{${min},}` : `{${min},${max}}(?![${chars}])`;
  return `(?:${alternatives(starts)})[${chars}]${count}`;
}

function alternatives(starts: readonly string[]): string {
  return starts.map((start) => start.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)).join('|');
}

/** Made with its first use: a start of the program needs none. */
function once(make: () => RegExp): () => RegExp {
  let made: RegExp | null = null;
  return () => (made ??= make());
}

const example = /EXAMPLE|x{6}|X{6}|\*{3}|\.{3}|…/;

function accepts({ mixed, dense, random, password, starts }: FormRow, value: string, lead: string): boolean {
  const start = starts.find((text) => value.startsWith(text)) ?? '';
  const body = value.slice(start.length);
  if (mixed && !isMixed(body)) return false;
  if (dense && !body.split(/[-_.~/+=]/).some((part) => part.length >= 8 && isMixed(part))) return false;
  if (random && !isRandom(value)) return false;
  if (password) return isPassword(value, lead, password);
  return !example.test(body);
}

function isMixed(text: string): boolean {
  return /\d/.test(text) && /[A-Za-z]/.test(text);
}

/** As evenly spread as letters drawn by lot: no word, no path, no name put together from words. */
function isRandom(text: string): boolean {
  if (!isMixed(text) || isMadeOfWords(text)) return false;
  const counts = new Map<string, number>();
  for (const char of text) counts.set(char, (counts.get(char) ?? 0) + 1);
  const bits = [...counts.values()].reduce(
    (sum, count) => sum - (count / text.length) * Math.log2(count / text.length),
    0,
  );
  return bits >= (/^[0-9a-f]+$/i.test(text) ? 3 : 3.4);
}

/** `feature-x-1`, `api.example.com`, `UserName2`. */
function isMadeOfWords(text: string): boolean {
  return text.split(/[-_./:@ ]/).every((part) => /^\d*[A-Za-z]*\d*$/.test(part));
}

const usualPasswords =
  /^(?:pass(?:word|wd|phrase)?|pwd|secret|changeme|change-me|example|test(?:ing)?|user(?:name)?|foo|bar|baz|abc|key|token|none|null|redacted|hidden|my-?password|your-?password|your_password|password1?2?3?)$/i;

/** Not a variable, a mask or the word that stands for one in every manual; where manuals write most of them (`real`:
 * over HTTP), nothing short of a real one. */
function isPassword(value: string, lead: string, wanted: 'any' | 'real'): boolean {
  if (/^[$[(%]|\$[{(]|[{}|]|^%[sd]$|^[*.x]+$|\*{3}|\.{3}/i.test(value) || usualPasswords.test(value)) return false;
  const user = lead.slice(lead.indexOf('://') + 3, -1);
  return value !== user && (wanted === 'any' || (value.length >= 6 && isMixed(value)));
}

/** Whether the value of a variable with such a name may be a secret: long, and nothing that a person would write as a
 * word, a number, a path or a list. */
export function isSecretVariable(name: string, value: string): boolean {
  if (!/(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|_PWD|_PAT|_DSN)$/i.test(name)) return false;
  if (value.length < 8 || /\s|^(?:[~/.]|[A-Za-z]:\\|[a-z]+:\/\/)|^[\d.,:]+$/.test(value)) return false;
  if (/PASS|SECRET/i.test(name) && (isMixed(value) || value.length >= 16)) return true;
  if (isMixed(value)) return !isMadeOfWords(value);
  return value.length >= 20 && value.split(/[a-z][A-Z]/).length > 5;
}
