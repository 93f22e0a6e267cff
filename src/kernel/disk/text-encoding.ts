import { detectEncoding, legacyEncoding, sampleBytes } from './legacy-encoding.js';

/** The form of a text file. A rewrite preserves it. */
export interface TextForm {
  /** `utf-8`, `utf-16le`, `utf-16be`, or the name of a legacy encoding. */
  readonly encoding: string;
  readonly bom: boolean;
  readonly eol: '\n' | '\r\n' | '\r';
}

/** Counts of characters in a text that was read as UTF-8: those outside of ASCII, and those that replace invalid bytes.
 */
export interface Oddities {
  wide: number;
  replaced: number;
}

const wideCharacters = /[^\0-\x7f]/gu;
const wideCharacter = /[^\0-\x7f]/;

export function countOddities(text: string, odd: Oddities): void {
  if (!text.includes('\uFFFD')) {
    if (wideCharacter.test(text)) odd.wide += text.length;
    return;
  }
  for (const [character] of text.matchAll(wideCharacters)) {
    if (character === '\uFFFD') odd.replaced++;
    else odd.wide++;
  }
}

/** Returns true if the file is text in a legacy encoding. Such text has hardly a byte outside of ASCII that is valid
 * UTF-8 too; if most are valid, the file is UTF-8 with some broken bytes. */
export function looksLegacy({ wide, replaced }: Oddities): boolean {
  return replaced > wide;
}

/** Returns the name of the encoding for a result, or null if it is an ordinary one. */
export function encodingName({ encoding }: Pick<TextForm, 'encoding'>, text: string): string | null {
  if (encoding.startsWith('utf-')) return null;
  if (encoding !== 'windows-1252') return encoding;
  return /[^\0-\xff]|[\x80-\x9f]/.test(text) ? 'windows-1252' : 'latin1';
}

/** The content of a text file without BOM, with its own line ends. `text` is null if the bytes are not valid in an
 * encoding that can be recognised. */
interface DecodedText {
  readonly text: string | null;
  readonly form: TextForm;
}

export const plainForm: TextForm = { encoding: 'utf-8', bom: false, eol: '\n' };

/** Returns the encoding that a byte order mark names, UTF-16 where every other byte is NUL, or UTF-8. */
export function sniffEncoding(start: Uint8Array): {
  readonly encoding: 'utf-8' | 'utf-16le' | 'utf-16be';
  readonly bom: boolean;
} {
  if (start[0] === 0xef && start[1] === 0xbb && start[2] === 0xbf) return { encoding: 'utf-8', bom: true };
  if (start[0] === 0xff && start[1] === 0xfe) return { encoding: 'utf-16le', bom: true };
  if (start[0] === 0xfe && start[1] === 0xff) return { encoding: 'utf-16be', bom: true };
  return { encoding: unmarkedEncoding(start.subarray(0, 1024)), bom: false };
}

/** Short names that end with NUL look alike. */
const leastPairs = 16;

/** Text in UTF-16 that has letters of ASCII has a NUL beside each of them, always on the same side. */
function unmarkedEncoding(sample: Uint8Array): 'utf-8' | 'utf-16le' | 'utf-16be' {
  const pairs = Math.floor(sample.length / 2);
  const nuls = [0, 0];
  for (const [at, byte] of sample.subarray(0, pairs * 2).entries())
    if (byte === 0) nuls[at % 2] = (nuls[at % 2] ?? 0) + 1;
  const [first = 0, second = 0] = nuls;
  if (pairs < leastPairs || Math.max(first, second) < pairs * 0.7 || Math.min(first, second) > pairs * 0.02)
    return 'utf-8';
  return first > second ? 'utf-16be' : 'utf-16le';
}

/** Decodes a file. `configured`: the encoding of files that are neither UTF-8 nor UTF-16; null: it is detected. */
export async function decodeText(bytes: Uint8Array, configured: string | null): Promise<DecodedText> {
  const { encoding, bom } = sniffEncoding(bytes);
  try {
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
    return { text, form: { encoding, bom, eol: dominantEol(text) } };
  } catch {
    const isUnmarked = encoding === 'utf-8' && !bom && !bytes.includes(0);
    const legacy = isUnmarked ? await legacyText(bytes, configured) : null;
    return legacy ?? { text: null, form: { encoding, bom, eol: '\n' } };
  }
}

async function legacyText(bytes: Uint8Array, configured: string | null): Promise<DecodedText | null> {
  const odd = { wide: 0, replaced: 0 };
  countOddities(new TextDecoder('utf-8').decode(bytes), odd);
  if (!looksLegacy(odd)) return null;
  const named = configured === null ? null : await legacyEncoding(configured);
  const { name, decode, encode } = named ?? (await detectEncoding(legacySample(bytes)));
  const text = decode(bytes);
  // A file with bytes that the encoding lacks would lose them in a rewrite.
  return encode(text)?.equals(bytes) === true
    ? { text, form: { encoding: name, bom: false, eol: dominantEol(text) } }
    : null;
}

