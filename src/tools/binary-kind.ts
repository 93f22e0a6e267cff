import { withoutCutEnd } from './output-collector.js';
import { sniffEncoding } from './text-encoding.js';

/** File signatures: the first bytes, as Latin-1. Source: the formats' own documents, as file(1) knows them. */
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
/** Signatures that also begin ordinary text: they only name what is binary for another reason. */
const weak = new Set(['BM', 'MZ', 'RIFF', 'BZh', 'ID3', 'OggS', 'GIF8', '!<arch>\n', 'wOFF', 'wOF2']);

/** What kind of binary file begins with `start` (8 KiB are enough), or null for text. */
export function binaryKind(start: Buffer): string | null {
  if (sniffEncoding(start).encoding !== 'utf-8') return null;
  const latin = start.subarray(0, 32).toString('latin1');
  const signature = signatures.find(([bytes]) => latin.startsWith(bytes));
  if (signature && !weak.has(signature[0])) return signature[1];
  if (start.includes(0)) return signature?.[1] ?? 'binary data';
  const sample = withoutCutEnd(start);
  const invalid = sample.toString('utf8').split('\uFFFD').length - 1;
  return invalid * 10 > sample.length ? (signature?.[1] ?? 'data that is not UTF-8 text') : null;
}
