import table from '../../../config/secret-forms.json' with { type: 'json' };

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
  /** Further conditions: `mixed`: letters and digits; `dense`: both in one part; `random`: characters spread as in no
   * word; `password`: no example of a password. */
  readonly mixed?: boolean;
  readonly dense?: boolean;
  readonly random?: boolean;
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
  /** False for a text that only looks like a secret. */
  accepts(value: string, lead: string): boolean;
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
      () => new RegExp(row.open ?? `(?:${alternatives(row.starts)})[${row.chars}]{0,${row.max ?? ''}}`, flags),
    ),
    accepts: (value, lead) => accepts(row, value, lead),
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

/** Makes the expression at its first use: the start of the program needs none. */
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

/** True for characters that are as evenly spread as in a random text: no word, no path, no name made of words. */
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

/** True for texts such as `feature-x-1`, `api.example.com`, `UserName2`. */
function isMadeOfWords(text: string): boolean {
  return text.split(/[-_./:@ ]/).every((part) => /^\d*[A-Za-z]*\d*$/.test(part));
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
  if (isMixed(value)) return !isMadeOfWords(value);
  return value.length >= 20 && value.split(/[a-z][A-Z]/).length > 5;
}
