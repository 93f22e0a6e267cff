const loadLibraries = () => import('./encoding-libraries.js');

/** An encoding that is neither UTF-8 nor UTF-16. */
export interface LegacyEncoding {
  readonly name: string;
  readonly decode: (bytes: Uint8Array) => string;
  /** Returns null if the encoding lacks a character of `text`. */
  readonly encode: (text: string) => Buffer | null;
  /** Decodes a file piece by piece. */
  readonly decoder: () => { decode(bytes: Buffer): string; end(): string };
}

/** Returns the encoding of a name such as `gbk` or `windows-1251`, or null if the name is unknown. */
export async function legacyEncoding(name: string): Promise<LegacyEncoding | null> {
  if (name === windowsName) return windowsEncoding;
  const { iconv } = await loadLibraries();
  if (!iconv.encodingExists(name)) return null;
  return {
    name,
    decode: (bytes) => iconv.decode(Buffer.from(bytes), name),
    encode(text) {
      const bytes = iconv.encode(text, name);
      return iconv.decode(bytes, name) === text ? bytes : null;
    },
    decoder() {
      const decoder = iconv.getDecoder(name);
      return { decode: (bytes) => decoder.write(bytes), end: () => decoder.end() ?? '' };
    },
  };
}

/** Decodes bytes by the name of a charset, as the Web names them (`iso-8859-1` is windows-1252); null for a name that
 * nobody knows. Bytes that the charset lacks become replacement characters.
 * Source: WHATWG Encoding, section 4.2 "Names and labels". */
export async function decodeCharset(bytes: Uint8Array, label: string): Promise<string | null> {
  const name = charsetName(label);
  if (name === null) return null;
  // Node reads these by its own means; for the others it may lack data, and takes windows-1252 for Latin-1.
  if (/^utf-(?:8|16[lb]e)$/.test(name)) return new TextDecoder(name).decode(bytes);
  return (await legacyEncoding(name))?.decode(bytes) ?? null;
}

/** The names that the Web defines differently from iconv: superset charsets. */
const webNames: Readonly<Record<string, string>> = {
  'iso-8859-9': 'windows-1254',
  'iso-8859-11': 'windows-874',
  'tis-620': 'windows-874',
  'iso-8859-8-i': 'iso-8859-8',
  gb2312: 'gb18030',
  gbk: 'gb18030',
  'euc-kr': 'cp949',
  'x-mac-cyrillic': 'maccyrillic',
  macintosh: 'macroman',
  'x-user-defined': 'windows-1252',
};

function charsetName(label: string): string | null {
  const asked = label.trim().toLowerCase();
  const known = charsetByLabel(asked);
  if (known !== null) return webNames[known] ?? known;
  return asked === '' ? null : (webNames[asked] ?? asked);
}

/** Node knows the labels of the Web, whether or not it has the data of an encoding. */
function charsetByLabel(label: string): string | null {
  try {
    return new TextDecoder(label).encoding;
  } catch {
    return null;
  }
}

/** The most bytes that are looked at to find an encoding. */
export const sampleBytes = 65_536;

/** Returns the likeliest encoding of a sample that is not UTF-8. It is a guess: short texts fit several encodings. */
export async function detectEncoding(sample: Uint8Array): Promise<LegacyEncoding> {
  const { chardet } = await loadLibraries();
  const guesses = chardet.analyse(sample);
  const first = guesses[0]?.name ?? 'ASCII';
  const isPaired = latinNames.has(first) && hasOnlyPairs(sample);
  for (const { name, confidence } of isPaired ? pairedFirst(guesses) : guesses) {
    const encoding = confidence < leastConfidence ? null : await legacyEncoding(iconvNames[name] ?? name.toLowerCase());
    if (encoding && isRoundTrip(encoding, sample)) return encoding;
  }
  return windowsEncoding;
}

interface Guess {
  readonly name: string;
  readonly confidence: number;
}

/** Puts the encodings with pairs of bytes before the others. */
function pairedFirst(guesses: readonly Guess[]): readonly Guess[] {
  const paired = pairedNames.flatMap((name) => guesses.filter((guess) => guess.name === name));
  return [...paired.toSorted((a, b) => b.confidence - a.confidence), ...guesses];
}

const leastConfidence = 5;
/** Encodings whose characters outside of ASCII have two bytes above 0x7f, the most used first. */
const pairedNames = ['GB18030', 'EUC-KR', 'EUC-JP', 'Big5'];
/** Encodings of languages that rarely put two letters outside of ASCII side by side. */
const latinNames: ReadonlySet<string> = new Set([
  'ASCII',
  'ISO-8859-1',
  'ISO-8859-2',
  'ISO-8859-9',
  'windows-1250',
  'windows-1252',
  'windows-1254',
  'windows-1257',
]);
/** The names of chardet that differ from ours. Latin-1 is a part of windows-1252. */
const iconvNames: Readonly<Record<string, string>> = {
  'ISO-8859-1': 'windows-1252',
  'ISO-8859-9': 'windows-1254',
  'ISO-8859-8': 'windows-1255',
  Shift_JIS: 'shift_jis',
};

/** Returns true if bytes above 0x7f always come in pairs. Single letters with accents do not. */
function hasOnlyPairs(sample: Uint8Array): boolean {
  let run = 0;
  for (const byte of sample) {
    if (byte >= 0x80) run++;
    else if (run % 2 === 1) return false;
    else run = 0;
  }
  return true;
}

/** A sample may end inside a character, so its last bytes are not compared. */
function isRoundTrip({ decode, encode }: LegacyEncoding, sample: Uint8Array): boolean {
  const whole = sample.subarray(0, sample.length - (sample.length >= sampleBytes ? 4 : 0));
  const text = decode(whole);
  return !text.includes('\uFFFD') && encode(text)?.equals(whole) === true;
}

const windowsName = 'windows-1252';

/** The characters of windows-1252 for the bytes 0x80 to 0x9f; the others are those of Latin-1. Every byte has a
 * character, so that any file is kept byte for byte. Source: WHATWG Encoding, "index windows-1252". */
const windowsCharacters = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ';

function windowsText(bytes: Uint8Array): string {
  const latin = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
  return latin.replace(/[\x80-\x9f]/g, (character) => windowsCharacters[character.charCodeAt(0) - 0x80] ?? character);
}

const windowsEncoding: LegacyEncoding = {
  name: windowsName,
  decode: windowsText,
  encode(text) {
    const bytes = new Map(
      [...windowsText(Uint8Array.from({ length: 256 }, (_, byte) => byte))].map((character, byte) => [character, byte]),
    );
    const found = [...text].map((character) => bytes.get(character));
    return found.every((byte) => byte !== undefined) ? Buffer.from(found) : null;
  },
  decoder: () => ({ decode: windowsText, end: () => '' }),
};