/** Returns the part of a file that shows its encoding: from the first byte outside of ASCII. */
export function legacySample(bytes: Uint8Array): Uint8Array {
  const first = bytes.findIndex((byte) => byte >= 0x80);
  return bytes.subarray(Math.max(0, first - 64), Math.max(0, first - 64) + sampleBytes);
}

/** Encodes a text whose line ends are already right. Returns null if the encoding lacks a character. */
export async function encodeText(text: string, form: TextForm): Promise<Buffer | null> {
  const marked = form.bom && !text.startsWith('\uFEFF') ? `\uFEFF${text}` : text;
  if (form.encoding === 'utf-8') return Buffer.from(marked, 'utf8');
  if (!form.encoding.startsWith('utf-16')) return (await legacyEncoding(form.encoding))?.encode(text) ?? null;
  const little = Buffer.from(marked, 'utf16le');
  return form.encoding === 'utf-16le' ? little : little.swap16();
}

export function withEol(text: string, eol: TextForm['eol']): string {
  const plain = withoutCarriageReturns(text);
  return eol === '\n' ? text : plain.replaceAll('\n', eol);
}

export function withoutCarriageReturns(text: string): string {
  return text.includes('\r') ? text.replaceAll('\r\n', '\n') : text;
}

/** Returns the text of a file with LF line ends. A carriage return ends a line only where no line feed does. */
export function withLineFeeds(text: string): string {
  return endsLinesWithCr(text) ? text.replaceAll('\r', '\n') : withoutCarriageReturns(text);
}

function endsLinesWithCr(text: string): boolean {
  return text.includes('\r') && !text.includes('\n');
}

function dominantEol(text: string): TextForm['eol'] {
  if (endsLinesWithCr(text)) return '\r';
  let total = 0;
  let carriage = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) {
    total++;
    if (text.charCodeAt(at - 1) === 0x0d) carriage++;
  }
  return carriage * 2 > total ? '\r\n' : '\n';
}

/** The first bytes of files, as Latin-1. Source: the documents of the formats, as file(1) knows them. */
const signatures: readonly (readonly [string, string])[] = [
  ['\x89PNG\r\n\x1a\n', 'PNG image'],
  ['\xff\xd8\xff', 'JPEG image'],
  ['GIF8', 'GIF image'],
  ['BM', 'BMP image'],
  ['%PDF-', 'PDF document'],
  ['PK\x03\x04', 'ZIP archive (or an office document, jar)'],
  ['\x1f\x8b', 'gzip archive'],
  ['BZh', 'bzip2 archive'],
  ['\xfd7zXZ\0', 'xz archive'],
  ['7z\xbc\xaf\x27\x1c', '7z archive'],
  ['\x28\xb5\x2f\xfd', 'zstd archive'],
  ['\x7fELF', 'ELF program'],
  ['MZ', 'Windows program'],
  ['\xca\xfe\xba\xbe', 'Java class or Mach-O'],
  ['\xcf\xfa\xed\xfe', 'Mach-O program'],
  ['SQLite format 3\0', 'SQLite database'],
  ['\0asm', 'WebAssembly'],
  ['OggS', 'Ogg media'],
  ['ID3', 'MP3 audio'],
  ['RIFF', 'RIFF media'],
  ['wOFF', 'font'],
  ['wOF2', 'font'],
  ['!<arch>\n', 'ar archive'],
];
/** Signatures that ordinary text can begin with too. They only name the kind of a file that is binary for another
 * reason. */
const ambiguous = new Set(['BM', 'MZ', 'RIFF', 'BZh', 'ID3', 'OggS', 'GIF8', '!<arch>\n', 'wOFF', 'wOF2']);

const webp = ['RIFF', 'WebP image'] as const;

function isWebp(latin: string): boolean {
  return latin.startsWith('RIFF') && latin.startsWith('WEBP', 8);
}

/** True for the kinds that a model can be shown as they are. */
export function isShowable(kind: string): boolean {
  return /^(?:PNG|JPEG|GIF|WebP) image$|^PDF document$/.test(kind);
}

/** Returns the kind of binary file that begins with `start` (8 KiB are enough), or null for text. */
export function binaryKind(start: Buffer): string | null {
  if (sniffEncoding(start).encoding !== 'utf-8') return null;
  const latin = start.subarray(0, 32).toString('latin1');
  const signature = isWebp(latin) ? webp : signatures.find(([bytes]) => latin.startsWith(bytes));
  if (signature && !ambiguous.has(signature[0])) return signature[1];
  return start.includes(0) ? (signature?.[1] ?? 'binary data') : null;
}
