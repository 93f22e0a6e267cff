import { withoutCutEnd } from '../process/output-collector.js';

/** The form of a text file. A rewrite preserves it. */
export interface TextForm {
  readonly encoding: 'utf-8' | 'utf-16le' | 'utf-16be' | 'windows-1252';
  readonly bom: boolean;
  readonly eol: '\n' | '\r\n';
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

/** Returns true if the file is text with one byte for each character (Latin-1 or windows-1252). Such text has hardly a
 * byte outside of ASCII that is valid UTF-8 too; if most are valid, the file is UTF-8 with some broken bytes. */
export function looksLatin({ wide, replaced }: Oddities): boolean {
  return replaced > wide;
}

/** Returns the name of the encoding for a result, or null if it is an ordinary one. */
export function encodingName({ encoding }: Pick<TextForm, 'encoding'>, text: string): string | null {
  if (encoding !== 'windows-1252') return null;
  return /[^\0-\xff]|[\x80-\x9f]/.test(text) ? 'windows-1252' : 'latin1';
}

/** The characters of windows-1252 for the bytes 0x80 to 0x9f; the others are those of Latin-1. Source: WHATWG Encoding,
 * "index windows-1252". Node 20's own decoder of that name decodes Latin-1. */
const windowsCharacters = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ';

/** Decodes bytes, cut anywhere, as windows-1252: each is a character. */
export function windowsText(bytes: Uint8Array): string {
  const latin = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
  return latin.replace(/[\x80-\x9f]/g, (character) => windowsCharacters[character.charCodeAt(0) - 0x80] ?? character);
}

/** Returns the byte of each character. */
function windowsBytes(): ReadonlyMap<string, number> {
  return new Map(
    [...windowsText(Uint8Array.from({ length: 256 }, (_, byte) => byte))].map((character, byte) => [character, byte]),
  );
}

/** Returns whether the encoding has every character of `text`. */
export function canEncode(text: string, { encoding }: Pick<TextForm, 'encoding'>): boolean {
  if (encoding !== 'windows-1252') return true;
  const bytes = windowsBytes();
  return [...text].every((character) => bytes.has(character));
}

/** The content of a text file without BOM, with its own line ends. `text` is null if the bytes are not valid in an
 * encoding that can be recognised. */
interface DecodedText {
  readonly text: string | null;
  readonly form: TextForm;
}

export const plainForm: TextForm = { encoding: 'utf-8', bom: false, eol: '\n' };

/** Returns the encoding that a byte order mark names, or UTF-8. */
export function sniffEncoding(start: Uint8Array): Pick<TextForm, 'encoding' | 'bom'> {
  if (start[0] === 0xef && start[1] === 0xbb && start[2] === 0xbf) return { encoding: 'utf-8', bom: true };
  if (start[0] === 0xff && start[1] === 0xfe) return { encoding: 'utf-16le', bom: true };
  if (start[0] === 0xfe && start[1] === 0xff) return { encoding: 'utf-16be', bom: true };
  return { encoding: 'utf-8', bom: false };
}

export function decodeText(bytes: Uint8Array): DecodedText {
  const { encoding, bom } = sniffEncoding(bytes);
  try {
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
    return { text, form: { encoding, bom, eol: dominantEol(text) } };
  } catch {
    return (
      (encoding === 'utf-8' && !bom ? latinText(bytes) : null) ?? { text: null, form: { encoding, bom, eol: '\n' } }
    );
  }
}

function latinText(bytes: Uint8Array): DecodedText | null {
  const odd = { wide: 0, replaced: 0 };
  countOddities(new TextDecoder('utf-8').decode(bytes), odd);
  if (!looksLatin(odd)) return null;
  const text = windowsText(bytes);
  return { text, form: { encoding: 'windows-1252', bom: false, eol: dominantEol(text) } };
}

/** Encodes a text whose line ends are already right. */
export function encodeText(text: string, form: TextForm): Buffer {
  const marked = form.bom && !text.startsWith('\uFEFF') ? `\uFEFF${text}` : text;
  if (form.encoding === 'utf-8') return Buffer.from(marked, 'utf8');
  if (form.encoding === 'windows-1252') {
    const bytes = windowsBytes();
    return Buffer.from([...text].map((character) => bytes.get(character) ?? 0x3f));
  }
  const little = Buffer.from(marked, 'utf16le');
  return form.encoding === 'utf-16le' ? little : little.swap16();
}

export function withEol(text: string, eol: TextForm['eol']): string {
  const plain = withoutCarriageReturns(text);
  return eol === '\n' ? text : plain.replaceAll('\n', '\r\n');
}

export function withoutCarriageReturns(text: string): string {
  return text.includes('\r') ? text.replaceAll('\r\n', '\n') : text;
}

function dominantEol(text: string): TextForm['eol'] {
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
  if (start.includes(0)) return signature?.[1] ?? 'binary data';
  const sample = withoutCutEnd(start);
  const invalid = sample.toString('utf8').split('\uFFFD').length - 1;
  return invalid * 10 > sample.length ? (signature?.[1] ?? 'data that is not UTF-8 text') : null;
}
